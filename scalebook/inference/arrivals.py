"""Requests drawn at random, alike on every machine and in `simulation.js`: 32-bit whole numbers, and no logarithm."""

from collections.abc import Iterator
from itertools import count

import numpy as np

__all__ = []

AT_ONCE = 4096


def uniform(seed: int) -> Iterator[float]:
    """Numbers from 0 up to 1, by the generator mulberry32 (Ettinger, 2017): a counter, scrambled.

    >>> draw = uniform(0)
    >>> round(next(draw), 6), round(next(draw), 6)
    (0.266429, 0.00033)
    """
    for first in count(1, AT_ONCE):
        counter = np.arange(first, first + AT_ONCE, dtype=np.uint64) * 0x6D2B79F5 + seed
        state = counter.astype(np.uint32)  # the last 32 bits, of sums and products too
        x = (state ^ state >> 15) * (state | 1)
        x ^= x + (x ^ x >> 7) * (x | 61)
        yield from ((x ^ x >> 14) / 2**32).tolist()


def exponential(draw: Iterator[float]) -> float:
    """A time of mean 1 without memory, by von Neumann's comparisons, which no rounding of a logarithm changes.

    Numbers that fall from x on do so an odd number of times with probability 1 - x + x²/2! - … = exp(-x); then x is
    taken, and otherwise 1 is added to what is drawn next.

    >>> draw = uniform(1)
    >>> round(sum(exponential(draw) for _ in range(100_000)) / 100_000, 3)
    1.002
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
    """A length drawn evenly from `shortest * nominal`, rounded down but at least 1, up to `nominal`.

    The benchmark InferenceX takes 0.8 for `shortest`.
    """
    low = max(1, int(shortest * nominal))
    return low + int(next(draw) * (nominal - low + 1))


def drawn(number: int, prompt: int, output: int, shortest: float, rate: float | None, seed: int):
    """Prompts, outputs and, where there is a rate, arrivals of so many requests.

    >>> drawn(3, 1000, 100, shortest=0.8, rate=None, seed=0)
    ([853, 844, 893], [80, 83, 91], [])
    """
    draw, now, prompts, outputs, arrivals = uniform(seed), 0.0, [], [], []
    for _ in range(number):
        prompts.append(length(prompt, shortest, draw))
        outputs.append(length(output, shortest, draw))
        if rate is not None:
            now += exponential(draw) / rate
            arrivals.append(now)
    return prompts, outputs, arrivals
