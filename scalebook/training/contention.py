"""Bandwidths that hide a strategy's collectives, and contention of parallel dimensions on links that they share.

Other dimensions' collectives go on while data-parallel ones run, so the needed bandwidths add up.
"""

from functools import cache

from sympy import Add, Max, Min

from scalebook.language import Formula, formula, symbol
from scalebook.machine.collectives import port_times
from scalebook.training.shardings import SHARDINGS, Sharding

__all__ = ["bandwidth_formulas", "dp_contention_shared", "needed"]

TIERS = ("scaleup", "scaleout")
_WAYS = ("tp", "cp", "ep", "pp", "dp")
_HERE = "interconnects-and-memory-tiers"


@formula("dp_contention", _HERE)
def dp_contention_shared(
    dp_passes, dp_window, dp_reduce, dp_gather, dp_unhidden, stage_blocks, dp_scaleup_time, dp_scaleout_time,
    tp_scaleup_time, tp_scaleout_time, tp_scaleup_beside, tp_scaleout_beside, tp_beside, tp_overlap, cp_scaleup_time,
    cp_scaleout_time, cp_overlap, ep_scaleup_time, ep_scaleout_time, ep_overlap, pp_scaleup_time, pp_scaleout_time,
    pp_overlap,
):  # fmt: skip
    """Time that hidden data-parallel collectives add to a step by slowing down other collectives on the same links.

    Two collectives on a link get half of it each, so one that a block waits for then takes twice as long. Exposed ones
    share a link with no others. A collective that uses both tiers waits for the slower one.

    >>> others = {f"{x}_{y}": 0 for x in ("tp", "cp", "ep", "pp") for y in ("scaleup_time", "scaleout_time", "overlap")}
    >>> others |= dict(tp_scaleup_beside=0, tp_scaleout_beside=0, tp_beside=1, dp_gather=0, dp_unhidden=0)
    >>> others |= dict(stage_blocks=10, dp_window=0.1, dp_reduce=0.05, dp_scaleup_time=0.025, dp_scaleout_time=0.05)
    >>> dp_contention_shared(others | dict(tp_scaleup_time="2 ms"), dp_passes=1)
    0.005
    """
    # Avoids a division by zero if nothing is sent.
    whole = Max(dp_reduce + dp_gather, dp_window / 10**9, evaluate=False)
    hidden = (dp_reduce + dp_gather - dp_unhidden) / whole

    def met(often, overlap, near, far):
        waited = often * (1 - overlap)
        return Max(waited * near * dp_scaleup_time, waited * far * dp_scaleout_time, evaluate=False)

    both = tp_scaleup_time - tp_beside * tp_scaleup_beside, tp_scaleout_time - tp_beside * tp_scaleout_beside
    waits = met(stage_blocks, tp_overlap, *both) + met(stage_blocks, cp_overlap, cp_scaleup_time, cp_scaleout_time)
    waits += met(stage_blocks, ep_overlap, ep_scaleup_time, ep_scaleout_time)
    return dp_passes * hidden / dp_window * (waits + met(1, pp_overlap, pp_scaleup_time, pp_scaleout_time))


def _arithmetic(way: str, sharding: Sharding):
    """Kernel time, in seconds, that could hide a dimension's collectives, over the same blocks and micro-batches."""
    x = symbol
    block = x("again_compute") + x("input_gradient_compute") + x("weight_gradient_compute")
    if way != "dp" or sharding.gathers:
        block += x("forward_compute")
    often = x("microbatches") if way == "dp" and sharding.is_each else 1
    return block * often * (x("stage_blocks") if way in ("pp", "dp") else 1)


def needed(way: str, tier: str, sharding: Sharding = SHARDINGS["zero1"]) -> Formula:
    """Return the formula for the bandwidth that a dimension needs on a network ("scaleup" or "scaleout").

    With it, messages of the dimension ("tp", "dp", ...) hide behind arithmetic. Launches and hops are extra.
    """
    rhs = symbol(f"{tier}_bandwidth") * symbol(f"{way}_{tier}_time") / _arithmetic(way, sharding)
    return Formula(f"{way}_{tier}_needed_beside", f"{way}_{tier}_needed", rhs, [_HERE])


@cache
def bandwidth_formulas(sharding: Sharding, sends: int, chunks, transfer) -> tuple[Formula, ...]:
    """Return formulas for the bandwidth that each parallel dimension needs on each network, and for their contention.

    `sends` x `chunks` is a stage's transfers per micro-batch; `transfer` is the bytes, devices and near devices of one.
    """
    often = sends * chunks * Min(1, symbol("pp") - 1, evaluate=False)
    made = []
    for tier, time in zip(TIERS, port_times("send", *transfer), strict=True):
        made.append(Formula(f"pp_{tier}_time_sent", f"pp_{tier}_time", often * time, ["narayanan2021 §2.2.2"]))
    for tier in TIERS:
        made += [needed(way, tier, sharding) for way in _WAYS]
        total = Add(*(symbol(f"{way}_{tier}_needed") for way in _WAYS))
        made.append(Formula(f"all_{tier}_needed_sum", f"all_{tier}_needed", total, [_HERE]))
    return (*made, dp_contention_shared)
