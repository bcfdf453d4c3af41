"""Eager 1F1B: every stage runs further ahead, so that transfers between stages hide behind arithmetic.

>>> from scalebook.pipeline.simulation import simulate
>>> simulate("1f1b", 4, 16, transfer_time=1).makespan, simulate("eager_1f1b", 4, 16, transfer_time=1).makespan
(Fraction(85, 1), Fraction(63, 1))
"""

from sympy import Min

from scalebook.language import formula
from scalebook.pipeline.bubbles import bubble_1f1b
from scalebook.pipeline.orders import run_ahead
from scalebook.pipeline.schedules import Schedule
from scalebook.pipeline.stages import messages_loop

__all__ = ["held_eager", "pp_exposed_eager"]


@formula("held_microbatches", "zhuang2022 §4")
def held_eager(microbatches, pp, stage):
    """Micro-batches whose activations a stage of eager 1F1B keeps: one for itself and two for each later stage.

    >>> held_eager(microbatches=32, pp=8, stage=1), held_eager(microbatches=32, pp=8, stage=8)
    (15.0, 1.0)
    """
    return Min(microbatches, 2 * (pp - stage) + 1, evaluate=False)


@formula("pp_exposed", "zhuang2022 §4")
def pp_exposed_eager(pp, transfer_time, pp_overlap):
    """Transfer time that nothing hides in eager 1F1B: the first micro-batch's way down and the last one's way back.

    This holds while a transfer takes no longer than a pass of a stage.

    >>> pp_exposed_eager(pp=8, transfer_time="1 ms", pp_overlap=0)
    0.014
    """
    return (1 - pp_overlap) * 2 * (pp - 1) * transfer_time


def _order(order, device, pp, microbatches, chunks):
    run_ahead(order, device, microbatches, 2 * (pp - device) - 1)


Schedule("eager_1f1b", "zhuang2022 §4", bubble_1f1b, held_eager, messages_loop, _order, exposed=pp_exposed_eager)
