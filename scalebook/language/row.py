"""Rows: quantities with values, and where each value came from.

A row of a table, the result of a sheet and a reader's keywords are all rows, so each can be passed to the next formula.
"""

import html
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from scalebook import _shown_by

from .notation import NOTATION, UnknownKey, expression, in_letters, nearest, no_attribute, quoted, word
from .origins import not_given
from .sources import cite_html
from .tabular import styled
from .units import is_masked, numbers, parse, show

if TYPE_CHECKING:
    from .interval import Interval

__all__ = [
    "ASSUMED", "Call", "Cell", "Computed", "Row", "Why", "as_rows", "fitting", "gather", "one_number", "quantity",
    "refuse_parts", "strays", "with_unit",
]  # fmt: skip

Value = float | np.ndarray | sympy.Expr
ASSUMED = "assumed"  # source of a cell that no data sheet prints


@dataclass(frozen=True, eq=False)
class Cell:
    """A value and its origin: a table's source, or a formula with its cells. Eight in ten lie from `low` to `high`."""

    value: Value
    origin: str = "given"
    source: str = ""
    note: str = ""
    formula: Any = None
    inputs: Mapping[str, "Cell"] = field(default_factory=dict)
    low: Value | None = None
    high: Value | None = None

    @cached_property
    def letters(self) -> frozenset[str]:
        """The names of all quantities behind the value."""
        return frozenset(self.inputs).union(*(c.letters for c in self.inputs.values()))

    def __getstate__(self):  # equal cells pickle alike, whether `letters` was asked or not
        return {n: x for n, x in self.__dict__.items() if n != "letters"}

    @property
    def is_assumed(self) -> bool:
        """True if the value is only typical of comparable rows. A value given in a call replaces it."""
        return self.source == ASSUMED


def _what(name: str) -> str:
    letter = NOTATION[name]
    return f"it is {letter.meaning.partition(':')[0]}, {'in ' + letter.unit if letter.unit else 'a count'}"


def quantity(name: str, value) -> Value:
    """Convert a quantity's value, such as "3.35 TB/s" for `hbm_bandwidth`, to a number in base units.

    Accepts a number, an array, a SymPy expression, or a string with the quantity's unit.  Raises TypeError or
    ValueError for anything else: a wrong unit, NaN, a size beyond 1e-60 to 1e60, a masked array, a senseless sign.

    >>> quantity("hbm_bandwidth", "3.35 TB/s")
    3350000000000.0
    >>> quantity("microbatches", 0)
    Traceback (most recent call last):
        ...
    ValueError: microbatches must be positive, not 0: it is micro-batches per step, a count
    """
    name = word(name)
    if type(value) is int and 0 <= value < 1 << 53:
        value = float(value)
    elif isinstance(value, str):
        try:
            value = parse(value, NOTATION[name].unit)
        except ValueError as error:
            raise ValueError(f"{name}: {error}; {_what(name)}") from None
    if type(value) is float and _is_usual(name, value) and (value == 0 or _LEAST <= value <= _MOST):
        return value
    if isinstance(value, sympy.Expr) and not value.is_number:
        try:
            return in_letters(expression(value))
        except TypeError as error:
            raise TypeError(f"{name}: {error}; {_what(name)}") from None
    if is_masked(value) or (isinstance(value, list | tuple) and any(map(is_masked, value))):
        raise TypeError(f"{name} has masked values, which are no numbers: give those that there are; {_what(name)}")
    try:
        array = numbers(value)
    except OverflowError:
        raise ValueError(f"{name} must be a finite number, not {quoted(value)}: {_what(name)}") from None
    except TypeError:
        raise TypeError(f"{name} must be a number, not {quoted(value)}: {_what(name)}") from None
    if not array.size:
        raise ValueError(f"{name} has no values: give at least one; {_what(name)}")
    if array.ndim > 32:  # NumPy's limit
        raise ValueError(f"{name} has {array.ndim} dimensions, and arrays of up to 32 can be joined: {_what(name)}")
    found, size = fitting(name, array), np.abs(array)
    if (far := (size > _MOST) | ((size > 0) & (size < _LEAST))).any():
        wanted = f"between {_LEAST:g} and {_MOST:g} in size"
        raise ValueError(f"{name} must be {wanted}, not {array[far].flat[0]:.12g}: {_what(name)}")
    return found


def one_number(name: str, value) -> float:
    """Return a quantity's value, such as 8 or "70 GB", as a float in base units.  Raises TypeError for several."""
    found = quantity(name, value)
    if not isinstance(found, float):
        raise TypeError(f"{name} is one number here, not {quoted(value)}")
    return found


