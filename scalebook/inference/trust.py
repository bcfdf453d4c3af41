"""Prediction intervals of serving: the range that eight of ten public measurements lie in."""

from typing import NamedTuple

from scalebook.language import Formula, constant, symbol

__all__ = ["RANGES", "band_high", "band_low", "first_band_high", "first_band_low", "tpot_ends"]

_SEEN = "inferencex"

band_low = constant(
    "band_low", "band_low", "0.88", _SEEN,
    "Lower end of the interval for the time per output token, over the prediction: nine of ten are above it.\n\n"
    "The ends of all bands were calibrated on half of the InferenceX curves (`serving_tpot`).",
)  # fmt: skip

band_high = constant(
    "band_high", "band_high", "1.3", _SEEN,
    "Upper end of the interval for the time per output token, over the prediction: nine of ten are below it.",
)  # fmt: skip

first_band_low = constant(
    "first_band_low", "first_band_low", "0.8", _SEEN,
    "Lower end of the interval for the time to first token, over the prediction: nine of ten are above it.\n\n"
    "Queues and hosts make up most of that time.",
)  # fmt: skip

first_band_high = constant(
    "first_band_high", "first_band_high", "1.9", _SEEN,
    "Upper end of the interval for the time to first token, over the prediction: nine of ten are below it.",
)  # fmt: skip


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
