"""Reinforcement learning: an update from the kernels of its engine and the training step of its trainer."""

from scalebook.language import exports

from .rollouts import *
from .update import *

__all__ = exports(__name__)
