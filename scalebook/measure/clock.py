"""Timing: a run that is repeated, and between what its times lay.

>>> sample = Sample((3.0, 1.0, 2.0, 9.0, 2.0))
>>> sample.median, sample.best, round(sample.low, 1), round(sample.high, 1)
(2.0, 1.0, 1.4, 6.6)
"""

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

__all__ = ["Sample", "repeated", "taken", "together"]


class Sample(NamedTuple):
    """Seconds of a run, each time it was made."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def low(self) -> float:
        """A tenth of the times are shorter."""
        return float(np.quantile(self.seconds, 0.1))

    @property
    def high(self) -> float:
        """A tenth of the times are longer."""
        return float(np.quantile(self.seconds, 0.9))


def taken(seconds: Iterable[float]) -> Sample:
    """Times to four digits, which is more than a clock repeats, so that a file holds them as they are.

    >>> taken([0.123456, 2.0]).seconds
    (0.1235, 2.0)
    """
    return Sample(tuple(float(f"{x:.4g}") for x in seconds))


def repeated(run: Callable, wait: Callable = lambda: None, times: int = 9, least: float = 2e-3) -> Sample:
    """Time a run so many times, each long enough for the clock: a short run is made several times in a row.

    `wait` returns when a device has done all that it was asked for.

    >>> len(repeated(lambda: None, times=3, least=1e-5).seconds)
    3
    """
    return together([run], wait, times, least)[0]


def together(runs: Sequence[Callable], wait: Callable = lambda: None, times=9, least=2e-3) -> list[Sample]:
    """The same of several runs in turn, so that whatever else a machine does meets all of them alike."""
    calls = [_calls(run, wait, least) for run in runs]
    seconds = [[] for _ in runs]
    for _ in range(times):
        for run, n, kept in zip(runs, calls, seconds, strict=True):
            kept.append(_once(run, wait, n) / n)
    return [taken(x) for x in seconds]


def _calls(run, wait, least) -> int:
    """How often a run is made in a row, by the shortest of three, since one may be held up; a first warms it up: memory
    is claimed, kernels are compiled.
    """
    _once(run, wait, 1)
    shortest = min(_once(run, wait, 1) for _ in range(3))
    return max(1, min(10_000, int(least / max(shortest, 1e-8))))


def _once(run, wait, calls) -> float:
    start = perf_counter()
    for _ in range(calls):
        run()
    wait()
    return perf_counter() - start