def strays(name: str, array: np.ndarray) -> np.ndarray:
    """Return where a quantity's values are not finite or have the wrong sign, as booleans."""
    sign = NOTATION[name].sign
    bad = ~np.isfinite(array)
    if sign != "real":
        bad |= array <= 0 if sign == "positive" else array < 0
    if sign == "share":
        bad |= array > 1
    return bad


_LEAST, _MOST = 1e-60, 1e60  # of a given value, so that products of several are numbers too
EDGE = 1e-9  # a share so little beyond 0 or 1 is rounded


def _is_usual(name, value: float) -> bool:
    if value == 0:
        return NOTATION[name].sign != "positive"
    return 0 < value < math.inf and (value <= 1 or NOTATION[name].sign != "share")


def fitting(name: str, array: np.ndarray | float, where: Callable[[], str] = str) -> np.ndarray | float:
    """Return a quantity's values, with shares that rounding pushed beyond 0 or 1 clamped.

    Raises ValueError, with a message that ends in `where()`, unless all values are finite and have the right sign.
    """
    if type(array) is float and _is_usual(name, array):
        return array
    array, sign = np.asarray(array), NOTATION[name].sign
    if sign == "share":
        array = np.where((array < 0) & (array >= -EDGE), 0.0, np.where((array > 1) & (array <= 1 + EDGE), 1.0, array))
    bad = strays(name, array)
    if bad.any():
        first = array[bad].flat[0] if array.ndim else float(array)
        wanted = {"nonnegative": "zero or more", "real": "finite", "share": "between 0 and 1"}.get(sign, sign)
        wanted = wanted if np.isfinite(first) else "a finite number"
        raise ValueError(f"{name} must be {wanted}, not {first:.12g}{where()}: {_what(name)}")
    return array if array.ndim else float(array)


def refuse_parts(name: str, value: Value) -> None:
    """Raise ValueError for a fraction of something that is counted in a model or machine, such as 1.5 layers.

    Formulas may get averages and ratios, so this is checked only where a table, a model or a machine is read.
    """
    if type(value) is float and value % 1 == 0:
        return
    if NOTATION[name].whole and not isinstance(value, sympy.Basic) and (parts := np.asarray(value) % 1 != 0).any():
        raise ValueError(f"{name} must be a whole number, not {np.asarray(value)[parts].flat[0]:.12g}: {_what(name)}")


def gather(knowns: tuple, letters: dict) -> dict[str, Cell]:
    """Join rows and keywords into cells by name.  Raises ValueError for rows that contradict each other.

    Keywords win over rows.  Values that a row computed from something that a keyword changes are dropped.
    """
    cells = joined(knowns, letters)
    for name, value in letters.items():
        cells[name] = Cell(quantity(name, value))
    return cells


def joined(knowns: tuple, letters: Collection[str]) -> dict[str, Cell]:
    """Join rows into cells by name, as `gather` does, for keywords of these names."""
    cells = {}
    for row in knowns:
        if not isinstance(row, Row) and hasattr(row, "columns"):
            raise TypeError(f"{row.name} is a whole table: give one of its rows, or its `.columns` for all at once")
        if not isinstance(row, Mapping):
            hint = "give numbers by keyword" if isinstance(row, (int, float)) else "such as accelerators.h100"
            said = "expected rows of tables, results or formulas before the keywords"
            raise TypeError(f"{said}, {hint}, not {quoted(row)}")
        new = row.cells if isinstance(row, Row) else {NOTATION[n].name: Cell(quantity(n, v)) for n, v in row.items()}
        if cells.keys().isdisjoint(new):  # as rows of tables are
            cells |= new
            continue
        for name, cell in new.items():
            old = cells.setdefault(name, cell)
            if old is not cell and (old.is_assumed or cell.is_assumed):
                cells[name] = cell if old.is_assumed else old
            elif old is not cell and name not in letters and not np.array_equal(old.value, cell.value):
                unit = NOTATION[name].unit
                said = " and ".join(f"{with_unit(x.value, unit)} by {x.origin}" for x in (old, cell))
                raise ValueError(f"{name} is given twice, as {said}: say which by {name}=...")
    # Drop results of an earlier call that depend on a letter given anew.
    for name in [n for n, c in cells.items() if c.inputs and n not in letters and not c.letters.isdisjoint(letters)]:
        del cells[name]
    return cells


def as_rows(knowns: tuple) -> tuple:
    """Return what a call is given by position, with mappings as rows, whose values are checked."""
    plain = [isinstance(x, Mapping) and not isinstance(x, Row) and not hasattr(x, "columns") for x in knowns]
    return tuple(Row("given", gather((x,), {})) if y else x for x, y in zip(knowns, plain, strict=True))


