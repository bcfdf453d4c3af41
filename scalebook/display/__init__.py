"""Figures and calculators."""

from .calculator import Calculator, calculator

__all__ = ["Calculator", "calculator"]
