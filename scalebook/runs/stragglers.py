"""Slow, failing and unequal devices: a step waits for its slowest device, and a run stops when any device fails."""

from sympy import floor

from scalebook.language import formula, formulas_of


@formula("paced_speed", "dean2013")
def paced_by_slowest(slow_excess):
    """Speed of devices that wait for each other in every step, relative to equal devices: the slowest sets the pace.

    >>> round(paced_by_slowest(slow_excess=0.06), 3)
    0.943
    """
    return 1 / (1 + slow_excess)


@formula("interruptions", "llama3-2024 §3.3.4")
def interruptions_of_devices(devices, run_time, device_mtbf):
    """Interruptions of a run: devices fail independently, and each failure stops the run.

    >>> round(interruptions_of_devices(devices=16_384, run_time=54 * 86400, device_mtbf=50_676 * 3600))
    419
    """
    return devices * run_time / device_mtbf


# Devices of unequal speed that share a batch


@formula("pool_lost", "jia2022-whale")
def pool_lost_equal(fast_devices, slow_devices, speed_ratio):
    """Share of time lost if all devices get the same number of tokens: the faster ones wait for the slower ones.

    >>> pool_lost_equal(fast_devices=8, slow_devices=8, speed_ratio=0.5).__round__(3)
    0.333
    """
    return fast_devices * (1 - speed_ratio) / (fast_devices + slow_devices * speed_ratio)


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
def pool_gain_equal(fast_devices, slow_devices, speed_ratio):
    """Speedup of a mixed pool over its faster devices alone, with equal tokens. Below 1, leave out the slower ones.

    >>> pool_gain_equal(fast_devices=8, slow_devices=8, speed_ratio=0.32)
    0.64
    """
    return speed_ratio * (fast_devices + slow_devices) / fast_devices


@formula("pool_gain", "jia2022-whale")
def pool_gain_whole(fast_devices, slow_devices, speed_ratio, fast_microbatches):
    """Speedup of a mixed pool over its faster devices alone, with whole micro-batches in proportion to speed.

    >>> pool_gain_whole(fast_devices=8, slow_devices=8, speed_ratio=0.32, fast_microbatches=8)
    1.25
    """
    own = floor(speed_ratio * fast_microbatches)
    return 1 + slow_devices * own / (fast_devices * fast_microbatches)


__all__ = [*formulas_of(__name__)]
