"""Calculon's memory on the first stage: bytes in device memory, in the second tier, and moved between them."""

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
    """Number of shards of gradients and optimizer state: one per data-parallel device.

    >>> shared_out(dp=16)
    16.0
    """
    return dp


@formula("held_microbatches", _C)
def held_at_most_stages(microbatches, pp):
    """Micro-batches held by the first stage of a 1F1B schedule: one per stage, at most all of them.

    >>> held_at_most_stages(microbatches=64, pp=8)
    8.0
    """
    return Min(microbatches, pp)


@formula("held_microbatches", _C)
def held_chunked(microbatches, pp, chunks):
    """Micro-batches held by the first stage of an interleaved schedule: more than in 1F1B, by the share of the pipeline
    that one chunk takes to fill.

    >>> held_chunked(microbatches=64, pp=8, chunks=3)
    10.3333333333
    """
    return Min(microbatches, pp) * (1 + (pp - 1) / (chunks * pp))


@formula("weight_memory", _C)
def stage_weight_memory(stage_blocks, block_weights):
    """Weights of all blocks of a stage.

    >>> stage_weight_memory(stage_blocks=12, block_weights=4.5e8)
    5400000000.0
    """
    return stage_blocks * block_weights


@formula("activation_memory", _C)
def stage_activation_memory(block_working, block_stored, stage_blocks, held_microbatches):
    """Activations of the working block, plus the stored activations of all other blocks and micro-batches held.

    >>> stage_activation_memory(block_working=1e9, block_stored=5e8, stage_blocks=12, held_microbatches=8)
    48500000000.0
    """
    return block_working + block_stored * (stage_blocks * held_microbatches - 1)


@formula("activation_memory", _C)
def one_block_activation_memory(block_working):
    """Activations of the working block only, under full recomputation or in inference.

    >>> one_block_activation_memory(block_working=1e9)
    1000000000.0
    """
    return block_working


@formula("checkpoint_memory", _C)
def stage_checkpoint_memory(block_checkpoint, stage_blocks, held_microbatches):
    """Checkpoints: the input of every block, for every micro-batch held.

    >>> stage_checkpoint_memory(block_checkpoint=5e7, stage_blocks=12, held_microbatches=8)
    4800000000.0
    """
    return block_checkpoint * stage_blocks * held_microbatches


@formula("gradient_memory", _C)
def stage_gradient_memory(block_whole_gradients, block_gradients, stage_blocks):
    """Weight gradients of a stage: one block's, accumulating in fp32, and the other blocks' in their own precision,
    sharded.

    >>> stage_gradient_memory(block_whole_gradients=9e8, block_gradients=3e7, stage_blocks=12)
    1230000000.0
    """
    return block_whole_gradients + block_gradients * (stage_blocks - 1)


@formula("activation_gradient_memory", _C)
def one_block_gradients(block_activation_gradients):
    """Gradients of activations, held for one block at a time.

    >>> one_block_gradients(block_activation_gradients=8e8)
    800000000.0
    """
    return block_activation_gradients


@formula("optimizer_memory", _C)
def stage_optimizer_memory(block_optimizer, stage_blocks):
    """Optimizer state of all blocks of a stage.

    >>> stage_optimizer_memory(block_optimizer=1.7e8, stage_blocks=12)
    2040000000.0
    """
    return block_optimizer * stage_blocks


@formula("near_weights", _C)
def near_weights(block_weights):
    """Weights that stay in device memory under offloading: two blocks, one working and one arriving.

    >>> near_weights(block_weights=4.5e8)
    900000000.0
    """
    return 2 * block_weights


@formula("near_activations", _C)
def near_activations(block_working, block_stored):
    """Activations kept in device memory under offloading: the working block's, and one block's that are leaving or
    arriving.

    >>> near_activations(block_working=1e9, block_stored=5e8)
    1500000000.0
    """
    return block_working + block_stored


@formula("near_checkpoints", _C)
def near_checkpoints(block_checkpoint):
    """Checkpoints that stay in device memory under offloading: the inputs of two blocks.

    >>> near_checkpoints(block_checkpoint=5e7)
    100000000.0
    """
    return 2 * block_checkpoint


@formula("near_activation_gradients", _C)
def near_activation_gradients(activation_gradient_memory):
    """Gradients of activations stay in device memory.  They live for one block only, so Calculon never offloads them.

    >>> near_activation_gradients(activation_gradient_memory=8e8)
    800000000.0
    """
    return activation_gradient_memory


@formula("near_gradients", _C)
def near_gradients(block_whole_gradients, block_gradients):
    """Weight gradients that stay in device memory under offloading: one block's accumulating, and one block's leaving.

    >>> near_gradients(block_whole_gradients=9e8, block_gradients=3e7)
    930000000.0
    """
    return block_whole_gradients + block_gradients


@formula("near_optimizer", _C)
def near_optimizer(block_optimizer):
    """Optimizer state that stays in device memory under offloading: two blocks.

    >>> near_optimizer(block_optimizer=1.7e8)
    340000000.0
    """
    return 2 * block_optimizer


@formula("activation_move_needed", _C)
def activation_move_needed(block_stored, block_checkpoint, forward_hiding_time):
    """Second-tier bandwidth that hides a block's stored activations, or its checkpoint, behind the next block's work.

    >>> activation_move_needed(block_stored=5e8, block_checkpoint=0, forward_hiding_time=5e-3)
    100000000000.0
    """
    return (block_stored + block_checkpoint) / forward_hiding_time


@formula("weight_move_needed", _C)
def weight_move_needed(block_weights, forward_hiding_time):
    """Second-tier bandwidth that hides the arrival of a block's weights behind the previous block's work.

    >>> weight_move_needed(block_weights=4.5e8, forward_hiding_time=5e-3)
    90000000000.0
    """
    return block_weights / forward_hiding_time


@formula("optimizer_move_needed", _C)
def optimizer_move_needed(block_gradients, block_optimizer, backward_hiding_time):
    """Second-tier bandwidth that hides a block's gradients and optimizer state behind another block's backward pass.

    >>> optimizer_move_needed(block_gradients=3e7, block_optimizer=1.7e8, backward_hiding_time=1e-2)
    20000000000.0
    """
    return (block_gradients + block_optimizer) / backward_hiding_time


@formula("move_needed", _C)
def move_needed(forward_move_bytes, forward_hiding_time, backward_move_bytes, backward_hiding_time):
    """Second-tier bandwidth that hides everything offloaded, in the forward and the backward pass.

    >>> move_needed(forward_move_bytes=5e8, forward_hiding_time=5e-3, backward_move_bytes=9e8,
    ...             backward_hiding_time=1e-2)
    100000000000.0
    """
    return Max(forward_move_bytes / forward_hiding_time, backward_move_bytes / backward_hiding_time)
