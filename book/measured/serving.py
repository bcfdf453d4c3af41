"""What `serve` predicts for the runs in serving.csv.

>>> from scalebook.measurements import confront
>>> row = confront("serving_tpot").rows[0]
>>> run_of(row).devices, run_of(row).users
(4.0, 128.0)
"""

from typing import NamedTuple

import numpy as np

from scalebook.measurements.sets import stanzas

__all__ = ["Run", "run_of", "served_rows"]


class Run(NamedTuple):
    """A measured serving run: model, device, number of devices, number of users, and lengths in tokens."""

    model: str
    device: str
    devices: float
    users: float
    prompt: float
    output: float


def run_of(row) -> Run:
    """Return the run that a row of serving.csv describes."""
    kept = stanzas()["serving_tpot"]
    call = kept.call(kept.completed(row))
    known = call.letters
    devices = known["tp"] * known["pp"] * known["attention_dp"]
    return Run(call.rows[0][1], call.rows[1][1], devices, *(known[x] for x in ("users", "prompt", "output")))


def served_rows(rows, *wanted: str, using=(), **letters) -> dict[str, np.ndarray]:
    """Return what `serve` predicts for rows of serving.csv: for each `wanted` quantity an array, one value per row.

    Formulas in `using` and values in `letters` (one, or one per row) replace the sheet's and the rows' own. Raises
    KeyError for a quantity that `serve` does not compute.
    """
    kept = stanzas()["serving_tpot"]
    made = [x if kept.said["extract"].keys() <= x.keys() else kept.completed(x) for x in rows]  # or made already
    return kept.results(made, *wanted, using=using, **letters)
