"""Inference: what a token of decoding reads and computes, a step of serving kernel by kernel, and what users get.

A floor (`decoding`, `sharing`), a step (`decode_step`, `prefill_step`, `mixed_step`), a service (`serve`, queues), and
requests that come and wait in a simulation.
"""

from . import assumptions, experts, queues, room, served, serving, shared, simulation, step, tokens
from .assumptions import *
from .experts import *
from .queues import *
from .room import *
from .served import *
from .serving import *
from .shared import *
from .simulation import *
from .step import *
from .tokens import *

__all__ = [
    *assumptions.__all__, *experts.__all__, *queues.__all__, *room.__all__, *served.__all__, *serving.__all__,
    *shared.__all__, *simulation.__all__, *step.__all__, *tokens.__all__,
]  # fmt: skip
