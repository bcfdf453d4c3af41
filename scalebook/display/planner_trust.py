"""How far a plan is to be trusted: errors of rows like it, and the public measured services that stand beside it."""

import csv
from importlib.resources import files

import numpy as np

from scalebook.inference import trust as bands
from scalebook.measurements import confront
from scalebook.measurements.serving import DRAFTED, SYSTEMS, _model, devices_of, least_seconds, lengths, users_of
from scalebook.tables import engines

__all__ = ["NOT_MODELLED", "measured", "trust"]

# Rows whose prediction takes little time; the site's other sets stand in the chapters.
_TRAINING = ("mlperf_training", "llama3", "torchtitan")
NOT_MODELLED = {
    "train": "stragglers, failures and restarts, the file system, evaluation, work space of libraries",
    "serve": "prefix caches, drafted tokens, uneven lengths and experts, a network shared with others, restarts",
}


def trust() -> dict:
    """The ends of the range that eight of ten measurements lie in, over what is predicted; rows, errors, and what is
    not modelled."""
    results = [confront(x) for x in _TRAINING]
    errors = np.concatenate([_of_times(x) for x in results])
    ends = [float(round(x, 3)) for x in np.quantile(1 / (1 + errors), (0.1, 0.9))]
    said = dict(rows=len(errors), median=float(np.median(np.abs(errors))), ends=ends, sets=[_set(x) for x in results])
    low, high, first_low, first_high = (
        f() for f in (bands.band_low, bands.band_high, bands.first_band_low, bands.first_band_high)
    )
    return dict(train=said, serve=dict(ends=[low, high], first=[first_low, first_high]), without=NOT_MODELLED)


def _of_times(result):
    """Errors of a step's time: of a rate they are turned over."""
    own = result.errors[~result.fitted]
    return own if "time" in result.confrontation.what.lower().split() else 1 / (1 + own) - 1


def _set(result) -> list:
    own = result.summary
    return [result.confrontation.name, result.confrontation.what, own["rows"], round(own["median"], 4)]


def measured() -> list:
    """Public runs of services: model, device, engine, precision, devices and lengths, then for each run its users and
    its times in ms.

    >>> measured()[0][:4]
    ['minimax_m2_5', 'b300', 'vllm', 'fp8']
    """
    with (files("scalebook.measurements") / "serving.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: dict[tuple, list] = {}
    for row in rows:
        if row["mode"] != "agg" or not _model(row) or row["system"] not in SYSTEMS or row["backend"] not in engines:
            continue
        first, each = float(row["silicon_ttft_ms"] or 0), float(row["silicon_tpot_ms"] or 0)
        if not first or devices_of(row) > 8 or each / 1e3 < least_seconds(row):
            continue  # drafted tokens, or columns that say otherwise
        if "DeepSeek" in row["model_path"] and row["backend_version"] == DRAFTED:
            continue
        said = [_model(row), SYSTEMS[row["system"]], row["backend"], row["precision"] or "bf16", int(devices_of(row))]
        said += [round(x) for x in lengths(row).values()]
        run = [int(users_of(row)), *(float(f"{x:.3g}") for x in (first, each))]
        found.setdefault(tuple(said), []).append(run)
    return [[*said, runs] for said, runs in found.items()]
