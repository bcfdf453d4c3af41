"""Calculon's step: the passes of all micro-batches, what they wait for, and what share of the peak they reach."""

from scalebook.language import formula

__all__ = [
    "again_exposed_time", "again_link_time", "all_again", "all_backward", "all_forward", "all_updates",
    "backward_wait_time", "busy_share", "busy_share_forward", "calculon_pass_time", "calculon_pp_exposed",
    "calculon_step_time", "calculon_tp_exposed", "forward_flops", "forward_wait_time", "passes_share", "pp_link_time",
    "pp_link_time_forward", "sequence_rate", "tp_link_time", "training_flops", "useful_share",
]  # fmt: skip

_C = "isaev2023-calculon §3"


@formula("step_forward", _C)
def all_forward(microbatches, stage_blocks, block_forward_time):
    """Every micro-batch passes every block of the stage.

    >>> all_forward(microbatches=64, stage_blocks=12, block_forward_time=2e-3)
    1.536
    """
    return microbatches * stage_blocks * block_forward_time


@formula("step_backward", _C)
def all_backward(microbatches, stage_blocks, block_input_time, block_weight_time):
    """Both gradients of every block for every micro-batch.

    >>> all_backward(microbatches=64, stage_blocks=12, block_input_time=2e-3, block_weight_time=2e-3)
    3.072
    """
    return microbatches * stage_blocks * (block_input_time + block_weight_time)


@formula("step_again", _C)
def all_again(microbatches, stage_blocks, block_again_time):
    """What is run again of every block for every micro-batch.

    >>> all_again(microbatches=64, stage_blocks=12, block_again_time=2e-3)
    1.536
    """
    return microbatches * stage_blocks * block_again_time


@formula("optimizer_time", _C)
def all_updates(stage_blocks, block_update_time):
    """Every block is updated once a step.

    >>> all_updates(stage_blocks=12, block_update_time=1e-3)
    0.012
    """
    return stage_blocks * block_update_time


@formula("tp_link_time", _C)
def tp_link_time(
    microbatches, chunks, chunk_blocks, base_forward_link, edge_forward_link, base_input_link, edge_input_link
):
    """All tensor-parallel exchanges, forward and back.

    >>> tp_link_time(microbatches=64, chunks=3, chunk_blocks=4, base_forward_link=5e-4, edge_forward_link=5e-4,
    ...     base_input_link=5e-4, edge_input_link=5e-4)
    0.768
    """
    base, edge = base_forward_link + base_input_link, edge_forward_link + edge_input_link
    return microbatches * chunks * ((chunk_blocks - 1) * base + edge)


@formula("tp_exposed", _C)
def calculon_tp_exposed(
    microbatches,
    chunks,
    chunk_blocks,
    base_forward_exposed,
    edge_forward_exposed,
    base_input_exposed,
    edge_input_exposed,
):
    """What is waited for of them.

    >>> calculon_tp_exposed(microbatches=64, chunks=3, chunk_blocks=4, base_forward_exposed=1e-4,
    ...                     edge_forward_exposed=1e-4,
    ...     base_input_exposed=1e-4, edge_input_exposed=1e-4)
    0.1536
    """
    base, edge = base_forward_exposed + base_input_exposed, edge_forward_exposed + edge_input_exposed
    return microbatches * chunks * ((chunk_blocks - 1) * base + edge)


@formula("again_link_time", _C)
def again_link_time(microbatches, chunks, chunk_blocks, base_again_link, edge_again_link):
    """The exchanges that are run again.

    >>> again_link_time(microbatches=64, chunks=3, chunk_blocks=4, base_again_link=5e-4, edge_again_link=5e-4)
    0.384
    """
    return microbatches * chunks * ((chunk_blocks - 1) * base_again_link + edge_again_link)


@formula("again_exposed_time", _C)
def again_exposed_time(microbatches, chunks, chunk_blocks, base_again_exposed, edge_again_exposed):
    """What is waited for of them.

    >>> again_exposed_time(microbatches=64, chunks=3, chunk_blocks=4, base_again_exposed=1e-4, edge_again_exposed=1e-4)
    0.0768
    """
    return microbatches * chunks * ((chunk_blocks - 1) * base_again_exposed + edge_again_exposed)


@formula("pp_link_time", _C)
def pp_link_time(microbatches, chunks, forward_send_time, backward_send_time):
    """A send each way for each chunk and micro-batch.

    >>> pp_link_time(microbatches=64, chunks=3, forward_send_time=1e-4, backward_send_time=1e-4)
    0.0384
    """
    return microbatches * chunks * (forward_send_time + backward_send_time)


@formula("pp_link_time", _C)
def pp_link_time_forward(microbatches, chunks, forward_send_time):
    """Without training, nothing comes back.

    >>> pp_link_time_forward(microbatches=64, chunks=3, forward_send_time=1e-4)
    0.0192
    """
    return microbatches * chunks * forward_send_time


@formula("pp_exposed", _C)
def calculon_pp_exposed(pp_link_time):
    """No send is hidden.

    >>> calculon_pp_exposed(pp_link_time=0.04)
    0.04
    """
    return pp_link_time


