"""Inference: what a token of decoding reads and computes, on one device and on devices that share a model.

Requests that come and wait are served by a simulation.
"""

from . import served, shared, simulation, tokens
from .served import *
from .shared import *
from .simulation import *
from .tokens import *

__all__ = [*served.__all__, *shared.__all__, *simulation.__all__, *tokens.__all__]
