"""Bubbles of pipeline schedules: the time that devices idle over the time that they work, in one training step.

A pipeline has `pp` stages, one per device, through which a step's micro-batches pass. Times are of one micro-batch on
one device. Some formulas refuse few micro-batches; `scalebook.pipeline.simulate` executes the schedule for any number.
"""

from sympy import Eq, Max, Min, Mod, ceiling

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import stated

_EQUAL = stated(__name__)  # equal times of passes
globals().update(_EQUAL)


# Limits of the schedules: the fewest micro-batches, or the size of their groups

GROUPS = {"micro-batches in multiples of the stages": lambda microbatches, pp: Eq(Mod(microbatches, pp), 0)}
FILLED_ONCE = {"at least as many micro-batches as stages": lambda microbatches, pp: microbatches >= pp}
FILLED_TWICE = {"at least 2 × stages − 1 micro-batches": lambda microbatches, pp: microbatches >= 2 * pp - 1}
EVEN_STAGES = {"an even number of stages": lambda pp: Eq(Mod(pp, 2), 0)}
PAIRS = EVEN_STAGES | {
    "an even number of micro-batches": lambda microbatches: Eq(Mod(microbatches, 2), 0),
    "at least twice as many micro-batches as stages": lambda microbatches, pp: microbatches >= 2 * pp,
}


def _over_busy(idle, microbatches, *times):
    return idle / (microbatches * sum(times))


# Idle over busy


@formula("bubble", "narayanan2021 §2.2.2", domain=GROUPS)
def bubble_interleaved(pp, microbatches, chunks):
    """Bubble of interleaved 1F1B: a device has several small stages (chunks), so the pipeline fills and drains faster.

    >>> bubble_interleaved(pp=8, microbatches=64, chunks=4)
    0.02734375
    """
    return (pp - 1) / (chunks * microbatches)


@formula("bubble", "narayanan2021 §2.2.1")
def bubble_1f1b_transfers(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time, transfer_time):
    """Bubble of 1F1B if devices wait for all transfers: each round of `pp` micro-batches waits for 2 (pp - 1) of them.

    >>> knowns = dict(forward_time="18.522 ms", input_gradient_time="18.086 ms", weight_gradient_time="9.337 ms")
    >>> bubble = bubble_1f1b_transfers(pp=8, microbatches=24, transfer_time="0.601 ms", **knowns)
    >>> round(bubble / (1 + bubble), 4)  # 0.2431 in table 5 of qi2024
    0.2431
    """
    waits = 2 * ceiling((microbatches + pp - 2) * (pp - 1) / pp) * transfer_time
    times = forward_time, input_gradient_time, weight_gradient_time
    return (pp - 1) / microbatches + _over_busy(waits, microbatches, *times)


@formula("bubble", "qi2024 table 2", domain=FILLED_ONCE)
def bubble_zb_h1(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Bubble of ZB-H1 (zero bubble): weight gradients are deferred until a device would idle, in the memory of 1F1B.

    The published term holds if a weight gradient takes no longer than a forward pass.

    >>> bubble_zb_h1(equal_input_gradient, equal_weight_gradient, pp=8, microbatches=32)
    0.07291666666666666
    """
    idle = (pp - 1) * (input_gradient_time + Max(0, forward_time - weight_gradient_time, evaluate=False))
    return _over_busy(idle, microbatches, forward_time, input_gradient_time, weight_gradient_time)


@formula("bubble", "qi2024 table 2", domain=FILLED_TWICE)
def bubble_zb_h2(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Bubble of ZB-H2: ZB-H1 with more forward passes at the start of a step, for nearly twice the activation memory.

    The published term holds if the weight gradient is the shortest pass and the optimizer waits for no other device.

    >>> bubble_zb_h2(equal_input_gradient, pp=8, microbatches=32, forward_time="10 ms", weight_gradient_time="5 ms")
    0.0875
    """
    f, b, w = forward_time, input_gradient_time, weight_gradient_time
    return _over_busy((pp - 1) * Max(0, b - f, f + b - 2 * w, evaluate=False), microbatches, f, b, w)


@formula("bubble", "qi2024 §6", domain=FILLED_TWICE)
def bubble_zb_v(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Bubble of ZB-V, whose devices have a stage on the way down and one on the way back: zero if all passes are equal.

    Otherwise it is an upper bound, exact if the weight gradient is the shortest pass. The optimizer is assumed to wait
    for no other device.

    >>> bubble_zb_v(equal_input_gradient, pp=8, microbatches=32, forward_time="10 ms", weight_gradient_time="5 ms")
    0.04375
    """
    times = forward_time, input_gradient_time, weight_gradient_time
    longest, shortest = Max(*times, evaluate=False), Min(*times, evaluate=False)
    return _over_busy((pp - 1) * (longest - shortest), microbatches, *times)


@formula("bubble", "deepseek2024-v3 table 2", domain=PAIRS)
def bubble_dualpipe(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Bubble of DualPipe: micro-batches enter the pipeline at both ends, so every device holds two stages.

    It is exact if the input gradient takes no longer than the forward pass, else an upper bound. Published as
    (pp/2 - 1)(F&B + B - 3W): B is the whole backward pass, F&B a forward and a backward pass that run together.

    >>> bubble_dualpipe(equal_input_gradient, equal_weight_gradient, pp=8, microbatches=32)
    0.0625
    """
    f, b, w = forward_time, input_gradient_time, weight_gradient_time
    idle = f + Max(f, b, evaluate=False) + Max(0, b - w, evaluate=False)
    return _over_busy((pp / 2 - 1) * idle, microbatches, f, b, w)


__all__ = [*formulas_of(__name__)]
