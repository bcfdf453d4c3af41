"""Yardsticks for the errors of serving: a lower bound's errors, another tool's, and repeated measurements.

>>> from scalebook.measurements import confront
>>> result = confront("serving_tpot")
>>> table = yardsticks(result)
>>> [(x.name, x.rows) for x in table][:2]
[('sum of the kernels', 537), ('AIConfigurator 0.12', 537)]
"""

import csv
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from .confrontation import Result

__all__ = ["Yardstick", "peer_rows", "yardsticks"]

# Two runs that agree in these columns differ only in the engine, its version and the date.
_RUN = (
    "model_path", "system", "precision", "gemm_quant_mode", "moe_quant_mode", "isl", "osl", "tp_size",
    "attention_dp_size", "moe_ep_size", "batch_size", "concurrency",
)  # fmt: skip
_COLUMNS = {"silicon_tpot_ms": "tpot_ms", "silicon_ttft_ms": "ttft_ms"}


class Yardstick(NamedTuple):
    """Errors |x/measured - 1| of some rows."""

    name: str
    rows: int
    median: float
    p90: float


def _yardstick(name: str, ratios) -> Yardstick:
    errors = np.abs(np.asarray(ratios, float) - 1)
    return Yardstick(name, len(errors), float(np.median(errors)), float(np.quantile(errors, 0.9)))


@cache
def peer_rows() -> dict[str, dict[str, float]]:
    """Return predictions of NVIDIA's AIConfigurator 0.12 for rows of serving.csv, by id; some rows have none.

    >>> len(peer_rows())
    585
    """
    with (files("scalebook.measurements") / "serving_peers.csv").open(encoding="utf-8") as file:
        return {row.pop("row_id"): {n: float(x) for n, x in row.items()} for row in csv.DictReader(file)}


def _ratios_of_pairs(groups: dict) -> list[float]:
    return [max(found) / min(found) for found in groups.values() if len(found) > 1]


def yardsticks(result: Result) -> list[Yardstick]:
    """Return errors to compare `serving_tpot` or `serving_ttft` with: AIConfigurator's, and differences of repeated
    runs.

    AIConfigurator counts on the rows that it can predict. The last but one yardstick is the difference between runs of
    one engine and layout that were measured twice, with other versions or on other days. The last one is the difference
    between two engines on one layout. Copies of a row count once.
    """
    column = _COLUMNS[result.confrontation.measured]
    ids = [row["row_id"] for row in result.rows]
    shared = np.array([x in peer_rows() for x in ids])
    told = np.array([peer_rows()[x][column] for x in ids if x in peer_rows()])
    again, others = defaultdict(set), defaultdict(dict)
    for row, measured in zip(result.rows, result.measured, strict=True):
        run = tuple(row[x] for x in _RUN)
        again[run, row["backend"]].add(measured)
        others[run].setdefault(row["backend"], measured)
    found = [
        _yardstick("sum of the kernels", (result.predicted / result.measured)[shared]),
        _yardstick("AIConfigurator 0.12", told / result.measured[shared]),
        _yardstick("sum of the kernels, all rows", result.predicted / result.measured),
    ]
    if column == "tpot_ms":
        found.append(_yardstick("floor: the weights of a token, read", result.roofline / result.measured))
    return [
        *found,
        _yardstick("the same run, measured again", _ratios_of_pairs(again)),
        _yardstick("another engine", _ratios_of_pairs({k: list(x.values()) for k, x in others.items()})),
    ]
