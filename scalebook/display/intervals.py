"""Uncertainty data for pages, which draw the same intervals as `scalebook.language.interval`."""

from collections.abc import Iterable, Mapping

from scalebook.language.interval import SPREADS

__all__ = ["ends_of", "spreads_of"]


def ends_of(row, letters: Iterable[str]) -> dict[str, list]:
    """Return the uncertain values of a row by name: low end, high end, an identifier of the table cell, its origin."""
    first: dict[int, str] = {}
    for x in sorted(row.cells, key=lambda x: (x.endswith("_efficiency"), x)):  # at every precision by the same name
        first.setdefault(id(row.cells[x]), x)
    cells = {x: row.cells[x] for x in letters if x in row.cells and row.cells[x].low is not None}
    return {x: [float(cell.low), float(cell.high), first[id(cell)], cell.origin] for x, cell in cells.items()}


def spreads_of(formulas: Mapping[str, str]) -> dict[str, list]:
    """Return the error interval of each formula's result: [low / value, high / value, the formula's name].

    `formulas` maps quantities to formulas' names. If an interval differs for models with experts, its two ends follow.
    """
    apart = SPREADS.with_experts
    return {x: [*SPREADS[x], name, *apart.get(x, ())] for x, name in formulas.items() if x in SPREADS}
