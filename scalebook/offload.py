"""Offloading: tensors of the blocks that are not in use lie in a second tier, and move while others compute.

Forward, a block's weights come in and its activations go out, each on its own direction of the link;
backward, weights, activations and optimizer state come in.  What moves for the next block and the
one before is hidden if it takes no longer than the block that computes.

>>> offload_bandwidth.solve("seq")
seq such that offload_bandwidth = ... (found numerically)
>>> from scalebook.tables import accelerators, models
>>> run = dict(batch=1, tp=32, dp=16, pp=8, chunks=30, kept_values=17, recomputed=0.1, flops_efficiency=0.75, **MIXED)
>>> row = offloading(models.poster_128t, accelerators.h100, **run, **EVERYTHING, seq=8192, near_blocks=2)
>>> round(row.offload_bandwidth / 1e9, 1), round(row.offload_memory / 2**40, 2)
(89.8, 1.89)
"""

from sympy import Max

from scalebook.language import Sheet, formula

__all__ = [
    "EVERYTHING", "MIXED", "block_active_params_mean", "block_backward", "block_flops", "block_forward",
    "block_forward_collectives", "block_params_mean", "block_states", "block_weights", "break_even_tokens",
    "exposed_time", "held_interleaved_first", "near_memory", "offload_bandwidth", "offload_bandwidth_activations",
    "offload_bandwidth_states", "offload_bandwidth_weights", "offload_efficiency", "offload_memory", "offloading",
    "saved_activations_kept",
]  # fmt: skip

# Mixed precision with Adam: 16-bit weights, gradients and activations; fp32 weights and two moments as optimizer state.
MIXED = {"weight_bits": 16, "gradient_bits": 16, "optimizer_bits": 96, "activation_bits": 16}
EVERYTHING = {"weight_offload": 1, "activation_offload": 1, "optimizer_offload": 1}


# One block on one device: what there is to move


@formula("block_params", "kaplan2020 table 1")
def block_params_mean(params, embeddings, vocab, hidden, layers):
    """All parameters but the embeddings, shared out over the blocks.

    >>> block_params_mean(params=1e12, embeddings=1, vocab=51200, hidden=24576, layers=128) / 1e9
    7.8026696
    """
    return (params - embeddings * vocab * hidden) / layers


@formula("block_active_params", "kaplan2020 table 1")
def block_active_params_mean(active_params, embeddings, vocab, hidden, layers):
    """The same of the parameters that one token uses: all of a dense model's, few of a mixture of experts.

    >>> block_active_params_mean(active_params=1e12, embeddings=1, vocab=51200, hidden=24576, layers=128) / 1e9
    7.8026696
    """
    return (active_params - embeddings * vocab * hidden) / layers


@formula("block_weights", "rajbhandari2021 §3", given=[block_params_mean])
def block_weights(block_params, weight_bits, tp):
    """The weights that a device multiplies by, split over the tensor-parallel devices.

    >>> block_weights(block_params=7.25e9, weight_bits=16, tp=32)
    453125000.0
    """
    return block_params * weight_bits / 8 / tp


@formula("block_states", "rajbhandari2021 §3", given=[block_params_mean])
def block_states(block_params, gradient_bits, optimizer_bits, tp, dp):
    """Gradients and optimizer state, split over the tensor-parallel and the data-parallel devices.

    >>> block_states(block_params=7.25e9, gradient_bits=16, optimizer_bits=96, tp=32, dp=16)
    198242187.5
    """
    return block_params * (gradient_bits + optimizer_bits) / 8 / (tp * dp)


@formula("saved_activations", "korthikanti2022 §5")
def saved_activations_kept(batch, seq, hidden, kept_values, activation_bits, tp):
    """What the backward pass reads again, split over the tensor-parallel devices, sequence-parallel parts too.

    17 values with the attention core run again (34 bytes at 16 bits, masks counted), 1 with all run again.

    >>> saved_activations_kept(batch=1, seq=2048, hidden=12288, kept_values=17, activation_bits=16, tp=8)
    106954752.0
    """
    return kept_values * batch * seq * hidden * activation_bits / 8 / tp


# The time to hide it in


