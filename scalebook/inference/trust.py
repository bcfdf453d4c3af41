"""Prediction intervals of serving: the range that eight of ten public measurements lie in."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from scalebook.inference.assumptions import band_high, band_low, first_band_high, first_band_low
from scalebook.language import Formula, Row, symbol

__all__ = ["RANGES", "tpot_ends", "with_ends"]

_SEEN = "inferencex"


class Ends(NamedTuple):
    """The two formulas of a prediction interval: its lower and its upper end."""

    low: Formula
    high: Formula


def _ends(letter: str, first: bool = False, inverse: bool = False) -> Ends:
    """Return the ends of a letter's interval. Rates use the inverse of the ends of their time."""
    band = "first_band" if first else "band"
    made = []
    for end, other in (("low", "high"), ("high", "low")):
        factor = 1 / symbol(f"{band}_{other}") if inverse else symbol(f"{band}_{end}")
        made.append(Formula(f"{letter}_{end}", f"{letter}_{end}", symbol(letter) * factor, (_SEEN,)))
    return Ends(*made)


tpot_ends = _ends("tpot")
RANGES = (
    band_low, band_high, first_band_low, first_band_high, *tpot_ends, *_ends("ttft", first=True),
    *_ends("user_rate", inverse=True), *_ends("device_rate", inverse=True), *_ends("million_cost"),
)  # fmt: skip


def with_ends(price: Callable[..., Row], **times: float) -> Row:
    """Return `price(**times)`, which also has the results with these times of steps at both ends of their range.

    The range says how far measured times per output token, or to the first token, lie from predicted ones. All steps of
    a service are fast or slow together.
    """
    row = price(**times)
    row.at_ends = _AtEnds(price, times)
    return row


class _AtEnds:
    def __init__(self, price: Callable[..., Row], times: dict):
        self._asked = price, times

    def __call__(self) -> tuple[Row, ...]:
        return self._found

    @cached_property
    def _found(self) -> tuple[Row, ...]:
        price, times = self._asked
        with suppress(ValueError):  # slow steps may leave no working point
            return tuple(
                price(**{n: x * float(first() if n == "ttft" else other()) for n, x in times.items()})
                for first, other in ((first_band_low, band_low), (first_band_high, band_high))
            )
        return ()
