"""Prediction intervals of serving: the range that eight of ten public measurements lie in."""

from typing import NamedTuple

from scalebook.inference.assumptions import band_high, band_low, first_band_high, first_band_low
from scalebook.language import Formula, symbol

__all__ = ["RANGES", "tpot_ends"]

_SEEN = "inferencex"


class Ends(NamedTuple):
    """The two formulas of a prediction interval: its lower and its upper end."""

    low: Formula
    high: Formula


def _ends(letter: str, said: str, first: bool = False, inverse: bool = False) -> Ends:
    """Return the ends of a letter's interval. Rates use the inverse of the ends of their time."""
    band = "first_band" if first else "band"
    made = []
    for end, other in (("low", "high"), ("high", "low")):
        factor = 1 / symbol(f"{band}_{other}") if inverse else symbol(f"{band}_{end}")
        what = f"{said}: the {end} end of eight in ten measurements."
        made.append(Formula(f"{letter}_{end}", f"{letter}_{end}", symbol(letter) * factor, (_SEEN,), what))
    return Ends(*made)


tpot_ends = _ends("tpot", "Time per output token")
RANGES = (
    band_low, band_high, first_band_low, first_band_high, *tpot_ends,
    *_ends("ttft", "Time to the first token", first=True),
    *_ends("user_rate", "Tokens a second of one user", inverse=True),
    *_ends("device_rate", "Output tokens a second of one device", inverse=True),
    *_ends("million_cost", "Price of a million output tokens"),
)  # fmt: skip
