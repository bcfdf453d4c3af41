"""A transformer block as a listing of tensor operations. Every cost is a sum over the listing.

`GPT`, `LLAMA`, `MOE` and `MLA` are listings. Sharding, recomputation, fusion, a key-value cache and the backward pass
are transformations: each takes a listing and returns a new one.

>>> LLAMA.then(tensor_parallel, sequence_parallel, flash).collectives[0].kind
'all_gather'
"""

from .backward import backward, read_and_unread, recomputation, unread_again
from .eager import FAMILIES, Family, eager, undropped
from .hybrids import Hybrid, kinds_of, state_core
from .listing import Block, Collective, parse
from .models import (
    EMBEDDING,
    GPT,
    HEAD,
    LLAMA,
    MLA,
    MLA_ABSORBED,
    MLA_MOE,
    MLA_MOE_ABSORBED,
    MOE,
    active_parameters,
    block,
    blocks_of,
    model_active_params,
    model_params,
    parameters,
    served_blocks,
)
from .operations import Kernel, Op, Tensor
from .sharding import (
    context_exchanged,
    context_parallel,
    expert_parallel,
    expert_tensor_parallel,
    sequence_parallel,
    shard,
    tensor_parallel,
)
from .transformations import (
    attention_core,
    biased,
    cached,
    flash,
    full,
    fuse,
    hold_gathered,
    recompute,
    selective,
    unbiased,
)

__all__ = [
    "EMBEDDING", "FAMILIES", "GPT", "HEAD", "LLAMA", "MLA", "MLA_ABSORBED", "MLA_MOE", "MLA_MOE_ABSORBED", "MOE",
    "Block", "Collective", "Family", "Hybrid", "Kernel", "Op", "Tensor", "active_parameters", "attention_core",
    "backward", "biased", "block", "blocks_of", "cached", "context_exchanged", "context_parallel", "eager",
    "expert_parallel", "expert_tensor_parallel", "flash", "full", "fuse", "hold_gathered", "kinds_of",
    "model_active_params", "model_params", "parameters", "parse", "read_and_unread", "recomputation",
    "recompute", "selective",
    "sequence_parallel", "served_blocks", "shard", "state_core", "tensor_parallel", "unbiased", "undropped",
    "unread_again",
]  # fmt: skip
