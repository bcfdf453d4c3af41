"""Formulas without a function: a constant, a quantity that equals another, and equations stated in a TOML file."""

import re
import sys
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import sympy

from .formula import FORMULAS, Formula, entered, formula
from .notation import NOTATION, expression, quoted, word
from .rules import condition

__all__ = ["constant", "equation", "equations", "exports", "formulas_of", "same", "stated"]


def constant(
    name: str, letter: str, value: int | str | sympy.Expr, sources: str | tuple[str, ...], meaning: str, at=None
) -> Formula:
    """Return a formula that gives a quantity (`letter`) a constant value, such as a default.

    `value` is an integer, an exact decimal as text, or a SymPy number; `at` is the module, file and line that state it.

    >>> constant("whole", "stream_efficiency", "0.5", "williams2009", "Half of the bandwidth.")()
    0.5
    """
    _refuse_no_texts(name, letter, sources, meaning)
    try:
        rhs = sympy.Rational(value) if isinstance(value, str) else expression(value)
    except (TypeError, ValueError, ArithmeticError):
        rhs = sympy.nan
    if not rhs.is_number or not rhs.is_finite:
        raise TypeError(f"a constant is a number, not {quoted(value)}")
    return _line(name, letter, rhs, sources, f"{meaning}\n\n>>> {name}()\n{float(rhs)}", lambda: rhs, at)


def same(name: str, letter: str, other: str, sources: str | tuple[str, ...], meaning: str, at=None) -> Formula:
    """Return a formula that makes one quantity (`letter`) equal to another.  `name` is the formula's variable."""
    _refuse_no_texts(name, letter, other, sources, meaning)
    rhs, function = NOTATION[word(other)].symbol, eval(f"lambda {other}: {other}")  # its parameter is the letter
    return _line(name, letter, rhs, sources, f"{meaning}\n\n>>> {name}({other}=1)\n1.0", function, at)


def _refuse_no_texts(*texts) -> None:
    flat = [y for x in texts for y in (x if isinstance(x, tuple) else (x,))]
    if stray := [x for x in flat if not isinstance(x, str)]:
        raise TypeError(f"a name, a letter, sources and a meaning are texts, not {quoted(stray[0])}")


def _line(name, letter, rhs, sources, doc, function, at) -> Formula:
    sources = (sources,) if isinstance(sources, str) else sources
    new, caller = Formula(name, letter, rhs, sources, doc), sys._getframe(2)
    here = caller.f_globals["__name__"], caller.f_code.co_filename, caller.f_lineno
    module, *place = at if isinstance(at, tuple) else here
    return entered(new, function, module, tuple(place))


_FUNCTIONS = {x: getattr(sympy, x) for x in ("Piecewise", "ceiling", "exp", "floor", "log", "sqrt")}
_FUNCTIONS |= {x: partial(getattr(sympy, x), evaluate=False) for x in ("Max", "Min")}


def equation(name: str, stanza: Mapping, sources: tuple[str, ...], at: tuple, functions=_FUNCTIONS) -> Formula:
    """Return the formula that a stanza states, as `stated` explains it. `at` is the module, file and line of it."""
    text = stanza["equals"]
    for part, whole in reversed(stanza.get("where", {}).items()):
        text = re.sub(rf"\b{part}\b", f"({whole})", text)
    function = condition(text, **functions)
    function.__name__, function.__module__ = name, at[0]
    function.__doc__ = f"{stanza['says']}\n\n>>> {name}({' '.join(stanza['example'].split())})\n{stanza['gives']}"
    given = [FORMULAS[x] for x in stanza.get("given", ())]
    domain = {words: condition(holds, **functions) for words, holds in stanza.get("domain", {}).items()}
    made = formula(stanza["letter"], *sources, given=given, domain=domain)(function)
    made.place = at[1:]
    return made


def stated(module: str) -> dict[str, Formula]:
    """Return the formulas that the TOML file next to a module states, by name.

    A stanza holds the `letter`, the `source`, the meaning (`says`), and one of three: a `value` (an integer, or a
    decimal as text), the letter that it is the `same` as, or the expression that it `equals`. Parts of the expression
    may stand in `where`; `example` is a call and `gives` its result. `given` names default formulas of its inputs, and
    `domain` says in words and as a condition where it holds.
    """
    path, found = Path(sys.modules[module].__file__).with_suffix(".toml"), {}
    text = path.read_text("utf-8")
    for name, x in tomllib.loads(text).items():
        at = module, str(path), text.partition(f"[{name}]\n")[0].count("\n") + 1
        sources = (x["source"],) if isinstance(x["source"], str) else tuple(x["source"])
        if "equals" in x:
            found[name] = equation(name, x, sources, at)
            continue
        make, value = (same, x["same"]) if "same" in x else (constant, x["value"])
        found[name] = make(name, x["letter"], value, sources, x["says"], at)
    return found


def equations(module: str) -> SimpleNamespace:
    """Return the formulas that `stated` returns as attributes, and make them names of the module."""
    found = stated(module)
    vars(sys.modules[module]).update(found)
    return SimpleNamespace(**found)


def formulas_of(module: str) -> list[str]:
    """Return the names of the formulas that a module has defined so far. Its `__all__` begins with them."""
    return [name for name, x in FORMULAS.items() if x.__module__ == module]


def exports(room: str) -> list[str]:
    """Return the public names of a room: those in the `__all__` of its modules that the room has imported."""
    modules = [x for name, x in sys.modules.items() if name.startswith(f"{room}.")]
    listed = {(name, id(vars(x)[name])) for x in modules for name in getattr(x, "__all__", ())}
    return [name for name, x in vars(sys.modules[room]).items() if (name, id(x)) in listed]
