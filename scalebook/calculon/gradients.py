"""Calculon's exchange of gradients among data-parallel devices, after or overlapped with the backward passes.

When overlapped, every chunk except the last hides its exchange behind as many backward passes as there are stages.  The
last chunk hides the exchange of all its blocks except one within one pass.  The first block's exchange is always
exposed.
"""

from sympy import Min, Piecewise, ceiling, floor

from scalebook.language import Formula, formula
from scalebook.language.notation import symbol

from .cases import plain
from .letters import KINDS

__all__ = [
    "chunk_excess", "chunk_excess_one_network", "chunk_window", "chunk_window_with_update", "dp_after",
    "dp_bandwidth_needed", "dp_bandwidth_needed_one_network", "dp_behind", "dp_link_time", "dp_tail_needed",
    "reduce_compute", "reduce_compute_with_update", "sends_on_one_network", "tail_excess", "tail_window",
    "tail_window_with_update", "windows",
]  # fmt: skip

_C = "isaev2023-calculon §3"


@formula("dp_link_time", _C)
def dp_link_time(stage_blocks, block_reduce_time):
    """Time to exchange every block's gradients once.

    >>> dp_link_time(stage_blocks=12, block_reduce_time=2e-3)
    0.024
    """
    return stage_blocks * block_reduce_time


@formula("dp_exposed", _C)
def dp_after(dp_link_time):
    """Exposed time without overlap: the whole exchange.

    >>> dp_after(dp_link_time=0.024)
    0.024
    """
    return dp_link_time


def windows(on_one_network: bool) -> list[Formula]:
    """Return the time of each kind of block's backward pass in which gradients can be exchanged.

    It is all of that time except the memory traffic and, if tensor parallelism uses the same network, its exchanges.

    >>> windows(on_one_network=False)[0]
    base_window = base_backward_time - block_again_memory - block_input_memory - block_weight_memory
    """
    found = []
    for kind in KINDS:
        busy = [f"block_{name}_memory" for name in ("input", "weight", "again")]
        busy += [f"{kind}_again_link", f"{kind}_input_link"] if on_one_network else []
        window = symbol(f"{kind}_backward_time") - sum(map(symbol, busy))
        found.append(plain(f"{kind}_window", window, "The backward pass without memory traffic and exchanges."))
    return found


@formula("chunk_window", _C)
def chunk_window(chunk_blocks, base_window, edge_window):
    """Window of a chunk: the windows of all its blocks.

    >>> chunk_window(chunk_blocks=4, base_window=3e-3, edge_window=4e-3)
    0.013
    """
    return (chunk_blocks - 1) * base_window + edge_window


@formula("chunk_window", _C)
def chunk_window_with_update(chunk_blocks, base_window, edge_window, block_update_time, block_update_memory):
    """Window of a chunk with unsharded optimizer state: weights are updated block by block, and exchanges hide behind
    that too.

    >>> chunk_window_with_update(chunk_blocks=4, base_window=3e-3, edge_window=4e-3, block_update_time=2e-3,
    ...     block_update_memory=1e-3)
    0.017
    """
    updating = chunk_blocks * (block_update_time - block_update_memory)
    return (chunk_blocks - 1) * base_window + edge_window + updating


@formula("reduce_compute", _C)
def reduce_compute(block_input_compute, block_weight_compute, block_again_compute):
    """Arithmetic that an exchange slows down: both gradients and recomputation.

    >>> reduce_compute(block_input_compute=2e-3, block_weight_compute=2e-3, block_again_compute=0)
    0.004
    """
    return block_input_compute + block_weight_compute + block_again_compute


@formula("reduce_compute", _C)
def reduce_compute_with_update(block_input_compute, block_weight_compute, block_again_compute, block_update_compute):
    """Arithmetic that an exchange slows down with unsharded optimizer state: gradients, recomputation and weight
    update.

    >>> reduce_compute_with_update(block_input_compute=2e-3, block_weight_compute=2e-3, block_again_compute=0,
    ...     block_update_compute=1e-4)
    0.0041
    """
    return block_input_compute + block_weight_compute + block_again_compute + block_update_compute


@formula("collisions", _C)
def sends_on_one_network(chunk_blocks, block_reduce_time, chunk_backward_time, microbatches, pp):
    """Pipeline sends that collide with a chunk's exchange on a shared network: one per backward pass, at most one per
    micro-batch of a group.

    >>> sends_on_one_network(chunk_blocks=4, block_reduce_time=2e-2, chunk_backward_time=3e-2, microbatches=64, pp=8)
    2.0
    """
    group = microbatches - pp * (ceiling(microbatches / pp) - 1)
    return Min(floor(chunk_blocks * block_reduce_time / chunk_backward_time), group)


@formula("chunk_excess", _C)
def chunk_excess_one_network(
    chunk_blocks, block_reduce_time, pp, chunk_window, collisions, backward_send_time, reduce_compute, dp_usage
):
    """Excess of a chunk's exchange and the colliding sends over the window of `pp` slowed-down backward passes;
    negative if all of it is hidden.

    >>> chunk_excess_one_network(chunk_blocks=4, block_reduce_time=2e-2, pp=8, chunk_window=1e-3, collisions=2,
    ...     backward_send_time=1e-3, reduce_compute=4e-3, dp_usage=0.02)
    0.07656
    """
    window = pp * (chunk_window - chunk_blocks * reduce_compute * dp_usage)
    return chunk_blocks * block_reduce_time - window + collisions * backward_send_time


