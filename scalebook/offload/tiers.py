"""Memory in both tiers of an offloaded run, and how much must be offloaded for device memory to suffice.

Device memory, the near tier, has a place for each block in use, arriving or leaving. The far tier has the rest.
"""

from sympy import Le, Max, Piecewise, ceiling

from scalebook.language import constant, formula, formulas_of
from scalebook.offload.block import DEFAULTS, block_forward, block_states, block_weights, saved_activations_kept

# The number of near places. A block takes a place from the start of its transfer until it has been computed. One block
# finishes per period, set by the slowest of transfers and arithmetic. Places = time taken / period (Little's law).


def _places(taken, *lanes):
    return ceiling(taken / Max(*lanes, evaluate=False), evaluate=False)


@formula("near_blocks", "rajbhandari2021 §6.2", given=[block_weights, block_forward])
def near_blocks_weights(block_weights, block_forward, link_bandwidth, link_latency):
    """Number of block buffers in device memory if only weights are offloaded: for the block at work and those arriving.

    >>> at = dict(block_weights="0.5 GB", block_forward="6 ms", link_bandwidth="100 GB/s")
    >>> near_blocks_weights(at, link_latency="10 us"), near_blocks_weights(at, link_latency="2 ms")
    (2.0, 3.0)
    """
    move = block_weights / link_bandwidth
    return _places(link_latency + move + block_forward, move, block_forward)


@formula("near_blocks", "rajbhandari2021 §6.2", given=DEFAULTS)
def near_blocks_mix(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_forward, block_backward, link_bandwidth, link_latency,
):  # fmt: skip
    """Number of block buffers in device memory so that no block waits for a buffer in either pass, if blocks are equal.

    >>> at = dict(weight_offload=1, activation_offload=1, optimizer_offload=1, block_weights=5, saved_activations=1)
    >>> at |= dict(block_states=2, block_forward=6, block_backward=12, link_bandwidth=1)
    >>> near_blocks_mix(at, link_latency=0.1), near_blocks_mix(at, link_latency=2)
    (2.0, 3.0)
    """
    forward = Max(weight_offload * block_weights, activation_offload * saved_activations, evaluate=False)
    back = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    forward, back = forward / link_bandwidth, back / link_bandwidth
    return Max(
        _places(link_latency + forward + block_forward, forward, block_forward),
        _places(link_latency + back + block_backward, back, block_backward),
        evaluate=False,
    )


@formula("near_states", "rajbhandari2021 §6.2", given=DEFAULTS)
def near_states_in_place(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states,
    block_backward, link_bandwidth, link_latency,
):  # fmt: skip
    """Device buffers for optimizer state that is updated in place: one state arrives, one is updated, and one leaves.

    >>> at = dict(weight_offload=1, activation_offload=1, optimizer_offload=1, block_weights=5, saved_activations=1)
    >>> near_states_in_place(at, block_states=2, block_backward=9, link_bandwidth=1, link_latency=0.1)
    3.0
    """
    back = weight_offload * block_weights + activation_offload * saved_activations + optimizer_offload * block_states
    back, leave = back / link_bandwidth, optimizer_offload * block_states / link_bandwidth
    return _places(2 * link_latency + back + block_backward + leave, back, block_backward)


# What each tier holds


@formula("held_microbatches", "korthikanti2022 §4.2.3")
def held_interleaved_first(pp, chunks):
    """Micro-batches held by the first stage of an interleaved pipeline with at least as many micro-batches as stages.

    >>> held_interleaved_first(pp=8, chunks=4)
    9.75
    """
    return pp + (pp - 1) / chunks


_HELD = [block_weights, saved_activations_kept, block_states, held_interleaved_first]


@formula("offload_memory", "isaev2023-calculon §2", given=_HELD)
def offload_memory(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states, layers, pp,
    held_microbatches,
):  # fmt: skip
    """Bytes in the far tier: the offloaded part of a stage's blocks, with activations of all micro-batches in flight.

    >>> at = dict(weight_offload=1, activation_offload=1, optimizer_offload=1, block_weights=5, saved_activations=1)
    >>> offload_memory(at, block_states=2, layers=128, pp=8, held_microbatches=8.875)
    254.0
    """
    held = weight_offload * block_weights + optimizer_offload * block_states
    return (held + activation_offload * saved_activations * held_microbatches) * layers / pp


