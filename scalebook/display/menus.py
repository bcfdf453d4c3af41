"""What menus say of rows: the letters that a calculator needs, by precision too, and which rows it cannot price."""

from collections.abc import Collection, Mapping

from .likely import ends_of

__all__ = ["BY_PRECISION", "STATED_BY_ROWS", "cut", "is_priced_otherwise", "row_of"]

BY_PRECISION = ("peak_flops", "matmul_efficiency", "training_efficiency")  # what `Device.at` sets
# What a device says in the place of a formula.  Not its network: a reader who chooses ports asks for theirs.
STATED_BY_ROWS = (*BY_PRECISION, "sum_launch", "sum_latency")
# What a device's row has only where formulas of its own make the letter beside it.
DECIDED_BY_ROWS = {"attention_tile": "attended_share", "grouped_whole": "grouped_efficiency"}


def row_of(row) -> dict:
    """What a menu may need of a row: name, letters, what a device gives by precision (in a list,
    which keeps its order).
    """
    said = dict(name=row.name, letters={x: float(row[x]) for x in row})
    if ends := ends_of(row, row):
        said["ends"] = ends
    if hasattr(row, "at"):
        names = [
            x.removeprefix("peak_") for x in row if x.startswith("peak_") and x not in ("peak_flops", "peak_vector")
        ]
        said["peaks"] = [[p, {x: row.at(p)[x] for x in BY_PRECISION if x in row.at(p)}] for p in names]
        said["ends_at"] = {p: ends for p in names if (ends := ends_of(row.at(p), BY_PRECISION))}
    return said


def cut(row, letters, by_precision):
    """What a page needs of a row: some letters of it, and some by precision."""
    cut = dict(name=row["name"], letters={x: row["letters"][x] for x in letters if x in row["letters"]})
    if ends := {x: own for x, own in row.get("ends", {}).items() if x in cut["letters"]}:
        cut["ends"] = ends
    return cut | ({x: row[x] for x in ("peaks", "ends_at") if x in row} if by_precision else {})


def is_priced_otherwise(letters: Mapping, stated: Collection[str], inputs: Collection[str]) -> bool:
    """Whether a row says what none of a calculator's formulas asks for, and formulas made for that device would.

    >>> is_priced_otherwise({"attention_tile": 512.0}, stated={"attended_share"}, inputs=["seq"])
    True
    """
    return any(x in letters and y in stated and x not in inputs for x, y in DECIDED_BY_ROWS.items())
