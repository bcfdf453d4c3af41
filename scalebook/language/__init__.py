"""The core of the package: quantities with names and units, formulas, sheets of formulas, and rows of values."""

from .defaults import constant, same
from .defaults import exports as exports  # this and the next for modules of this package
from .defaults import formulas_of as formulas_of
from .domain import OutsideDomain
from .formula import FORMULAS, Formula, formula
from .notation import NOTATION, letter, symbol, tex
from .row import Cell, Row
from .sheet import Sheet
from .sources import SOURCES, cite
from .units import parse, show

LETTERS = frozenset(NOTATION)  # the book's own; NOTATION holds those that a chapter or a reader enters, too

__all__ = [
    "FORMULAS", "LETTERS", "NOTATION", "SOURCES", "Cell", "Formula", "OutsideDomain", "Row", "Sheet", "cite",
    "constant", "formula", "letter", "parse", "same", "show", "symbol", "tex",
]  # fmt: skip
