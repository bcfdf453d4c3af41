"""Random requests, reproducible bit for bit on every machine and in `simulation.js`.

The generators use only 32-bit integers and comparisons, because logarithms round differently from machine to machine.
"""

from collections.abc import Iterator
from itertools import count
from math import exp

import numpy as np

__all__ = []

AT_ONCE = 4096


def uniform(seed: int) -> Iterator[float]:
    """Yield random numbers from 0 (included) to 1 (excluded), from the generator mulberry32 (Ettinger, 2017).

    >>> draw = uniform(0)
    >>> round(next(draw), 6), round(next(draw), 6)
    (0.266429, 0.00033)
    """
    for first in count(1, AT_ONCE):
        counter = np.arange(first, first + AT_ONCE, dtype=np.uint64) * 0x6D2B79F5 + seed
        state = counter.astype(np.uint32)  # sums and products of this type keep only the last 32 bits
        x = (state ^ state >> 15) * (state | 1)
        x ^= x + (x ^ x >> 7) * (x | 61)
        yield from ((x ^ x >> 14) / 2**32).tolist()


def exponential(draw: Iterator[float]) -> float:
    """Draw a random time from the exponential distribution with mean 1, using only comparisons (von Neumann's method).

    A run of falling draws that starts with x has odd length with probability exp(-x). If it is odd, x is accepted;
    otherwise start again and add 1.
    """
    whole = 0
    while True:
        first = last = next(draw)
        odd = True
        while (new := next(draw)) < last:
            last, odd = new, not odd
        if odd:
            return whole + first
        whole += 1


def length(nominal: int, shortest: float, draw: Iterator[float]) -> int:
    """Draw a request length between `shortest * nominal` (rounded down, at least 1) and `nominal`, uniformly."""
    low = max(1, int(shortest * nominal))
    return low + int(next(draw) * (nominal - low + 1))


def lognormal(mean: int, spread: float, draw: Iterator[float]) -> int:
    """Draw a lognormal length of at least 1; `spread` is the standard deviation of its logarithm."""
    normal = sum(next(draw) for _ in range(12)) - 6  # of variance 1, and nearly normal
    return max(1, round(mean * exp(spread * normal - spread**2 / 2)))


def drawn(
    number: int, prompt: int, output: int, shortest: float, rate: float | None, seed: int, spreads: tuple = (0, 0)
):  # fmt: skip
    """Draw `number` random requests. Return their prompt lengths, output lengths and, for a `rate`, arrival times.

    Lengths are uniform from `shortest` on, or lognormal where their spread is above 0.

    >>> drawn(3, 1000, 100, shortest=0.8, rate=None, seed=0)
    ([853, 844, 893], [80, 83, 91], [])
    """
    draw, now, prompts, outputs, arrivals = uniform(seed), 0.0, [], [], []
    for _ in range(number):
        for lengths, mean, spread in ((prompts, prompt, spreads[0]), (outputs, output, spreads[1])):
            lengths.append(lognormal(mean, spread, draw) if spread else length(mean, shortest, draw))
        if rate is not None:
            now += exponential(draw) / rate
            arrivals.append(now)
    return prompts, outputs, arrivals
