"""Prefix caching: what prompts begin with is kept, and is not computed again.

How much is found depends on what is asked again and on what is kept.  Where requests for prefixes are independent and
the least recently used goes first, `lru_hit_share` finds it as the root of an equation: it has no closed form.

>>> round(lru_hit_share(zipf(10_000, skew=0.9), held=1000), 3)
0.556
>>> prompt_time_prefix(whole_prompt_time="30 ms", hit_share=0.563)
0.01311
"""

from numbers import Integral, Real

import numpy as np

from scalebook.language import Sheet, formula
from scalebook.language.notation import quoted

__all__ = [
    "computed_rate", "lru_hit_share", "prefix_caching", "prompt_time_prefix", "prompt_time_prefix_attention", "zipf",
]  # fmt: skip


@formula("computed_rate", "deepseek2025-inference")
def computed_rate(prompt_rate, hit_share):
    """Prompt tokens that are left to compute.

    >>> round(computed_rate(prompt_rate=73_700, hit_share=0.563))  # of a node of DeepSeek's, which said the first two
    32207
    """
    return prompt_rate * (1 - hit_share)


@formula("prompt_time", "kwon2023")
def prompt_time_prefix(whole_prompt_time, hit_share):
    """What is found takes no time: attention of the rest to what is found is left out.

    >>> prompt_time_prefix(whole_prompt_time="30 ms", hit_share=0.5)
    0.015
    """
    return whole_prompt_time * (1 - hit_share)


@formula("prompt_time", "kwon2023")
def prompt_time_prefix_attention(whole_prompt_time, hit_share, attention_share):
    """The tokens that are left attend to those that are found: of the pairs only the square of `hit_share` is saved.

    `attention_share` is that of the whole prompt; (1 - h) of the rest and (1 - h²) of the pairs are left.

    >>> prompt_time_prefix_attention(whole_prompt_time="30 ms", hit_share=0.5, attention_share=0.2)
    0.0165
    """
    return whole_prompt_time * (1 - hit_share) * (1 + attention_share * hit_share)


prefix_caching = Sheet(
    "prefix_caching", computed_rate, prompt_time_prefix,
    doc="Prompts of which a share is found in a cache: what is left to compute, and how long that takes.",
)  # fmt: skip


# What is found


def zipf(items: int, skew: float) -> np.ndarray:
    """Shares of the requests that go to each of so many items, the nth proportional to n to the power -skew.

    >>> zipf(3, skew=1).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    if not isinstance(items, Integral) or isinstance(items, bool) or items < 1:
        raise ValueError(f"items must be a whole number from 1 up, not {quoted(items)}")
    if not isinstance(skew, Real) or not np.isfinite(skew):
        raise ValueError(f"skew must be a number, such as skew=1, not {quoted(skew)}")
    weights = np.arange(1, items + 1, dtype=float) ** -skew
    return weights / weights.sum()


def lru_hit_share(shares, held: float) -> float:
    """The share of requests that a cache answers which drops the least recently used item, by Che's approximation.

    shares: how often each item is asked for, independently each time; items are equally large.  held: how many fit.
    An item is found if it was asked for within the time in which `held` others are; that time is taken to be the same
    for all items, and is the root of an equation, found by bisection.  Raises ValueError for what is no such cache.

    >>> round(lru_hit_share([0.25] * 4, held=2), 9)  # equal items: the share that is held
    0.5
    >>> lru_hit_share([0.5, 0.5], held=3)
    Traceback (most recent call last):
        ...
    ValueError: a cache holds more than none and fewer than all of 2 items, not 3; with all held everything is found
    """
    try:
        shares = np.asarray(shares, float)
    except (TypeError, ValueError):
        shares = np.array(None, float)
    if shares.ndim != 1 or not len(shares) or not (np.isfinite(shares) & (shares > 0)).all():
        raise ValueError("shares is a list of positive numbers, how often each item is asked for")
    if not 0 < held < len(shares):
        said = f"fewer than all of {len(shares)} items, not {held:g}; with all held everything is found"
        raise ValueError(f"a cache holds more than none and {said}")
    shares = shares / shares.sum()
    low, high = 0.0, 1.0
    while -np.expm1(-shares * high).sum() < held:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if -np.expm1(-shares * middle).sum() < held else (low, middle)
    return float(-(shares * np.expm1(-shares * high)).sum())
