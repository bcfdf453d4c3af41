"""A whole training run: failures, slow and unequal devices, several sites, compression, costs, and its largest size."""

from scalebook.language.renamed import renamed

from . import assumptions, checkpoints, compression, costs, local_sgd, stragglers, walls
from .assumptions import *
from .checkpoints import *
from .compression import *
from .costs import *
from .local_sgd import *
from .stragglers import *
from .walls import *

_ROOM = (assumptions, checkpoints, compression, costs, local_sgd, stragglers, walls)
__all__ = [name for module in _ROOM for name in module.__all__]

__getattr__ = renamed(__name__)
