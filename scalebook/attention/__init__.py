"""Attention: its arithmetic, its memory traffic, and the time of its kernels."""

from . import arithmetic, eager, kernels, linear, sparse
from .arithmetic import *
from .eager import *
from .kernels import *
from .linear import *
from .sparse import *

__all__ = [
    *arithmetic.__all__, *eager.__all__, *kernels.__all__, *linear.__all__, *sparse.__all__,
]  # fmt: skip
