"""Slow and failing devices: a step waits for its slowest device, and a run stops when any device fails.

`any_slow` and `slowest_normal` of `scalebook.inference.tail` give the chance that a group has a slow member, and the
time of its slowest member if delays follow a distribution.

>>> round(paced_by_slowest(slow_excess=0.1), 3), round(paced_at_times(slow_excess=0.1, any_slow=0.5), 3)
(0.909, 0.952)
"""

from scalebook.language import formula

__all__ = ["interruptions_of_devices", "paced_at_times", "paced_by_slowest"]


@formula("paced_speed", "dean2013")
def paced_by_slowest(slow_excess):
    """Speed of devices that wait for each other in every step, relative to equal devices: the slowest sets the pace.

    >>> round(paced_by_slowest(slow_excess=0.06), 3)
    0.943
    """
    return 1 / (1 + slow_excess)


@formula("paced_speed", "dean2013")
def paced_at_times(slow_excess, any_slow):
    """Speed of devices that wait for each other, if one of them is slow in only some of the steps.

    >>> round(paced_at_times(slow_excess=0.1, any_slow=0.474), 3)
    0.955
    """
    return 1 / (1 + any_slow * slow_excess)


@formula("interruptions", "llama3-2024 §3.3.4")
def interruptions_of_devices(devices, run_time, device_mtbf):
    """Interruptions of a run: devices fail independently, and each failure stops the run.

    >>> round(interruptions_of_devices(devices=16_384, run_time=54 * 86400, device_mtbf=50_676 * 3600))
    419
    """
    return devices * run_time / device_mtbf
