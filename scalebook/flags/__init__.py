"""Flags of programs: read and write configurations of training frameworks, write commands of serving engines."""

from scalebook.language.renamed import renamed

from . import configurations, servers, table
from .configurations import *
from .servers import *
from .table import *

_ROOM = (configurations, servers, table)
__all__ = [name for module in _ROOM for name in module.__all__]

__getattr__ = renamed(__name__)
