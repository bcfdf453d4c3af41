"""A training step: strategies, the parts of its time, its memory, and the rules on strategies."""

from scalebook.language import exports
from scalebook.language.renamed import renamed

from .newton_schulz import *
from .optimizers import *
from .precision import *
from .recomputation import *
from .shardings import *
from .step import *
from .strategy import *
from .totals import *

__all__ = exports(__name__)

__getattr__ = renamed(__name__)
