"""Break a result down into the parts that its formula adds up or takes the maximum of.

>>> from scalebook import decoding
>>> from scalebook.tables import accelerators, models
>>> row = decoding(models.llama3_8b, accelerators.h100, batch=1, context=8192, weight_bits=16, kv_bits=16)
>>> breakdowns(row), nearest_parts(row, "decode_rate"), parts(row, "decode_memory")
(['decode_memory', 'token_time'], 'token_time', {'weight_memory': 16060000000.0, 'kv_cache': 1073741824.0})
>>> part_lines(row, "decode_memory")
[('weight_memory', '16.06 GB', '93.7 %'), ('kv_cache', '1.074 GB', '6.3 %')]
"""

import numpy as np
import sympy

from .notation import NOTATION
from .row import Row
from .units import show

__all__ = ["breakdowns", "nearest_parts", "part_lines", "parts"]


def parts(row: Row, letter: str) -> dict[str, float]:
    """Return what the formula of a row's quantity adds up or takes the maximum of: values by name, largest first.

    Arrays are ordered by their maximum.  The result is empty if the quantity is given, or if its formula is anything
    but a plain sum or maximum.  Raises KeyError for a quantity that the row lacks.
    """
    row[letter]
    f = row.cells[letter].formula
    if f is None or not isinstance(f.rhs, sympy.Add | sympy.Max) or not all(x.is_Symbol for x in f.rhs.args):
        return {}
    return dict(sorted(((x.name, row[x.name]) for x in f.rhs.args), key=lambda x: -np.max(x[1], initial=0)))


def breakdowns(row: Row) -> list[str]:
    """Return the times and memories that are sums or maxima of others, unless part of another in the same unit."""
    found = [n for n in row if NOTATION[n].unit in ("s", "B") and parts(row, n)]
    within = {(n, NOTATION[other].unit) for other in found for n in _below(row, other)}
    return [n for n in found if (n, NOTATION[n].unit) not in within]


def _below(row, letter) -> list[str]:
    found, todo = {}, [letter]
    while todo:
        new = [n for x in todo for n in row.cells[x].inputs if n not in found and n in row]
        found |= dict.fromkeys(new)
        todo = list(dict.fromkeys(new))
    return list(found)


def nearest_parts(row: Row, letter: str) -> str:
    """Return the name of a sum or maximum that explains a quantity: itself, its nearest such input, or ""."""
    return next((n for n in [letter, *_below(row, letter)] if parts(row, n)), "")


def part_lines(row: Row, letter: str, most: int = 99) -> list[tuple[str, str, str]]:
    """Return the parts of a quantity as texts: name, value with unit, and share.  Parts that are zero are left out."""
    unit, found = NOTATION[letter].unit, {n: x for n, x in parts(row, letter).items() if x}
    lines = [(n, show(x, unit), f"{x / row[letter]:.1%}".replace("%", " %")) for n, x in found.items()]
    return lines[:most]
