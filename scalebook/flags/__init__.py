"""Flags of programs: read and write configurations of training frameworks, write commands of serving engines."""

from scalebook.language import exports
from scalebook.language.renamed import renamed

from .configurations import *
from .servers import *
from .table import *

__all__ = exports(__name__)

__getattr__ = renamed(__name__)
