"""Layouts chosen by prediction and judged by what was measured: are targets met, and how much throughput is lost?

Runs of one model, device, version of an engine, precision and lengths are a search; its layouts and numbers of users
are those that were measured.  Of those whose predicted time per output token, times a margin, is within the target, the
one with the highest predicted throughput of a device is taken.

>>> from scalebook.measurements import confront
>>> found = choices(confront("serving_tpot"), tpot=0.02, margin=1.05)
>>> found.searches, found.met > 0.9
(123, True)
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from scalebook.measurements.confrontation import Result
from scalebook.measurements.serving import devices_of, lengths, milliseconds, users_of

__all__ = ["Choices", "choices", "choices_of_knowing", "likely_margin"]

_SEARCH = ("model_path", "system", "backend", "backend_version", "precision", "gemm_quant_mode", "isl", "osl")
_LAYOUT = ("tp_size", "attention_dp_size", "moe_ep_size")
NEARLY = 1.05  # a target missed by less counts as met: the same run differs by more when it is measured again


class Choices(NamedTuple):
    """Of so many searches: the share whose choice met the target, and of these the throughput over the best measured.

    `rule_met` and `rule_kept` are of a rule without a model: the layout of the most devices, and its fewest users.
    """

    searches: int
    met: float
    kept_median: float
    kept_p10: float
    rule_met: float
    rule_kept: float


def choices(result: Result, tpot: float, margin: float) -> Choices:
    """Choose in each search that has several layouts, one of which met the target `tpot`, in seconds.

    Searches in which nothing is predicted to meet it are left out.  `result` is that of `serving_tpot`.
    """
    return _chosen(result, tpot, margin, result.predicted, milliseconds(result.rows, "end_to_end"))


def likely_margin(result: Result, chance: float) -> float:
    """The margin with which a run meets its target with this chance, as the rows that were calibrated on say.

    A target that is missed by less than NEARLY is met, so the margin is smaller than the range's end.

    >>> from scalebook.measurements import confront
    >>> round(likely_margin(confront("serving_tpot"), chance=0.8), 2)
    1.1
    """
    return float(np.quantile((result.measured / result.predicted)[result.fitted], chance) / NEARLY)


def choices_of_knowing(result: Result, tpot: float, margin: float) -> Choices:
    """What the margin itself costs: choices by the measurements, which keep the same distance from the target.

    Users were measured in steps of two, so a margin often takes half of the throughput.

    >>> from scalebook.measurements import confront
    >>> choices_of_knowing(confront("serving_tpot"), tpot=0.02, margin=1).kept_p10
    1.0
    """
    first, answers = _ends(result.rows)
    return _chosen(result, tpot, margin, result.measured, first + (answers - 1) * result.measured)


def _ends(rows) -> tuple[np.ndarray, np.ndarray]:
    """Measured first tokens, and tokens of answers."""
    first = np.array([float(row["silicon_ttft_ms"] or 0) for row in rows])
    return first, np.array([lengths(row)["output"] for row in rows])


def _chosen(result: Result, tpot: float, margin: float, each, whole) -> Choices:
    """Choices by milliseconds per token and from end to end, predicted or known."""
    target, rows = 1e3 * tpot, result.rows
    users = np.array([users_of(row) for row in rows])
    devices = np.array([devices_of(row) for row in rows])
    first, answers = _ends(rows)
    measured = users * answers / (first + (answers - 1) * result.measured) / devices
    predicted = users * answers / whole / devices
    searches = defaultdict(list)
    for place, row in enumerate(rows):
        searches[tuple(row[x] for x in _SEARCH)].append(place)
    taken, ruled = [], []
    for places in map(np.array, searches.values()):
        met = places[result.measured[places] <= target]
        within = places[margin * each[places] <= target]
        if len({tuple(rows[i][x] for x in _LAYOUT) for i in places}) < 2 or not met.size or not within.size:
            continue
        best = measured[met].max()
        taken.append(_judged(within[np.argmax(predicted[within])], result.measured, measured, target, best))
        widest = places[devices[places] == devices[places].max()]
        ruled.append(_judged(widest[np.argmin(users[widest])], result.measured, measured, target, best))
    kept, rule = ([share for is_met, share in judged if is_met] for judged in (taken, ruled))
    return Choices(
        searches=len(taken),
        met=len(kept) / len(taken),
        kept_median=float(np.median(kept)),
        kept_p10=float(np.quantile(kept, 0.1)),
        rule_met=len(rule) / len(ruled),
        rule_kept=float(np.median(rule)),
    )


def _judged(place: int, seconds, rate, target: float, best: float) -> tuple[bool, float]:
    """Whether a run met the target, and its throughput over the best of those that did."""
    return bool(seconds[place] <= NEARLY * target), float(rate[place] / best)
