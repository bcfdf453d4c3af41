"""A transformer block as a list of tensor operations (`GPT`, `LLAMA`, `MOE`, `MLA`), and its costs.

Sharding, recomputation, fusion, a cache and the backward pass each take such a block and return a new one.
"""

from .backward import *
from .counts import *
from .eager import *
from .listing import *
from .models import *
from .operations import *
from .sharding import *
from .transformations import *

__all__ = [
    "EMBEDDING", "FAMILIES", "GPT", "HEAD", "LLAMA", "MLA", "MLA_ABSORBED", "MLA_MOE", "MLA_MOE_ABSORBED", "MOE",
    "Block", "Collective", "Family", "Hybrid", "Kernel", "Kind", "Op", "Tensor", "active_parameters", "attention_core",
    "backward", "block", "blocks_of", "cached", "context_exchanged", "context_parallel", "core_kernels", "counts",
    "eager", "expert_parallel", "expert_tensor_parallel", "flash", "full", "fuse", "hold_gathered", "kinds_of",
    "model_active_params", "model_params", "parameters", "parse", "parts_of", "reaching", "read_and_unread",
    "recompute", "selective", "sequence_parallel", "served_blocks", "shard", "state_core", "tensor_parallel",
    "unbiased", "undropped",
]  # fmt: skip
