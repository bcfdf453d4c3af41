"""Pipelines: what each schedule leaves idle, what its stages keep and send, and the schedule executed."""

from . import bubbles, simulation, stages
from .bubbles import *
from .simulation import *
from .stages import *

__all__ = [*bubbles.__all__, *simulation.__all__, *stages.__all__]
