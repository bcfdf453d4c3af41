"""Slow, failing and unequal devices: a step waits for its slowest device, and a run stops when any device fails."""

from sympy import floor

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations

equations(__name__)  # those of stragglers.toml


# Devices of unequal speed that share a batch


@formula("pool_lost", "jia2022-whale")
def pool_lost_whole(fast_devices, slow_devices, speed_ratio, fast_microbatches):
    """Share of time lost if devices get whole micro-batches in proportion to their speed.

    >>> pool_lost_whole(fast_devices=8, slow_devices=8, speed_ratio=0.32, fast_microbatches=8).__round__(3)
    0.053
    """
    own = floor(speed_ratio * fast_microbatches)
    left = slow_devices * (speed_ratio - own / fast_microbatches)
    return left / (fast_devices + slow_devices * speed_ratio)


@formula("pool_gain", "jia2022-whale")
def pool_gain_whole(fast_devices, slow_devices, speed_ratio, fast_microbatches):
    """Speedup of a mixed pool over its faster devices alone, with whole micro-batches in proportion to speed.

    >>> pool_gain_whole(fast_devices=8, slow_devices=8, speed_ratio=0.32, fast_microbatches=8)
    1.25
    """
    own = floor(speed_ratio * fast_microbatches)
    return 1 + slow_devices * own / (fast_devices * fast_microbatches)


__all__ = [*formulas_of(__name__)]
