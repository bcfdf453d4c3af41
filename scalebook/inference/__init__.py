"""Inference: what a token of decoding reads and computes, on one device and on devices that share a model."""

from . import disaggregation, prefix, queues, shared, speculation, tail, tokens
from .disaggregation import *
from .prefix import *
from .queues import *
from .shared import *
from .speculation import *
from .tail import *
from .tokens import *

__all__ = [
    *disaggregation.__all__,
    *prefix.__all__,
    *queues.__all__,
    *shared.__all__,
    *speculation.__all__,
    *tail.__all__,
    *tokens.__all__,
]
