"""A training step: strategies, the parts of its time, its memory, and the rules on strategies; and updates by RL."""

from scalebook.language.renamed import renamed

from .newton_schulz import *
from .optimizers import *
from .precision import *
from .recomputation import *
from .rl import *
from .rollouts import *
from .shardings import *
from .step import *
from .strategy import *
from .totals import *

_ROOM = (
    newton_schulz, optimizers, precision, recomputation, rl, rollouts, shardings, step, strategy, totals,
)  # fmt: skip
__all__ = [name for module in _ROOM for name in module.__all__]

__getattr__ = renamed(__name__)
