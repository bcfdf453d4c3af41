"""Lengths of the answers that a policy writes in reinforcement learning: lognormal, with a cap.

>>> lengths = Lengths(mean=5000.0, spread=0.8, most=32768.0)
>>> round(lengths.typical), round(lengths.longest(1024))
(3653, 32676)
"""

from dataclasses import dataclass
from functools import cached_property
from math import erfc

import numpy as np

from scalebook.inference.tail import mean_of_largest

__all__ = ["Lengths"]


@dataclass(frozen=True)
class Lengths:
    """Lengths of answers: lognormal with a cap. `mean` is the mean with the cap, as programs log it."""

    mean: float
    spread: float
    most: float

    def __post_init__(self):
        if not 1 <= self.mean <= self.most:
            raise ValueError(f"answers have a mean of 1 token or more and at most their cap, not {self.mean:g}")
        if self.spread > 10:
            raise ValueError(f"response_spread is of logarithms, and at most 10, not {self.spread:g}")

    @cached_property
    def typical(self) -> float:
        """The median of the lengths before the cap is applied, found by bisection."""
        low, high = self.mean / 2, self.most * np.exp(8 * self.spread + 1)
        for _ in range(100):
            middle = (low * high) ** 0.5
            mean = mean_of_largest(lambda z, x=middle: np.minimum(x * np.exp(self.spread * z), self.most), 1)
            low, high = (middle, high) if mean < self.mean else (low, middle)
        return low

    def law(self, z):
        """Return the length of the answer that is `z` standard deviations from the median."""
        return np.minimum(self.typical * np.exp(self.spread * np.asarray(z)), self.most)

    @cached_property
    def square(self) -> float:
        return mean_of_largest(lambda z: self.law(z) ** 2, 1)

    def longest(self, responses: float) -> float:
        """Return the mean length of the longest of `responses` answers."""
        return mean_of_largest(self.law, responses)

    def longer(self, tokens) -> np.ndarray:
        """Return the share of answers that are longer than each of `tokens`."""
        z = np.log(np.asarray(tokens) / self.typical) / max(self.spread, 1e-9)
        return np.array([erfc(x / 2**0.5) / 2 for x in z]) * (np.asarray(tokens) < self.most)
