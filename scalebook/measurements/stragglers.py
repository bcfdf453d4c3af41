"""Failures and stragglers of long runs, as papers and logs tell of them.

Of one run's figures another's are predicted: how often a device fails is known of Llama 3, how long a recovery takes
and how slow a slow host is of MegaScale.
"""

import re

from scalebook.training.checkpoints import checkpoint_bytes, checkpoint_interval_young, goodput, mtbf_of_run
from scalebook.training.stragglers import interruptions_of_devices, paced_by_slowest

from .confrontation import Confrontation

__all__ = ["CONFRONTATIONS"]

_DAY = 86400
# Llama 3 405B on 16,384 H100: 419 failures in 54 days, and what its file system takes in.
_DEVICES, _FAILURES, _TIME, _STORAGE = 16_384, 419, 54 * _DAY, 2e12
DEVICE_MTBF = _DEVICES * _TIME / _FAILURES
# MegaScale: ten minutes until a fault is found, fifteen until work goes on where it stopped; slow hosts take a tenth
# longer for the same forward pass.
RESTART, SLOW = 25 * 60, 0.1
_TIMES = {"54 days": 54 * _DAY, "several weeks": 21 * _DAY}  # several: three
_KINDS = {
    "unexpected interruptions": "failures", "training restarts": "failures",
    "effective training time": "share of the time that lasts", "throughput drop from one slow node": "one slow node",
}  # fmt: skip


def _devices(row):
    return float(re.search(r"([\d,]+) (?:H100|Ampere|A100)", row["run"])[1].replace(",", ""))


def _run_time(row):
    return next(time for said, time in _TIMES.items() if said in row["run"])


def _predicted(row):
    kind = _KINDS[row["metric"]]
    if kind == "failures":
        return interruptions_of_devices(devices=_devices(row), run_time=_run_time(row), device_mtbf=DEVICE_MTBF)
    if kind == "one slow node":
        return paced_by_slowest(slow_excess=SLOW)
    mtbf = mtbf_of_run(run_time=_TIME, interruptions=_FAILURES)
    written = checkpoint_bytes(params=405e9, optimizer_bits=96) / _STORAGE
    every = checkpoint_interval_young(checkpoint_time=written, mtbf=mtbf)
    return 100 * goodput(checkpoint_time=written, checkpoint_interval=every, restart_time=RESTART, mtbf=mtbf)


def _left_out(row):
    if row["metric"].startswith("interruptions: "):
        return "of single causes, which nothing predicts"
    if row["run"].startswith("ByteDance"):
        return "of jobs of many sizes, most of whose slowness is of unequal work"
    if row["metric"] not in _KINDS:
        return "of what runs were like, not of how they went"
    is_failures = _KINDS[row["metric"]] == "failures"
    is_known = re.search(r"[\d,]+ (?:H100|Ampere|A100)", row["run"]) and any(x in row["run"] for x in _TIMES)
    return "" if is_known or not is_failures else "of a run whose devices or days are not stated"


CONFRONTATIONS = {
    "stragglers": Confrontation(
        "stragglers",
        "stragglers.csv",
        "Failures of runs on thousands of devices, the share of the time that lasts, and what one slow node costs, "
        "each by the figures of another run.",
        lambda rows: [_predicted(row) for row in rows],
        "value",
        "failures, % or share",
        ("llama3-2024", "jiang2024-megascale", "bloom-run"),
        _left_out,
        lambda row: _KINDS[row["metric"]],
        "how often a device fails, on Llama 3's own run",
        lambda row: row["metric"] == "unexpected interruptions",
        alike=lambda row: _KINDS[row["metric"]],
    )
}