def with_unit(value: Value, unit: str) -> str:
    """Format a value with its unit, and an array by its smallest and largest value.

    >>> with_unit(np.array([1.0, 2e9]), "B")
    '1 B … 2 GB (2 values)'
    """
    if isinstance(value, sympy.Basic):
        return str(value)
    if np.ndim(value):
        if not np.size(value):
            return "no values"
        return f"{show(np.min(value), unit)} … {show(np.max(value), unit)} ({np.size(value)} values)"
    return show(value, unit)


class Call(NamedTuple):
    """The call that made a row: its function (`thing`), positional rows (`knowns`) and keywords (`letters`)."""

    thing: Callable[..., "Row"]
    knowns: tuple
    letters: Mapping[str, Any]

    def again(self, *rows: "Row", **changed) -> "Row":
        """Repeat the call with other rows or keywords, and return its result.

        A row replaces the first row of its kind, such as another device.  A keyword given as None is left out.

        >>> from scalebook import models, accelerators, training_step
        >>> run = training_step(models.llama3_8b, accelerators.h100, dp=8, global_batch=128, seq=8192)
        >>> run.call.again(accelerators.h200, seq=4096).call.letters
        {'dp': 8, 'global_batch': 128, 'seq': 4096}
        """
        knowns = list(self.knowns)
        for row in rows:
            place = next((i for i, x in enumerate(knowns) if type(x) is type(row)), len(knowns))
            knowns[place : place + 1] = [row]
        letters = {n: x for n, x in {**self.letters, **changed}.items() if x is not None or n not in changed}
        return self.thing(*knowns, **letters)


class Row(Mapping):
    """Quantities with values: `row.hbm_bandwidth`, `row["hbm_bandwidth"]`, and `row.why("hbm_bandwidth")`.

    `missing` maps quantities that a result lacks to the reason.
    """

    kin: tuple[str, ...] = ()  # keys of a table's row: its own, then the key of the row that it is like
    between: Any = None  # two results, if no framework or engine is named
    made_of: Mapping[str, tuple["Row", str]] = MappingProxyType({})  # given letters: the result, and its letter there
    at_ends: Callable = tuple  # returns two results, at both ends of a step's time
    call: Call | None = None  # of what has an answer
    asked: Call | None = None  # of a function of a service
    within: tuple = ()  # limits of its search

    def __init__(self, name: str, cells: dict[str, Cell], words: dict | None = None, missing: dict | None = None):
        self.name, self.cells, self.words, self.missing = name, cells, words or {}, missing or {}

    def _value(self, name):
        return self.cells[name].value

    def __getitem__(self, name):
        if name in self:
            return self._value(name)
        raise UnknownKey(self._absent(name))

    def __contains__(self, name):
        return isinstance(name, str) and name in self.cells

    def __getattr__(self, name):
        if name.startswith("_") or "missing" not in self.__dict__:
            raise AttributeError(name)
        if name in self:
            return self._value(name)
        if name in self.words:
            return self.words[name]
        raise no_attribute(self._absent(name))

    def __dir__(self):
        return [*super().__dir__(), *self.cells, *self.words]

    def states(self, name: str) -> bool:
        """Return True if the row has this quantity and its value is not only assumed."""
        return name in self and not self.cells[name].is_assumed

    def __iter__(self):
        return iter(self.cells)

    def __len__(self):
        return len(self.cells)

    def _absent(self, name):
        if not isinstance(name, str):
            return f"{self.name} has letters, and none is called {quoted(name)}"
        if name in self.missing:
            return f"{name} of {self.name} {self.missing[name]}"
        if name in NOTATION:
            said = f"({NOTATION[name].meaning}): it is not known there; {nearest(name, self)}"
            return f"{self.name} has no {name} {said}"
        known = [*self.cells, *self.missing, *self.words]
        return f"{self.name} has nothing called {quoted(name)}; {nearest(name, known)}"

    def why(self, name: str) -> "Why":
        """Show where a number comes from: its formula with the numbers, and the same for each input."""
        self[name]
        return Why(name, self.cells[name], self.sources)

    def interval(self, letter: str | sympy.Symbol, level: float = 0.8) -> "Interval":
        """Return the prediction interval of a quantity; at the default `level`, it holds eight in ten cases.

        Values given in the call are exact.  `scalebook.language.interval` describes the method.
        """
        from .interval import interval

        return interval(self, letter, level)

    @property
    def sources(self) -> dict[str, str]:
        """The source of each quantity: its table cell's source, or else its formula's."""
        computed = {n: ", ".join(c.formula.sources) for n, c in self.cells.items() if c.formula}
        return {n: c.source or computed.get(n) or c.origin for n, c in self.cells.items()} | not_given(self)

    @property
    def listed(self) -> dict[str, Cell]:
        """The cells, without ends such as `tpot_low`, which `interval` widens."""
        ends = {n + x for n in self.cells for x in ("_low", "_high")}
        return {n: x for n, x in self.cells.items() if n not in ends}

    @property
    def listing(self) -> str:
        """Every quantity and its value, a line each. What does not fit is said first."""
        first = [self.answer.misfit] if self.answer and self.answer.misfit else []
        lines = [f"{n:<22} {with_unit(c.value, NOTATION[n].unit)}" for n, c in self.listed.items()]
        return "\n".join([*first, self.name, *(f"  {line}" for line in lines)])

    @cached_property
    def answer(self):
        """The summary of a call (`scalebook.answers.Answer`); false for arrays, None for other rows."""
        return _shown_by("answer_of")(self) if self.call else None

    def to_dict(self) -> dict[str, Any]:
        """Return the row as data for JSON: values, units, ranges and sources."""
        return _shown_by("row_as_dict")(self)

    def __repr__(self):
        if self.call and not self.answer:
            return _shown_by("table_of")(self)
        return repr(self.answer) if self.call else self.listing

    def _repr_html_(self):
        return self.answer._repr_html_() if self.answer else _shown_by("row_page")(self)


