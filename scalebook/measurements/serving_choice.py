"""Layouts chosen by prediction and judged by what was measured: are targets met, and how much throughput is lost?

Runs of one model, device, version of an engine, precision and lengths are a search; its layouts and numbers of users
are those that were measured.  Of those whose predicted time per output token, times a margin, is within the target, the
one with the highest predicted throughput of a device is taken.  A layout is chosen for good and users are let in as it
turns out, so layouts are judged apart too: by the most throughput that was measured of them within the target.

>>> from scalebook.measurements import confront
>>> runs = confront("serving_tpot")
>>> found = choices(runs, tpot=0.02, margin=1.05)
>>> found.searches, found.met > 0.9
(123, True)
>>> bool(layouts(runs, tpot=0.02)["predicted"].kept_p10 > 0.8)
True
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from scalebook.measurements.confrontation import Result
from scalebook.measurements.serving import devices_of, lengths, milliseconds, users_of

__all__ = ["Choices", "Layouts", "choices", "choices_of_knowing", "layouts", "likely_margin"]

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


class Layouts(NamedTuple):
    """Of so many layouts that a rule chose: the share that can meet the target, and what these keep of the best.

    What a layout keeps is its highest measured throughput of a device within the target over that of all layouts.
    """

    chosen: int
    able: float
    kept_median: float
    kept_p10: float


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


def layouts(result: Result, tpot: float) -> dict[str, Layouts]:
    """Layouts chosen in each search that has several: by prediction, the one of most devices, and of fewest.

    By prediction it is the one with the highest throughput of a device within the target `tpot`, in seconds.  Where
    several layouts have as many devices, each of them counts.
    """
    runs, kept = _runs(result), defaultdict(list)
    predicted = _rate(runs, milliseconds(result.rows, "end_to_end"))
    for places, met in _searches(result, runs, tpot):
        within = places[result.predicted[places] <= 1e3 * tpot]
        if not within.size:
            continue
        devices = runs.devices[places]
        said = {
            "predicted": within[[np.argmax(predicted[within])]],
            "most devices": places[devices == devices.max()],
            "fewest devices": places[devices == devices.min()],
        }
        for rule, found in said.items():
            for layout in {runs.layouts[i] for i in found}:
                own = [runs.rate[i] for i in met if runs.layouts[i] == layout]
                kept[rule].append(max(own, default=0) / runs.rate[met].max())
    return {rule: _layouts(np.array(shares)) for rule, shares in kept.items()}


def _layouts(kept: np.ndarray) -> Layouts:
    able = kept[kept > 0]
    return Layouts(len(kept), len(able) / len(kept), float(np.median(able)), float(np.quantile(able, 0.1)))


def _ends(rows) -> tuple[np.ndarray, np.ndarray]:
    """Measured first tokens, and tokens of answers."""
    first = np.array([float(row["silicon_ttft_ms"] or 0) for row in rows])
    return first, np.array([lengths(row)["output"] for row in rows])


class _Runs(NamedTuple):
    """What the rows say, by row; `rate` is the measured throughput of a device."""

    users: np.ndarray
    devices: np.ndarray
    answers: np.ndarray
    layouts: list[tuple]
    rate: np.ndarray


def _runs(result: Result) -> _Runs:
    rows = result.rows
    users, devices = (np.array([of(row) for row in rows]) for of in (users_of, devices_of))
    first, answers = _ends(rows)
    runs = _Runs(users, devices, answers, [tuple(row[x] for x in _LAYOUT) for row in rows], np.empty(0))
    return runs._replace(rate=_rate(runs, first + (answers - 1) * result.measured))


def _rate(runs: _Runs, whole) -> np.ndarray:
    """Throughput of a device, from milliseconds from end to end."""
    return runs.users * runs.answers / whole / runs.devices


def _searches(result: Result, runs: _Runs, tpot: float):
    """Rows of each search that has several layouts, and those of them that met the target, of which there are some."""
    searches = defaultdict(list)
    for place, row in enumerate(result.rows):
        searches[tuple(row[x] for x in _SEARCH)].append(place)
    for places in map(np.array, searches.values()):
        met = places[result.measured[places] <= 1e3 * tpot]
        if met.size and len({runs.layouts[i] for i in places}) > 1:
            yield places, met


def _chosen(result: Result, tpot: float, margin: float, each, whole) -> Choices:
    """Choices by milliseconds per token and from end to end, predicted or known."""
    target, runs = 1e3 * tpot, _runs(result)
    predicted = _rate(runs, whole)
    taken, ruled = [], []
    for places, met in _searches(result, runs, tpot):
        within = places[margin * each[places] <= target]
        if not within.size:
            continue
        best = runs.rate[met].max()
        taken.append(_judged(within[np.argmax(predicted[within])], result.measured, runs.rate, target, best))
        widest = places[runs.devices[places] == runs.devices[places].max()]
        ruled.append(_judged(widest[np.argmin(runs.users[widest])], result.measured, runs.rate, target, best))
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
