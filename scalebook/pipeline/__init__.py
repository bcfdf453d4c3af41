"""Pipelines: schedules, what each leaves idle, what its stages keep and send, and the schedule executed."""

from . import bubbles, eager, schedules, simulation, stages
from .bubbles import *
from .eager import *
from .schedules import *
from .simulation import *
from .stages import *

__all__ = [*bubbles.__all__, *eager.__all__, *schedules.__all__, *simulation.__all__, *stages.__all__]
