"""A whole training run: its failures and checkpoints, its cost, and how large it can be.

What is true of a run and not of one step is here: failing, slow and unequal devices, training at several sites,
compressed and late gradients, device hours, dollars, electricity and carbon, and the walls of latency and bandwidth.
"""

from . import checkpoints, compression, costs, local_sgd, stragglers, walls
from .checkpoints import *
from .compression import *
from .costs import *
from .local_sgd import *
from .stragglers import *
from .walls import *

_ROOM = (checkpoints, compression, costs, local_sgd, stragglers, walls)
__all__ = [name for module in _ROOM for name in module.__all__]
