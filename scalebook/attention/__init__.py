"""Attention: its arithmetic, its memory traffic, and the time of its kernels."""

from . import arithmetic, assumptions, eager, encoders, hyper_connections, kernels, linear, sparse, states
from .arithmetic import *
from .assumptions import *
from .eager import *
from .encoders import *
from .hyper_connections import *
from .kernels import *
from .linear import *
from .sparse import *
from .states import *

__all__ = [
    *arithmetic.__all__, *assumptions.__all__, *eager.__all__, *encoders.__all__, *hyper_connections.__all__,
    *kernels.__all__, *linear.__all__, *sparse.__all__, *states.__all__,
]  # fmt: skip
