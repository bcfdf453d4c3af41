"""The time of a training step and its parts. All stages are priced like the fullest one, which has the most blocks."""

from sympy import Expr, Ge, Max, Min, Piecewise, ceiling, floor

from scalebook.language import Formula, formula, symbol

__all__ = [
    "HEADS", "STEP", "bubble_with_waits", "offload_exposed", "offload_exposed_both", "stage_moe_blocks_whole",
    "with_waits",
]  # fmt: skip


def _beside(collectives, arithmetic, cores):
    """Cost of overlapped collectives: the cores that they take, and their excess over the arithmetic."""
    return Max(cores * collectives, collectives - (1 - cores) * arithmetic, evaluate=False)


# Stages


@formula("stage_blocks", "narayanan2021 §2.2")
def stage_blocks_even(layers, pp):
    """Blocks per stage, rounded up. If they do not divide evenly, the last stage has fewer.

    >>> stage_blocks_even(layers=126, pp=16)
    8.0
    """
    return ceiling(layers / pp, evaluate=False)


@formula("last_blocks", "narayanan2021 §2.2")
def last_blocks(layers, pp, stage_blocks):
    """Blocks left for the last stage, which also makes the logits.

    >>> last_blocks(layers=126, pp=16, stage_blocks=8)
    6.0
    """
    return Max(0, layers - (pp - 1) * stage_blocks, evaluate=False)


@formula("stage_moe_blocks", "narayanan2021 §2.2", "deepseek2024-v3 §4.2")
def stage_moe_blocks_whole(layers, moe_layers, pp, chunks, stage_blocks, last_blocks):
    """Blocks with experts on the device with the most, if dense blocks come first or every n-th block has experts.

    >>> stage_moe_blocks_whole(layers=61, moe_layers=58, pp=2, chunks=1, stage_blocks=31, last_blocks=30)
    30.0
    """
    chunk, every = stage_blocks / chunks, layers / moe_layers
    dense, turn = layers - moe_layers, pp * chunk

    def beginning(device):
        """Return the dense blocks on a device, if all dense blocks come first."""
        turns = floor(dense / turn, evaluate=False)
        rest = dense - turns * turn
        return turns * chunk + Min(chunk, Max(0, rest - device * chunk, evaluate=False), evaluate=False)

    full = Min(pp, floor(layers / stage_blocks, evaluate=False), evaluate=False)  # devices with a full stage
    rest = layers - full * stage_blocks  # blocks on the next device
    first = Max(
        rest - Max(0, dense - full * stage_blocks, evaluate=False),
        last_blocks - beginning(pp - 1),
        stage_blocks - beginning(full - 1),
        evaluate=False,
    )
    spread = Min(moe_layers, chunks * ceiling(chunk / every, evaluate=False), evaluate=False)
    return Piecewise((spread, Ge(floor(every, evaluate=False), every)), (first, True))


@formula("block_forward", "narayanan2021 §3.2")
def block_forward_sum(forward_compute, tp_forward, tp_overlap, cp_forward, cp_overlap, ep_forward, ep_overlap):
    """Time of a block's forward pass: its kernels, and the collectives that nothing hides.

    >>> more = dict(cp_forward=0, cp_overlap=0, ep_forward=0, ep_overlap=0)
    >>> block_forward_sum(more, forward_compute=5, tp_forward=2, tp_overlap=0.5)
    6.0
    """
    waits = (1 - tp_overlap) * tp_forward + (1 - cp_overlap) * cp_forward + (1 - ep_overlap) * ep_forward
    return forward_compute + waits


