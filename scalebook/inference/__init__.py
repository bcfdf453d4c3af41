"""Inference: what a token of decoding reads and computes, on one device and on devices that share a model."""

from . import queues, shared, tokens
from .queues import *
from .shared import *
from .tokens import *

__all__ = [*queues.__all__, *shared.__all__, *tokens.__all__]
