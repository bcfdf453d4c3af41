"""How far to trust what serving is predicted to give: the range that eight of ten measurements lie in.

>>> tpot_ends.low(tpot="10 ms", band_low=0.9)
0.009
"""

from typing import NamedTuple

from sympy import Rational

from scalebook.language import Formula, formula, symbol

__all__ = ["RANGES", "band_high", "band_low", "first_band_high", "first_band_low", "tpot_ends"]

_SEEN = "inferencex"


@formula("band_low", _SEEN)
def band_low():
    """Of the measured times per output token that are public, nine of ten are above so much of the prediction.

    The ends of this and of the other bands are those of half of the curves of InferenceX (`serving_tpot`).

    >>> band_low()
    0.88
    """
    return Rational(88, 100)


@formula("band_high", _SEEN)
def band_high():
    """Of the measured times per output token that are public, nine of ten are below so much of the prediction.

    >>> band_high()
    1.3
    """
    return Rational(130, 100)


@formula("first_band_low", _SEEN)
def first_band_low():
    """Of measured times to first tokens, of which queues and hosts make the most, nine of ten are above so much.

    >>> first_band_low()
    0.8
    """
    return Rational(80, 100)


@formula("first_band_high", _SEEN)
def first_band_high():
    """Of measured times to first tokens, nine of ten are below so much of the prediction.

    >>> first_band_high()
    1.9
    """
    return Rational(190, 100)


class Ends(NamedTuple):
    """The formulas of the two ends of a range."""

    low: Formula
    high: Formula


def _ends(letter: str, said: str, first: bool = False, inverse: bool = False) -> Ends:
    """A time at the ends of its band; what is one over a time, or grows with it, at the same ends."""
    band = "first_band" if first else "band"
    made = []
    for end, other in (("low", "high"), ("high", "low")):
        factor = 1 / symbol(f"{band}_{other}") if inverse else symbol(f"{band}_{end}")
        what = f"{said}: the {end} end of eight in ten measurements."
        made.append(Formula(f"{letter}_{end}", f"{letter}_{end}", symbol(letter) * factor, (_SEEN,), what))
    return Ends(*made)


tpot_ends = _ends("tpot", "Time per output token")
RANGES = (
    band_low,
    band_high,
    first_band_low,
    first_band_high,
    *tpot_ends,
    *_ends("ttft", "Time to the first token", first=True),
    *_ends("user_rate", "Tokens a second of one user", inverse=True),
    *_ends("device_rate", "Output tokens a second of one device", inverse=True),
    *_ends("million_cost", "Price of a million output tokens"),
)