@formula("block_backward", "korthikanti2022 §4.2.2")
def block_backward_sum(
    again_compute, input_gradient_compute, weight_gradient_compute, tp_backward, tp_async, tp_overlap, cp_backward,
    cp_overlap, ep_backward, ep_overlap, tp_beside, collective_cores,
):  # fmt: skip
    """Time of a block's backward pass: kernels, exposed collectives, and the cost of the overlapped ones.

    >>> at = dict(again_compute=0, cp_backward=0, cp_overlap=0, ep_backward=0, ep_overlap=0, tp_overlap=0, tp_beside=1)
    >>> at |= dict(input_gradient_compute=5, weight_gradient_compute=4, collective_cores=0.15)
    >>> block_backward_sum(at, tp_backward=1, tp_async=2)
    10.3
    """
    waits = (1 - cp_overlap) * cp_backward + (1 - ep_overlap) * ep_backward
    waits += (1 - tp_overlap) * (tp_backward + (1 - tp_beside) * tp_async)
    beside = _beside(tp_beside * tp_async, weight_gradient_compute, collective_cores)
    return again_compute + input_gradient_compute + weight_gradient_compute + waits + beside


@formula("forward_time", "narayanan2021 §2.2")
def stage_forward_sum(stage_blocks, block_forward):
    """Time of a stage's forward pass: its blocks, one after another.

    >>> stage_forward_sum(stage_blocks=12, block_forward="5 ms")
    0.06
    """
    return stage_blocks * block_forward


@formula("input_gradient_time", "qi2024 §2")
def stage_input_gradient_sum(stage_blocks, block_backward, weight_gradient_time):
    """Time of a stage's backward pass without the weight gradients, which a schedule may defer.

    >>> stage_input_gradient_sum(stage_blocks=12, block_backward="10 ms", weight_gradient_time="48 ms")
    0.072
    """
    return stage_blocks * block_backward - weight_gradient_time


@formula("weight_gradient_time", "qi2024 §2")
def stage_weight_gradient_sum(stage_blocks, weight_gradient_compute, tp_beside, tp_async, collective_cores):
    """Time of a stage's weight gradients, with the cost of the collectives that overlap with them.

    >>> at = dict(tp_beside=1, tp_async=2, weight_gradient_compute=4, collective_cores=0)
    >>> stage_weight_gradient_sum(at, stage_blocks=12)
    48.0
    """
    beside = _beside(tp_beside * tp_async, weight_gradient_compute, collective_cores)
    return stage_blocks * (weight_gradient_compute + beside)


def _waited() -> dict[str, Expr]:
    """Return the times of a stage's passes, including waits for a second tier (backward: with the weight gradients)."""
    x = symbol
    return {
        "forward_time": x("forward_time") + x("stage_blocks") * x("forward_wait"),
        "weight_gradient_time": x("weight_gradient_time") + x("stage_blocks") * x("between_wait"),
    }


def with_waits(f: Formula) -> Formula:
    """Return `f` with the time that blocks wait for offloaded data added to its forward and weight-gradient times."""
    rhs = f.of(**{x: longer for x, longer in _waited().items() if x in f.inputs})
    return Formula(f"{f.name}_waiting", f.letter, rhs, (*f.sources, "rajbhandari2021 §3"), f.__doc__, domain=f.domain)


def bubble_with_waits(f: Formula) -> Formula:
    """Return a schedule's bubble formula with blocks' waits for offloaded data placed where the bubble is smallest."""
    if "weight_gradient_time" not in f.inputs:
        return f
    late, early = _waited(), symbol("input_gradient_time")
    # backward, waits fall on the weight gradients, which schedules defer, or evenly on both gradients
    both = early + late["weight_gradient_time"]
    longer = Min(both - symbol("weight_gradient_time"), Max(early, both / 2, evaluate=False), evaluate=False)
    even = late | {"input_gradient_time": longer, "weight_gradient_time": both - longer}
    idle = [f.of(**{x: time for x, time in times.items() if x in f.inputs}) for times in (late, even)]
    rhs = Max(0, Min(*idle, evaluate=False), evaluate=False)  # waits may exceed the idle time that they could fill
    return Formula(f"{f.name}_waiting", f.letter, rhs, (*f.sources, "rajbhandari2021 §3"), f.__doc__, domain=f.domain)


# The parts of a step


@formula("step_forward", "narayanan2021 §2.2")
def step_forward(microbatches, stage_blocks, forward_compute):
    """Time of the forward kernels of all micro-batches.

    >>> step_forward(microbatches=64, stage_blocks=12, forward_compute="5 ms")
    3.84
    """
    return microbatches * stage_blocks * forward_compute


