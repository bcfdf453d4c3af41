"""Pass times of published pipelines, also for rows whose passes were not timed."""

from functools import cache
from importlib.resources import files

import numpy as np

from .rows import Measurement, number, read_rows

__all__ = ["timed"]

_PASSES = ("t_f_ms", "t_b_ms", "t_w_ms")


@cache
def _rows_with_times() -> list[Measurement]:
    """Return the rows of the package's file whose passes were timed."""
    rows, _ = read_rows(files("scalebook.measurements") / "pipeline_zero_bubble.csv")
    return [row for row in rows if row["t_f_ms"]]


def _blocks(row: Measurement) -> float:
    """Return the transformer blocks of a whole stage; the first and the last stage have one fewer."""
    return (number(row, "layers") + 2) / number(row, "p")


def timed(row: Measurement) -> Measurement:
    """Return a row with the times of its passes, scaled from the same model's nearest row if it has none."""
    near = [x for x in _rows_with_times() if x["model"] == row["model"]]
    if row["t_f_ms"] or not near:
        return {"how": ""}
    keys = ("p", "mbs", "microbatches")
    best = min(near, key=lambda x: [abs(np.log(number(x, k) / number(row, k))) for k in keys])
    tokens = number(row, "mbs") / number(best, "mbs")
    work = tokens * _blocks(row) / _blocks(best)
    times = {x: repr(number(best, x) * work) for x in _PASSES}
    return times | {"t_comm_ms": repr(number(best, "t_comm_ms") * tokens), "how": ", times in proportion"}
