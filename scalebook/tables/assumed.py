"""Figures that no data sheet prints: ranges of what comparable devices have, from the table of accelerators.

`assumed.toml` says for each quantity which devices are compared, and in proportion to what.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from scalebook.language.notation import NOTATION
from scalebook.language.row import ASSUMED, Cell, Row
from scalebook.language.stanzas import tables_of
from scalebook.language.units import show

__all__ = ["complete", "unsold"]

_NARROW = "peak_flops", "peak_fp8", "peak_fp4"
_TAILS = (0.1, 0.5, 0.9)  # as in a measured cell, eight in ten devices lie between `low` and `high`


@cache
def _rules() -> dict[str, dict]:
    return tables_of(__package__, "assumed.toml")


def complete(row: Row, naming: Callable[..., list[Row]]) -> None:
    """Add to a device the figures that its data sheet leaves out, marked as assumed, with `low` and `high`.

    `naming` returns the table's devices whose stanzas name one of some letters. A processor that multiplies only in 32
    bits or more is not compared with them.
    """
    if not any(x in row for x in _NARROW):
        return
    for letter, rule in _rules().items():
        is_sold = row.words.get("vendor") not in rule.get("except", ())
        if letter not in row and is_sold and ("of" not in rule or any(x in row for x in rule["of"])):
            # relatives of a device, and its core or its die, would count it twice
            known = [
                x
                for x in naming(*rule.get("by", [letter]))
                if x.states(letter) and len(x.kin) == 1 and _is_compared(x, rule)
            ]
            row.cells[letter] = _assumed(letter, row, rule, known)


def unsold(vendor: str) -> str:
    """Return why nobody can buy a vendor's devices, or "" if the vendor sells them or is not known.

    >>> unsold("Google"), unsold("NVIDIA")
    ('not for sale: Google rents its devices out', '')
    """
    rule = _rules()["device_price"]
    return rule["because"].format(vendor=vendor) if vendor in rule["except"] else ""


def _is_compared(row: Row, rule: Mapping) -> bool:
    return row.words.get("fabric", "") in rule.get("fabrics", [row.words.get("fabric", "")])


def _ends(cell: Cell) -> tuple[float, float, float]:
    return (cell.low, cell.value, cell.high) if cell.is_assumed else (cell.value,) * 3


def _quantiles(ordered: list[float]) -> np.ndarray:
    """Return the `_TAILS` of ordered numbers. NumPy's own function loads its masked arrays, for 20 ms."""
    last = len(ordered) - 1
    return np.interp([x * last for x in _TAILS], range(last + 1), ordered)


def _assumed(letter: str, row: Row, rule: Mapping, known: list[Row]) -> Cell:
    base = next((x for x in rule.get("of", ()) if x in row), "")
    compared = [x for x in known if not base or x.states(base)]
    shares = sorted(x[letter] / (x[base] if base else 1) for x in compared)
    times = _ends(row.cells[base]) if base else (1, 1, 1)
    low, typical, high = (float(x) * y for x, y in zip(_quantiles(shares), times, strict=True))
    by = f", in proportion to {base}" if base else ""
    ends = " to ".join(show(x, NOTATION[letter].unit) for x in (low, high))
    note = f"the median of {len(compared)} devices that state it{by}; eight in ten of them give {ends}"
    origin = next(iter(row.cells.values())).origin
    return Cell(typical, origin, ASSUMED, note, low=low, high=high)
