"""A small table of words and numbers, for a few results side by side."""

import html

__all__ = ["Grid", "cell"]


def cell(text: str) -> str:
    """A cell of a table of a page: a number and its unit stay together, and words begin at the left.

    >>> cell("3.35 TB/s"), cell("experts: the host")
    ('<td>3.35\xa0TB/s</td>', '<td class="sb-said">experts: the host</td>')
    """
    if text[:1].isdigit() or text[:1] in "+-−–—≤≥<>~$" or len(text) < 9:
        return f"<td>{html.escape(text).replace(' ', chr(0xA0)) if len(text) < 24 else html.escape(text)}</td>"
    return f'<td class="sb-said">{html.escape(text)}</td>'


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
            f"<tr><th scope='row'>{html.escape(first)}</th>{''.join(map(cell, rest))}</tr>"
            for first, *rest in self.rows
        )
        return f'<div class="sb-table tex2jax_ignore"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
