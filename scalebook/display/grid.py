"""A small table of texts and numbers, for a few results side by side."""

from scalebook.language.tabular import aligned, folded, page_table, styled

__all__ = ["Grid"]


class Grid:
    """A small table from a dict of columns by heading; the first column has the names of the rows.

    It is an HTML table in a notebook and aligned text elsewhere. With `fold`, a name for the rows such as "runs", a
    notebook shows one line that opens the table.

    >>> Grid({"": ["H100", "H200"], "ridge": ["295 FLOP/B", "206 FLOP/B"]})
              ridge
    H100 295 FLOP/B
    H200 206 FLOP/B
    """

    def __init__(self, columns: dict[str, list[str]], fold: str = ""):
        self.fold = fold
        self.heads = list(columns)
        self.rows = list(zip(*columns.values(), strict=True))

    def __repr__(self):
        return aligned([self.heads, *self.rows], right=True)

    def _repr_html_(self):
        table = page_table(self.heads, self.rows)
        return styled(folded(table, f"{len(self.rows)} {self.fold}") if self.fold else table)
