"""Flags of programs: configurations of training frameworks read and written, and the commands of serving engines."""

from . import configurations, servers, table
from .configurations import *
from .servers import *
from .table import *

_ROOM = (configurations, servers, table)
__all__ = [name for module in _ROOM for name in module.__all__]
