"""Results as tables: as text, as a page, and for your own library (a dictionary of columns, CSV, or a data frame).

>>> class Two(Frame):
...     def records(self):
...         return [{"tp": 1.0, "step_time": 0.5}, {"tp": 2.0, "recompute": "full"}]
>>> Two().to_dict()
{'tp': [1.0, 2.0], 'step_time': [0.5, None], 'recompute': [None, 'full']}
>>> print(Two().to_csv(), end="")
tp,step_time,recompute
1.0,0.5,
2.0,,full
"""

import csv
import html
import importlib
import io
import sys
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from scalebook.language.arguments import checked
from scalebook.language.notation import brief, quoted
from scalebook.language.tabular import aligned, page_table, styled

__all__ = ["Frame"]

_LIBRARIES = ("pandas", "polars")


class Frame:
    """Base class of results whose `records` returns one dictionary per row, with values by name in base units.

    As text and as a page it is a summary, tables (heads, rows and a caption each) and sentences that explain them.
    """

    _summary = ""
    _explained: Sequence[str] = ()

    def _tables(self) -> Iterator[tuple[list[str], list[list[str]], str]]:
        raise NotImplementedError

    def records(self) -> list[dict]:
        raise NotImplementedError

    @checked
    def to_dict(self) -> dict[str, list]:
        """Return the columns as lists by name, in base units.  None stands for a value that a row lacks."""
        rows = self.records()
        return {n: [row.get(n) for row in rows] for n in dict.fromkeys(n for row in rows for n in row)}

    @checked
    def to_csv(self, path=None) -> str:
        """Return the rows as CSV text with a header line, and write them to a file if `path` is given."""
        columns, text = self.to_dict(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([columns, *zip(*columns.values(), strict=True)])
        if path is not None and not isinstance(path, str | PathLike):
            raise TypeError(f"path is that of the file to write, not {quoted(path)}")
        if path is not None:
            try:
                Path(path).write_text(text.getvalue(), "utf-8")
            except (OSError, ValueError) as error:
                raise ValueError(f"{quoted(str(path))} could not be written: {brief(error)}") from None
        return text.getvalue()

    @checked
    def to_frame(self, library: str | None = None):
        """Return a data frame of pandas or polars: the named `library`, or else one that is imported or installed.

        Raises ImportError if there is neither.
        """
        if library not in (None, *_LIBRARIES):
            raise ValueError(f"library is 'pandas' or 'polars', not {quoted(library)}")
        for name in [library] if library else sorted(_LIBRARIES, key=lambda x: (x not in sys.modules, x)):
            try:
                return importlib.import_module(name).DataFrame(self.to_dict())
            except ImportError:
                continue
        said = f"{library} is" if library else "pandas and polars are"
        how = "to_frame needs pandas or polars; to_dict and to_csv need neither"
        raise ImportError(f"{said} not installed: {how}")

    def __arrow_c_stream__(self, requested_schema=None):
        """Let a library that reads Arrow streams take the rows, such as `polars.DataFrame(found)`."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True):
        """Let a library that reads the dataframe interchange protocol take the rows."""
        return self.to_frame().__dataframe__(nan_as_null, allow_copy)

    def __repr__(self):
        tables = (aligned([heads, *rows], gap="  ") for heads, rows, _ in self._tables())
        return "\n\n".join([self._summary, *tables, *self._explained])

    def _repr_html_(self):
        said = (f"<p>{html.escape(x)}</p>" for x in self._explained)
        return styled(f"<p>{html.escape(self._summary)}</p>", *(page_table(*x) for x in self._tables()), *said)
