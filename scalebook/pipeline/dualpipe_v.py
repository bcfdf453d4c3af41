"""DualPipeV: one half of DualPipe, folded into a V, so that no weights are kept twice.

DualPipe's device d and its mirror image do the same work in opposite directions. DualPipeV keeps the nearer half of the
devices: each has a stage on the way down and the mirrored stage on the way back up. Going in are the letters of a
schedule, coming out its bubble, memory, messages and order.

>>> from scalebook.pipeline.simulation import simulate
>>> simulate("dualpipe_v", pp=4, microbatches=16)
dualpipe_v of 16 micro-batches on 4 devices: step 51, bubble 0.0625, in flight 4.5
"""

from sympy import Max

from scalebook.language import formula
from scalebook.pipeline.orders import from_both_ends
from scalebook.pipeline.schedules import Schedule
from scalebook.pipeline.stages import held_zb_v, messages_zb_v, pp_exposed_v

__all__ = ["bubble_dualpipe_v"]

_SOURCE = "dualpipe-v"
_ENOUGH = {"at least twice as many micro-batches as stages": lambda microbatches, pp: microbatches >= 2 * pp}


@formula("bubble", _SOURCE, "deepseek2024-v3 table 2", domain=_ENOUGH)
def bubble_dualpipe_v(pp, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Bubble of DualPipeV, which is DualPipe on twice the devices with every pass half as long.

    It is exact if the input gradient takes no longer than the forward pass, and an upper bound otherwise. Published as
    (PP/2 - 1)(F&B + B - 3W) for PP stages on PP/2 devices, where F, B and W are passes of one stage. Here `pp` counts
    devices, and a device's pass is a pass through both of its stages.

    >>> same = dict(forward_time=1, input_gradient_time=1, weight_gradient_time=1)
    >>> bubble_dualpipe_v(same, pp=4, microbatches=16)  # 3 * (2 * 1 + 0) / 2 of 16 * 3
    0.0625
    """
    f, b, w = forward_time, input_gradient_time, weight_gradient_time
    idle = f + Max(f, b, evaluate=False) + Max(0, b - w, evaluate=False)
    return (pp - 1) * idle / 2 / (microbatches * (f + b + w))


def _order(order, device, pp, microbatches, chunks):
    if microbatches < 2 * pp:
        raise ValueError(f"dualpipe_v takes at least 2 pp = {2 * pp} micro-batches, not microbatches={microbatches}")
    stages = device, 2 * pp - 1 - device
    from_both_ends(order, pp, device, microbatches, lambda side, count: (stages[side], count))


Schedule(
    "dualpipe_v", _SOURCE, bubble_dualpipe_v, held_zb_v, messages_zb_v, _order, exposed=pp_exposed_v, chunks=2,
    ends="first", is_exact=lambda f, b, w: b <= f,
)  # fmt: skip
