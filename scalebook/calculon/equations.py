"""Calculon's equations between quantities, read from `equations.toml`, in four groups.

>>> stages.rounded_stage_blocks(layers=105, pp=8)
14.0
"""

import re
import tomllib
from collections.abc import Iterator
from types import SimpleNamespace

from sympy import Max, Min, Piecewise, ceiling, floor

from scalebook.language import Formula
from scalebook.language.defaults import equation
from scalebook.language.stanzas import file_of

__all__ = ["capacity", "gradients", "stages", "totals"]

_FUNCTIONS = {x.__name__: x for x in (Max, Min, Piecewise, ceiling, floor)}
_FILE = file_of(__package__, "equations.toml")
_TEXT = _FILE.read_text("utf-8")


def _formulas(name: str, entry: dict) -> Iterator[tuple[str, Formula]]:
    line = _TEXT[: re.search(rf'^\[\w+\."?{name}"?\]', _TEXT, re.MULTILINE).start()].count("\n") + 1
    at = __name__, str(_FILE), line
    for word in entry.get("each", [""]):
        own = {key: " ".join(x.replace("#", word).split()) if isinstance(x, str) else x for key, x in entry.items()}
        made = name.replace("#", word)
        yield made, equation(made, own, ("isaev2023-calculon §3",), at, _FUNCTIONS)


_GROUPS = {
    group: SimpleNamespace(**{name: f for key, entry in entries.items() for name, f in _formulas(key, entry)})
    for group, entries in tomllib.loads(_TEXT).items()
}
stages, capacity, totals, gradients = (_GROUPS[x] for x in ("stages", "capacity", "totals", "gradients"))