class Computed(Row):
    """The result of a sheet, `given` cells first.  Values are stored at once, and cells are built when asked for."""

    def __init__(self, name: str, given: dict[str, Cell], values: dict[str, Value], formulas: Mapping, missing: dict):
        self._given, self._values, self._formulas = given, values, formulas
        self.name, self.words, self.missing = name, {}, missing

    @cached_property
    def cells(self) -> dict[str, Cell]:
        cells = dict(self._given)
        for name in islice(self._values, len(cells), None):
            f = self._formulas[name]
            cells[name] = Cell(self._values[name], f.name, formula=f, inputs={i: cells[i] for i in f.inputs})
        return cells

    def _value(self, name):
        return self._values[name]

    def __contains__(self, name):
        return isinstance(name, str) and name in self._values

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)


class Why:
    """Where one value comes from, as a tree down to table cells: indented as text, foldable in a notebook."""

    def __init__(self, name: str, cell: Cell, said: Mapping[str, str]):
        self.name, self.cell, self._said = name, cell, said  # `said`: sources by letter

    @property
    def inputs(self) -> list["Why"]:
        return [Why(name, cell, self._said) for name, cell in self.cell.inputs.items()]

    @property
    def equation(self) -> str:
        """The value as text, after the formula and the formula with numbers if it was computed."""
        cell = self.cell
        value = with_unit(cell.value, NOTATION[self.name].unit)
        if cell.formula is None:
            return f"{self.name} = {value}"
        numbers = {name: with_unit(x.value, NOTATION[name].unit) for name, x in cell.inputs.items()}
        return f"{self.name} = {cell.formula.text()} = {cell.formula.text(numbers)} = {value}"

    @property
    def sources(self) -> tuple[str, ...]:
        cell = self.cell
        return tuple(cell.formula.sources) if cell.formula else tuple(filter(None, [cell.source]))

    def _origin(self, cited, plain=str) -> str:
        cell = self.cell
        if cell.formula:
            return ", ".join(map(cited, self.sources))
        origin = self._said.get(self.name, "given") if cell.origin == "given" else cell.origin
        return "; ".join(filter(None, [": ".join([plain(origin), *map(cited, self.sources)]), plain(cell.note)]))

    def __repr__(self):
        return "\n".join(self._lines(set()))

    def _lines(self, seen):
        if self.cell.inputs and self.name in seen:
            return [f"{self.name} = {with_unit(self.cell.value, NOTATION[self.name].unit)}  [as above]"]
        seen.add(self.name)
        below = ("    " + line for x in self.inputs for line in x._lines(seen))
        return [f"{self.equation}  [{self._origin(str)}]", *below]

    def _repr_html_(self):
        return styled(self.page(set()))

    def page(self, seen: set[str]) -> str:
        """Return the tree as HTML.  Quantities in `seen` are not unfolded again."""
        equation, sources = html.escape(self.equation), f"<small>[{self._origin(cite_html, html.escape)}]</small>"
        if not self.cell.inputs or self.name in seen:
            return f'<span class="sb-why tex2jax_ignore">{equation} {sources}</span>'
        seen.add(self.name)
        inside = "".join(f"<li>{x.page(seen)}</li>" for x in self.inputs)
        # Links go inside, because a link in the summary line cannot be followed from the keyboard.
        folded = f"<summary>{equation}</summary>{sources}<ul>{inside}</ul>"
        return f'<details class="sb-why tex2jax_ignore">{folded}</details>'
