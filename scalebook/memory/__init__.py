"""Memory: weights and caches of a model that is served, number formats, training state, and the memory walls."""

from scalebook.language import exports

from .formats import *
from .long_context import *
from .serving import *
from .state import *

__all__ = exports(__name__)
