"""Calculon's step: the passes of all micro-batches, their waiting times, and the shares of the peak they reach."""

from scalebook.language import Formula, formula
from scalebook.language.notation import symbol

from .cases import plain

__all__ = [
    "all_again", "all_backward", "all_forward", "all_updates", "busy_share", "busy_share_forward", "calculon_pass_time",
    "calculon_pp_exposed", "calculon_step_time", "forward_flops", "of_all_blocks", "passes_share", "pp_link_time",
    "pp_link_time_forward", "sequence_rate", "training_flops", "useful_share",
]  # fmt: skip

_C = "isaev2023-calculon §3"


@formula("step_forward", _C)
def all_forward(microbatches, stage_blocks, block_forward_time):
    """Forward time of a step: every micro-batch passes every block of the stage.

    >>> all_forward(microbatches=64, stage_blocks=12, block_forward_time=2e-3)
    1.536
    """
    return microbatches * stage_blocks * block_forward_time


@formula("step_backward", _C)
def all_backward(microbatches, stage_blocks, block_input_time, block_weight_time):
    """Backward time of a step: both gradients of every block, for every micro-batch.

    >>> all_backward(microbatches=64, stage_blocks=12, block_input_time=2e-3, block_weight_time=2e-3)
    3.072
    """
    return microbatches * stage_blocks * (block_input_time + block_weight_time)


@formula("step_again", _C)
def all_again(microbatches, stage_blocks, block_again_time):
    """Recomputation time of a step, over all blocks and micro-batches.

    >>> all_again(microbatches=64, stage_blocks=12, block_again_time=2e-3)
    1.536
    """
    return microbatches * stage_blocks * block_again_time


@formula("optimizer_time", _C)
def all_updates(stage_blocks, block_update_time):
    """Time to update the weights of every block once per step.

    >>> all_updates(stage_blocks=12, block_update_time=1e-3)
    0.012
    """
    return stage_blocks * block_update_time


@formula("pp_link_time", _C)
def pp_link_time(microbatches, chunks, forward_send_time, backward_send_time):
    """Time of all pipeline sends: one each way for each chunk and micro-batch.

    >>> pp_link_time(microbatches=64, chunks=3, forward_send_time=1e-4, backward_send_time=1e-4)
    0.0384
    """
    return microbatches * chunks * (forward_send_time + backward_send_time)


@formula("pp_link_time", _C)
def pp_link_time_forward(microbatches, chunks, forward_send_time):
    """Time of all pipeline sends in inference, which are forward only.

    >>> pp_link_time_forward(microbatches=64, chunks=3, forward_send_time=1e-4)
    0.0192
    """
    return microbatches * chunks * forward_send_time


@formula("pp_exposed", _C)
def calculon_pp_exposed(pp_link_time):
    """Exposed time of the pipeline sends: all of it, because Calculon hides none.

    >>> calculon_pp_exposed(pp_link_time=0.04)
    0.04
    """
    return pp_link_time


_OF_BLOCKS = {
    "tp_link_time": ("forward_link", "input_link"),
    "tp_exposed": ("forward_exposed", "input_exposed"),
    "again_link_time": ("again_link",),
    "again_exposed_time": ("again_exposed",),
    "forward_wait_time": ("forward_wait",),
    "backward_wait_time": ("backward_wait",),
}


def of_all_blocks() -> list[Formula]:
    """Return times of a step that are sums over blocks: exchanges, what is exposed of them, waits for the second tier.

    Every micro-batch passes every chunk, which is base blocks and one edge block.

    >>> {f.letter: f for f in of_all_blocks()}["again_link_time"]
    again_link_time = chunks*microbatches*(base_again_link*(chunk_blocks - 1) + edge_again_link)
    """
    passes, inside = symbol("microbatches") * symbol("chunks"), symbol("chunk_blocks") - 1
    found = []
    for letter, parts in _OF_BLOCKS.items():
        base, edge = (sum(symbol(f"{kind}_{part}") for part in parts) for kind in ("base", "edge"))
        found.append(plain(letter, passes * (inside * base + edge), "Over all micro-batches, chunks and blocks."))
    return found


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
    """Step time: the passes, the update, and all exposed waiting, one after another.

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
    """Step time in inference: forward passes and all exposed waiting.

    >>> calculon_pass_time(step_forward=1.5, forward_wait_time=0, bubble_time=0.6, tp_exposed=0.5, pp_exposed=0.04)
    2.64
    """
    return step_forward + forward_wait_time + bubble_time + tp_exposed + pp_exposed


@formula("useful_flops", _C)
def training_flops(block_forward_flops, block_input_flops, block_weight_flops, block_update_flops):
    """Useful FLOPs of a block in training: all passes, element-wise work and the update, without recomputation.

    >>> training_flops(block_forward_flops=1e12, block_input_flops=1e12, block_weight_flops=1e12,
    ...                block_update_flops=1e8)
    3000100000000.0
    """
    return block_forward_flops + block_input_flops + block_weight_flops + block_update_flops


@formula("useful_flops", _C)
def forward_flops(block_forward_flops):
    """Useful FLOPs of a block in inference: the forward pass.

    >>> forward_flops(block_forward_flops=1e12)
    1000000000000.0
    """
    return block_forward_flops


@formula("useful_share", _C)
def useful_share(useful_flops, microbatches, stage_blocks, peak_flops, step_time):
    """Model FLOP utilisation: the time of the useful FLOPs at peak, over the step time.  Every micro-batch counts the
    weight update.

    >>> useful_share(useful_flops=3e12, microbatches=64, stage_blocks=12, peak_flops="312 TFLOP/s", step_time=15)
    0.492307692308
    """
    return microbatches * stage_blocks * useful_flops / peak_flops / step_time


@formula("busy_share", _C)
def busy_share(useful_flops, microbatches, stage_blocks, peak_flops, step_forward, step_backward, optimizer_time):
    """Utilisation while computing: the time of the useful FLOPs at peak, over the time of the passes and the update.

    >>> busy_share(useful_flops=3e12, microbatches=64, stage_blocks=12, peak_flops="312 TFLOP/s", step_forward=3,
    ...     step_backward=6, optimizer_time=0.01)
    0.819602151456
    """
    return microbatches * stage_blocks * useful_flops / peak_flops / (step_forward + step_backward + optimizer_time)


@formula("busy_share", _C)
def busy_share_forward(useful_flops, microbatches, stage_blocks, peak_flops, step_forward):
    """Utilisation while computing, in inference: the time of the useful FLOPs at peak over the time of the passes.

    >>> busy_share_forward(useful_flops=1e12, microbatches=64, stage_blocks=12, peak_flops="312 TFLOP/s",
    ...                    step_forward=3)
    0.820512820513
    """
    return microbatches * stage_blocks * useful_flops / peak_flops / step_forward


@formula("passes_share", _C)
def passes_share(useful_share, busy_share):
    """Share of the step time that the passes and the update take.

    >>> passes_share(useful_share=0.4, busy_share=0.5)
    0.8
    """
    return useful_share / busy_share


@formula("sequence_rate", _C)
def sequence_rate(global_batch, step_time):
    """Sequences trained per second: the batch over the step time.

    >>> sequence_rate(global_batch=1536, step_time=30)
    51.2
    """
    return global_batch / step_time
