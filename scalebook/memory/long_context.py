"""What one new token computes and reads at a context, for any mix of full, sliding, sparse and compressed attention.

`scalebook.block.reaching` gives a model's row the widths that these formulas use.
"""

from sympy import Min

from scalebook.attention.assumptions import linear_bits_wide
from scalebook.language import Sheet, formula
from scalebook.tables.shapes import used_params

from .serving import linear_memory

__all__ = ["context_costs", "context_flops", "context_memory", "context_reads", "token_flops"]

_LATER = "deepseek2025-v32 §2.1"


@formula("context_flops", _LATER)
def context_flops(layers, context, whole_width, window_width, window, picked_width, picked_reach):
    """FLOPs of a new token's attention: to the whole context, to its last `window` tokens, and to picked tokens.

    Indexers and compressed entries reach the whole context. Up to `picked_reach` tokens an indexer picks all.

    >>> context_flops(layers=61, context=131072, whole_width=8256, window_width=0, window=1, picked_width=139264,
    ...               picked_reach=2048)
    166815858688.0
    """
    near, picked = Min(context, window, evaluate=False), Min(context, picked_reach, evaluate=False)
    return 2 * layers * (whole_width * context + window_width * near + picked_width * picked)


@formula("token_flops", _LATER, given=[used_params, context_flops])
def token_flops(used_params, layers, state_width, context_flops):
    """FLOPs of one new token: its weights, the states that it updates and reads, and its attention to the context.

    >>> token_flops(used_params=16e9, layers=60, state_width=2359296, context_flops=64e9)
    96283115520.0
    """
    return 2 * (used_params + layers * state_width) + context_flops


@formula("context_memory", _LATER, given=[linear_memory, linear_bits_wide])
def context_memory(layers, context, whole_cache, window_cache, window, picked_cache, kv_bits, linear_memory):
    """Memory that one sequence keeps: its caches, and its states.

    Sparse attention keeps the entries that it does not read, too.

    >>> context_memory(layers=61, context=131072, whole_cache=128, window_cache=0, window=1, picked_cache=576,
    ...                kv_bits=16, linear_memory=0)
    11257511936.0
    """
    near = Min(context, window, evaluate=False)
    kept = (whole_cache + picked_cache) * context + window_cache * near
    return layers * kept * kv_bits / 8 + linear_memory


@formula("context_reads", _LATER, given=[linear_memory, linear_bits_wide])
def context_reads(
    layers, context, whole_cache, window_cache, window, picked_cache, picked_reach, kv_bits, linear_memory
):
    """Bytes that a new token moves: the cache entries that it reads, and the states that it reads and writes.

    >>> context_reads(layers=61, context=131072, whole_cache=128, window_cache=0, window=1, picked_cache=576,
    ...               picked_reach=2048, kv_bits=16, linear_memory=0)
    2190737408.0
    """
    near, picked = Min(context, window, evaluate=False), Min(context, picked_reach, evaluate=False)
    read = whole_cache * context + window_cache * near + picked_cache * picked
    return layers * read * kv_bits / 8 + 2 * linear_memory


context_costs = Sheet(
    "what a token costs at a context",
    context_flops, used_params, token_flops, linear_bits_wide, linear_memory, context_memory, context_reads,
    doc="What one more token costs at a context: arithmetic, bytes of cache to hold, and bytes to move.",
)  # fmt: skip
