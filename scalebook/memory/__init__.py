"""Memory: weights and caches of a model that is served, number formats, training state, and the memory walls."""

from . import formats, long_context, serving, state
from .formats import *
from .long_context import *
from .serving import *
from .state import *

__all__ = [*formats.__all__, *long_context.__all__, *serving.__all__, *state.__all__]
