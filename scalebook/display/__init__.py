"""Figures, calculators, small tables, and the planner."""

from .calculator import Calculator, calculator
from .grid import Grid

__all__ = ["Calculator", "Grid", "calculator", "planner"]


def __getattr__(name):
    if name == "planner":  # it takes the whole package, which calculators do without
        from .planning import planner

        return planner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
