"""Measured speed-ups of new device generations, from pairs of serving runs that differ only in the device."""

import csv
from collections import defaultdict
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scalebook.book.measured.serving import run_of, served_rows

from scalebook.inference import reading_share
from scalebook.measurements.rows import SYSTEMS as ALL_SYSTEMS
from scalebook.measurements.sets import stanzas
from scalebook.tables import accelerators

__all__ = ["ALIKE", "Pairs", "measured_gains", "paired", "ratio"]

# A pair shares everything but the system and the engine version, which differs between systems.
ALIKE = (
    "model_path", "backend", "precision", "gemm_quant_mode", "moe_quant_mode", "isl", "osl", "concurrency",
    "batch_size", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size",
)  # fmt: skip
SYSTEMS = {name: device for name, device in ALL_SYSTEMS.items() if device != "a100"}  # no run on it was published
_NO_WAIT = 1e-12  # seconds
_TIMES = {"tpot": "silicon_tpot_ms", "ttft": "silicon_ttft_ms"}


class Pairs(NamedTuple):
    """Pairs of runs on an old and a new device: their measured speed-ups, and what `serve` predicts (`said`).

    `direct` is the prediction for all-reduces in which no device waits for another. `rows` are the runs on the old
    device. `reading` is the share of its step that `serve` attributes to reading memory.
    """

    rows: list[dict[str, str]]
    users: np.ndarray
    measured: np.ndarray
    said: np.ndarray
    direct: np.ndarray
    reading: np.ndarray

    def at(self, chosen) -> "Pairs":
        """Return the pairs that the mask `chosen` selects."""
        rows = [row for row, is_in in zip(self.rows, chosen, strict=True) if is_in]
        return Pairs(rows, *(x[chosen] for x in self[1:]))


@cache
def _alike():
    """Return rows that have an equal on another system, their places by kind and system, and measured times."""
    with (files("scalebook.measurements") / "serving.csv").open(encoding="utf-8", newline="") as file:
        read = [row for row in csv.DictReader(file) if row["system"] in SYSTEMS and row["mode"] == "agg"]
    kind, kept, found = itemgetter(*ALIKE), stanzas()["serving_tpot"], defaultdict(set)
    for row in read:
        found[kind(row)].add(row["system"])
    rows = [kept.completed(row) for row in read if len(found[kind(row)]) > 1]
    rows = [row for row in rows if not kept.left_out(row)]
    kinds = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rows):
        kinds[kind(row)][SYSTEMS[row["system"]]].append(place)
    measured = {x: np.array([float(row[column] or 0) for row in rows]) for x, column in _TIMES.items()}
    return rows, list(kinds.values()), measured


@cache
def _predicted():
    """Return what `serve` predicts for these rows, with all-reduces as usual and without waiting in them."""
    rows, *_ = _alike()
    direct = served_rows(rows, *_TIMES, sum_latency=_NO_WAIT)
    return served_rows(rows, *_TIMES, *reading_share.inputs), direct


def _both(old, new, what):
    """Return the kinds of runs for which `what` was measured on both devices."""
    for name in (old, new):
        if name not in SYSTEMS.values():
            raise LookupError(f"no public runs are known here of {name!r}; there are {', '.join(SYSTEMS.values())}")
    _, kinds, measured = _alike()
    return [x for x in kinds if old in x and new in x and (measured[what][x[old] + x[new]] > 0).all()]


def _gains(both, times, old, new):
    """Return the speed-ups of the new device; several runs of one kind count by their median."""
    return np.array([np.median(times[x[old]]) / np.median(times[x[new]]) for x in both])


def measured_gains(old: str, new: str, what: str = "tpot") -> np.ndarray:
    """Return measured speed-ups of `what` ("tpot" or "ttft") for pairs of runs that differ only in the device."""
    return _gains(_both(old, new, what), _alike()[2][what], old, new)


def paired(old: str, new: str, what: str = "tpot") -> Pairs:
    """Return the pairs of published runs on two devices, with measured and predicted speed-ups of "tpot" or "ttft".

    >>> pairs = paired("h100", "h200")
    >>> len(pairs.users), [round(float(np.median(x)), 2) for x in (pairs.measured, pairs.said, pairs.direct)]
    (44, [1.15, 1.11, 1.14])
    """
    both = _both(old, new, what)
    rows, _, measured = _alike()
    said, direct = _predicted()
    gains = [_gains(both, t[what], old, new) for t in (measured, said, direct)]
    firsts = [x[old][0] for x in both]
    users = np.array([run_of(rows[i]).users for i in firsts])
    reading = reading_share({x: said[x][firsts] for x in reading_share.inputs})
    return Pairs([rows[i] for i in firsts], users, *gains, reading)


def ratio(letter: str, old: str, new: str, precision: str = "fp8", new_precision: str | None = None) -> float:
    """Return new over old value of a quantity of two devices, such as "peak_flops", which is taken at the precision.

    >>> round(ratio("hbm_bandwidth", "h100", "b200"), 2), round(ratio("peak_flops", "h100", "b200"), 2)
    (2.39, 2.27)
    """
    return accelerators[new].at(new_precision or precision)[letter] / accelerators[old].at(precision)[letter]
