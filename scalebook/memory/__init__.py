"""Memory: what a model holds where it serves; the state of its training, and the walls."""

from . import serving, state
from .serving import *
from .state import *

__all__ = [*serving.__all__, *state.__all__]
