"""Inference: what a token of decoding reads and computes, what requests wait for, and what both cost."""

from . import bill, disaggregation, prefix, queues, scaling, shared, speculation, tail, tokens
from .bill import *
from .disaggregation import *
from .prefix import *
from .queues import *
from .scaling import *
from .shared import *
from .speculation import *
from .tail import *
from .tokens import *

__all__ = [
    *bill.__all__, *disaggregation.__all__, *prefix.__all__, *queues.__all__, *scaling.__all__, *shared.__all__,
    *speculation.__all__, *tail.__all__, *tokens.__all__,
]  # fmt: skip
