"""Lower bounds of expressions over all values on search axes, so that a search without a front skips strategies."""

from collections.abc import Mapping

import numpy as np
import sympy

from scalebook.language import NOTATION, Formula

from .plan import Plan, cases

__all__ = ["least_of"]

_NOT_BELOW = ("positive", "nonnegative", "share")  # the signs of letters that are never below zero


def least_of(plan: Plan, expr: sympy.Basic, formulas: Mapping[str, Formula], letters: Mapping[str, int]) -> int:
    """Add to the plan a lower bound of an expression that holds for all values on its axes.  Return the bound's index.

    It is found by interval arithmetic on the axes' values and on signs of quantities; else it is minus infinity.
    """
    low, _ = _Between(plan, formulas, letters).ends(expr)
    return plan.constant(-np.inf) if low is None else low


class _Between:
    """Lower and upper bounds of expressions over all values of the axes, as pairs of places (None if unknown)."""

    def __init__(self, plan: Plan, formulas: Mapping[str, Formula], letters: Mapping[str, int]):
        self.plan, self.formulas, self.letters = plan, formulas, letters
        self._known: dict[str, tuple[int | None, int | None]] = {}

    def ends(self, expr: sympy.Basic) -> tuple[int | None, int | None]:
        place = self.plan.add(expr, self.letters)
        if not self.plan.is_wide(place):
            return place, place
        if expr.is_Symbol:
            if expr.name not in self._known:
                self._known[expr.name] = self._letter(expr.name, place)
            return self._known[expr.name]
        if isinstance(expr, sympy.Piecewise):
            return self._cases(expr)
        if expr.is_Mul:
            return self._product(expr)
        lows, highs = zip(*map(self.ends, expr.args), strict=True)
        if expr.is_Add:
            return self._of_all(np.add, lows), self._of_all(np.add, highs)
        if isinstance(expr, sympy.Max):
            return self._of_any(np.maximum, lows), self._of_all(np.maximum, highs)
        if isinstance(expr, sympy.Min):
            return self._of_all(np.minimum, lows), self._of_any(np.minimum, highs)
        return None, None

    def _of_all(self, operation, places):
        return None if None in places else self.plan.fold(operation, places)

    def _of_any(self, operation, places):
        return self._of_all(operation, [x for x in places if x is not None] or [None])

    def _letter(self, name, place):
        low = high = None
        if name in self.formulas:
            low, high = self.ends(self.formulas[name].rhs)
        elif place in self.plan.values:
            low, high = (self.plan.constant(float(f(self.plan.values[place]))) for f in (np.min, np.max))
        if NOTATION[name].sign in _NOT_BELOW:
            low = self._of_any(np.maximum, [self.plan.constant(0.0), low])
        return low, high

    def _cases(self, expr):
        """Bound a Piecewise: select the case, or, if a condition depends on an axis, take all its values."""
        values = [x.expr for x in expr.args]
        holds = [self.plan.add(x.cond, self.letters) for x in expr.args]
        lows, highs = zip(*map(self.ends, values), strict=True)
        if not any(map(self.plan.is_wide, holds)):
            ends = ([y for x in zip(own, holds, strict=True) for y in x] for own in (lows, highs))
            return tuple(None if None in x else cases(self.plan, x) for x in ends)
        if lows == highs:
            return self._of_all(np.minimum, lows), self._of_all(np.maximum, highs)
        return None, None

    def _product(self, expr):
        """Bound a product whose factors are all non-negative, or in which only one factor depends on axes."""
        if _is_not_below(expr):
            lows, highs = zip(*map(self.ends, expr.args), strict=True)
            zero = self.plan.constant(0.0)
            lows = [zero if x is None else x for x in lows]
            return self._of_all(np.multiply, lows), self._of_all(np.multiply, highs)
        places = [self.plan.add(x, self.letters) for x in expr.args]
        wide = [x for x, place in zip(expr.args, places, strict=True) if self.plan.is_wide(place)]
        if len(wide) > 1:
            return None, None
        own = [x for x in places if not self.plan.is_wide(x)]
        ends = [self._of_all(np.multiply, [*own, x]) if x is not None else None for x in self.ends(wide[0])]
        return self._of_all(np.minimum, ends), self._of_all(np.maximum, ends)


def _is_not_below(expr: sympy.Basic) -> bool:
    """Return True if the signs of its letters and numbers show that an expression is never negative."""
    if expr.is_Symbol:
        return NOTATION[expr.name].sign in _NOT_BELOW
    if expr.is_Mul or expr.is_Add:
        return all(map(_is_not_below, expr.args))
    if isinstance(expr, sympy.Piecewise):
        return all(_is_not_below(x.expr) for x in expr.args)
    return _is_not_below(expr.base) if expr.is_Pow else bool(expr.is_Number and expr >= 0)
