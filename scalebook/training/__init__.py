"""A training step: strategies, their parts, memory and rules, as one sheet."""

from . import shardings, step, strategy, totals
from .shardings import *
from .step import *
from .strategy import *
from .totals import *

__all__ = [*shardings.__all__, *step.__all__, *strategy.__all__, *totals.__all__]
