"""A training step: strategies, their parts, memory and rules, as one sheet."""

from . import apart, checkpoints, costs, shardings, step, strategy, totals
from .apart import *
from .checkpoints import *
from .costs import *
from .shardings import *
from .step import *
from .strategy import *
from .totals import *

_ROOM = (apart, checkpoints, costs, shardings, step, strategy, totals)
__all__ = [name for module in _ROOM for name in module.__all__]