@formula("near_memory", "isaev2023-calculon §2", given=[*_HELD, near_blocks_mix, near_states_in_place])
def near_memory(
    weight_offload, activation_offload, optimizer_offload, block_weights, saved_activations, block_states, layers, pp,
    held_microbatches, near_blocks, near_states,
):  # fmt: skip
    """Bytes in device memory: everything that is not offloaded, plus device buffers for a few offloaded blocks.

    Blocks of unequal size need more buffers. A block's workspace comes on top.

    >>> at = dict(weight_offload=1, activation_offload=1, optimizer_offload=1, block_weights=5, saved_activations=1)
    >>> near_memory(at, block_states=2, layers=128, pp=8, held_microbatches=8.875, near_blocks=2, near_states=3)
    18.0
    """
    moving = near_blocks * (weight_offload * block_weights + activation_offload * saved_activations)
    staying = (
        (1 - weight_offload) * block_weights
        + (1 - optimizer_offload) * block_states
        + (1 - activation_offload) * saved_activations * held_microbatches
    )
    return moving + near_states * optimizer_offload * block_states + staying * layers / pp


typical_host_buffers = constant(
    "typical_host_buffers", "host_buffers", "1.5", "deepspeed-memory",
    "Factor on offloaded state for host buffers: DeepSpeed's estimator asks for 1.5 times the state.",
)  # fmt: skip


@formula("params", "deepspeed-memory", given=[typical_host_buffers])
def params_of_hosts(
    host_capacity, devices, weight_offload, optimizer_offload, weight_bits, gradient_bits, optimizer_bits, host_buffers
):
    """Parameters whose offloaded state fills the hosts' memory. Gradients are offloaded with the optimizer.

    >>> bits = dict(weight_offload=1, optimizer_offload=1, weight_bits=16, gradient_bits=32, optimizer_bits=96)
    >>> params_of_hosts(bits, host_capacity="1.5 TB", devices=1).__round__(-9)
    56000000000.0
    """
    held = weight_offload * weight_bits + optimizer_offload * (gradient_bits + optimizer_bits)
    return 8 * devices * host_capacity / (held * host_buffers)


# How much must be offloaded: near_memory solved for one offloaded share


def _least(over, each, most, near):
    """Return the smallest offloaded share that frees `over` bytes; it is negative, and so refused, if it cannot."""
    return Piecewise((0, Le(over, 0, evaluate=False)), (over / (each * (most - near)), True), evaluate=False)


@formula("optimizer_offload", "isaev2023-calculon §2", given=_HELD)
def least_optimizer_offload(
    near_memory, weight_offload, activation_offload, block_weights, saved_activations, block_states, layers, pp,
    held_microbatches, near_blocks, near_states,
):  # fmt: skip
    """Smallest offloaded share of gradients and optimizer state that lets the rest fit in device memory.

    >>> at = dict(weight_offload=1, activation_offload=1, block_weights=5, saved_activations=1, block_states=20)
    >>> at |= dict(layers=128, pp=8, held_microbatches=9, near_blocks=2, near_states=3)
    >>> least_optimizer_offload(at, near_memory=160)
    0.6615384615384615
    """
    near = near_blocks * (weight_offload * block_weights + activation_offload * saved_activations)
    stage = layers / pp
    others = (1 - weight_offload) * block_weights + (1 - activation_offload) * saved_activations * held_microbatches
    return _least(near + (others + block_states) * stage - near_memory, block_states, stage, near_states)


@formula("activation_offload", "isaev2023-calculon §2", given=_HELD)
def least_activation_offload(
    near_memory, weight_offload, optimizer_offload, block_weights, saved_activations, block_states, layers, pp,
    held_microbatches, near_blocks, near_states,
):  # fmt: skip
    """Smallest offloaded share of the saved activations that lets the rest fit in device memory.

    >>> at = dict(weight_offload=1, optimizer_offload=1, block_weights=5, saved_activations=2, block_states=2)
    >>> at |= dict(layers=128, pp=8, held_microbatches=8.875, near_blocks=2, near_states=3)
    >>> least_activation_offload(at, near_memory=160)
    0.5
    """
    near = near_blocks * weight_offload * block_weights + near_states * optimizer_offload * block_states
    stage = layers / pp
    staying = (1 - weight_offload) * block_weights + (1 - optimizer_offload) * block_states
    kept = held_microbatches * stage
    over = near + staying * stage + saved_activations * kept - near_memory
    return _least(over, saved_activations, kept, near_blocks)


__all__ = [*formulas_of(__name__)]
