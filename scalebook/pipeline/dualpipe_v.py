"""DualPipeV: one half of DualPipe, folded into a V: a device has a stage on the way down and one on the way back."""

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
    """Bubble of DualPipeV: the same as DualPipe's on twice the devices, with every pass half as long.

    It is exact if the input gradient takes no longer than the forward pass, else an upper bound. `pp` counts devices
    (published: stages), and a pass of a device goes through both of its stages.

    >>> bubble_dualpipe_v(forward_time=1, input_gradient_time=1, weight_gradient_time=1, pp=4, microbatches=16)
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
