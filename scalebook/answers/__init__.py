"""A first answer: whether a run fits, what was assumed, what it costs, and what to change next."""

from . import answer, assumptions, changes, costs
from .answer import *
from .assumptions import *
from .changes import *
from .costs import *

_ROOM = (answer, assumptions, changes, costs)
__all__ = [name for module in _ROOM for name in module.__all__]
