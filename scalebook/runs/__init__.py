"""A whole training run: failures, slow and unequal devices, several sites, compression, costs, and its largest size."""

from scalebook.language import exports
from scalebook.language.renamed import renamed

from .assumptions import *
from .checkpoints import *
from .compression import *
from .costs import *
from .local_sgd import *
from .stragglers import *
from .walls import *

__all__ = exports(__name__)

__getattr__ = renamed(__name__)
