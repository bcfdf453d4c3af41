"""Flags of programs: configurations of training frameworks read and written, and the commands of serving engines.

>>> read("--tensor-model-parallel-size 8 --bf16").knowns["tp"]
8
>>> write(dict(tp=8, sharding="zero1"))
'--tensor-model-parallel-size 8 --use-distributed-optimizer'
"""

from . import configurations, servers, table
from .configurations import *
from .servers import *
from .table import *

_ROOM = (configurations, servers, table)
__all__ = [name for module in _ROOM for name in module.__all__]
