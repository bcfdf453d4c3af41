"""Memory: what a model holds where it serves, in which number formats; the state of its training, and the walls."""

from . import formats, serving, state
from .formats import *
from .serving import *
from .state import *

__all__ = [*formats.__all__, *serving.__all__, *state.__all__]
