"""Interactive calculators and small tables for notebooks and pages."""

from scalebook.language.renamed import renamed

from .calculator import Calculator, calculator
from .grid import Grid
from .guess import guess

__all__ = ["Calculator", "Grid", "calculator", "guess"]

__getattr__ = renamed(__name__)
