"""Offloading: tensors of idle blocks are kept in a second tier, and are transferred while other blocks compute.

Transfers are hidden if they take no longer than the computation of the present block.
"""

from sympy import Max, Min

from scalebook.language import Sheet, formula, formulas_of
from scalebook.offload import block, tiers

# Mixed precision with Adam: 16-bit weights, gradients and activations; fp32 weights and two moments as optimizer state.
MIXED = {"weight_bits": 16, "gradient_bits": 16, "optimizer_bits": 96, "activation_bits": 16}
EVERYTHING = {"weight_offload": 1, "activation_offload": 1, "optimizer_offload": 1}


# The bandwidth that hides the transfers


@formula("offload_bandwidth", "rajbhandari2021 §4", "isaev2023-calculon §2", given=block.DEFAULTS)
def offload_bandwidth(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_forward, block_backward,
):  # fmt: skip
    """Bandwidth per direction that hides all transfers, in a block's forward pass and in its backward pass.

    In the forward pass weights come in and activations go out. In the backward pass both and the optimizer state come
    in.

    >>> at = dict(EVERYTHING, block_weights="0.45 GB", saved_activations="0.16 GB", block_states="0.2 GB")
    >>> offload_bandwidth(at, block_forward="6 ms", block_backward="12 ms") / 1e9
    75.0
    """
    forward = Max(weight_offload * block_weights, activation_offload * saved_activations, evaluate=False)
    back = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    return Max(forward / block_forward, back / block_backward, evaluate=False)


@formula("offload_bandwidth", "rajbhandari2021 §4", given=block.DEFAULTS)
def offload_bandwidth_weights(block_weights, block_forward):
    """Bandwidth that hides offloaded weights alone: a block's weights come in during another block's forward pass.

    >>> offload_bandwidth_weights(block_weights="0.45 GB", block_forward="6 ms") / 1e9
    75.0
    """
    return block_weights / block_forward


@formula("offload_bandwidth", "rajbhandari2021 §4", given=block.DEFAULTS)
def offload_bandwidth_activations(saved_activations, block_forward):
    """Bandwidth that hides offloaded activations alone: they leave as fast as the forward pass makes them.

    >>> offload_bandwidth_activations(saved_activations="0.16 GB", block_forward="8 ms") / 1e9
    20.0
    """
    return saved_activations / block_forward


@formula("break_even_tokens", "rajbhandari2021 §4", given=block.MEAN[:2])
def break_even_tokens(
    block_params, block_active_params, weight_bits, seq, heads, head_dim, peak_flops, flops_efficiency, link_bandwidth
):
    """Tokens per micro-batch, in sequences of `seq`, that make fetching a block's weights take as long as computing it.

    >>> at = dict(block_params=1e10, block_active_params=1e10, weight_bits=16, seq=2048, heads=128, head_dim=192)
    >>> round(break_even_tokens(at, peak_flops="989.4 TFLOP/s", flops_efficiency=0.75, link_bandwidth="100 GB/s"))
    7347
    """
    rate = peak_flops * flops_efficiency / link_bandwidth
    return block_params * weight_bits / 8 * rate / (2 * (block_active_params + 2 * seq * heads * head_dim))


def _carries_activations(activation_offload, saved_activations, link_bandwidth, block_forward, block_backward):
    return activation_offload * saved_activations < link_bandwidth * Min(block_forward, block_backward)


_FAST = {"a link that is fast enough for the activations": _carries_activations}


@formula("break_even_tokens", "rajbhandari2021 §4", given=block.DEFAULTS, domain=_FAST)
def break_even_tokens_mix(
    batch, seq, weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_forward, block_backward, link_bandwidth,
):  # fmt: skip
    """Fewest tokens per micro-batch, in sequences of `seq`, that let the link hide everything that is offloaded.

    If the link is too slow for the activations, no number helps. If only activations are offloaded, the result is 0.

    >>> at = dict(**EVERYTHING, block_weights=5e8, saved_activations=2e8, block_states=2e8, link_bandwidth="64 GB/s")
    >>> round(break_even_tokens_mix(at, batch=1, seq=8192, block_forward="6 ms", block_backward="12 ms"))
    10667
    """
    forward = weight_offload * block_weights / (link_bandwidth * block_forward)
    states = weight_offload * block_weights + optimizer_offload * block_states
    back = states / (link_bandwidth * block_backward - activation_offload * saved_activations)
    return batch * seq * Max(forward, back, evaluate=False)