@formula("step_backward", "narayanan2021 §2.2")
def step_backward(microbatches, stage_blocks, input_gradient_compute, weight_gradient_compute):
    """Time of the backward kernels of all micro-batches.

    >>> step_backward(microbatches=64, stage_blocks=12, input_gradient_compute="5 ms", weight_gradient_compute="4 ms")
    6.912
    """
    return microbatches * stage_blocks * (input_gradient_compute + weight_gradient_compute)


@formula("step_again", "korthikanti2022 §5")
def step_again(microbatches, stage_blocks, again_compute):
    """Time of the recomputed kernels of all micro-batches.

    >>> step_again(microbatches=64, stage_blocks=12, again_compute="1 ms")
    0.768
    """
    return microbatches * stage_blocks * again_compute


def _missing(stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time):
    """Time that the last stage's blocks save over the fullest stage's, for one micro-batch."""
    return (1 - last_blocks / stage_blocks) * (forward_time + input_gradient_time + weight_gradient_time)


@formula("step_head", "narayanan2021 §2.2")
def step_head(
    microbatches, pp, stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time, head_forward,
    head_backward, embedding_time,
):  # fmt: skip
    """Time that a model's ends add to a step: the first stage looks embeddings up and the last makes the logits.

    All stages wait for the slower of the two, as far as it exceeds the fullest stage's blocks.

    >>> stage = dict(stage_blocks=12, last_blocks=12, forward_time=60, input_gradient_time=72, weight_gradient_time=48)
    >>> step_head(stage, microbatches=64, pp=8, head_forward=2, head_backward=4, embedding_time=1)
    384.0
    """
    both = Max(0, 2 - pp, evaluate=False) * embedding_time  # a single stage does both
    fewer = _missing(stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time)
    return microbatches * Max(embedding_time, head_forward + head_backward - fewer + both, evaluate=False)


def _ends(head_forward, head_backward, embedding_time, *stage):
    """Time that both ends of the model take, less what the last stage saves with fewer blocks, for one micro-batch."""
    return Max(0, head_forward + head_backward + embedding_time - _missing(*stage), evaluate=False)


@formula("step_head", "qi2024-v §3")
def step_head_v(
    microbatches, stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time, head_forward,
    head_backward, embedding_time,
):  # fmt: skip
    """Time that the model's ends add to a step if the pipeline turns back (a V): the first device has both ends.

    >>> stage = dict(stage_blocks=12, last_blocks=12, forward_time=60, input_gradient_time=72, weight_gradient_time=48)
    >>> step_head_v(stage, microbatches=64, head_forward=2, head_backward=4, embedding_time=1)
    448.0
    """
    stage = stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time
    return microbatches * _ends(head_forward, head_backward, embedding_time, *stage)


@formula("step_head", "deepseek2024-v3 §3.2.1")
def step_head_both(
    microbatches, stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time, head_forward,
    head_backward, embedding_time,
):  # fmt: skip
    """Time that the model's ends add to a step with DualPipe: each end device does both, for half of the micro-batches.

    >>> stage = dict(stage_blocks=12, last_blocks=12, forward_time=60, input_gradient_time=72, weight_gradient_time=48)
    >>> step_head_both(stage, microbatches=64, head_forward=2, head_backward=4, embedding_time=1)
    224.0
    """
    stage = stage_blocks, last_blocks, forward_time, input_gradient_time, weight_gradient_time
    return microbatches / 2 * _ends(head_forward, head_backward, embedding_time, *stage)


@formula("tp_exposed", "korthikanti2022 §4.2.2")
def tp_exposed(
    microbatches, stage_blocks, tp_forward, tp_backward, tp_async, tp_beside, tp_overlap, weight_gradient_compute,
    collective_cores,
):  # fmt: skip
    """Tensor-parallel time of a step: collectives that blocks wait for, and the cost of the overlapped ones.

    >>> tp_exposed(microbatches=64, stage_blocks=12, tp_forward="1 ms", tp_backward="1 ms", tp_async="2 ms",
    ...            tp_beside=1, tp_overlap=0, weight_gradient_compute="4 ms", collective_cores=0)
    1.536
    """
    waits = (1 - tp_overlap) * (tp_forward + tp_backward + (1 - tp_beside) * tp_async)
    beside = _beside(tp_beside * tp_async, weight_gradient_compute, collective_cores)
    return microbatches * stage_blocks * (waits + beside)