@formula("block_flops", "kaplan2020 table 1", given=[block_active_params_mean])
def block_flops(batch, seq, block_active_params, heads, head_dim, tp):
    """Two operations for each parameter and token, and attention of every token to all of its sequence.

    >>> round(block_flops(batch=1, seq=2048, block_active_params=1.812e9, heads=96, head_dim=128, tp=8) / 1e9, 1)
    953.5
    """
    return 2 * batch * seq * (block_active_params + 2 * seq * heads * head_dim) / tp


@formula("block_forward", "rajbhandari2021 §4", given=[block_flops])
def block_forward(block_flops, peak_flops, flops_efficiency):
    """The arithmetic at the rate achieved; collectives are taken as hidden behind it.

    >>> block_forward(block_flops="1 TFLOP", peak_flops="1 PFLOP/s", flops_efficiency=0.8)
    0.00125
    """
    return block_flops / (peak_flops * flops_efficiency)


@formula("block_forward", "korthikanti2022 §4.2.2", given=[block_flops])
def block_forward_collectives(
    block_flops, peak_flops, flops_efficiency, batch, seq, hidden, activation_bits, tp, link_achieved
):
    """The arithmetic, then two gathers and two reduce-scatters over the tensor-parallel devices, nothing overlapped.

    `link_achieved` is the rate of the scale-up network; while collectives run, moves to the second tier go on.

    >>> at = dict(block_flops="1 TFLOP", peak_flops="1 PFLOP/s", flops_efficiency=0.8, link_achieved="300 GB/s")
    >>> round(block_forward_collectives(**at, batch=1, seq=2048, hidden=12288, activation_bits=16, tp=8) * 1e3, 3)
    1.837
    """
    moved = 4 * batch * seq * hidden * activation_bits / 8 * (tp - 1) / tp
    return block_flops / (peak_flops * flops_efficiency) + moved / link_achieved


@formula("block_backward", "narayanan2021 §3", given=[block_forward])
def block_backward(block_forward, recomputed):
    """A gradient for each operand makes two passes of one; what was not kept is computed again before.

    >>> block_backward(block_forward="10 ms", recomputed=1)
    0.03
    """
    return (2 + recomputed) * block_forward


# The bandwidth that hides it

_BLOCK = [block_weights, saved_activations_kept, block_states, block_forward, block_backward]


@formula("offload_bandwidth", "rajbhandari2021 §4", "isaev2023-calculon §2", given=_BLOCK)
def offload_bandwidth(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_forward, block_backward,
):  # fmt: skip
    """The largest of three: weights in and activations out while a block goes forward, all three in while one goes back.

    Out of the backward pass go gradients and new states, never more than comes in, on the other direction.

    >>> offload_bandwidth(**EVERYTHING, block_weights="0.45 GB", saved_activations="0.16 GB", block_states="0.2 GB",
    ...                   block_forward="6 ms", block_backward="12 ms") / 1e9
    75.0
    """
    forward = Max(weight_offload * block_weights, activation_offload * saved_activations, evaluate=False)
    back = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    return Max(forward / block_forward, back / block_backward, evaluate=False)


@formula("offload_bandwidth", "rajbhandari2021 §4", given=_BLOCK)
def offload_bandwidth_weights(block_weights, block_forward):
    """Weights alone: a block's weights come in while another goes forward.

    >>> offload_bandwidth_weights(block_weights="0.45 GB", block_forward="6 ms") / 1e9
    75.0
    """
    return block_weights / block_forward


@formula("offload_bandwidth", "rajbhandari2021 §4", given=_BLOCK)
def offload_bandwidth_activations(saved_activations, block_forward):
    """Activations alone: they go out as fast as the forward pass makes them, and back at half that rate.

    >>> offload_bandwidth_activations(saved_activations="0.16 GB", block_forward="8 ms") / 1e9
    20.0
    """
    return saved_activations / block_forward


@formula("offload_bandwidth", "rajbhandari2021 §4", given=_BLOCK)
def offload_bandwidth_states(block_states, block_backward):
    """Gradients and optimizer state alone: in and out once a backward pass, at most.

    >>> offload_bandwidth_states(block_states="0.2 GB", block_backward="10 ms") / 1e9
    20.0
    """
    return block_states / block_backward


