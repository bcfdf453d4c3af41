"""Calculon's pipeline: blocks and chunks of a stage, their times, the bubble, and transfers to a second tier.

A chunk consists of equal base blocks and one edge block.  The edge block pays for the send to the next stage.
"""

from itertools import product

from sympy import Max, Min, Piecewise, ceiling

from scalebook.language import Formula, formula
from scalebook.language.notation import symbol

from .cases import plain
from .letters import KINDS

__all__ = [
    "backward_hiding_time", "backward_send_time", "base_backward_alone", "base_forward_alone", "calculon_bubble",
    "chunk_backward_time", "chunk_forward_time", "edge_backward_alone", "edge_forward_alone", "even_chunk_blocks",
    "forward_hiding_time", "forward_send_time", "gradient_send", "of_blocks", "rounded_missing_blocks",
    "rounded_missing_microbatches", "rounded_stage_blocks", "split_send", "whole_send",
]  # fmt: skip

_C = "isaev2023-calculon §3"


@formula("stage_blocks", _C)
def rounded_stage_blocks(layers, pp):
    """Blocks of the fullest stage: layers over stages, rounded up.

    >>> rounded_stage_blocks(layers=105, pp=8)
    14.0
    """
    return ceiling(layers / pp)


@formula("missing_blocks", _C)
def rounded_missing_blocks(stage_blocks, layers, pp):
    """Blocks that the last stages lack because the fullest stage is rounded up.

    >>> rounded_missing_blocks(stage_blocks=14, layers=105, pp=8)
    7.0
    """
    return stage_blocks * pp - layers


@formula("chunk_blocks", _C)
def even_chunk_blocks(stage_blocks, chunks):
    """Blocks of a chunk: the blocks of a stage, split evenly over its chunks.

    >>> even_chunk_blocks(stage_blocks=12, chunks=3)
    4.0
    """
    return stage_blocks / chunks


@formula("missing_microbatches", _C)
def rounded_missing_microbatches(microbatches, pp):
    """Micro-batches missing from the last group of an interleaved schedule.  A full group has one micro-batch per
    stage.

    >>> rounded_missing_microbatches(microbatches=65, pp=8)
    7.0
    """
    return ceiling(microbatches / pp) * pp - microbatches


@formula("base_forward_alone", _C)
def base_forward_alone(block_forward_time, base_forward_exposed):
    """Forward time of a base block with its exposed exchanges, without offloading.

    >>> base_forward_alone(block_forward_time=2e-3, base_forward_exposed=5e-4)
    0.0025
    """
    return block_forward_time + base_forward_exposed


@formula("edge_forward_alone", _C)
def edge_forward_alone(block_forward_time, edge_forward_exposed, forward_send_time):
    """Forward time of an edge block with its exposed exchanges and its send, without offloading.

    >>> edge_forward_alone(block_forward_time=2e-3, edge_forward_exposed=5e-4, forward_send_time=1e-4)
    0.0026
    """
    return block_forward_time + edge_forward_exposed + forward_send_time


@formula("base_backward_alone", _C)
def base_backward_alone(block_again_time, base_again_exposed, block_input_time, block_weight_time, base_input_exposed):
    """Backward time of a base block without offloading: recomputation, both gradients, and exposed exchanges.

    >>> base_backward_alone(block_again_time=2e-3, base_again_exposed=0, block_input_time=2e-3, block_weight_time=2e-3,
    ...     base_input_exposed=1e-4)
    0.0061
    """
    return block_again_time + base_again_exposed + block_input_time + block_weight_time + base_input_exposed


@formula("edge_backward_alone", _C)
def edge_backward_alone(
    block_again_time, edge_again_exposed, block_input_time, block_weight_time, edge_input_exposed, backward_send_time
):
    """Backward time of an edge block without offloading: recomputation, both gradients, exposed exchanges, send.

    >>> edge_backward_alone(block_again_time=2e-3, edge_again_exposed=0, block_input_time=2e-3, block_weight_time=2e-3,
    ...     edge_input_exposed=1e-4, backward_send_time=1e-4)
    0.0062
    """
    exchanged = edge_again_exposed + edge_input_exposed + backward_send_time
    return block_again_time + block_input_time + block_weight_time + exchanged


def of_blocks() -> list[Formula]:
    """Return the waits of both kinds of blocks for the second tier, and their times with these waits.

    Transfers hide behind arithmetic, but not behind memory traffic.  Memory traffic of recomputation is not counted.

    >>> {f.letter: f for f in of_blocks()}["edge_forward_wait"]
    edge_forward_wait = Max(0, block_forward_memory - edge_forward_alone + forward_move_time)
    """
    traffic = {"forward": symbol("block_forward_memory")}
    traffic["backward"] = symbol("block_input_memory") + symbol("block_weight_memory")
    found = []
    for kind, way in product(KINDS, traffic):
        alone, wait = symbol(f"{kind}_{way}_alone"), symbol(f"{kind}_{way}_wait")
        exposed = Max(0, symbol(f"{way}_move_time") + traffic[way] - alone)
        found.append(
            plain(f"{kind}_{way}_wait", exposed, "What the block's arithmetic does not hide of the transfers.")
        )
        found.append(plain(f"{kind}_{way}_time", alone + wait, "With all waiting."))
    return found


