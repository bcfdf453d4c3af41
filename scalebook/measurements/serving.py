"""Serving as published by InferenceX and NVIDIA: the runs behind rows of serving.csv, and `serve`'s predictions.

The sets are data (`stanzas/serving.toml`).

>>> from scalebook.measurements import confront
>>> row = confront("serving_tpot").rows[0]
>>> run_of(row).devices, run_of(row).users
(4.0, 128.0)
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from .sets import stanzas

__all__ = ["Run", "run_of", "served_rows"]


class Run(NamedTuple):
    """A measured run: model, device, number of devices, users and lengths, as in the row's call."""

    model: str
    device: str
    devices: float
    users: float
    prompt: float
    output: float


@cache
def _set():
    return stanzas()["serving_tpot"]


def run_of(row) -> Run:
    """Return the run behind a row of serving.csv."""
    call = _set().call(_set().completed(row))
    known = call.letters
    devices = known["tp"] * known["pp"] * known["attention_dp"]
    return Run(call.rows[0][1], call.rows[1][1], devices, *(known[x] for x in ("users", "prompt", "output")))


def served_rows(rows, *wanted: str, using=(), **letters) -> dict[str, np.ndarray]:
    """Return predictions of `serve` for rows, as a dict of letters to arrays.

    Formulas of `using`, and given letters (one value, or one for each row), take precedence over the rows and the
    sheet. Raises KeyError for a letter that `serve` does not give.
    """
    return _set().results([_set().completed(row) for row in rows], *wanted, using=using, **letters)