@formula("break_even_tokens", "rajbhandari2021 §4", given=[block_params_mean, block_active_params_mean])
def break_even_tokens(
    block_params, block_active_params, weight_bits, seq, heads, head_dim, peak_flops, flops_efficiency, link_bandwidth
):
    """Tokens of a micro-batch, sequences of length `seq`, at which weights take as long to come as a block to compute.

    The tensor-parallel split cancels: it divides the weights and the arithmetic alike.

    >>> round(break_even_tokens(block_params=1e10, block_active_params=1e10, weight_bits=16, seq=2048, heads=128,
    ...     head_dim=192, peak_flops="989.4 TFLOP/s", flops_efficiency=0.75, link_bandwidth="100 GB/s"))
    7347
    """
    rate = peak_flops * flops_efficiency / link_bandwidth
    return block_params * weight_bits / 8 * rate / (2 * (block_active_params + 2 * seq * heads * head_dim))


# What a slower link costs


@formula("exposed_time", "isaev2023-calculon §2", given=_BLOCK)
def exposed_time(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_forward, block_backward, link_bandwidth,
):  # fmt: skip
    """What is left of the moves when the block has been computed, forward and backward.

    >>> exposed_time(**EVERYTHING, block_weights="0.5 GB", saved_activations="0.1 GB", block_states="0.2 GB",
    ...              block_forward="5 ms", block_backward="10 ms", link_bandwidth="80 GB/s")
    0.00125
    """
    forward = Max(weight_offload * block_weights, activation_offload * saved_activations, evaluate=False)
    back = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    return Max(0, forward / link_bandwidth - block_forward, evaluate=False) + Max(
        0, back / link_bandwidth - block_backward, evaluate=False
    )


@formula("offload_efficiency", "isaev2023-calculon §2", given=[*_BLOCK, exposed_time])
def offload_efficiency(block_forward, block_backward, exposed_time):
    """The time without waiting over the time with it.

    >>> offload_efficiency(block_forward="5 ms", block_backward="10 ms", exposed_time="1.25 ms")
    0.923076923076923
    """
    return (block_forward + block_backward) / (block_forward + block_backward + exposed_time)


# What each tier holds


@formula("held_microbatches", "korthikanti2022 §4.2.3")
def held_interleaved_first(pp, chunks):
    """The first stage of an interleaved pipeline, in a step of at least as many micro-batches as stages.

    >>> held_interleaved_first(pp=8, chunks=4)
    9.75
    """
    return pp + (pp - 1) / chunks


_HELD = [block_weights, saved_activations_kept, block_states, held_interleaved_first]


@formula("offload_memory", "isaev2023-calculon §2", given=_HELD)
def offload_memory(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    layers, pp, held_microbatches,
):  # fmt: skip
    """A stage's blocks, and the activations of all its micro-batches under way.

    >>> offload_memory(**EVERYTHING, block_weights="0.5 GB", saved_activations="0.1 GB", block_states="0.2 GB",
    ...                layers=128, pp=8, held_microbatches=8.875) / 1e9
    25.4
    """
    held = weight_offload * block_weights + optimizer_offload * block_states
    return (held + activation_offload * saved_activations * held_microbatches) * layers / pp


@formula("near_memory", "isaev2023-calculon §2", given=_HELD)
def near_memory(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    layers, pp, held_microbatches, near_blocks,
):  # fmt: skip
    """Of what is offloaded a few blocks, of the rest all.  The work space of a block comes on top.

    Two are enough for equal blocks whose moves in and out have places of their own, both counted here as one.
    States changed in place want a third; unequal blocks want more, or wait.

    >>> near_memory(**EVERYTHING, block_weights="0.5 GB", saved_activations="0.1 GB", block_states="0.2 GB",
    ...             layers=128, pp=8, held_microbatches=8.875, near_blocks=2) / 1e9
    1.6
    """
    moving = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    staying = (
        (1 - weight_offload) * block_weights
        + (1 - optimizer_offload) * block_states
        + (1 - activation_offload) * saved_activations * held_microbatches
    )
    return near_blocks * moving + staying * layers / pp


offloading = Sheet(
    "offloading", block_params_mean, block_active_params_mean, block_weights, block_states, saved_activations_kept,
    block_flops, block_forward, block_backward, offload_bandwidth, exposed_time, offload_efficiency, break_even_tokens,
    held_interleaved_first, offload_memory, near_memory,
    doc="A model whose blocks lie in a second tier: the bandwidth and capacity it needs, and what a slow link costs.",
)  # fmt: skip
