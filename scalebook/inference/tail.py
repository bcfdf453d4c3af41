"""Tail latency: a group of devices waits for its slowest at every synchronisation, and larger groups wait longer.

Delays are independent draws from one distribution. The formulas give the mean of the largest of `ways` draws.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from math import erfc

import numpy as np
from sympy import Expr, Float, Rational, exp, log, pi, sqrt

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.notation import expression, quoted
from scalebook.language.row import one_number
from scalebook.machine.collectives import any_slow

_GROUP = {"groups of two or more": lambda ways: ways >= 2}
_SOME = {"at least one device": lambda ways: ways >= 1}
_SHIFTED = {"a least delay below the mean": lambda least_delay, mean_delay: least_delay < mean_delay}
_HAS_MEAN = {"a tail exponent above 1": lambda tail_exponent: tail_exponent > 1}
_EULER = Float("0.57721566490153286")  # the mean of the Gumbel distribution


# Helpers for several distributions


def _harmonic(n) -> Expr:
    """Return 1 + 1/2 + ... + 1/n by DeTemple's series; the error is 0.03 % at 1 and a millionth from 3 on."""
    middle = n + Rational(1, 2)
    return log(middle) + _EULER + 1 / (24 * middle**2) - Rational(7, 960) / middle**4


def gamma_function(x: Expr) -> Expr:
    """Return Euler's gamma function by Stirling's series, within a millionth for x > 0.

    >>> [round(float(gamma_function(Rational(x, 2))), 5) for x in (1, 2, 3, 10)]  # √π, 1, √π/2, 24
    [1.77245, 1.0, 0.88623, 24.0]
    """
    z = x + 4
    series = (z - Rational(1, 2)) * log(z) - z + log(2 * pi) / 2 + 1 / (12 * z) - 1 / (360 * z**3)
    return exp(series) / (x * (x + 1) * (x + 2) * (x + 3))


def _place_and_scale(n):
    """Return location and scale of the largest of n normal draws, in standard deviations."""
    root = sqrt(2 * log(n))
    return root - (log(log(n)) + log(4 * pi)) / (2 * root), 1 / root


def normal_largest(n) -> Expr:
    """Return the mean of the largest of n standard normal draws, by the Gumbel limit, which is slightly too high.

    >>> round(float(normal_largest(8)), 2)  # it is 1.42
    1.52
    """
    n = expression(n)
    if n.is_number and not n > 1:
        raise ValueError(f"the largest is of two draws or more, not of {n}")
    place, scale = _place_and_scale(n)
    return place + _EULER * scale


# The slowest device of a group


@formula("slowest_delay", "david2003", domain=_SOME)
def slowest_exponential(mean_delay, ways):
    """Mean delay of the slowest of `ways` devices, for exponentially distributed delays.

    >>> round(slowest_exponential(mean_delay="1 us", ways=16_384) * 1e6, 2)
    10.28
    """
    return mean_delay * _harmonic(ways)


@formula("slowest_delay", "david2003", domain=_SOME | _SHIFTED)
def slowest_shifted(least_delay, mean_delay, ways):
    """Mean delay of the slowest of `ways` devices: a fixed time, and an exponential delay beyond it.

    >>> round(slowest_shifted(least_delay="5 us", mean_delay="6 us", ways=8) * 1e6, 2)
    7.72
    """
    return least_delay + (mean_delay - least_delay) * _harmonic(ways)


@formula("slowest_delay", "david2003", domain=_GROUP)
def slowest_normal(mean_delay, delay_spread, ways):
    """Mean delay of the slowest of `ways` devices, for normally distributed delays.

    It is the limit for large groups: the excess over the mean is 7 % too high for 8 devices, 2 % for 72.

    >>> round(slowest_normal(mean_delay="10 us", delay_spread="1 us", ways=72) * 1e6, 2)
    12.44
    """
    return mean_delay + delay_spread * normal_largest(ways)


@formula("slowest_delay", "david2003", "dean2013", domain=_SOME | _HAS_MEAN)
def slowest_pareto(least_delay, tail_exponent, ways):
    """Mean delay of the slowest of `ways` devices, for Pareto-distributed delays, which have a heavy tail.

    A delay exceeds d with probability (least_delay / d)^tail_exponent. The error is 1 % for 1 device and 0.03 % for 8
    or more.

    >>> round(slowest_pareto(least_delay="1 us", tail_exponent=2, ways=100) * 1e6, 2)  # about √(100 π)
    17.75
    """
    inverse = 1 / tail_exponent
    return least_delay * gamma_function(1 - inverse) * (ways + (1 - inverse) / 2) ** inverse


@cache
def _points() -> tuple[np.ndarray, np.ndarray, float]:
    """Return deviates, the probabilities below them, and their distance."""
    z, step = np.linspace(-10, 14, 4801, retstep=True)
    return z, np.array([erfc(-x / 2**0.5) / 2 for x in z]), step


@lru_cache(256)
def _weighted(ways: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return deviates, the density of the largest of `ways` at each, and their distance."""
    z, below, step = _points()
    return z, ways * np.exp((ways - 1) * np.log(below) - z**2 / 2) / (2 * np.pi) ** 0.5, step


def mean_of_largest(law: Callable[[np.ndarray], np.ndarray], ways: float) -> float:
    """Return the mean of the largest of `ways` draws from any distribution, by quadrature.

    `law` gives the delay as an increasing function of a standard normal deviate, such as exp for a lognormal one.

    >>> [round(mean_of_largest(lambda z: z, ways=x), 3) for x in (8, 72, 16_384)]  # normal, without the limit
    [1.424, 2.388, 3.971]
    """
    if not callable(law):
        raise TypeError(f"law is a function of a standard normal deviate, not {quoted(law)}")
    if (ways := one_number("ways", ways)) < 1:
        raise ValueError(f"the largest is of one draw or more, not of {ways:g}")
    z, weight, step = _weighted(ways)
    return float((law(z) * weight).sum() * step)


# Time that a step waits


@formula("synchronisations", "pope2022 §3.2")
def synchronisations_of_blocks(layers):
    """Synchronisations of a step: two all-reduces in every block, after attention and after the feed-forward layer.

    >>> synchronisations_of_blocks(layers=80)
    160.0
    """
    return 2 * layers


@formula("waiting_time", "dean2013", given=[synchronisations_of_blocks, slowest_exponential])
def waiting_time(synchronisations, slowest_delay):
    """Time that a step waits for its slowest device, over all synchronisations.

    >>> round(waiting_time(layers=80, mean_delay="1 us", ways=8) * 1e3, 3)
    0.435
    """
    return synchronisations * slowest_delay


@formula("traded_bandwidth", "dean2013")
def traded_bandwidth(traffic, hbm_bandwidth, saved_waiting):
    """Memory bandwidth that keeps a step's time the same when devices wait less.

    >>> traded_bandwidth(traffic="16.5 GB", hbm_bandwidth="3.3 TB/s", saved_waiting="0.5 ms")
    3000000000000.0
    """
    return traffic / (traffic / hbm_bandwidth + saved_waiting)


waiting = Sheet(
    "waiting", synchronisations_of_blocks, slowest_exponential, waiting_time,
    doc="A step whose devices wait for the slowest device twice in every block.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "any_slow", "gamma_function", "mean_of_largest", "normal_largest", "waiting"]
