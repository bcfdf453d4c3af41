"""Calculon's memory: what a device of the first stage holds near, what in the second tier, and what moves between."""

from sympy import Max, Min

from scalebook.language import formula

__all__ = [
    "activation_move_needed", "held_at_most_stages", "held_chunked", "move_needed", "near_activation_gradients",
    "near_activations", "near_checkpoints", "near_gradients", "near_optimizer", "near_weights",
    "one_block_activation_memory", "one_block_gradients", "optimizer_move_needed", "shared_out",
    "stage_activation_memory", "stage_checkpoint_memory", "stage_gradient_memory", "stage_optimizer_memory",
    "stage_weight_memory", "weight_move_needed",
]  # fmt: skip

_C = "isaev2023-calculon §3"


@formula("optimizer_shards", _C)
def shared_out(dp):
    """Data-parallel devices share gradients and optimizer state out among themselves.

    >>> shared_out(dp=16)
    16.0
    """
    return dp


@formula("held_microbatches", _C)
def held_at_most_stages(microbatches, pp):
    """One forward, one backward: as many as there are stages, at most all.

    >>> held_at_most_stages(microbatches=64, pp=8)
    8.0
    """
    return Min(microbatches, pp)


@formula("held_microbatches", _C)
def held_chunked(microbatches, pp, chunks):
    """Interleaving holds more, by the part of a pipeline that one chunk takes to fill.

    >>> held_chunked(microbatches=64, pp=8, chunks=3)
    10.3333333333
    """
    return Min(microbatches, pp) * (1 + (pp - 1) / (chunks * pp))


@formula("weight_memory", _C)
def stage_weight_memory(stage_blocks, block_weights):
    """The weights of the blocks of a stage.

    >>> stage_weight_memory(stage_blocks=12, block_weights=4.5e8)
    5400000000.0
    """
    return stage_blocks * block_weights


@formula("activation_memory", _C)
def stage_activation_memory(block_working, block_stored, stage_blocks, held_microbatches):
    """What the working block holds, and what all others keep, for every micro-batch held.

    >>> stage_activation_memory(block_working=1e9, block_stored=5e8, stage_blocks=12, held_microbatches=8)
    48500000000.0
    """
    return block_working + block_stored * (stage_blocks * held_microbatches - 1)


@formula("activation_memory", _C)
def one_block_activation_memory(block_working):
    """Where every block is run again, or nothing goes back, only the working block holds activations.

    >>> one_block_activation_memory(block_working=1e9)
    1000000000.0
    """
    return block_working


@formula("checkpoint_memory", _C)
def stage_checkpoint_memory(block_checkpoint, stage_blocks, held_microbatches):
    """The input of every block, for every micro-batch held.

    >>> stage_checkpoint_memory(block_checkpoint=5e7, stage_blocks=12, held_microbatches=8)
    4800000000.0
    """
    return block_checkpoint * stage_blocks * held_microbatches


@formula("gradient_memory", _C)
def stage_gradient_memory(block_whole_gradients, block_gradients, stage_blocks):
    """One block's gradients as they add up, in fp32; those of the others as they are sent and shared out.

    >>> stage_gradient_memory(block_whole_gradients=9e8, block_gradients=3e7, stage_blocks=12)
    1230000000.0
    """
    return block_whole_gradients + block_gradients * (stage_blocks - 1)


@formula("activation_gradient_memory", _C)
def one_block_gradients(block_activation_gradients):
    """Gradients of activations are held for one block.

    >>> one_block_gradients(block_activation_gradients=8e8)
    800000000.0
    """
    return block_activation_gradients


@formula("optimizer_memory", _C)
def stage_optimizer_memory(block_optimizer, stage_blocks):
    """The optimizer state of the blocks of a stage.

    >>> stage_optimizer_memory(block_optimizer=1.7e8, stage_blocks=12)
    2040000000.0
    """
    return block_optimizer * stage_blocks


@formula("near_weights", _C)
def near_weights(block_weights):
    """The weights of two blocks stay near: one at work, one arriving.

    >>> near_weights(block_weights=4.5e8)
    900000000.0
    """
    return 2 * block_weights


@formula("near_activations", _C)
def near_activations(block_working, block_stored):
    """The working block's activations stay near, and those of the block that is leaving or arriving.

    >>> near_activations(block_working=1e9, block_stored=5e8)
    1500000000.0
    """
    return block_working + block_stored


@formula("near_checkpoints", _C)
def near_checkpoints(block_checkpoint):
    """The inputs of two blocks stay near.

    >>> near_checkpoints(block_checkpoint=5e7)
    100000000.0
    """
    return 2 * block_checkpoint


@formula("near_activation_gradients", _C)
def near_activation_gradients(activation_gradient_memory):
    """All of them stay near: they live for one block only, and are never offloaded.

    >>> near_activation_gradients(activation_gradient_memory=8e8)
    800000000.0
    """
    return activation_gradient_memory


@formula("near_gradients", _C)
def near_gradients(block_whole_gradients, block_gradients):
    """One block's gradients as they add up, and one block's as they leave.

    >>> near_gradients(block_whole_gradients=9e8, block_gradients=3e7)
    930000000.0
    """
    return block_whole_gradients + block_gradients


@formula("near_optimizer", _C)
def near_optimizer(block_optimizer):
    """The optimizer state of two blocks stays near.

    >>> near_optimizer(block_optimizer=1.7e8)
    340000000.0
    """
    return 2 * block_optimizer


@formula("activation_move_needed", _C)
def activation_move_needed(block_stored, block_checkpoint, forward_hiding_time):
    """A block's kept activations, or its input, leave while the next block works.

    >>> activation_move_needed(block_stored=5e8, block_checkpoint=0, forward_hiding_time=5e-3)
    100000000000.0
    """
    return (block_stored + block_checkpoint) / forward_hiding_time


@formula("weight_move_needed", _C)
def weight_move_needed(block_weights, forward_hiding_time):
    """A block's weights arrive while the block before works.

    >>> weight_move_needed(block_weights=4.5e8, forward_hiding_time=5e-3)
    90000000000.0
    """
    return block_weights / forward_hiding_time


@formula("optimizer_move_needed", _C)
def optimizer_move_needed(block_gradients, block_optimizer, backward_hiding_time):
    """A block's gradients and optimizer state move while another block goes back.

    >>> optimizer_move_needed(block_gradients=3e7, block_optimizer=1.7e8, backward_hiding_time=1e-2)
    20000000000.0
    """
    return (block_gradients + block_optimizer) / backward_hiding_time


@formula("move_needed", _C)
def move_needed(forward_move_bytes, forward_hiding_time, backward_move_bytes, backward_hiding_time):
    """All that is offloaded, hidden in both directions.

    >>> move_needed(forward_move_bytes=5e8, forward_hiding_time=5e-3, backward_move_bytes=9e8,
    ...             backward_hiding_time=1e-2)
    100000000000.0
    """
    return Max(forward_move_bytes / forward_hiding_time, backward_move_bytes / backward_hiding_time)
