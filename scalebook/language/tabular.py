"""Tables: aligned columns for text, and HTML tables for pages."""

import html
import re
from collections.abc import Iterable, Sequence
from functools import cache

from .stanzas import file_of

__all__ = ["Markup", "aligned", "callable_said", "folded", "house", "page_table", "plain_page", "styled", "table_cell"]


class Markup(str):
    """HTML text that is inserted into a page as it is.  Any other text is escaped."""


def aligned(lines: Iterable[Sequence[str]], right: bool = False, gap: str = " ") -> str:
    """Align columns to their widest text.  `right` right-aligns all columns except the first.

    >>> print(aligned([["", "ridge"], ["H100", "295 FLOP/B"]], right=True))
              ridge
    H100 295 FLOP/B
    """
    lines = list(lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.ljust, *[str.rjust if right else str.ljust] * len(widths)]
    padded = (gap.join(side(x, w) for side, x, w in zip(sides, line, widths, strict=False)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def callable_said(name: str, takes: str, doc: str) -> str:
    """Describe something callable in two lines: how to call it, and the first paragraph of its docstring `doc`."""
    return f"{name}({takes})\n  {' '.join(doc.partition(chr(10) * 2)[0].split())}"


_SAID = ' class="sb-said"'


def _is_number(text: str) -> bool:
    """Return True if a cell is a number, with or without unit or range, and not a sentence that begins with one."""
    sentence = len(text) > 40 and len(text.split()) >= 8
    return not sentence and (text[:1].isdigit() or text[:1] in "+-−–—≤≥<>~$")


def _says(cells: Sequence[str]) -> bool:
    """Return True if a column holds words, which are left-aligned.  Numbers and short marks are right-aligned."""
    if any(isinstance(x, Markup) for x in cells):
        return any(_SAID in x for x in cells)
    return any(len(x) >= 9 and not _is_number(x) for x in cells) and not any(x and _is_number(x) for x in cells)


def _body(text: str, is_said: bool) -> Markup:
    if is_said or (len(text) >= 9 and not _is_number(text)):
        return table_cell(text, class_="sb-said")
    return table_cell(text.replace(" ", "\xa0") if len(text) < 24 else text)


def table_cell(content: str, kind: str = "td", **attributes: str) -> Markup:
    """Make a table cell.  In attribute names, a trailing underscore is dropped and other underscores become hyphens."""
    said = "".join(f' {name.rstrip("_").replace("_", "-")}="{html.escape(x)}"' for name, x in attributes.items())
    return Markup(f"<{kind}{said}>{content if isinstance(content, Markup) else html.escape(content)}</{kind}>")


def page_table(heads: Iterable[str], lines: Iterable[Iterable[str]], caption: str = "", kind: str = "") -> Markup:
    """Make an HTML table in a box that scrolls; `kind` is an extra class.  The first text of each line is its header.

    >>> page_table(["", "ridge"], [["H100", "295"]]).partition("<tbody>")[2]
    '<tr><th scope="row">H100</th><td>295</td></tr></tbody></table></div>'
    """

    heads, lines = list(heads), [list(line) for line in lines]
    said = [False, *(_says(column) for column in list(zip(*lines, strict=True))[1:])] if lines else [False] * len(heads)

    def row(first, *rest):
        made = [first if isinstance(first, Markup) else table_cell(first, "th", scope="row")]
        cells = (x if isinstance(x, Markup) else _body(x, is_said) for x, is_said in zip(rest, said[1:], strict=True))
        return f"<tr>{''.join([*made, *cells])}</tr>"

    def named(head, is_said):
        return head if isinstance(head, Markup) else table_cell(head, "th", **{"class_": "sb-said"} if is_said else {})

    head = "".join(named(*x) for x in zip(heads, said, strict=False))
    body = "".join(row(*line) for line in lines)
    classes = " ".join(filter(None, ["sb-table", kind, "tex2jax_ignore"]))
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    inside = f"{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return Markup(f'<div class="{classes}"><table>{inside}</table></div>')


def folded(table: Markup, rows: str) -> Markup:
    """Return HTML that hides a table behind a line such as "Show the 12 runs"; `rows` is "12 runs"."""
    return Markup(f'<details class="sb-more"><summary>Show the {html.escape(rows)}</summary>{table}</details>')


@cache
def house() -> str:
    """Return the book's CSS style sheet, without comments and line breaks."""
    text = re.sub(r"/\*.*?\*/", "", file_of(__package__, "house.css").read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"\s*([{};:,>])\s+|\s+", lambda x: x[1] or " ", text).strip()


def styled(*parts: str) -> Markup:
    """Join pieces of HTML and add the style sheet, so that they look the same wherever the notebook is opened."""
    return Markup(f'<style class="sb-house">{house()}</style>{"".join(parts)}')


def plain_page(text: str) -> str:
    """Remove the style sheet from HTML, for a page that loads it itself."""
    return re.sub(r'<style class="sb-house">.*?</style>', "", text, flags=re.DOTALL)