# What a slower link costs


@formula("forward_wait", "isaev2023-calculon §2", given=block.DEFAULTS)
def forward_wait(weight_offload, activation_offload, block_weights, saved_activations, block_forward, link_bandwidth):
    """Time that transfers add to a block's forward pass: weights come in while activations go out.

    >>> at = dict(weight_offload=1, activation_offload=1, block_weights="0.5 GB", saved_activations="0.1 GB")
    >>> forward_wait(at, block_forward="5 ms", link_bandwidth="80 GB/s")
    0.00125
    """
    moved = Max(weight_offload * block_weights, activation_offload * saved_activations, evaluate=False)
    return Max(0, moved / link_bandwidth - block_forward, evaluate=False)


@formula("backward_wait", "isaev2023-calculon §2", given=block.DEFAULTS)
def backward_wait(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_backward, link_bandwidth,
):  # fmt: skip
    """Time that transfers add to a block's backward pass: weights, activations, gradients and optimizer state come in.

    >>> at = dict(EVERYTHING, block_weights=50, saved_activations=10, block_states=30)
    >>> backward_wait(at, block_backward=10, link_bandwidth=8)
    1.25
    """
    moved = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    return Max(0, moved / link_bandwidth - block_backward, evaluate=False)


@formula("exposed_time", "isaev2023-calculon §2", given=[*block.DEFAULTS, forward_wait, backward_wait])
def exposed_time(forward_wait, backward_wait):
    """Time that transfers add to a block, forward and backward.

    >>> exposed_time(forward_wait="1 ms", backward_wait="0.25 ms")
    0.00125
    """
    return forward_wait + backward_wait


@formula("offload_efficiency", "isaev2023-calculon §2", given=[*block.DEFAULTS, exposed_time])
def offload_efficiency(block_forward, block_backward, exposed_time):
    """Compute time of a block over its time including waits for transfers.

    >>> offload_efficiency(block_forward="5 ms", block_backward="10 ms", exposed_time="1.25 ms")
    0.923076923076923
    """
    return (block_forward + block_backward) / (block_forward + block_backward + exposed_time)


offloading = Sheet(
    "offloading", *block.MEAN, offload_bandwidth, forward_wait, backward_wait, exposed_time, offload_efficiency,
    break_even_tokens, tiers.held_interleaved_first, tiers.offload_memory, tiers.near_blocks_mix,
    tiers.near_states_in_place, tiers.near_memory,
    doc="A model whose blocks are kept in a second tier: the bandwidth and capacity it needs, and a slow link's cost.",
)  # fmt: skip

offloading_with_collectives = Sheet(
    "offloading_with_collectives", block.block_params_shape, block.block_active_params_shape, block.block_weights,
    block.block_states, block.saved_activations_kept, block.block_flops, block.block_forward_collectives,
    block.block_backward_collectives, offload_bandwidth, tiers.held_interleaved_first, tiers.offload_memory,
    doc="Blocks of a given shape in a second tier, with tensor-parallel collectives that overlap with nothing.",
)  # fmt: skip

break_even = Sheet(
    "break_even", *block.MEAN, tiers.held_interleaved_first, tiers.least_optimizer_offload, offload_bandwidth,
    break_even_tokens_mix, tiers.offload_memory, forward_wait, backward_wait, exposed_time, offload_efficiency,
    doc="Given device memory: what must be offloaded, and the capacity, bandwidth or tokens that this needs.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "EVERYTHING", "MIXED", "break_even", "offloading", "offloading_with_collectives"]
