"""Figures, calculators and small tables."""

from .calculator import Calculator, calculator
from .grid import Grid

__all__ = ["Calculator", "Grid", "calculator"]