@formula("chunk_forward_time", _C)
def chunk_forward_time(chunk_blocks, base_forward_time, edge_forward_time):
    """Forward time of a chunk: its base blocks and one edge block.

    >>> chunk_forward_time(chunk_blocks=4, base_forward_time=2e-3, edge_forward_time=3e-3)
    0.009
    """
    return (chunk_blocks - 1) * base_forward_time + edge_forward_time


@formula("chunk_backward_time", _C)
def chunk_backward_time(chunk_blocks, base_backward_time, edge_backward_time):
    """Backward time of a chunk: its base blocks and one edge block.

    >>> chunk_backward_time(chunk_blocks=4, base_backward_time=4e-3, edge_backward_time=5e-3)
    0.017
    """
    return (chunk_blocks - 1) * base_backward_time + edge_backward_time


@formula("bubble_time", _C)
def calculon_bubble(
    pp,
    chunks,
    chunk_blocks,
    chunk_forward_time,
    chunk_backward_time,
    missing_microbatches,
    missing_blocks,
    base_forward_time,
    edge_forward_time,
    base_backward_time,
    edge_backward_time,
):
    """Pipeline bubble: a chunk for each other stage and for each micro-batch missing in an interleaved group, less the
    missing blocks.

    A missing block counts as half base and half edge if a chunk has both.

    >>> calculon_bubble(pp=8, chunks=1, chunk_blocks=12, chunk_forward_time=0.03, chunk_backward_time=0.06,
    ...     missing_microbatches=0, missing_blocks=0, base_forward_time=2e-3, edge_forward_time=3e-3,
    ...     base_backward_time=4e-3, edge_backward_time=5e-3)
    0.63
    """
    edge = edge_forward_time + edge_backward_time
    block = Piecewise(((base_forward_time + base_backward_time + edge) / 2, chunk_blocks > 1), (edge, True))
    idle = pp - 1 + (chunks - 1) * missing_microbatches
    return idle * (chunk_forward_time + chunk_backward_time) - missing_blocks * block


@formula("forward_send_bytes", _C)
def whole_send(activation_bits, batch, seq, hidden):
    """Bytes sent to the next stage: every device sends the block's whole result.

    >>> whole_send(activation_bits=16, batch=1, seq=2048, hidden=12288)
    50331648.0
    """
    return activation_bits * batch * seq * hidden / 8


@formula("forward_send_bytes", _C)
def split_send(activation_bits, batch, seq, hidden, tp):
    """Bytes sent to the next stage: every tensor-parallel device sends only its share of the result.

    >>> split_send(activation_bits=16, batch=1, seq=2048, hidden=12288, tp=8)
    6291456.0
    """
    return activation_bits * batch * seq * hidden / 8 / tp


@formula("backward_send_bytes", _C)
def gradient_send(forward_send_bytes):
    """Bytes of the gradient sent back: as many as were sent forward.

    >>> gradient_send(forward_send_bytes=5e7)
    50000000.0
    """
    return forward_send_bytes


@formula("forward_send_time", _C)
def forward_send_time(forward_send_bytes, pp_bandwidth, pp_latency):
    """Time of one forward send.  The latency is charged even without a pipeline (a quirk of Calculon).

    >>> forward_send_time(forward_send_bytes=5e7, pp_bandwidth="22.5 GB/s", pp_latency="20 us")
    0.00224222222222
    """
    return pp_latency + forward_send_bytes / pp_bandwidth


@formula("backward_send_time", _C)
def backward_send_time(backward_send_bytes, pp_bandwidth, pp_latency):
    """Time of one backward send.  The latency is charged even without a pipeline (a quirk of Calculon).

    >>> backward_send_time(backward_send_bytes=5e7, pp_bandwidth="22.5 GB/s", pp_latency="20 us")
    0.00224222222222
    """
    return pp_latency + backward_send_bytes / pp_bandwidth


@formula("forward_hiding_time", _C)
def forward_hiding_time(base_forward_alone, edge_forward_alone, block_forward_memory):
    """Forward time behind which transfers to the second tier can hide: the shorter kind of block, less its memory
    traffic.

    >>> forward_hiding_time(base_forward_alone=2e-3, edge_forward_alone=3e-3, block_forward_memory=5e-4)
    0.0015
    """
    return Min(base_forward_alone, edge_forward_alone) - block_forward_memory


@formula("backward_hiding_time", _C)
def backward_hiding_time(base_backward_alone, edge_backward_alone, block_input_memory, block_weight_memory):
    """Backward time behind which transfers to the second tier can hide: the shorter kind of block, less its memory
    traffic.

    >>> backward_hiding_time(base_backward_alone=4e-3, edge_backward_alone=5e-3, block_input_memory=5e-4,
    ...     block_weight_memory=5e-4)
    0.003
    """
    return Min(base_backward_alone, edge_backward_alone) - block_input_memory - block_weight_memory
