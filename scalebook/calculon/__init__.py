"""Calculon, a performance model of training (Isaev et al. 2023), written out in formulas of this package."""

from . import letters, library
from .documents import Choices, Execution, application, execution
from .quirks import QUIRKS
from .rows import machine, shape
from .sheet import calculon_step, priced, step_sheet
from .strategies import Strategies
from .systems import System, system

__all__ = [
    "QUIRKS", "Choices", "Execution", "Strategies", "System", "application", "calculon_step", "execution", "letters",
    "library", "machine", "priced", "shape", "step_sheet", "system",
]  # fmt: skip