@formula("chunk_excess", _C)
def chunk_excess(chunk_blocks, block_reduce_time, pp, chunk_window, reduce_compute, dp_usage):
    """Excess of a chunk's exchange over the window of `pp` slowed-down backward passes, on a network without pipeline
    sends; negative if all of it is hidden.

    >>> chunk_excess(chunk_blocks=4, block_reduce_time=2e-2, pp=8, chunk_window=1e-3, reduce_compute=4e-3,
    ...              dp_usage=0.02)
    0.07456
    """
    return chunk_blocks * block_reduce_time - pp * (chunk_window - chunk_blocks * reduce_compute * dp_usage)


@formula("tail_window", _C)
def tail_window(chunk_blocks, chunk_window, backward_send_time, base_backward_time, edge_backward_time):
    """Window of the last chunk, less its send and the time of one block (taken as half base, half edge).

    >>> tail_window(chunk_blocks=4, chunk_window=0.013, backward_send_time=1e-4, base_backward_time=4e-3,
    ...     edge_backward_time=5e-3)
    0.0084
    """
    left = chunk_window - backward_send_time - (base_backward_time + edge_backward_time) / 2
    return Piecewise((left, chunk_blocks > 1), (0, True))


@formula("tail_window", _C)
def tail_window_with_update(
    chunk_blocks,
    chunk_window,
    backward_send_time,
    base_backward_time,
    edge_backward_time,
    block_update_time,
    block_update_memory,
):
    """Window of the last chunk with unsharded optimizer state: one more block's update is added.

    >>> tail_window_with_update(chunk_blocks=4, chunk_window=0.013, backward_send_time=1e-4, base_backward_time=4e-3,
    ...     edge_backward_time=5e-3, block_update_time=2e-3, block_update_memory=1e-3)
    0.0094
    """
    left = chunk_window - backward_send_time - (base_backward_time + edge_backward_time) / 2
    return Piecewise((left + block_update_time - block_update_memory, chunk_blocks > 1), (0, True))


@formula("tail_excess", _C)
def tail_excess(chunk_blocks, block_reduce_time, reduce_compute, dp_usage, tail_window):
    """Excess of the last chunk's exchange, one block left out, over its window, with the slow-down; negative if all of
    it is hidden.

    >>> tail_excess(chunk_blocks=4, block_reduce_time=2e-3, reduce_compute=4e-3, dp_usage=0.02, tail_window=4e-3)
    0.00208
    """
    return (chunk_blocks - 1) * block_reduce_time + reduce_compute * dp_usage - tail_window


@formula("dp_exposed", _C)
def dp_behind(chunks, chunk_blocks, block_reduce_time, dp_usage, chunk_excess, tail_excess):
    """Exposed time with overlap: the first block's exchange, plus the other blocks' excess or, if there is none, their
    slow-down of the arithmetic.

    >>> dp_behind(chunks=3, chunk_blocks=4, block_reduce_time=2e-3, dp_usage=0.02, chunk_excess=-0.01, tail_excess=1e-3)
    0.00332
    """
    whole, tail = chunk_blocks * block_reduce_time, (chunk_blocks - 1) * block_reduce_time
    each = Piecewise((chunk_excess, chunk_excess > 0), (whole * dp_usage, True))
    last = Piecewise((tail_excess, tail_excess > 0), (tail * dp_usage, True))
    return block_reduce_time + (chunks - 1) * each + last


@formula("dp_bandwidth_needed", _C)
def dp_bandwidth_needed(
    chunks, chunk_blocks, block_reduce_bytes, reduce_scale, pp, chunk_window, reduce_compute, dp_usage
):
    """Bandwidth that hides the exchange of all chunks except the last: their bytes over their window.  Zero without a
    window.

    >>> dp_bandwidth_needed(chunks=3, chunk_blocks=4, block_reduce_bytes=9e8, reduce_scale=2, pp=8, chunk_window=0.01,
    ...     reduce_compute=4e-3, dp_usage=0.02)
    43604651162.8
    """
    time = pp * (chunk_window + chunk_blocks * reduce_compute * dp_usage) * (chunks - 1)
    return Piecewise((chunk_blocks * block_reduce_bytes * reduce_scale / time, time > 0), (0, True))


@formula("dp_bandwidth_needed", _C)
def dp_bandwidth_needed_one_network(
    chunks,
    chunk_blocks,
    block_reduce_bytes,
    reduce_scale,
    pp,
    chunk_window,
    reduce_compute,
    dp_usage,
    backward_send_time,
):
    """Bandwidth that hides the exchange of all chunks except the last, in a window that pipeline sends on the same
    network shorten.

    >>> dp_bandwidth_needed_one_network(chunks=3, chunk_blocks=4, block_reduce_bytes=9e8, reduce_scale=2, pp=8,
    ...     chunk_window=0.01, reduce_compute=4e-3, dp_usage=0.02, backward_send_time=1e-3)
    44139283962.7
    """
    time = (pp * (chunk_window + chunk_blocks * reduce_compute * dp_usage) - backward_send_time) * (chunks - 1)
    return Piecewise((chunk_blocks * block_reduce_bytes * reduce_scale / time, time > 0), (0, True))


@formula("dp_tail_needed", _C)
def dp_tail_needed(chunk_blocks, block_reduce_bytes, reduce_scale, block_reduce_time, dp_usage, tail_window):
    """Bandwidth that hides the exchange of the last chunk: its bytes over its window.  Zero without a window.

    >>> dp_tail_needed(chunk_blocks=4, block_reduce_bytes=9e8, reduce_scale=2, block_reduce_time=2e-3, dp_usage=0.02,
    ...     tail_window=4e-3)
    1747572815533.98
    """
    time = tail_window + (chunk_blocks - 1) * block_reduce_time * dp_usage
    return Piecewise((chunk_blocks * block_reduce_bytes * reduce_scale / time, time > 0), (0, True))
