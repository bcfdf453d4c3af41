"""Coverage of the prediction intervals: how many measured rows lie inside intervals that promise eight in ten.

`coverage` holds out every set together with all sets of the same table, `coverage_of_devices` a fifth of the rows of
every set at a time. If a row can be understood in several ways, its interval combines them by their probabilities.
"""

from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from scalebook.language.interval import Ends
from scalebook.tables import accelerators

from .evidence import Evidence, are_kin, evidence, family_of
from .spreads import APART, PARTS_OF_ROWS, TAIL, HeldOut, held_out_part, letters, residual_spread, tails, visits_experts

__all__ = ["Covered", "coverage", "coverage_of_devices"]

LEAST_ROWS = 10
_NORMAL = NormalDist()
_normal_share = np.vectorize(_NORMAL.cdf, otypes=[float])


class Covered(NamedTuple):
    """Shares of measurements inside, below and above their 80 % intervals; median width over the prediction."""

    name: str
    family: str
    rows: int
    covered: float
    below: float
    above: float
    width: float


def _kin(name: str) -> frozenset[str]:
    """Return the sets to hold out together with a set: itself, and all of the same table."""
    return frozenset(x for sets in letters().values() for x in sets if are_kin(x, name))


def _ends_of_readings(readings: np.ndarray, chances: np.ndarray, fast: np.ndarray, slow: np.ndarray) -> Ends:
    """Return interval ends with a tenth of the probability beyond each, over the readings of each row."""
    if len(readings) == 1:
        return Ends(readings[0] - fast, readings[0] + slow)
    found = []
    for share in (TAIL, 1 - TAIL):
        least, most = readings.min(0) - 2 * fast, readings.max(0) + 2 * slow
        for _ in range(40):
            middle = (least + most) / 2
            apart = middle - readings
            with np.errstate(divide="ignore"):  # a side without width holds no probability
                steps = apart / np.where(apart < 0, fast, slow) * _NORMAL.inv_cdf(1 - TAIL)
            is_less = (chances * _normal_share(steps)).sum(0) < share
            least, most = np.where(is_less, middle, least), np.where(is_less, most, middle)
        found.append(middle)
    return Ends(*found)


def _ends(own: Evidence, letter: str, held_out: HeldOut) -> Ends:
    """Return the logarithms of each row's interval ends, relative to the prediction."""
    (fast, slow), more = tails(own, held_out), residual_spread(letter, held_out)
    if letter in APART:
        both = (np.array(x)[:, None] for x in (residual_spread(letter, held_out, True), more))
        more = Ends(*np.where(visits_experts(own), *both))
    apart = np.sqrt(fast + more.low**2), np.sqrt(slow + more.high**2)
    return _ends_of_readings(own.readings, own.chances, *apart)


def _covered(off: np.ndarray, ends: Ends) -> dict[str, float]:
    below, above = float((off < ends.low).mean()), float((off > ends.high).mean())
    width = float(np.median(np.exp(ends.high) - np.exp(ends.low)))
    return dict(rows=len(off), covered=1 - below - above, below=below, above=above, width=width)


@cache
def coverage() -> tuple[Covered, ...]:
    """Return, for each measured set, the share of its rows inside intervals learnt without sets of the same table."""
    found = []
    for letter, sets in letters().items():
        for name in sets:
            own = evidence(name)
            found.append(Covered(name, family_of(name), **_covered(own.off, _ends(own, letter, HeldOut(_kin(name))))))
    return tuple(found)


def parts_left_out(name: str) -> list[tuple[int, Evidence]]:
    """Split a set's rows into five random parts, and return the number and the evidence of each part that has rows."""
    return [(part, own) for part in range(PARTS_OF_ROWS) if len((own := held_out_part(name, part)).off)]


@cache
def rows_left_out() -> tuple[tuple[str, Evidence, Ends], ...]:
    """Return (set, a fifth of its rows, log ends of their intervals), with the intervals learnt without that fifth."""
    found = []
    for letter, sets in letters().items():
        for name in sets:
            found += [(name, own, _ends(own, letter, HeldOut(part=part))) for part, own in parts_left_out(name)]
    return tuple(found)


def coverage_of_devices() -> tuple[Covered, ...]:
    """Return the share of rows inside their intervals, by device and family of sets.

    A fifth of all rows is held out at a time. Pairs with few rows are left out.
    """
    by_device: dict[str, dict[str, list]] = {x: {} for x in (*accelerators, "")}
    for name, own, ends in rows_left_out():
        for device in sorted(set(own.devices.tolist())):
            here = own.devices == device
            by_device[device].setdefault(family_of(name), []).append((own.off[here], *(x[here] for x in ends)))
    found = []
    for device, families in by_device.items():
        for family, parts in families.items():
            off, low, high = (np.concatenate(x) for x in zip(*parts, strict=True))
            if len(off) >= LEAST_ROWS:
                found.append(Covered(device, family, **_covered(off, Ends(low, high))))
    return tuple(found)
