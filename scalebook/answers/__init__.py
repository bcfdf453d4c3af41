"""A first answer: whether a run fits, what was assumed, what it costs, and what to change next."""

from scalebook.language import exports
from scalebook.language.renamed import renamed

from .answer import *
from .assumptions import *
from .changes import *
from .costs import *

__all__ = exports(__name__)

__getattr__ = renamed(__name__)
