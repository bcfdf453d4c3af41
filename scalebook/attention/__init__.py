"""Attention: its arithmetic, its memory traffic, and the time of its kernels."""

from scalebook.language import exports

from .arithmetic import *
from .assumptions import *
from .eager import *
from .encoders import *
from .hyper_connections import *
from .kernels import *
from .linear import *
from .sparse import *
from .states import *

__all__ = exports(__name__)
