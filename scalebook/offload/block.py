"""One block of a model on one device: what offloading must transfer for it, and how long it computes."""

from sympy import Max

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of block.toml


def _matrices(hidden, heads, kv_heads, head_dim, ffn):
    return 2 * hidden * (head_dim * (heads + kv_heads) + ffn)


@formula("block_params", "isaev2023-calculon §2")
def block_params_shape(hidden, heads, kv_heads, head_dim, ffn):
    """Parameters of a block: four attention matrices and the two matrices of a feed-forward layer without a gate.

    >>> block_params_shape(hidden=12288, heads=96, kv_heads=96, head_dim=128, ffn=49152) / 1e9
    1.811939328
    """
    return _matrices(hidden, heads, kv_heads, head_dim, ffn)


@formula("block_active_params", "isaev2023-calculon §2")
def block_active_params_shape(hidden, heads, kv_heads, head_dim, ffn):
    """Active parameters of a dense block without a gate in its feed-forward layer: all six matrices.

    >>> block_active_params_shape(hidden=12288, heads=96, kv_heads=96, head_dim=128, ffn=49152) / 1e9
    1.811939328
    """
    return _matrices(hidden, heads, kv_heads, head_dim, ffn)


@formula("block_forward", "korthikanti2022 §4.2.2", given=[_OWN.block_flops])
def block_forward_collectives(
    block_flops, peak_flops, flops_efficiency, batch, seq, hidden, activation_bits, tp, link_achieved
):
    """Time of a block's forward pass if its two tensor-parallel gathers and two reduce-scatters overlap with nothing.

    >>> at = dict(block_flops="1 TFLOP", peak_flops="1 PFLOP/s", flops_efficiency=0.8, link_achieved="300 GB/s")
    >>> round(block_forward_collectives(at, batch=1, seq=2048, hidden=12288, activation_bits=16, tp=8) * 1e3, 3)
    1.837
    """
    return block_flops / (peak_flops * flops_efficiency) + _sent(batch, seq, hidden, activation_bits, tp, link_achieved)


def _sent(batch, seq, hidden, activation_bits, tp, link_achieved):
    return 4 * batch * seq * hidden * activation_bits / 8 * (tp - 1) / tp / link_achieved


_SHAPED = [block_active_params_shape, block_params_shape, _OWN.block_flops]


@formula("block_forward", "isaev2023-calculon §2", given=_SHAPED)
def block_forward_ring(
    block_flops, peak_flops, flops_efficiency, batch, seq, hidden, activation_bits, tp, link_achieved, block_params,
    heads, head_dim, ffn,
):  # fmt: skip
    """Time of a block's forward pass if its four collectives are rings, each overlapping with the product next to it.

    >>> at = dict(block_flops="1 TFLOP", peak_flops="1 PFLOP/s", flops_efficiency=0.8, link_achieved="100 GB/s")
    >>> at |= dict(block_params=1.8e9, heads=96, head_dim=128, ffn=49152)
    >>> round(block_forward_ring(at, batch=1, seq=2048, hidden=12288, activation_bits=16, tp=8) * 1e3, 3)
    1.796
    """
    arithmetic, width = block_flops / (peak_flops * flops_efficiency), heads * head_dim
    each = _sent(batch, seq, hidden, activation_bits, tp, link_achieved) / 4
    pace = arithmetic / (block_params + 2 * seq * width)
    out, wide = pace * hidden * width, pace * hidden * ffn
    into = pace * block_params - out - 2 * wide  # projections of queries, keys and values
    return arithmetic + sum(Max(0, each - product, evaluate=False) for product in (into, out, wide, wide))


@formula("block_forward", "isaev2023-calculon §2", given=_SHAPED)
def block_forward_piped(
    block_flops, peak_flops, flops_efficiency, batch, seq, hidden, activation_bits, tp, link_achieved, block_params,
    heads, head_dim, ffn,
):  # fmt: skip
    """Time of a block's forward pass if each collective is sent in `tp` pieces. The first piece is not hidden.

    >>> at = dict(block_flops=1e12, peak_flops=1e15, flops_efficiency=0.8, link_achieved=1e11, activation_bits=16)
    >>> shape = dict(block_params=1.8e9, hidden=12288, heads=96, head_dim=128, ffn=49152)
    >>> round(block_forward_piped(at, shape, batch=1, seq=2048, tp=8) * 1e3, 3)
    2.016
    """
    return block_forward_ring.rhs + _sent(batch, seq, hidden, activation_bits, tp, link_achieved) / tp


@formula("recomputed", "korthikanti2022 §5", given=[block_params_shape])
def recomputed_attention(block_params, seq, heads, head_dim):
    """Share of a block's arithmetic that is recomputed if only the attention core is.

    >>> round(recomputed_attention(block_params=1.8e9, seq=2048, heads=96, head_dim=128), 3)
    0.027
    """
    core = 2 * seq * heads * head_dim
    return core / (block_params + core)


# Defaults that most formulas of offloading need, and the formulas of a mean block of a model
DEFAULTS = [_OWN.block_weights, _OWN.saved_activations_kept, _OWN.block_states, _OWN.block_forward, _OWN.block_backward]
MEAN = [
    _OWN.block_params_mean, _OWN.block_active_params_mean, _OWN.block_weights, _OWN.block_states,
    _OWN.saved_activations_kept, _OWN.block_flops, _OWN.block_forward, _OWN.block_backward,
]  # fmt: skip

__all__ = [*formulas_of(__name__)]
