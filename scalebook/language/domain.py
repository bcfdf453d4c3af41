"""Domains of formulas: conditions under which a formula holds, each with words for error messages."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import sympy

from . import code
from .notation import NOTATION, free
from .units import show

__all__ = ["Condition", "OutsideDomain", "guarded", "refuse_long", "refuse_outside", "relaxed", "substituted"]

_MOST_EXPONENT = 14_000  # bits of a number with 4,300 digits, the most that Python prints


class OutsideDomain(ValueError):
    """Raised if a formula is evaluated at values for which it does not hold."""


class Condition(NamedTuple):
    """A relation between quantities, under which a formula holds.  `words` end the sentence "it holds for ..."."""

    words: str
    relation: sympy.Basic

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(sorted(x.name for x in free(self.relation)))

    def holds(self, values: Mapping) -> np.ndarray:
        """Return whether the condition holds, as a boolean array, for values by name."""
        with np.errstate(all="ignore"):
            return np.asarray(_compiled(self.relation, self.letters)(*(_whole(values[x]) for x in self.letters))[0])


def _whole(x):
    """Round values that are within rounding error of an integer, because a count may come out of a division."""
    x, near = np.asarray(x, float), np.rint(x)
    return np.where(np.abs(x - near) <= 1e-9 * np.abs(x), near, x)


@cache
def _compiled(relation, letters):
    return code.vector(letters, [("holds", relation)], ["holds"])


def substituted(conditions, places: Mapping, name: str) -> tuple[Condition, ...]:
    """Replace symbols in conditions.  Return the conditions still undecided; raise OutsideDomain if one is false."""
    left = [Condition(x.words, x.relation.xreplace(places)) for x in conditions]
    for old, new in zip(conditions, left, strict=True):
        if new.relation == False:  # noqa: E712  (a SymPy truth is not Python's)
            at = ", ".join(f"{x.name}={places[x]}" for x in sorted(old.relation.free_symbols & set(places), key=str))
            raise OutsideDomain(f"{name} holds for {old.words}, not at {at}")
    return tuple(x for x in left if x.relation != True)  # noqa: E712


def relaxed(conditions, unknown: sympy.Symbol) -> tuple[Condition, ...]:
    """Return the conditions of a formula solved for `unknown`, without any that require it to be a multiple."""
    return tuple(x for x in conditions if not any(unknown in y.free_symbols for y in x.relation.atoms(sympy.Mod)))


def refuse_outside(name: str, conditions, values: Mapping) -> None:
    """Raise OutsideDomain if any of a formula's conditions fails for these values; say which one and where."""
    for x in conditions:
        fails = ~x.holds(values)
        if fails.any():
            own = {n: np.broadcast_to(values[n], fails.shape)[fails].flat[0] for n in x.letters}
            said = ", ".join(f"{n}={show(v, NOTATION[n].unit)}" for n, v in own.items())
            rows = f"in {fails.sum():,} of {fails.size:,} rows, the first " if fails.ndim else ""
            raise OutsideDomain(f"{name} holds for {x.words}, not {rows}at {said}")


def guarded(letter: sympy.Symbol, rhs: sympy.Expr, conditions) -> sympy.Expr:
    """Return an expression that is `rhs` where the conditions hold and NaN elsewhere."""
    if not conditions:
        return rhs
    inside = sympy.And(*(x.relation.xreplace({letter: rhs}) for x in conditions))
    return sympy.Piecewise((rhs, inside), (sympy.nan, True), evaluate=False)


def refuse_long(rhs: sympy.Expr, exact: Mapping, name: str) -> None:
    """Raise ValueError if exact numbers make a power with more digits than Python prints, which SymPy would compute."""
    for power in sorted(rhs.atoms(sympy.Pow), key=sympy.count_ops):  # an inner power first
        exponent = power.exp.xreplace(exact) if power.base.is_Integer else sympy.S.One
        if exponent.is_number and abs(exponent) > _MOST_EXPONENT:
            said = f"{power.base} to the power of {float(exponent):g} has more than 4,300 digits"
            raise ValueError(f"{name} is exact while letters are open, and {said}: give a number for each")
