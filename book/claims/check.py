"""Compare a number that an article states with ours, and derive a verdict by one plain rule.

A point is one number of ours: a formula with its inputs, or a cell of a table.  A check compares the sentence's main
point with the claimed number, and may have a second point.  The verdict is the first of these cases that applies:

- within the tolerance: **holds**; but if there is a point `unless` and the claim fails there:
  **holds with a condition**;
- within the tolerance only if the dense rate is doubled, as `sparsity` says: **holds only with sparsity**;
- within the tolerance only at the point `then`, an earlier device or cluster: **outdated**;
- within the tolerance only at the point `belongs`, which is something else, or `belongs` says in words who stated
  the number, and about what: **misattributed**;
- in no case within the tolerance: **wrong**.

A claim without a check is judged by its sources. **cannot be checked** means that there are no sources.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from scalebook import tables
from scalebook.language import NOTATION, Formula, show
from scalebook.language.notation import nearest, quoted
from scalebook.language.row import quantity

__all__ = ["VERDICTS", "Check", "Point", "read"]

# From the mildest to the gravest.  A sentence with several numbers gets the gravest of their verdicts.
VERDICTS = (
    "holds", "holds with a condition", "holds only with sparsity", "outdated", "misattributed", "wrong",
    "cannot be checked",
)  # fmt: skip

_CELL = re.compile(r"(accelerators|links|models|precisions|engines)\.(\w+)(?: at (\w+))?(?:\.(\w+))?")


def _row(text: str):
    """Return the row of a text such as "models.llama3_70b" or "accelerators.h100 at fp8"."""
    found = _CELL.fullmatch(text)
    if not found or found[4]:
        raise ValueError(f"{quoted(text)} is not a row of a table, such as 'models.llama3_70b'")
    row = getattr(tables, found[1])[found[2]]
    return row.at(found[3]) if found[3] else row


def _cell_value(value):
    """Return the cell of a text "table.key.letter"; anything else is returned unchanged."""
    found = _CELL.fullmatch(value) if isinstance(value, str) else None
    return _row(value.rpartition(".")[0])[found[4]] if found and found[4] else value


def _formula(name: str) -> Formula:
    module, _, attribute = name.rpartition(".")
    known = {n: x for n, x in vars(import_module(module)).items() if isinstance(x, Formula)}
    if attribute not in known:
        raise ValueError(f"no formula is called {quoted(name)}; {nearest(attribute, known)}")
    return known[attribute]


@dataclass(frozen=True)
class Point:
    """One number of ours, from a formula or a table, and the claimed number or range."""

    claimed: Any
    tolerance: float
    formula: str = ""
    rows: tuple[str, ...] = ()
    knowns: Mapping[str, Any] = field(default_factory=dict)
    value: str = ""
    solve: str = ""
    assume: tuple[str, ...] = ()  # formulas that replace the default ones

    @cached_property
    def made(self) -> Formula:
        stated = _formula(self.formula)
        return stated.solve(self.solve) if self.solve else stated

    @property
    def letter(self) -> str:
        return self.value.rpartition(".")[2] if self.value else self.made.letter

    @property
    def _positional(self):
        return [*map(_row, self.rows), *map(_formula, self.assume)]

    @property
    def inputs(self) -> dict[str, Any]:
        """The known inputs, with cells of tables looked up."""
        return {name: _cell_value(x) for name, x in self.knowns.items()}

    @property
    def computed(self) -> float:
        if self.value:
            if (found := _cell_value(self.value)) == self.value:
                raise ValueError(f"{quoted(self.value)} is not a cell of a table, such as 'models.llama3_70b.layers'")
            return found
        got = self.made(*self._positional, **self.inputs)
        if isinstance(got, Formula):
            raise ValueError(f"{self.formula} still depends on {', '.join(got.inputs)}: give them in knowns")
        return got

    @property
    def bounds(self) -> tuple[float, float]:
        """The claimed range in base units.  A side that the claim leaves open is infinite."""
        low, high = self.claimed if isinstance(self.claimed, list) else (self.claimed, self.claimed)
        return tuple(quantity(self.letter, x) if x != "" else end for x, end in ((low, -math.inf), (high, math.inf)))

    def fits(self, times: float = 1) -> bool:
        """Return True if `times` our number lies within the claimed range and its tolerance."""
        low, high = self.bounds
        return low * (1 - self.tolerance) <= self.computed * times <= high * (1 + self.tolerance)

    def shown(self) -> str:
        """Return the claimed number or range in words."""
        unit = NOTATION[self.letter].unit
        low, high = ("" if math.isinf(x) else show(x, unit) for x in self.bounds)
        if low == high:
            return low
        return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"

    def worked(self):
        """Return the formula with its numbers, or where a cell of a table comes from."""
        if self.value:
            return _row(self.value.rpartition(".")[0]).why(self.letter)
        return self.made.worked(*self._positional, **self.inputs)


@dataclass(frozen=True)
class Check:
    """The claim of a sentence at a point, and the points or words that explain why it does not always hold."""

    main: Point
    unless: Point | None = None
    then: Point | None = None
    belongs: Point | str | None = None
    sparsity: float = 0
    reads: str = ""  # how the sentence was read as a number, if that is not obvious

    def verdict(self) -> str:
        """Return the verdict that follows from the current numbers."""
        if self.main.fits():
            return "holds with a condition" if self.unless and not self.unless.fits() else "holds"
        if self.sparsity and self.main.fits(self.sparsity):
            return "holds only with sparsity"
        if self.then and self.then.fits():
            return "outdated"
        if self.belongs and (isinstance(self.belongs, str) or self.belongs.fits()):
            return "misattributed"
        return "wrong"

    @property
    def others(self) -> dict[str, Point]:
        """The second point, if there is one, by the words that introduce it."""
        found = {
            "where it fails": self.unless,
            "as it was": self.then,
            "what has it": self.belongs if isinstance(self.belongs, Point) else None,
        }
        return {name: x for name, x in found.items() if x}

    def comparison(self) -> str:
        """Return the claimed and the computed number, and the number of the second point, as text."""
        unit = NOTATION[self.main.letter].unit
        parts = [f"claimed {self.main.shown()}", f"computed {show(self.main.computed, unit)}"]
        if self.sparsity:
            parts.append(f"with sparsity {show(self.main.computed * self.sparsity, unit)}")
        for name, point in self.others.items():
            also = "" if point.bounds == self.main.bounds else f" for {point.shown()}"
            parts.append(f"{name} {show(point.computed, NOTATION[point.letter].unit)}{also}")
        return ", ".join(parts)


_OF_POINT = {x.name for x in fields(Point)}
_OF_CHECK = {"unless", "then", "belongs", "sparsity", "reads"}


def read(stanza: Mapping[str, Any]) -> Check:
    """Read a check from its stanza.  A second point repeats only what differs from the first.

    >>> check = read(dict(formula="scalebook.memory.weight_memory", knowns=dict(params=7e9, weight_bits=4),
    ...                   claimed="3.5 GB", tolerance=0.01))
    >>> check.verdict(), check.comparison()
    ('holds', 'claimed 3.5 GB, computed 3.5 GB')
    """
    if stray := sorted(stanza.keys() - _OF_POINT - _OF_CHECK):
        raise ValueError(f"a check has no {quoted(stray[0])}; {nearest(stray[0], _OF_POINT | _OF_CHECK)}")
    main = _point({name: x for name, x in stanza.items() if name in _OF_POINT})
    points = {x: _another(main, stanza[x]) for x in ("unless", "then", "belongs") if x in stanza}
    return Check(main, **points, sparsity=stanza.get("sparsity", 0), reads=stanza.get("reads", ""))


def _point(stanza):
    if lacking := sorted({"claimed", "tolerance"} - stanza.keys()):
        raise ValueError(f"a check says what is claimed and its tolerance, and this lacks {', '.join(lacking)}")
    if ("formula" in stanza) == ("value" in stanza):
        raise ValueError("a check has either a formula, a dotted name, or a value, 'table.key.letter'")
    return Point(**_tuples(stanza))


def _tuples(stanza):
    return {name: tuple(x) if name in ("rows", "assume") else x for name, x in stanza.items()}


def _another(main, stanza):
    if isinstance(stanza, str):
        return stanza
    if stray := sorted(stanza.keys() - _OF_POINT):
        raise ValueError(f"a second point has no {quoted(stray[0])}; {nearest(stray[0], _OF_POINT)}")
    given = _tuples(stanza)
    if {"formula", "value"} & given.keys():  # another formula: it shares no inputs with the first point
        return _point({"claimed": main.claimed, "tolerance": main.tolerance, **given})
    return replace(main, **given | {"knowns": {**main.knowns, **given.get("knowns", {})}})
