"""Yardsticks: other errors to compare the errors of `serve` with."""

import csv
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from scalebook.measurements.confrontation import Result

__all__ = ["Yardstick", "yardstick", "yardsticks"]

# Two runs that agree in these columns differ only in the engine, its version and the date.
_RUN = (
    "model_path", "system", "precision", "gemm_quant_mode", "moe_quant_mode", "isl", "osl", "tp_size",
    "attention_dp_size", "moe_ep_size", "batch_size", "concurrency",
)  # fmt: skip
_COLUMNS = {"silicon_tpot_ms": "tpot_ms", "silicon_ttft_ms": "ttft_ms"}


class Yardstick(NamedTuple):
    """An error to compare ours with: what `name` says, with the median and 90th percentile of |x/measured - 1|."""

    name: str
    rows: int
    median: float
    p90: float


def yardstick(name: str, ratios) -> Yardstick:
    """Return a Yardstick with this name, from ratios of predicted to measured values."""
    errors = np.abs(np.asarray(ratios, float) - 1)
    return Yardstick(name, len(errors), float(np.median(errors)), float(np.quantile(errors, 0.9)))


@cache
def _peer_rows() -> dict[str, dict[str, float]]:
    """Return predictions of NVIDIA's AIConfigurator 0.12 for rows of serving.csv, by id; some rows have none."""
    with (files("scalebook.measurements") / "serving_peers.csv").open(encoding="utf-8") as file:
        return {row.pop("row_id"): {n: float(x) for n, x in row.items()} for row in csv.DictReader(file)}


def yardsticks(result: Result) -> list[Yardstick]:
    """Return yardsticks for the errors of a `serving_tpot` or `serving_ttft` result: what else gives which error.

    First come our errors and AIConfigurator's, on the rows that it can predict. The last but one yardstick is the
    difference between runs of one engine and layout that were measured twice, with other versions or on other days. The
    last one is the difference between two engines on one layout. Copies of a row count once.

    >>> from scalebook.measurements import confront
    >>> [(x.name, x.rows) for x in yardsticks(confront("serving_tpot"))][:2]
    [('sum of the kernels', 537), ('AIConfigurator 0.12', 537)]
    """
    column = _COLUMNS[result.confrontation.measured]
    ids, peers = [row["row_id"] for row in result.rows], _peer_rows()
    shared = np.array([x in peers for x in ids])
    told = np.array([peers[x][column] for x in ids if x in peers])
    again, others = defaultdict(set), defaultdict(dict)
    for row, measured in zip(result.rows, result.measured, strict=True):
        run = tuple(row[x] for x in _RUN)
        again[run, row["backend"]].add(measured)
        others[run].setdefault(row["backend"], measured)
    ratios = result.predicted / result.measured
    found = {
        "sum of the kernels": ratios[shared],
        "AIConfigurator 0.12": told / result.measured[shared],
        "sum of the kernels, all rows": ratios,
    }
    if column == "tpot_ms":
        found["floor: the weights of a token, read"] = result.roofline / result.measured
    found["the same run, measured again"] = [max(x) / min(x) for x in again.values() if len(x) > 1]
    found["another engine"] = [max(x.values()) / min(x.values()) for x in others.values() if len(x) > 1]
    return [yardstick(*x) for x in found.items()]
