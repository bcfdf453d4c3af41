"""Prefix caching: keys and values of common prompt beginnings are kept and not computed again."""

import numpy as np

from scalebook.language import formulas_of
from scalebook.language.arguments import is_number, is_whole
from scalebook.language.defaults import equations
from scalebook.language.notation import quoted
from scalebook.language.units import numbers

equations(__name__)  # those of prefix.toml

__all__ = [*formulas_of(__name__), "lru_hit_share", "zipf"]


def zipf(items: int, skew: float) -> np.ndarray:
    """Return the popularity of each of `items` items under Zipf's law, as shares of 1: the nth goes with n^-skew.

    >>> zipf(3, skew=1).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    if not is_whole(items) or not 0 < items < 1e9:
        raise ValueError(f"items must be a whole number from 1 up, not {quoted(items)}; a billion is the most")
    if not is_number(skew) or not abs(skew) < 1e3:
        raise ValueError(f"skew must be a number, such as skew=1, not {quoted(skew)}")
    weights = np.arange(1, items + 1, dtype=float) ** -float(skew)
    return weights / weights.sum()


def lru_hit_share(shares, held: float) -> float:
    """Return the hit rate of a cache with least-recently-used eviction, by Che's approximation.

    `shares` says how often each item is requested; requests are independent and items equally large. `held` is how many
    items fit. Raises ValueError for arguments that fit no cache.

    >>> round(lru_hit_share([0.25] * 4, held=2), 9)  # equal items: the share that is held
    0.5
    """
    try:
        shares = numbers(shares)
    except (TypeError, OverflowError):
        shares = np.array(None, float)
    if shares.ndim != 1 or not len(shares) or not (np.isfinite(shares) & (shares > 0)).all():
        raise ValueError("shares is a list of positive numbers, how often each item is asked for")
    if not is_number(held) or not 0 < held < len(shares):
        said = f"fewer than all of {len(shares)} items, not {quoted(held)}; with all held everything is found"
        raise ValueError(f"a cache holds more than none and {said}")
    shares = shares / shares.sum()
    low, high = 0.0, 1.0
    while -np.expm1(-shares * high).sum() < held:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if -np.expm1(-shares * middle).sum() < held else (low, middle)
    return float(-(shares * np.expm1(-shares * high)).sum())
