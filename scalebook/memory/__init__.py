"""Memory: what a model holds where it serves, and where it is trained."""

from . import activations, serving, state
from .activations import *
from .serving import *
from .state import *

__all__ = [*activations.__all__, *serving.__all__, *state.__all__]
