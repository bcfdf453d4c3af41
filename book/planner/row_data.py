"""Rows of tables as short JSON: letters once for a table, and of a row that is `like` another one what differs.

>>> from scalebook.tables import accelerators
>>> found = row_data(accelerators, {}, {"hbm_capacity", "hbm_bandwidth"})
>>> found["letters"][1:3], found["rows"]["a100"]["values"][1:3]
(['hbm_capacity', 'hbm_bandwidth'], [80000000000, 2039000000000])
>>> found["rows"]["a100_40gb"]["like"], found["rows"]["a100_40gb"]["values"][:3]
('a100', ['', 40000000000, 1555000000000])
"""

import re
from collections import Counter
from collections.abc import Mapping

from scalebook.language import Row
from scalebook.language.interval import SPREADS
from scalebook.tables import Device

__all__ = ["row_data"]

BY_PRECISION = ("peak", "matmul", "training")
NOT_OFFERED = ("fp64", "fp6")  # in which nobody trains or serves
_FROM = re.compile(r"^from [\d.]+% to [\d.]+% by source; |; eight in ten of them give .*$")  # the ends stand beside it


def row_data(table: Mapping[str, Row], notes: dict[tuple, int], used: set) -> dict:
    """Return the letters of a table, and the data of each row. New notes on cells are added to `notes`."""
    many = Counter(x for row in table.values() for x in row if _is_read(x, used, isinstance(row, Device)))
    names = [x for x, _ in many.most_common()]
    rows: dict[str, dict] = {}
    for key, row in table.items():
        like = next((x for x in getattr(row, "kin", ())[1:] if x in rows), "")
        rows[key] = _row(row, names, notes, like, table[like].cells if like else {})
    return dict(letters=names, rows=rows)


def _row(row: Row, names: list[str], notes: dict[tuple, int], like: str, others: Mapping) -> dict:
    """Return a row's values, name, words and cell origins, with interval ends over the value.

    An origin is its number in `notes`, or "+" for the next new one. "=" stands for the row's most common origin. A cell
    that is as in the row `like` has "" in the place of its value.
    """
    cells = {x: row.cells[x] for x in names if x in row.cells}
    own = {x: c for x, c in cells.items() if x not in others or _said(c) != _said(others[x])}
    origins = [c.source for c in cells.values() if c.source]
    usual = max(set(origins), key=lambda x: (origins.count(x), x), default="")
    values, sources = [], []
    for x in names:
        c = own.get(x)
        values.append("" if x in cells and c is None else None if c is None else _number(c.value))
        sources.append("")
        if c is not None and c.formula is None and (c.source != usual or c.note):
            said = "=" if c.source == usual else c.source, _FROM.sub("", c.note)
            met, number = len(notes), notes.setdefault(said, len(notes))
            sources[-1] = "+" if number == met else str(number)
    while values and values[-1] is None:
        values.pop()
    found = dict(name=row.name, words=dict(row.words), values=values, source=usual)
    found["sources"] = ",".join(sources).rstrip(",")
    ends, first = {}, {}
    for x, c in own.items():
        if c.low is not None:  # a cell that stands under two names is drawn once: the first of them is said
            other = first.setdefault(id(c), x)
            ends[x] = [_short(c.low / c.value), _short(c.high / c.value), *([other] if other != x else [])]
    found |= dict(like=like) if like else {}
    found |= dict(ends=ends) if ends else {}
    if made := [x for x, c in cells.items() if c.formula and x in SPREADS]:
        found["made"] = made
    return found


def _said(cell) -> tuple:
    return cell.value, cell.source, cell.note, cell.low, cell.high, cell.formula is None


def _is_read(letter: str, used: set, is_device: bool) -> bool:
    """Return True if the page reads a letter: a used one, or a device's peak or efficiency that a precision selects."""
    kind, _, rest = letter.partition("_")
    if kind not in BY_PRECISION or (rest == "efficiency" and not is_device):
        return letter in used
    return rest not in ("flops", "efficiency", *NOT_OFFERED)


def _short(x: float) -> float:
    return float(f"{x:.12g}")


def _number(x: float):
    return int(x) if x == int(x) and abs(x) < 2**53 else x