@formula("forward_wait_time", _C)
def forward_wait_time(microbatches, chunks, chunk_blocks, base_forward_wait, edge_forward_wait):
    """All waiting for the second tier, forward.

    >>> forward_wait_time(microbatches=64, chunks=3, chunk_blocks=4, base_forward_wait=1e-4, edge_forward_wait=0)
    0.0576
    """
    return microbatches * chunks * ((chunk_blocks - 1) * base_forward_wait + edge_forward_wait)


@formula("backward_wait_time", _C)
def backward_wait_time(microbatches, chunks, chunk_blocks, base_backward_wait, edge_backward_wait):
    """All waiting for the second tier, going back.

    >>> backward_wait_time(microbatches=64, chunks=3, chunk_blocks=4, base_backward_wait=1e-4, edge_backward_wait=0)
    0.0576
    """
    return microbatches * chunks * ((chunk_blocks - 1) * base_backward_wait + edge_backward_wait)


@formula("step_time", _C)
def calculon_step_time(
    step_forward,
    step_backward,
    optimizer_time,
    forward_wait_time,
    backward_wait_time,
    step_again,
    again_exposed_time,
    bubble_time,
    tp_exposed,
    pp_exposed,
    dp_exposed,
):
    """The passes, the update, and all that is waited for, one after another.

    >>> passes = dict(step_forward=1.5, step_backward=3, step_again=1.5, optimizer_time=0.01, bubble_time=0.6)
    >>> waits = dict(forward_wait_time=0, backward_wait_time=0, again_exposed_time=0)
    >>> calculon_step_time(**passes, **waits, tp_exposed=0.5, pp_exposed=0.04, dp_exposed=0.02)
    7.17
    """
    passes = step_forward + step_backward + optimizer_time + step_again
    waiting = forward_wait_time + backward_wait_time + again_exposed_time + bubble_time
    return passes + waiting + tp_exposed + pp_exposed + dp_exposed


@formula("step_time", _C)
def calculon_pass_time(step_forward, forward_wait_time, bubble_time, tp_exposed, pp_exposed):
    """The same without training: forward passes alone.

    >>> calculon_pass_time(step_forward=1.5, forward_wait_time=0, bubble_time=0.6, tp_exposed=0.5, pp_exposed=0.04)
    2.64
    """
    return step_forward + forward_wait_time + bubble_time + tp_exposed + pp_exposed


@formula("useful_flops", _C)
def training_flops(block_forward_flops, block_input_flops, block_weight_flops, block_update_flops):
    """All arithmetic of a block, element-wise work and the update with it, nothing run again.

    >>> training_flops(block_forward_flops=1e12, block_input_flops=1e12, block_weight_flops=1e12,
    ...                block_update_flops=1e8)
    3000100000000.0
    """
    return block_forward_flops + block_input_flops + block_weight_flops + block_update_flops


@formula("useful_flops", _C)
def forward_flops(block_forward_flops):
    """Without training, the arithmetic of the forward pass.

    >>> forward_flops(block_forward_flops=1e12)
    1000000000000.0
    """
    return block_forward_flops


@formula("useful_share", _C)
def useful_share(useful_flops, microbatches, stage_blocks, peak_flops, step_time):
    """Useful arithmetic at peak over the time of the step; every micro-batch counts the update of the weights.

    >>> useful_share(useful_flops=3e12, microbatches=64, stage_blocks=12, peak_flops="312 TFLOP/s", step_time=15)
    0.492307692308
    """
    return microbatches * stage_blocks * useful_flops / peak_flops / step_time


@formula("busy_share", _C)
def busy_share(useful_flops, microbatches, stage_blocks, peak_flops, step_forward, step_backward, optimizer_time):
    """Useful arithmetic at peak over the time of the passes and the update.

    >>> busy_share(useful_flops=3e12, microbatches=64, stage_blocks=12, peak_flops="312 TFLOP/s", step_forward=3,
    ...     step_backward=6, optimizer_time=0.01)
    0.819602151456
    """
    return microbatches * stage_blocks * useful_flops / peak_flops / (step_forward + step_backward + optimizer_time)


@formula("busy_share", _C)
def busy_share_forward(useful_flops, microbatches, stage_blocks, peak_flops, step_forward):
    """The same without training.

    >>> busy_share_forward(useful_flops=1e12, microbatches=64, stage_blocks=12, peak_flops="312 TFLOP/s",
    ...                    step_forward=3)
    0.820512820513
    """
    return microbatches * stage_blocks * useful_flops / peak_flops / step_forward


@formula("passes_share", _C)
def passes_share(useful_share, busy_share):
    """The time of the passes and the update over that of the step.

    >>> passes_share(useful_share=0.4, busy_share=0.5)
    0.8
    """
    return useful_share / busy_share


@formula("sequence_rate", _C)
def sequence_rate(global_batch, step_time):
    """Sequences of a step over its time.

    >>> sequence_rate(global_batch=1536, step_time=30)
    51.2
    """
    return global_batch / step_time
