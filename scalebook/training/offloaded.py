"""What a block of a training step moves to and from a second memory, such as the host's, and the time of it."""

from sympy import Max

from scalebook import offload
from scalebook.language import Formula, symbol
from scalebook.pipeline.schedules import Schedule
from scalebook.training import parts
from scalebook.training.memory import bytes_of
from scalebook.training.optimizers import Optimizer
from scalebook.training.shardings import Sharding
from scalebook.training.totals import link_of_host

__all__ = ["offload_formulas"]


def offload_formulas(sharding: Sharding, schedule: Schedule, optimizer: Optimizer) -> list[Formula]:
    """Return the formulas for the bytes that a block moves to and from a second memory, and the time that this adds."""
    block = symbol("block_params"), symbol("block_routed_params")
    weights, gradients, state = (bytes_of(x, sharding, *block, optimizer) for x in ("weight", "gradient", "optimizer"))
    between, whole = offload.offload_bandwidth.of(block_states=gradients), offload.offload_bandwidth.rhs
    hiding = between + Max(0, 2 - symbol("microbatches"), evaluate=False) * (whole - between)
    made = (
        ("block_weights_held", "block_weights", weights),
        ("block_states_held", "block_states", gradients + state),
        # before the last micro-batch gradients come in to be accumulated, and optimizer state does not move
        ("wait_of_gradients", "between_wait", offload.backward_wait.of(block_states=gradients)),
        ("exposed_of_gradients", "exposed_between", offload.exposed_time.of(backward_wait=symbol("between_wait"))),
        ("bandwidth_between", "offload_bandwidth", hiding),
    )
    return [
        *(Formula(name, letter, rhs, ["rajbhandari2021 §3"]) for name, letter, rhs in made),
        offload.forward_wait,
        offload.backward_wait,
        offload.exposed_time,
        parts.offload_exposed_both if schedule.copies > 1 else parts.offload_exposed,
        link_of_host,
    ]
