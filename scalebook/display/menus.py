"""Data for menus of table rows: values and their ranges, which rows a calculator cannot compute, steps of sliders."""

from collections.abc import Collection, Iterable, Mapping

from scalebook.inference.assumptions import READ_CELLS

__all__ = [
    "BY_PRECISION", "READ", "STATED_BY_ROWS", "as_read", "cells_for", "cut", "ends_of", "is_priced_otherwise", "row_of",
    "steps",
]  # fmt: skip

BY_PRECISION = ("peak_flops", "matmul_efficiency", "training_efficiency")  # what `Device.at` sets
# Letters for which a device's cell replaces a formula.  Not network letters: they follow the ports.
STATED_BY_ROWS = (*BY_PRECISION, "sum_launch", "sum_latency")
# Cells that only devices with their own formulas have, and the letter that those formulas give.
DECIDED_BY_ROWS = {"attention_tile": "attended_share", "grouped_whole": "grouped_efficiency"}
# Formulas for cache reads on the H100, and the cell with which another device replaces each.
READ = {f.name: cell for own in READ_CELLS.values() for cell, f in own.items()}


def ends_of(row, letters: Iterable[str]) -> dict[str, list]:
    """Return the uncertain values of a row by name: low end, high end, an identifier of the table cell, its origin."""
    first: dict[int, str] = {}
    for x in sorted(row.cells, key=lambda x: (x.endswith("_efficiency"), x)):  # at every precision by the same name
        first.setdefault(id(row.cells[x]), x)
    cells = {x: row.cells[x] for x in letters if x in row.cells and row.cells[x].low is not None}
    return {x: [float(cell.low), float(cell.high), first[id(cell)], cell.origin] for x, cell in cells.items()}


def row_of(row) -> dict:
    """Return a table row as the dict that a menu stores: name, values, ranges, and peaks by precision."""
    said = dict(name=row.name, letters={x: float(row[x]) for x in row})
    if ends := ends_of(row, row):
        said["ends"] = ends
    if hasattr(type(row), "at"):  # to ask the row itself is slow, for it looks for what else may be meant
        peaks = [x for x in row if x.startswith("peak_") and x not in ("peak_flops", "peak_vector")]
        names = [x.removeprefix("peak_") for x in peaks]
        at = {p: row.at(p) for p in names}
        said["peaks"] = [[p, {x: own[x] for x in BY_PRECISION if x in own}] for p, own in at.items()]
        said["ends_at"] = {p: ends for p, own in at.items() if (ends := ends_of(own, BY_PRECISION))}
    return said


def cut(row, letters, by_precision):
    """Return a copy of a menu's row with only these quantities and, if asked, the values by precision."""
    cut = dict(name=row["name"], letters={x: row["letters"][x] for x in letters if x in row["letters"]})
    if ends := {x: own for x, own in row.get("ends", {}).items() if x in cut["letters"]}:
        cut["ends"] = ends
    return cut | ({x: row[x] for x in ("peaks", "ends_at") if x in row} if by_precision else {})


def is_priced_otherwise(letters: Mapping, stated: Collection[str], inputs: Collection[str]) -> bool:
    """Return True if the package has other formulas for a row than the calculator, so the menu must leave it out."""
    return any(x in letters and y in stated and x not in inputs for x, y in DECIDED_BY_ROWS.items())


def as_read(row: dict, read: Mapping[str, str]) -> dict:
    """Return a copy of the row, its missing cache-read values filled in from its values for this kind of cache."""
    found = {}
    for part in {"letters", "ends"} & row.keys():
        own = dict(row[part])
        for x, cell in read.items():
            if cell in own:
                own[x] = own[cell] = own.get(x, own[cell])
        found[part] = own
    return row | found


def cells_for(row: dict, letters: Iterable[str], read: Mapping[str, str]) -> list[str]:
    """Return the row's names for these quantities: for reading caches, a row has one value per kind of cache."""
    return [read[x] if read.get(x) in row["letters"] else x for x in letters]


def steps(low, high):
    """Return the values of a slider: powers of two times `low`, the values half-way between them, and `high`."""
    found, x = [], low
    while x < high:
        found += [x, x * 3 / 2] if x > 1 and x * 3 / 2 < high else [x]
        x *= 2
    return [*found, high]
