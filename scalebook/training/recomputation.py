"""Partial recomputation: how many blocks to recompute, and how far apart to keep their inputs (`block_input`)."""

from sympy import Max, Piecewise, sqrt

from scalebook.block import Block
from scalebook.language import Sheet, formula, formulas_of
from scalebook.training.step import memory_sheet


@formula("block_input", "korthikanti2022 §5")
def block_input_split(batch, seq, hidden, activation_bits, tp, cp):
    """Bytes of a block's input, a value per token and unit of width. Tensor-parallel devices split the sequence.

    >>> block_input_split(batch=1, seq=8192, hidden=8192, activation_bits=16, tp=8, cp=1)
    16777216.0
    """
    return batch * seq * hidden * activation_bits / 8 / (tp * cp)


@formula("activation_room", "zero2020 §3")
def activation_room_left(hbm_capacity, weight_memory, gradient_memory, optimizer_memory, logits_memory, buffer_memory):
    """Device memory left for activations. Libraries' work space and fragmentation are not subtracted.

    >>> state = dict(weight_memory="5 GB", gradient_memory="9 GB", optimizer_memory="1 GB")
    >>> activation_room_left(state, hbm_capacity="80 GB", logits_memory=0, buffer_memory=0) / 1e9
    65.0
    """
    state = weight_memory + gradient_memory + optimizer_memory
    return hbm_capacity - state - logits_memory - buffer_memory


def _has_room(activation_room, held_microbatches, stage_blocks, block_input, working_activations):
    return activation_room >= (held_microbatches * stage_blocks - 1) * block_input + working_activations


_ROOM = {"room for the inputs of all blocks and one block at work": _has_room}


@formula("rerun_blocks", "korthikanti2022 §5", domain=_ROOM)
def rerun_blocks_needed(activation_room, held_microbatches, stage_blocks, block_input, working_activations):
    """Fewest blocks to recompute so that the others can keep everything, not rounded up. It is 0 if everything fits.

    >>> at = dict(held_microbatches=4, stage_blocks=20, working_activations="0.3 GB", block_input="20 MB")
    >>> rerun_blocks_needed(at, activation_room="20 GB").__round__(2)
    3.82
    """
    kept, dropped = held_microbatches * stage_blocks * working_activations, working_activations - block_input
    fewest = (kept + dropped - activation_room) / (held_microbatches * dropped)
    return Piecewise((0, kept <= activation_room), (fewest, True))


@formula("again_share", "kaplan2020 §2.1")
def again_share_of_blocks(rerun_blocks, stage_blocks):
    """Recomputed arithmetic as a share of both passes' arithmetic: a third for all blocks. Collectives are left out.

    >>> again_share_of_blocks(rerun_blocks=80, stage_blocks=80)
    0.3333333333333333
    """
    return rerun_blocks / (3 * stage_blocks)


@formula("segment_memory", "chen2016 §4.1")
def segment_memory_kept(segment_blocks, held_microbatches, stage_blocks, block_input, working_activations):
    """Activation memory with one kept input per segment of blocks, plus all activations of the segment at work.

    >>> at = dict(held_microbatches=1, stage_blocks=80, block_input=1, working_activations=2)
    >>> segment_memory_kept(at, segment_blocks=4)
    28.0
    """
    return held_microbatches * stage_blocks / segment_blocks * block_input + segment_blocks * working_activations


@formula("segment_blocks", "chen2016 §4.1")
def segment_blocks_best(held_microbatches, stage_blocks, block_input, working_activations):
    """Blocks per segment with the least memory, at least one: kept inputs then take as much as the segment at work.

    >>> segment_blocks_best(held_microbatches=1, stage_blocks=100, block_input="1 GB", working_activations="1 GB")
    10.0
    """
    return Max(1, sqrt(held_microbatches * stage_blocks * block_input / working_activations), evaluate=False)


def rerun_sheet(dense: Block, **words: str | bool) -> Sheet:
    """Return a sheet that computes how many blocks of a stage to recompute so that its memory fits.

    >>> from scalebook.block import LLAMA
    >>> "rerun_blocks" in rerun_sheet(LLAMA).formulas
    True
    """
    more = block_input_split, activation_room_left, rerun_blocks_needed, again_share_of_blocks
    return Sheet(
        "recomputation", *memory_sheet(dense, **words).formulas.values(), *more,
        doc="How many blocks of a stage to recompute so that it fits.",
    )  # fmt: skip


__all__ = [*formulas_of(__name__), "rerun_sheet"]
