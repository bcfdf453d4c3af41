"""Calculon, a performance model of training (Isaev et al. 2023), written out in formulas of this package."""

from . import library
from .documents import QUIRKS, Choices, Execution, application, execution
from .library import machine, shape
from .sheet import calculon_step, priced, step_sheet
from .strategies import Strategies
from .systems import System, system

__all__ = [
    "QUIRKS", "Choices", "Execution", "Strategies", "System", "application", "calculon_step", "execution", "library",
    "machine", "priced", "shape", "step_sheet", "system",
]  # fmt: skip
