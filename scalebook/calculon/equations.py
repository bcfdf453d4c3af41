"""Calculon's equations between quantities, read from `equations.toml`, in four groups.

>>> stages.rounded_stage_blocks(layers=105, pp=8)
14.0
"""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from types import SimpleNamespace

from sympy import Max, Min, Piecewise, ceiling, floor

from scalebook.language import Formula, formula

__all__ = ["capacity", "gradients", "stages", "totals"]

_FUNCTIONS = {x.__name__: x for x in (Max, Min, Piecewise, ceiling, floor)}
_FILE = files(__package__) / "equations.toml"
_TEXT = _FILE.read_text("utf-8")


def _formulas(name: str, entry: dict) -> Iterator[tuple[str, Formula]]:
    line = _TEXT[: re.search(rf'^\[\w+\."?{name}"?\]', _TEXT, re.MULTILINE).start()].count("\n")
    for word in entry.get("each", [""]):
        own = {key: " ".join(x.replace("#", word).split()) for key, x in entry.items() if isinstance(x, str)}
        yield name.replace("#", word), _formula(name.replace("#", word), own, entry, line)


def _formula(name: str, own: dict[str, str], entry: dict, line: int) -> Formula:
    """Return a formula that is made from a function, as decorated ones are, with its entry's line as its place."""
    equals = own["equals"]
    for part, expression in entry.get("where", {}).items():
        equals = re.sub(rf"\b{part}\b", f"({expression})", equals)
    letters = dict.fromkeys(x for x in re.findall(r"\b[a-z]\w*", equals, re.ASCII) if x not in _FUNCTIONS)
    code = compile("\n" * line + f"lambda {', '.join(letters)}: {equals}", str(_FILE), "eval")
    function = eval(code, dict(_FUNCTIONS))
    function.__name__, function.__module__ = name, __name__
    function.__doc__ = f"{own['meaning']}\n\n>>> {name}({own['example']})\n{entry['value']}"
    return formula(own["letter"], "isaev2023-calculon §3")(function)


_GROUPS = {
    group: SimpleNamespace(**{name: f for key, entry in entries.items() for name, f in _formulas(key, entry)})
    for group, entries in tomllib.loads(_TEXT).items()
}
stages, capacity, totals, gradients = (_GROUPS[x] for x in ("stages", "capacity", "totals", "gradients"))
