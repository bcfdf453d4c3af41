"""One block of a model on one device: what offloading must transfer for it, and how long it computes."""

from sympy import Max

from scalebook.language import formula, formulas_of

# What is transferred


@formula("block_params", "kaplan2020 table 1")
def block_params_mean(params, embeddings, vocab, hidden, layers):
    """Mean parameters of a block: all parameters except the embeddings, divided by the number of blocks.

    >>> block_params_mean(params=1e12, embeddings=1, vocab=51200, hidden=24576, layers=128) / 1e9
    7.8026696
    """
    return (params - embeddings * vocab * hidden) / layers


@formula("block_active_params", "kaplan2020 table 1")
def block_active_params_mean(active_params, embeddings, vocab, hidden, layers):
    """Mean parameters of a block that one token uses: all of a dense block, few of a mixture of experts.

    >>> block_active_params_mean(active_params=1e12, embeddings=1, vocab=51200, hidden=24576, layers=128) / 1e9
    7.8026696
    """
    return (active_params - embeddings * vocab * hidden) / layers


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


@formula("block_weights", "rajbhandari2021 §3", given=[block_params_mean])
def block_weights(block_params, weight_bits, tp):
    """Bytes of a block's weights on one device, split over the tensor-parallel devices.

    >>> block_weights(block_params=7.25e9, weight_bits=16, tp=32)
    453125000.0
    """
    return block_params * weight_bits / 8 / tp


@formula("block_states", "rajbhandari2021 §3", given=[block_params_mean])
def block_states(block_params, gradient_bits, optimizer_bits, tp, dp):
    """Bytes of a block's gradients and optimizer state on one device, split over tensor- and data-parallel devices.

    >>> block_states(block_params=7.25e9, gradient_bits=16, optimizer_bits=96, tp=32, dp=16)
    198242187.5
    """
    return block_params * (gradient_bits + optimizer_bits) / 8 / (tp * dp)


@formula("saved_activations", "korthikanti2022 §5")
def saved_activations_kept(batch, seq, hidden, kept_values, activation_bits, tp):
    """Bytes of activations that a block saves for its backward pass on one of `tp` devices, with sequence parallelism.

    `kept_values` is 17 if the attention core is recomputed (34 bytes at 16 bits, with masks), 1 if the whole block is.

    >>> saved_activations_kept(batch=1, seq=2048, hidden=12288, kept_values=17, activation_bits=16, tp=8)
    106954752.0
    """
    return kept_values * batch * seq * hidden * activation_bits / 8 / tp


# The time that hides the transfers


@formula("block_flops", "kaplan2020 table 1", given=[block_active_params_mean])
def block_flops(batch, seq, block_active_params, heads, head_dim, tp):
    """Forward FLOPs of a block on one device: two per parameter and token, plus attention over the whole sequence.

    >>> round(block_flops(batch=1, seq=2048, block_active_params=1.812e9, heads=96, head_dim=128, tp=8) / 1e9, 1)
    953.5
    """
    return 2 * batch * seq * (block_active_params + 2 * seq * heads * head_dim) / tp


@formula("block_forward", "rajbhandari2021 §4", given=[block_flops])
def block_forward(block_flops, peak_flops, flops_efficiency):
    """Time of a block's forward arithmetic at the achieved rate. Collectives are assumed to be hidden behind it.

    >>> block_forward(block_flops="1 TFLOP", peak_flops="1 PFLOP/s", flops_efficiency=0.8)
    0.00125
    """
    return block_flops / (peak_flops * flops_efficiency)


@formula("block_forward", "korthikanti2022 §4.2.2", given=[block_flops])
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


_SHAPED = [block_active_params_shape, block_params_shape, block_flops]


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


@formula("block_backward", "narayanan2021 §3", given=[block_forward])
def block_backward(block_forward, recomputed):
    """Time of a block's backward pass: the forward pass twice (once per operand's gradient), plus recomputation.

    >>> block_backward(block_forward="10 ms", recomputed=1)
    0.03
    """
    return (2 + recomputed) * block_forward


@formula("block_backward", "isaev2023-calculon §2", given=[block_flops])
def block_backward_collectives(block_forward, block_flops, peak_flops, flops_efficiency, recomputed):
    """Time of a block's backward pass with as many collectives as forward, twice the arithmetic, and recomputation.

    >>> at = dict(block_forward=12, block_flops=8, peak_flops=1, flops_efficiency=0.8)
    >>> block_backward_collectives(at, recomputed=1)
    32.0
    """
    return block_forward + (1 + recomputed) * block_flops / (peak_flops * flops_efficiency)


@formula("recomputed", "korthikanti2022 §5", given=[block_params_shape])
def recomputed_attention(block_params, seq, heads, head_dim):
    """Share of a block's arithmetic that is recomputed if only the attention core is.

    >>> round(recomputed_attention(block_params=1.8e9, seq=2048, heads=96, head_dim=128), 3)
    0.027
    """
    core = 2 * seq * heads * head_dim
    return core / (block_params + core)


# Defaults that most formulas of offloading need, and the formulas of a mean block of a model
DEFAULTS = [block_weights, saved_activations_kept, block_states, block_forward, block_backward]
MEAN = [
    block_params_mean, block_active_params_mean, block_weights, block_states, saved_activations_kept, block_flops,
    block_forward, block_backward,
]  # fmt: skip

__all__ = [*formulas_of(__name__)]
