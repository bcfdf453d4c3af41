"""A small table of words and numbers, for a few results side by side."""

import html

__all__ = ["Grid"]


class Grid:
    """Columns by their heads; the first names the rows.  Shown as a table in a notebook, aligned in text.

    >>> Grid({"": ["H100", "H200"], "ridge": ["295 FLOP/B", "206 FLOP/B"]})
              ridge
    H100 295 FLOP/B
    H200 206 FLOP/B
    """

    def __init__(self, columns: dict[str, list[str]]):
        self.heads = list(columns)
        self.rows = list(zip(*columns.values(), strict=True))

    def __repr__(self):
        lines = [self.heads, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        said = [
            " ".join([line[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        ]
        return "\n".join(line.rstrip() for line in said)

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(x)}</th>" for x in self.heads)
        body = "".join(
            f"<tr><th scope='row'>{html.escape(first)}</th>{''.join(f'<td>{html.escape(x)}</td>' for x in rest)}</tr>"
            for first, *rest in self.rows
        )
        return f'<div class="sb-table tex2jax_ignore"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
