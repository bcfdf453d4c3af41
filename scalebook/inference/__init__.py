"""Inference: what a token costs while decoding, what a serving step takes kernel by kernel, and what users get.

From simple to complete: lower bounds (`decoding`, `sharing`), one step (`decode_step`, `prefill_step`, `mixed_step`), a
whole service (`serve`), sessions of agents, and simulations in which requests arrive and wait.
"""

from scalebook.language import exports
from scalebook.language.renamed import renamed

from .assumptions import *
from .batches import *
from .bill import *
from .capacity import Capacity as Capacity
from .disaggregation import *
from .encoder import *
from .engine_terms import *
from .expert_layer import *
from .experts import *
from .generations import *
from .lengths import *
from .operators import *
from .pools import *
from .prefix import *
from .prompts import *
from .queues import *
from .results import *
from .scaling import *
from .serving import *
from .serving_memory import *
from .session_loop import *
from .session_pauses import *
from .session_search import *
from .session_simulation import *
from .sessions import *
from .shared import *
from .simulation import *
from .speculation import *
from .state_operators import *
from .step import *
from .tail import *
from .tiers import *
from .tokens import *
from .traces import *
from .two_batch_overlap import *

__all__ = exports(__name__)

__getattr__ = renamed(__name__)
