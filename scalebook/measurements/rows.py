"""Read the CSV files of published measurements: rows, numbers in cells, and the half of the rows to calibrate on."""

import csv
import gzip
import re
import zlib
from contextlib import nullcontext
from hashlib import md5

import numpy as np

from scalebook.language.notation import brief, quoted

__all__ = ["SYSTEMS", "Measurement", "is_even", "is_half", "number", "read_rows"]

Measurement = dict[str, str]  # one line of a CSV file

# AIConfigurator's names of systems, and our keys of their devices.
SYSTEMS = {f"{x}_sxm": x for x in ("a100", "h100", "h200", "b200", "b300")} | {x: x for x in ("gb200", "gb300")}


def number(row: Measurement, column: str) -> float:
    """Return a row's value in a column as a positive number. Otherwise raise ValueError, naming row and column."""
    try:
        value = float(row[column])
        if not 0 < value < np.inf:
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"{row['row_id']}: {column} is {quoted(row[column])}, not a positive number") from None
    return value


def is_even(row: Measurement) -> bool:
    """Return True if a row's number is even. Where half of a table was used for calibration, it was these rows."""
    return int(re.sub(r"\D", "", row["row_id"]) or 1) % 2 == 0


def is_half(*texts: str) -> bool:
    """Return True if a hash puts these texts in the half to calibrate on. The answer never changes."""
    return int(md5("|".join(texts).encode()).hexdigest(), 16) % 2 == 0


def read_rows(source) -> tuple[list[Measurement], list[str]]:
    """Return the rows and the column names of a CSV file, given by its path (.gz too) or open for reading text.

    Raises ValueError, naming the file, if it cannot be read, is no CSV file in UTF-8, or has a row with too many cells.
    """
    is_open = hasattr(source, "read")
    where = "the file" if is_open else quoted(str(source))
    opened = gzip.open if str(source).endswith(".gz") else open
    try:
        with nullcontext(source) if is_open else opened(source, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            rows = [{"row_id": row.get("id", str(line))} | row for line, row in enumerate(reader, 1)]
            names = reader.fieldnames or []
    except OSError as error:
        raise ValueError(f"cannot read {where}: {error.strerror or brief(error)}") from None
    except (ValueError, EOFError, csv.Error, zlib.error) as error:  # not UTF-8, an open field, or a cut file
        raise ValueError(f"{where} is no CSV file in UTF-8: {brief(error)}") from None
    if long := next((row for row in rows if None in row), None):
        raise ValueError(f"{where}, row {quoted(long['row_id'])}: it has more cells than there are columns")
    return rows, names
