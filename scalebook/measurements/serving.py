"""Serving as published by InferenceX and NVIDIA: what rows of serving.csv are runs of, and what `serve` says of them.

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
    """What a measured run served, on what: keys of tables, and numbers of the call that the row stands for."""

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
    """The run that a row of serving.csv is of."""
    call = _set().call(_set().completed(row))
    known = call.letters
    devices = known["tp"] * known["pp"] * known["attention_dp"]
    return Run(call.rows[0][1], call.rows[1][1], devices, *(known[x] for x in ("users", "prompt", "output")))


def served_rows(rows, *wanted: str, using=(), **letters) -> dict[str, np.ndarray]:
    """What `serve` says of rows: letters to arrays.

    Formulas of `using`, and letters that are given a value, or one for each row, stand before what the rows and the
    sheet say.  Raises KeyError for a letter that it does not give.
    """
    return _set().results([_set().completed(row) for row in rows], *wanted, using=using, **letters)
