"""Calculon's whole model (Isaev et al. 2023) in our letters: its documents, its block, and its assumptions as formulas.

>>> from scalebook.calculon import calculon_step, library
>>> run = calculon_step(library.models["megatron-1T"], library.example, library.systems["h100_80g_nvl8"])
>>> run.step_time
47.39555897
"""

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
