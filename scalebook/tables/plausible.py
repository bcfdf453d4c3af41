"""Refuse a table cell that is ten times beyond every other row: its unit or its prefix is probably wrong."""

from collections.abc import Iterable, Mapping

from scalebook.language.notation import NOTATION
from scalebook.language.row import Row
from scalebook.language.units import show

__all__ = ["beyond", "refuse_faster", "refuse_outliers"]

MOST, FEWEST = 10, 5  # times beyond all others; with fewer others there is nothing to compare with
RATES = ("FLOP/s", "B/s")


def beyond(letter: str, value: float, others: Iterable[float], is_low: bool = False) -> str:
    """Return a sentence if a value is `MOST` times above (or `is_low`: below) all others, otherwise "".

    >>> beyond("hbm_bandwidth", 3.35e9, [4.4e11, 8e12], is_low=True)
    '3.35 GB/s is 131 times less than any other row has, 440 GB/s: check its unit and its zeros'
    """
    extreme = min(others) if is_low else max(others)
    times = extreme / value if is_low else value / extreme
    if times <= MOST:
        return ""
    unit = NOTATION[letter].unit
    how = "less than any other row has" if is_low else "the most that any other row has"
    return f"{show(value, unit)} is {times:.0f} times {how}, {show(extreme, unit)}: check its unit and its zeros"


def refuse_outliers(file: str, rows: Mapping[str, Row]) -> None:
    """Raise ValueError for a table cell that is `MOST` times beyond the same cell of all unrelated rows."""
    columns: dict[str, list[tuple[float, str]]] = {}
    for key, row in rows.items():
        for letter, cell in row.cells.items():
            if isinstance(cell.value, float) and cell.value > 0 and not cell.is_assumed:
                columns.setdefault(letter, []).append((cell.value, key))
    for letter, cells in columns.items():
        for is_low, (value, key) in ((True, min(cells)), (False, max(cells))):
            others = [x for x, other in cells if rows[other].kin[-1] != rows[key].kin[-1]]
            if len(others) >= FEWEST and (wrong := beyond(letter, value, others, is_low)):
                raise ValueError(f"{file}, [{key}], {letter}: {wrong}")


def refuse_faster(file: str, key: str, device: Row, known: Mapping[str, Row]) -> None:
    """Raise ValueError if a reader's own device has a rate `MOST` times beyond all known devices.

    Slow machines are welcome: a laptop may be a thousand times slower than the slowest device of the table.
    """
    for letter, cell in device.cells.items():
        others = [row[letter] for row in known.values() if letter in row]
        if NOTATION[letter].unit in RATES and others and (wrong := beyond(letter, cell.value, others)):
            raise ValueError(f"{file}, [{key}], {letter}: {wrong}")
