"""Show a result in a notebook: first the answers, then their parts, then a folded list of everything else."""

from collections.abc import Iterable

import numpy as np

from scalebook.language.interval import range_of
from scalebook.language.notation import NOTATION
from scalebook.language.parts import breakdowns, part_lines
from scalebook.language.row import Row, Why, with_unit
from scalebook.language.tabular import Markup, folded, page_table, styled, table_cell

__all__ = ["SHORT", "answers", "row_page"]

SHORT = 24  # rows with more letters are shown by their answers
_MOST = 12  # at most this many answers are unfolded


def answers(row: Row) -> list[str]:
    """Return the names of the quantities that a reader most likely wants from a result.

    Times and memory with parts come first, then quantities with a range, then quantities that nothing else uses.
    """
    used = {n for cell in row.cells.values() for n in cell.inputs}
    ends = [n for n, cell in row.cells.items() if cell.formula and n not in used]
    between = [n.removesuffix("_low") for n in ends if n.endswith("_low") and n.removesuffix("_low") in row]
    lasting = [n for n in ends if not n.endswith(("_low", "_high", "_needed"))]
    return list(dict.fromkeys([*reversed(breakdowns(row)), *reversed(between), *reversed(lasting)]))


def _named(name: str) -> Markup:
    return table_cell(Markup(f"<code>{name}</code>"), "th", scope="row")


def _value(row: Row, name: str) -> str:
    return with_unit(row.cells[name].value, NOTATION[name].unit)


def _range(row: Row, name: str) -> str:
    if f"{name}_low" not in row and (np.ndim(row[name]) or not row.cells[name].formula):
        return ""
    low, high = range_of(row, name)
    unit = NOTATION[name].unit
    return f"{with_unit(low, unit)} to {with_unit(high, unit)}" if np.any(low != high) else ""


def _answers(row: Row) -> Markup:
    shown = answers(row)[:_MOST]
    ranged = {n for n in shown if f"{n}_low" in row} | set(breakdowns(row))
    lines = ([_named(n), _value(row, n), _range(row, n) if n in ranged else "", NOTATION[n].meaning] for n in shown)
    return page_table(["letter", "value", "8 in 10 between", "meaning"], lines, row.name)


def _parts(row: Row, letter: str) -> Markup:
    def bar(share: str) -> Markup:
        wide = float(share.split()[0]) / 10
        return table_cell(
            Markup(f'<span class="sb-share" style="width:{wide:.2f}em"></span>{share.replace(" ", chr(160))}'),
            class_="sb-said",
        )

    how = "the sum of" if row.cells[letter].formula.rhs.is_Add else "the largest of"
    lines = ([_named(n), value, bar(share), NOTATION[n].meaning] for n, value, share in part_lines(row, letter))
    return page_table(["letter", "value", "share", "meaning"], lines, f"{letter} is {how}")


def _all(row: Row, names: Iterable[str]) -> Markup:
    sources = row.sources

    def line(name):
        seen = set(row.cells) if len(row.cells) > SHORT else row.cells.keys() - {name}
        origin = Markup(Why(name, row.cells[name], sources).page(seen))
        return [_named(name), *map(table_cell, (_value(row, name), NOTATION[name].meaning, origin))]

    lines = map(line, names)
    return page_table(["letter", "value", "meaning", "where it comes from"], lines, row.name, "sb-row")


def row_page(row: Row) -> Markup:
    """Return a row as an HTML table.  A long row shows its answers, with all quantities folded away."""
    made = [n for n, cell in row.listed.items() if cell.formula]
    if len(row.cells) <= SHORT or not made:
        return styled(_all(row, row.cells))
    given, first = [n for n in row.listed if n not in set(made)], answers(row)[0]
    return styled(
        _answers(row),
        *(_parts(row, n) for n in reversed(breakdowns(row)) if not np.ndim(row[n])),
        folded(_all(row, given), f"{len(given)} letters that are known"),
        folded(_all(row, made), f"{len(made)} letters that follow, each with its formula"),
        f'<p><small>In Python: <code>row.{first}</code>, <code>row.why("{first}")</code>.</small></p>',
    )
