"""Where a formula holds: conditions on its letters, each with the words that say it.

>>> from .notation import symbol
>>> groups = Condition("multiples of pp micro-batches", sympy.Eq(sympy.Mod(symbol("microbatches"), symbol("pp")), 0))
>>> groups.holds({"microbatches": np.array([8.0, 12.0]), "pp": 8.0})
array([ True, False])
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import sympy

from . import code
from .notation import NOTATION
from .units import show

__all__ = ["Condition", "OutsideDomain", "guarded", "put", "refuse_outside", "relaxed"]


class OutsideDomain(ValueError):
    """A formula was asked for a number where it does not hold."""


class Condition(NamedTuple):
    """A relation of letters, and words that end the sentence "it holds for"."""

    words: str
    relation: sympy.Basic

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(sorted(x.name for x in self.relation.free_symbols))

    def holds(self, values: Mapping) -> np.ndarray:
        """Where it holds, of the values of its letters; a search can leave out the rest."""
        return np.asarray(_compiled(self.relation, self.letters)(*(_whole(values[x]) for x in self.letters))[0])


def _whole(x):
    """What is a whole number but for its rounding, as that number: a count may come out of a division."""
    x, near = np.asarray(x, float), np.rint(x)
    return np.where(np.abs(x - near) <= 1e-9 * np.abs(x), near, x)


@cache
def _compiled(relation, letters):
    return code.vector(letters, [("holds", relation)], ["holds"])


def put(conditions, places: Mapping, name: str) -> tuple[Condition, ...]:
    """The conditions with expressions put in the place of letters; raises OutsideDomain where one then fails."""
    left = [Condition(x.words, x.relation.xreplace(places)) for x in conditions]
    for old, new in zip(conditions, left, strict=True):
        if new.relation == False:  # noqa: E712  (a SymPy truth is not Python's)
            at = ", ".join(f"{x.name}={places[x]}" for x in sorted(old.relation.free_symbols & set(places), key=str))
            raise OutsideDomain(f"{name} holds for {old.words}, not at {at}")
    return tuple(x for x in left if x.relation != True)  # noqa: E712


def relaxed(conditions, unknown: sympy.Symbol) -> tuple[Condition, ...]:
    """The conditions on a solved formula: of its unknown they ask no more to be a multiple of something."""
    return tuple(x for x in conditions if not any(unknown in y.free_symbols for y in x.relation.atoms(sympy.Mod)))


def refuse_outside(name: str, conditions, values: Mapping) -> None:
    """Raise OutsideDomain, saying which condition fails where, unless all hold everywhere."""
    for x in conditions:
        fails = ~x.holds(values)
        if fails.any():
            own = {n: np.broadcast_to(values[n], fails.shape)[fails].flat[0] for n in x.letters}
            said = ", ".join(f"{n}={show(v, NOTATION[n].unit)}" for n, v in own.items())
            rows = f"in {fails.sum():,} of {fails.size:,} rows, the first " if fails.ndim else ""
            raise OutsideDomain(f"{name} holds for {x.words}, not {rows}at {said}")


def guarded(letter: sympy.Symbol, rhs: sympy.Expr, conditions) -> sympy.Expr:
    """The right-hand side where the conditions hold, and no number elsewhere."""
    if not conditions:
        return rhs
    inside = sympy.And(*(x.relation.xreplace({letter: rhs}) for x in conditions))
    return sympy.Piecewise((rhs, inside), (sympy.nan, True), evaluate=False)
