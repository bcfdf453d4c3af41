"""Failures in a long run and checkpoints against them: how often to write one, and how much time is lost.

Failures come at random, every `mtbf` on average. Each loses the work since the last checkpoint and costs a restart.
"""

from sympy import exp, sqrt

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of checkpoints.toml


@formula("checkpoint_interval", "young1974")
def checkpoint_interval_young(checkpoint_time, mtbf):
    """Young's checkpoint interval, which minimises `checkpoint_time / interval + interval / (2 mtbf)`.

    >>> round(checkpoint_interval_young(checkpoint_time="60 s", mtbf=11_135) / 60, 1)
    19.3
    """
    return sqrt(2 * checkpoint_time * mtbf)


def _is_short(checkpoint_time, mtbf):
    return checkpoint_time < 2 * mtbf


_SHORT = {"checkpoints that take less than twice the time between failures": _is_short}


@formula("checkpoint_interval", "daly2006 §4", domain=_SHORT)
def checkpoint_interval_daly(checkpoint_time, mtbf):
    """Daly's checkpoint interval, which allows for failures during checkpoints and during repeated work.

    >>> round(checkpoint_interval_daly(checkpoint_time="60 s", mtbf=11_135) / 60, 1)
    18.6
    """
    share = checkpoint_time / (2 * mtbf)
    return sqrt(2 * checkpoint_time * mtbf) * (1 + sqrt(share) / 3 + share / 9) - checkpoint_time


@formula("lost_share", "young1974")
def lost_share(checkpoint_time, checkpoint_interval, restart_time, mtbf):
    """Share of time lost, to first order: checkpoints, half an interval and a restart per failure. Above 1 is an error.

    >>> round(lost_share(checkpoint_time="60 s", checkpoint_interval=1156, restart_time="0 s", mtbf=11_135), 3)
    0.104
    """
    return checkpoint_time / checkpoint_interval + (checkpoint_interval / 2 + restart_time) / mtbf


@formula("lost_share", "young1974")
def lost_share_at_best(checkpoint_time, mtbf):
    """Share of time lost at Young's interval, without restarts: half is writing, half is repeated work.

    >>> round(lost_share_at_best(checkpoint_time="60 s", mtbf=11_135), 3)
    0.104
    """
    return sqrt(2 * checkpoint_time / mtbf)


@formula("goodput", "daly2006 §3")
def goodput(checkpoint_time, checkpoint_interval, restart_time, mtbf):
    """Useful work over total time, to all orders: memoryless failures also strike during checkpoints and restarts.

    >>> round(goodput(checkpoint_time="60 s", checkpoint_interval=1156, restart_time=300, mtbf=11_135), 3)
    0.876
    """
    passed = exp(-(checkpoint_interval + checkpoint_time) / mtbf)  # share of the tries that succeed
    return checkpoint_interval / mtbf * exp(-restart_time / mtbf) * passed / (1 - passed)


# Two tiers: most failures leave a copy in a neighbour's memory, the others need one in remote storage


@formula("near_checkpoint_interval", "moody2010", "young1974")
def near_checkpoint_interval(near_checkpoint_time, near_failures, mtbf):
    """Young's interval for the failures that a nearby checkpoint survives.

    >>> round(near_checkpoint_interval(near_checkpoint_time="2 s", near_failures=0.9, mtbf=11_135))
    222
    """
    return sqrt(2 * near_checkpoint_time * mtbf / near_failures)


@formula("checkpoint_interval", "moody2010", "young1974")
def checkpoint_interval_far(checkpoint_time, near_failures, mtbf):
    """Young's interval for the rarer failures that nearby checkpoints do not survive. They need remote storage.

    >>> round(checkpoint_interval_far(checkpoint_time="60 s", near_failures=0.9, mtbf=11_135) / 60, 1)
    60.9
    """
    return sqrt(2 * checkpoint_time * mtbf / (1 - near_failures))


@formula("lost_share", "moody2010", "young1974")
def lost_share_tiers(checkpoint_time, near_checkpoint_time, near_failures, mtbf):
    """Share of time lost with nearby and remote checkpoints, each at its own Young interval. Both losses add up.

    >>> round(lost_share_tiers(checkpoint_time="60 s", near_checkpoint_time="2 s", near_failures=0.9, mtbf=11_135), 3)
    0.051
    """
    near = sqrt(2 * near_checkpoint_time * near_failures / mtbf)
    return near + sqrt(2 * checkpoint_time * (1 - near_failures) / mtbf)


checkpointing = Sheet(
    "checkpointing", _OWN.mtbf_of_run, checkpoint_interval_young, lost_share, goodput,
    doc="A long run with failures: how often to write checkpoints, and the share of time that remains.",
)  # fmt: skip

operating = Sheet(
    "operating", _OWN.mtbf_of_devices, _OWN.checkpoint_bytes, _OWN.checkpoint_time_stored, checkpoint_interval_daly,
    goodput, doc="A run on many devices with independent failures, and one store for checkpoints.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "checkpointing", "operating"]
