"""Measure your own machine kernel by kernel, get a row for the table of accelerators, and test the formulas on it.

`python -m scalebook.measure --save my.toml` does it from a shell.

>>> from scalebook.training import training_step
>>> mine = stored()
>>> run = training_step(mine.times[0].shape.row(), mine.device.at("fp32"), batch=1, global_batch=8, seq=512)
>>> 0.1 < run.step_time < 100
True
"""

from .backends import *
from .cells import *
from .clock import *
from .errors import *
from .measured import *
from .probes import *
from .steps import *
from .transformer import *
