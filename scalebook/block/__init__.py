"""A transformer block as a listing of tensor operations. Every cost is a sum over the listing.

`GPT`, `LLAMA`, `MOE` and `MLA` are listings. Sharding, recomputation, fusion, a key-value cache and the backward pass
are transformations: each takes a listing and returns a new one.

>>> LLAMA.then(tensor_parallel, sequence_parallel, flash).collectives[0].kind
'all_gather'
"""

from .backward import *
from .eager import *
from .listing import *
from .models import *
from .operations import *
from .sharding import *
from .transformations import *

__all__ = [
    "EMBEDDING", "FAMILIES", "GPT", "HEAD", "LLAMA", "MLA", "MLA_ABSORBED", "MLA_MOE", "MLA_MOE_ABSORBED", "MOE",
    "Block", "Collective", "Family", "Hybrid", "Kernel", "Op", "Tensor", "active_parameters", "attention_core",
    "backward", "block", "blocks_of", "cached", "context_exchanged", "context_parallel", "eager",
    "expert_parallel", "expert_tensor_parallel", "flash", "full", "fuse", "hold_gathered", "kinds_of",
    "model_active_params", "model_params", "parameters", "parse", "read_and_unread", "recompute", "selective",
    "sequence_parallel", "served_blocks", "shard", "state_core", "tensor_parallel", "unbiased", "undropped",
]  # fmt: skip
