"""Calculon's whole model (Isaev et al. 2023) in our letters: documents, block, and assumptions as formulas."""

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
