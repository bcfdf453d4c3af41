"""Attention: what it computes and moves, and what its kernels take."""

from . import arithmetic, kernels, linear, sparse
from .arithmetic import *
from .kernels import *
from .linear import *
from .sparse import *

__all__ = [*arithmetic.__all__, *kernels.__all__, *linear.__all__, *sparse.__all__]
