"""Attention: what it computes and moves, and what its kernels take."""

from . import arithmetic, kernels
from .arithmetic import *
from .kernels import *

__all__ = [*arithmetic.__all__, *kernels.__all__]
