"""What a value is not below, whatever letters on axes are: a sweep prices whole only what could be among the best.

>>> from scalebook.language import Formula, symbol
>>> from .plan import Plan
>>> plan = Plan(["tp", "dp"], {"dp_overlap": (0.0, 1.0)})
>>> exposed = Formula("f", "dp_exposed", (1 - symbol("dp_overlap")) * symbol("dp"))
>>> letters = plan.letters | {"dp_exposed": plan.add(exposed.rhs, plan.letters)}
>>> place = least_of(plan, symbol("dp_exposed") + symbol("tp"), {"dp_exposed": exposed}, letters)
>>> plan.is_wide(place), plan.bits[place] == plan.bits[plan.letters["tp"]]  # what is exposed is not below zero
(False, True)
"""

from collections.abc import Mapping

import numpy as np
import sympy

from scalebook.language import NOTATION, Formula

from .plan import Plan

__all__ = ["least_of"]

_NOT_BELOW = ("positive", "nonnegative", "share")  # the signs of letters that are never below zero


def least_of(plan: Plan, expr: sympy.Basic, formulas: Mapping[str, Formula], letters: Mapping[str, int]) -> int:
    """The place of what an expression is not below, by the signs of its letters; it rests on no axis.

    Of what rests on axes a sum keeps the parts that do not, and any other letter that is never below zero is zero.
    """
    place = plan.add(expr, letters)
    if not plan.is_wide(place):
        return place
    if expr.is_Symbol:
        is_signed = NOTATION[expr.name].sign in _NOT_BELOW
        rest = least_of(plan, formulas[expr.name].rhs, formulas, letters) if expr.name in formulas else None
        zero = plan.constant(0.0 if is_signed else -np.inf)
        return zero if rest is None else plan.fold(np.maximum, [zero, rest])
    if expr.is_Add:
        return plan.fold(np.add, [least_of(plan, x, formulas, letters) for x in expr.args])
    if expr.is_Mul and all(_is_not_below(x) for x in expr.args):
        return plan.fold(np.multiply, [least_of(plan, x, formulas, letters) for x in expr.args])
    if isinstance(expr, sympy.Max):
        return plan.fold(np.maximum, [least_of(plan, x, formulas, letters) for x in expr.args])
    return plan.constant(-np.inf)


def _is_not_below(expr: sympy.Basic) -> bool:
    """Whether it is never below zero: a letter or a number of that sign, or their powers."""
    base = expr.base if expr.is_Pow else expr
    return NOTATION[base.name].sign in _NOT_BELOW if base.is_Symbol else bool(base.is_Number and base >= 0)
