"""Pipelines: schedules, their bubbles, what their stages keep and send, and a simulation that executes them."""

from .bubbles import *
from .dualpipe_v import *
from .eager import *
from .schedules import *
from .simulation import *
from .stages import *

_ROOM = (bubbles, dualpipe_v, eager, schedules, simulation, stages)
__all__ = [name for module in _ROOM for name in module.__all__]
