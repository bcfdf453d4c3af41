"""What a block of a training step moves to and from a second memory tier, and the time that this adds."""

from sympy import Max

from scalebook import offload
from scalebook.language import Formula, symbol
from scalebook.pipeline.schedules import Schedule
from scalebook.training import parts as training_time
from scalebook.training.memory import bytes_of
from scalebook.training.optimizers import OPTIMIZERS, Optimizer
from scalebook.training.shardings import Sharding
from scalebook.training.totals import link_of_host

__all__ = ["offload_formulas"]


def offload_formulas(
    sharding: Sharding, schedule: Schedule, optimizer: Optimizer = OPTIMIZERS["adam"]
) -> list[Formula]:
    """Return the formulas for what a block moves to and from a second tier, and its cost.

    >>> from scalebook.pipeline.schedules import SCHEDULES
    >>> from scalebook.training.shardings import SHARDINGS
    >>> [f.letter for f in offload_formulas(SHARDINGS["zero1"], SCHEDULES["1f1b"])][:3]
    ['block_weights', 'block_states', 'between_wait']
    """
    block = symbol("block_params"), symbol("block_routed_params")
    weights, gradients, state = (bytes_of(x, sharding, *block, optimizer) for x in ("weight", "gradient", "optimizer"))
    source = ["rajbhandari2021 §3"]
    between, whole = offload.offload_bandwidth.of(block_states=gradients), offload.offload_bandwidth.rhs
    hiding = between + Max(0, 2 - symbol("microbatches"), evaluate=False) * (whole - between)
    return [
        Formula(
            "block_weights_held", "block_weights", weights, source, "Bytes of a block's weights that a device holds."
        ),
        Formula(
            "block_states_held", "block_states", gradients + state, source, "Bytes of a block's gradients and state."
        ),
        Formula(
            "wait_of_gradients",
            "between_wait",
            offload.backward_wait.of(block_states=gradients),
            source,
            "Time that transfers add to a backward pass before the last micro-batch: gradients come in to be "
            "accumulated, and optimizer state does not move.",
        ),
        Formula(
            "exposed_of_gradients",
            "exposed_between",
            offload.exposed_time.of(backward_wait=symbol("between_wait")),
            source,
            "Time that transfers add to a block, forward and backward, before the last micro-batch.",
        ),
        Formula(
            "bandwidth_between",
            "offload_bandwidth",
            hiding,
            source,
            "Bandwidth that hides the transfers of all micro-batches but the last, which also moves optimizer state.",
        ),
        offload.forward_wait,
        offload.backward_wait,
        offload.exposed_time,
        training_time.offload_exposed_both if schedule.copies > 1 else training_time.offload_exposed,
        link_of_host,
    ]
