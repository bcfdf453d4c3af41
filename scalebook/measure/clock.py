"""Timing: repeated runs, and the interval of their times."""

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from scalebook.language import show

__all__ = ["Sample", "taken", "together"]


class Sample(NamedTuple):
    """The seconds of each run; `low` and `high` are the tenth and the ninetieth percentile.

    >>> sample = Sample((3.0, 1.0, 2.0, 9.0, 2.0))
    >>> sample.median, sample.best, round(sample.low, 1), round(sample.high, 1)
    (2.0, 1.0, 1.4, 6.6)
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def low(self) -> float:
        return float(np.quantile(self.seconds, 0.1))

    @property
    def high(self) -> float:
        return float(np.quantile(self.seconds, 0.9))

    @property
    def spread(self) -> str:
        """The interval that holds eight in ten times, as text."""
        return f"{show(self.low, 's')} to {show(self.high, 's')}"


def taken(seconds: Iterable[float]) -> Sample:
    """Return times rounded to four digits, which files store exactly.  A clock reproduces fewer."""
    return Sample(tuple(float(f"{x:.4g}") for x in seconds))


def together(runs: Sequence[Callable], wait: Callable = lambda: None, times=9, least=2e-3) -> list[Sample]:
    """Time several runs in turn, so that disturbances by other programs affect all of them equally.

    A short run is made many times in a row, for `least` seconds. `wait` returns when the device has done all its work.
    """
    calls = [_calls(run, wait, least) for run in runs]
    seconds = [[] for _ in runs]
    for _ in range(times):
        for run, n, kept in zip(runs, calls, seconds, strict=True):
            kept.append(_once(run, wait, n) / n)
    return [taken(x) for x in seconds]


def _calls(run, wait, least) -> int:
    _once(run, wait, 1)
    shortest = min(_once(run, wait, 1) for _ in range(3))
    return max(1, min(10_000, int(least / max(shortest, 1e-8))))


def _once(run, wait, calls) -> float:
    start = perf_counter()
    for _ in range(calls):
        run()
    wait()
    return perf_counter() - start
