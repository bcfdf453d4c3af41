"""Turn results into tables for your own library: a dictionary of columns (as for `pandas.DataFrame`), or CSV.

>>> class Two(Frame):
...     def records(self):
...         return [{"tp": 1.0, "step_time": 0.5}, {"tp": 2.0, "recompute": "full"}]
>>> Two().to_dict()
{'tp': [1.0, 2.0], 'step_time': [0.5, None], 'recompute': [None, 'full']}
"""

import csv
import io
from os import PathLike
from pathlib import Path

from scalebook.language.notation import quoted

__all__ = ["Frame"]


class Frame:
    """Base class of results whose `records` returns one dictionary per row, with values by name in base units."""

    def to_dict(self) -> dict[str, list]:
        """Return the columns as lists by name, in base units.  None stands for a value that a row lacks."""
        rows = self.records()
        return {n: [row.get(n) for row in rows] for n in dict.fromkeys(n for row in rows for n in row)}

    def to_csv(self, path=None) -> str:
        """Return the rows as CSV text with a header line, and write them to a file if `path` is given."""
        columns, text = self.to_dict(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([columns, *zip(*columns.values(), strict=True)])
        if path is not None and not isinstance(path, str | PathLike):
            raise TypeError(f"path is that of the file to write, not {quoted(path)}")
        if path is not None:
            Path(path).write_text(text.getvalue(), "utf-8")
        return text.getvalue()