@formula("cp_exposed", "llama3-2024 §3.3.2")
def cp_exposed(microbatches, stage_blocks, cp_forward, cp_backward, cp_overlap):
    """Context-parallel time of a step: collectives that blocks wait for, forward and backward.

    >>> cp_exposed(microbatches=64, stage_blocks=12, cp_forward="1 ms", cp_backward="1 ms", cp_overlap=0.5)
    0.768
    """
    return microbatches * stage_blocks * (1 - cp_overlap) * (cp_forward + cp_backward)


@formula("ep_exposed", "lepikhin2020 §3")
def ep_exposed(microbatches, stage_blocks, ep_forward, ep_backward, ep_overlap):
    """Expert-parallel time of a step: collectives that blocks wait for, forward and backward.

    >>> ep_exposed(microbatches=64, stage_blocks=12, ep_forward="1 ms", ep_backward="1 ms", ep_overlap=0)
    1.536
    """
    return microbatches * stage_blocks * (1 - ep_overlap) * (ep_forward + ep_backward)


@formula("bubble_time", "narayanan2021 §2.2")
def bubble_time(bubble, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Time that a stage idles: the bubble (idle over busy time) times its busy time.

    >>> bubble_time(bubble=0.1, microbatches=64, forward_time=6, input_gradient_time=7, weight_gradient_time=5)
    115.2
    """
    return bubble * microbatches * (forward_time + input_gradient_time + weight_gradient_time)


@formula("offload_exposed", "rajbhandari2021 §3")
def offload_exposed(microbatches, stage_blocks, exposed_between, exposed_time):
    """Time that blocks wait for offloading transfers. Optimizer state moves with the last micro-batch.

    >>> offload_exposed(microbatches=64, stage_blocks=12, exposed_between="0.5 ms", exposed_time="1 ms")
    0.39
    """
    return stage_blocks * ((microbatches - 1) * exposed_between + exposed_time)


@formula("offload_exposed", "rajbhandari2021 §3", "deepseek2024-v3 §3.2.1")
def offload_exposed_both(microbatches, stage_blocks, exposed_between, exposed_time):
    """Time that DualPipe's blocks wait for offloading: a device holds two stages, and each has a last micro-batch.

    >>> offload_exposed_both(microbatches=64, stage_blocks=12, exposed_between="0.5 ms", exposed_time="1 ms")
    0.396
    """
    return stage_blocks * ((microbatches - 2) * exposed_between + 2 * exposed_time)


@formula("step_time", "isaev2023-calculon §2")
def step_time(
    step_forward, step_backward, step_again, step_head, bubble_time, tp_exposed, cp_exposed, ep_exposed, pp_exposed,
    dp_exposed, offload_exposed, optimizer_time, host_exposed,
):  # fmt: skip
    """Time of a training step, the sum of its parts. Overlapped time counts in only one of them.

    >>> waits = {f"{x}_exposed": 0 for x in "tp cp ep pp dp offload host".split()} | dict(step_again=0, step_head=0)
    >>> step_time(waits, step_forward=4, step_backward=8, bubble_time=1.5, optimizer_time=0.1)
    13.6
    """
    kernels = step_forward + step_backward + step_again + step_head + optimizer_time
    waits = tp_exposed + cp_exposed + ep_exposed + pp_exposed + dp_exposed + offload_exposed
    return kernels + waits + bubble_time + host_exposed


# The time that the model's ends add to a step, by their placement.
HEADS = {"apart": step_head, "first": step_head_v, "both": step_head_both}
STEP = (
    stage_blocks_even, last_blocks, block_forward_sum, block_backward_sum, stage_forward_sum, stage_input_gradient_sum,
    stage_weight_gradient_sum, step_forward, step_backward, step_again, bubble_time, tp_exposed, cp_exposed, ep_exposed,
    step_time,
)  # fmt: skip
