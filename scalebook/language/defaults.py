"""Formulas in one line: a constant, and a quantity that equals another. Most are default values."""

import sys

import sympy

from .formula import Formula, entered
from .notation import NOTATION, word

__all__ = ["constant", "same"]


def constant(
    name: str, letter: str, value: int | str | sympy.Expr, sources: str | tuple[str, ...], meaning: str
) -> Formula:
    """Return a formula that gives a quantity (`letter`) a constant value, such as a default.

    `name` is the variable that the formula is assigned to.  `value` is an integer, an exact decimal as text, or a SymPy
    number.

    >>> constant("whole", "stream_efficiency", "0.5", "williams2009", "Half of the bandwidth.")()
    0.5
    """
    rhs = sympy.Rational(value) if isinstance(value, str) else sympy.sympify(value)
    return _line(name, letter, rhs, sources, f"{meaning}\n\n>>> {name}()\n{float(rhs)}", lambda: rhs)


def same(name: str, letter: str, other: str, sources: str | tuple[str, ...], meaning: str) -> Formula:
    """Return a formula that makes one quantity (`letter`) equal to another.  `name` is the formula's variable."""
    rhs, function = NOTATION[word(other)].symbol, eval(f"lambda {other}: {other}")  # its parameter is the letter
    return _line(name, letter, rhs, sources, f"{meaning}\n\n>>> {name}({other}=1)\n1.0", function)


def _line(name, letter, rhs, sources, doc, function) -> Formula:
    new, caller = Formula(name, letter, rhs, (sources,) if isinstance(sources, str) else sources, doc), sys._getframe(2)
    return entered(new, function, caller.f_globals["__name__"], (caller.f_code.co_filename, caller.f_lineno))
