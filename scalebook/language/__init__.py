"""The language of the book: letters, formulas, sheets, rows and units."""

# First, because these modules enter the letters.
from . import (  # noqa: F401
    letters,
    letters_frameworks,
    letters_hardware,
    letters_runs,
    letters_serving,
    letters_steps,
    letters_training,
)
from .domain import OutsideDomain
from .formula import FORMULAS, Formula, formula
from .notation import NOTATION, letter, symbol, tex
from .row import Cell, Row
from .sheet import Sheet
from .sources import SOURCES, cite
from .units import parse, show

LETTERS = frozenset(NOTATION)  # the book's own; NOTATION holds those that a chapter or a reader enters, too

__all__ = [
    "FORMULAS", "LETTERS", "NOTATION", "SOURCES", "Cell", "Formula", "OutsideDomain", "Row", "Sheet", "cite", "formula",
    "letter", "parse", "show", "symbol", "tex",
]  # fmt: skip
