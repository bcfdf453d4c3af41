"""Layouts chosen by prediction and judged by measurement: are targets met, and how much throughput is lost?

A search consists of the measured runs with the same model, device, engine version, precision and lengths. It chooses
the run with the highest predicted throughput per device, among runs whose predicted time per output token times a
margin is within the target.
"""

from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scalebook.book.measured.serving import run_of, served_rows

from scalebook.measurements.confrontation import Result

__all__ = ["Choices", "Layouts", "choices", "choices_of_knowing", "layouts", "likely_margin"]

_SEARCH = ("model_path", "system", "backend", "backend_version", "precision", "gemm_quant_mode", "isl", "osl")
_LAYOUT = ("tp_size", "attention_dp_size", "moe_ep_size")
NEARLY = 1.05  # a target missed by less counts as met: repeated runs differ by more


class Choices(NamedTuple):
    """How well choices by prediction did: number of searches, share that met the target, and throughput of these.

    The throughput is relative to the best measured one. `rule_met` and `rule_kept` say the same of a rule that needs no
    prediction: take the layout with most devices and its fewest users.
    """

    searches: int
    met: float
    kept_median: float
    kept_p10: float
    rule_met: float
    rule_kept: float


class Layouts(NamedTuple):
    """How well a rule chose layouts: their number, the share that can meet the target, and throughput kept."""

    chosen: int
    able: float
    kept_median: float
    kept_p10: float


class _Runs(NamedTuple):
    """Users, devices, and measured and predicted throughput per device, by row; and all searches."""

    users: np.ndarray
    devices: np.ndarray
    layouts: list[tuple]
    measured: np.ndarray
    predicted: np.ndarray
    searches: list[np.ndarray]


@lru_cache(maxsize=4)
def _runs(result: Result) -> _Runs:
    users, devices, answers = np.array([(x.users, x.devices, x.output) for x in map(run_of, result.rows)]).T
    first = np.array([float(row["silicon_ttft_ms"] or 0) for row in result.rows])
    ends = first + (answers - 1) * result.measured, 1e3 * served_rows(result.rows, "end_to_end")["end_to_end"]
    searches = defaultdict(list)
    for place, row in enumerate(result.rows):
        searches[tuple(row[x] for x in _SEARCH)].append(place)
    said = [tuple(row[x] for x in _LAYOUT) for row in result.rows]
    kept = [np.array(x) for x in searches.values() if len({said[i] for i in x}) > 1]
    return _Runs(users, devices, said, *(users * answers / x / devices for x in ends), kept)


def _able(result: Result, tpot: float):
    """Yield, for each search with a row that met the target, its rows and the rows that met it."""
    for places in _runs(result).searches:
        if (met := places[result.measured[places] <= 1e3 * tpot]).size:
            yield places, met


def choices(result: Result, tpot: float, margin: float) -> Choices:
    """Choose a measured run in each search, by predicted times, and judge the choices by the measured ones.

    A choice must keep `tpot` (s) by prediction with a factor `margin` to spare. Searches with one layout, or in which
    no run met the target or is predicted to, are left out. `result` is the result of `serving_tpot`.
    """
    return _chosen(result, tpot, margin, result.predicted, _runs(result).predicted)


def choices_of_knowing(result: Result, tpot: float, margin: float) -> Choices:
    """Judge choices made from measured instead of predicted times: the cost of the margin alone."""
    return _chosen(result, tpot, margin, result.measured, _runs(result).measured)


def likely_margin(result: Result, chance: float) -> float:
    """Return the factor that predictions of tpot need so that a run meets its target with probability `chance`.

    It is learnt from the calibration rows. A target missed by less than NEARLY counts as met.
    """
    return float(np.quantile((result.measured / result.predicted)[result.fitted], chance) / NEARLY)


def _chosen(result: Result, tpot: float, margin: float, each, rate) -> Choices:
    """Judge choices by time per token and throughput, predicted or measured, and the rule's choices."""
    runs, judged = _runs(result), []
    for places, met in _able(result, tpot):
        within = places[margin * each[places] <= 1e3 * tpot]
        if not within.size:
            continue
        widest = places[runs.devices[places] == runs.devices[places].max()]
        taken = [within[np.argmax(rate[within])], widest[np.argmin(runs.users[widest])]]
        is_met = result.measured[taken] <= NEARLY * 1e3 * tpot
        judged.append([*is_met, *runs.measured[taken] / runs.measured[met].max()])
    is_met, rule_met, kept, rule = np.array(judged).T
    kept, rule = kept[is_met > 0], rule[rule_met > 0]
    ends = float(np.median(kept)), float(np.quantile(kept, 0.1))
    return Choices(len(judged), float(is_met.mean()), *ends, float(rule_met.mean()), float(np.median(rule)))


def layouts(result: Result, tpot: float) -> dict[str, Layouts]:
    """Judge three rules that choose a layout in each search: by prediction, most devices, and fewest devices.

    By prediction means the highest throughput per device within the target `tpot`, in seconds. If several layouts have
    the same number of devices, each counts.
    """
    runs, kept = _runs(result), defaultdict(list)
    for places, met in _able(result, tpot):
        within, devices = places[result.predicted[places] <= 1e3 * tpot], runs.devices[places]
        if not within.size:
            continue
        said = {
            "predicted": within[[np.argmax(runs.predicted[within])]],
            "most devices": places[devices == devices.max()],
            "fewest devices": places[devices == devices.min()],
        }
        for rule, found in said.items():
            for layout in {runs.layouts[i] for i in found}:
                own = [runs.measured[i] for i in met if runs.layouts[i] == layout]
                kept[rule].append(max(own, default=0) / runs.measured[met].max())
    return {rule: _layouts(np.array(shares)) for rule, shares in kept.items()}


def _layouts(kept: np.ndarray) -> Layouts:
    able = kept[kept > 0]
    return Layouts(len(kept), len(able) / len(kept), float(np.median(able)), float(np.quantile(able, 0.1)))
