"""Pipelines: schedules, their bubbles, what their stages keep and send, and a simulation that executes them."""

from scalebook.language import exports

from .bubbles import *
from .dualpipe_v import *
from .eager import *
from .schedules import *
from .simulation import *
from .stages import *

__all__ = exports(__name__)
