"""Measure your own machine kernel by kernel, get a row for the table of accelerators, and test the formulas on it.

`python -m scalebook.measure --save my.toml` does it from a shell.
"""

from .backends import *
from .cells import *
from .clock import *
from .errors import *
from .measured import *
from .probes import *
from .steps import *
from .transformer import *
