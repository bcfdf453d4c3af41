"""Pipelines: schedules, their bubbles, what their stages keep and send, and a simulation that executes them."""

from . import bubbles, dualpipe_v, eager, schedules, simulation, stages
from .bubbles import *
from .dualpipe_v import *
from .eager import *
from .schedules import *
from .simulation import *
from .stages import *

__all__ = [
    *bubbles.__all__,
    *dualpipe_v.__all__,
    *eager.__all__,
    *schedules.__all__,
    *simulation.__all__,
    *stages.__all__,
]
