"""A training step: strategies, the parts of its time, its memory, and the rules on strategies, as one sheet."""

from . import (
    accumulation,
    apart,
    checkpoints,
    costs,
    newton_schulz,
    optimizers,
    precision,
    recomputation,
    shardings,
    step,
    stragglers,
    strategy,
    totals,
)
from .accumulation import *
from .apart import *
from .checkpoints import *
from .costs import *
from .newton_schulz import *
from .optimizers import *
from .precision import *
from .recomputation import *
from .shardings import *
from .step import *
from .stragglers import *
from .strategy import *
from .totals import *

_ROOM = (
    accumulation, apart, checkpoints, costs, newton_schulz, optimizers, precision, recomputation, shardings, step,
    stragglers, strategy, totals,
)  # fmt: skip
__all__ = [name for module in _ROOM for name in module.__all__]
