"""A training step: strategies, their parts, memory and rules, as one sheet."""

from . import apart, checkpoints, shardings, step, strategy, totals
from .apart import *
from .checkpoints import *
from .shardings import *
from .step import *
from .strategy import *
from .totals import *

__all__ = [*apart.__all__, *checkpoints.__all__, *shardings.__all__, *step.__all__, *strategy.__all__, *totals.__all__]
