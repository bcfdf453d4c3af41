"""Tables as a reader sees them: columns aligned in text, and a table of a page.

>>> print(aligned([["", "ridge"], ["H100", "295 FLOP/B"]], right=True))
          ridge
H100 295 FLOP/B
"""

import html
from collections.abc import Iterable, Sequence

__all__ = ["Markup", "aligned", "folded", "page_table", "table_cell"]


class Markup(str):
    """A piece of a page, put in as it is; any other text is escaped."""


def aligned(lines: Iterable[Sequence[str]], right: bool = False, gap: str = " ") -> str:
    """Lines of columns, each as wide as its widest text; `right` moves all but the first to the right.

    >>> aligned([["a", "b"], ["long", "c"]], gap="  ").splitlines()
    ['a     b', 'long  c']
    """
    lines = list(lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.ljust, *[str.rjust if right else str.ljust] * len(widths)]
    padded = (gap.join(side(x, w) for side, x, w in zip(sides, line, widths, strict=False)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _body(text: str) -> Markup:
    """A number and its unit stay together at the right, and words begin at the left."""
    if text[:1].isdigit() or text[:1] in "+-−–—≤≥<>~$" or len(text) < 9:
        return table_cell(text.replace(" ", "\xa0") if len(text) < 24 else text)
    return table_cell(text, class_="sb-said")


def table_cell(content: str, kind: str = "td", **attributes: str) -> Markup:
    """A cell of a table; of an attribute's name a trailing underscore is dropped, another one is a hyphen.

    >>> table_cell("a < b", class_="sb-said")
    '<td class="sb-said">a &lt; b</td>'
    """
    said = "".join(f' {name.rstrip("_").replace("_", "-")}="{html.escape(x)}"' for name, x in attributes.items())
    return Markup(f"<{kind}{said}>{content if isinstance(content, Markup) else html.escape(content)}</{kind}>")


def page_table(heads: Iterable[str], lines: Iterable[Iterable[str]], caption: str = "", kind: str = "") -> Markup:
    """A table of a page, in a box that scrolls; the first text of a line heads it, and a cell may come made.

    `kind` is a class of its own for the style sheet.

    >>> page_table(["", "ridge"], [["H100", "295"]]).partition("<tbody>")[2]
    '<tr><th scope="row">H100</th><td>295</td></tr></tbody></table></div>'
    """

    def row(first, *rest):
        made = [first if isinstance(first, Markup) else table_cell(first, "th", scope="row")]
        return f"<tr>{''.join([*made, *(x if isinstance(x, Markup) else _body(x) for x in rest)])}</tr>"

    head = "".join(x if isinstance(x, Markup) else table_cell(x, "th") for x in heads)
    body = "".join(row(*line) for line in lines)
    classes = " ".join(filter(None, ["sb-table", kind, "tex2jax_ignore"]))
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return Markup(
        f'<div class="{classes}"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def folded(table: Markup, rows: str) -> Markup:
    """A table that a reader opens: long ones of measurements stand behind a line that says what is in them.

    >>> folded(Markup("<table></table>"), "12 runs")
    '<details class="sb-more"><summary>Show the 12 runs</summary><table></table></details>'
    """
    return Markup(f'<details class="sb-more"><summary>Show the {html.escape(rows)}</summary>{table}</details>')
