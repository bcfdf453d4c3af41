"""A number that an article states, beside ours; and the verdict that follows from the two, by one plain rule.

A point is a formula of the package with what is known, or a cell of a table. A check compares the point the sentence
speaks of with what is claimed, and where the sentence is right only sometimes, or of something else, a second point:

- within the tolerance: **holds**; if there is a point `unless` and the claim fails at it: **holds with a condition**;
- outside, but within when the dense rate is doubled, as `sparsity` says: **holds only with sparsity**;
- outside, but within at the point `then`, an earlier device or cluster: **outdated**;
- outside, but within at the point `belongs`, something else, or `belongs` names in words who says it of what:
  **misattributed**;
- outside all of these: **wrong**.

What has no check holds or not by its sources, and **cannot be checked** says that there are none.

>>> check = read(dict(formula="scalebook.memory.weight_memory", knowns=dict(params=7e9, weight_bits=4),
...                   claimed="3.5 GB", tolerance=0.01))
>>> check.verdict(), check.said()
('holds', 'claimed 3.5 GB, computed 3.5 GB')
>>> read(dict(value="accelerators.h100.peak_tf32", claimed="989 TFLOP/s", tolerance=0.01, sparsity=2)).verdict()
'holds only with sparsity'
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from scalebook import tables
from scalebook.language import NOTATION, Formula, show
from scalebook.language.notation import nearest, quoted
from scalebook.language.row import quantity

__all__ = ["VERDICTS", "Check", "Point", "read"]

# From the mildest to the gravest: a sentence with several numbers is judged by the gravest of theirs.
VERDICTS = (
    "holds", "holds with a condition", "holds only with sparsity", "outdated", "misattributed", "wrong",
    "cannot be checked",
)  # fmt: skip

_CELL = re.compile(r"(accelerators|links|models|precisions|engines)\.(\w+)(?: at (\w+))?(?:\.(\w+))?")


def _row(text: str):
    """A row of a table by "table.key", or of a device at a precision by "accelerators.h100 at fp8"."""
    found = _CELL.fullmatch(text)
    if not found or found[4]:
        raise ValueError(f"{quoted(text)} is not a row of a table, such as 'models.llama3_70b'")
    row = getattr(tables, found[1])[found[2]]
    return row.at(found[3]) if found[3] else row


def _known(value):
    """A number or text with a unit as it is, and "table.key.letter" as the value of that cell."""
    found = _CELL.fullmatch(value) if isinstance(value, str) else None
    return _row(value.rpartition(".")[0])[found[4]] if found and found[4] else value


def _formula(name: str) -> Formula:
    """A formula by its dotted name."""
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute, None)
    if not isinstance(found, Formula):
        names = [n for n, x in vars(import_module(module)).items() if isinstance(x, Formula)]
        raise ValueError(f"no formula is called {quoted(name)}; {nearest(attribute, names)}")
    return found


@dataclass(frozen=True)
class Point:
    """One number of ours, by formula or from a table, and what is claimed of it: a number, or from one to another."""

    claimed: Any
    tolerance: float
    formula: str = ""
    rows: tuple[str, ...] = ()
    knowns: Mapping[str, Any] = field(default_factory=dict)
    value: str = ""
    solve: str = ""
    assume: tuple[str, ...] = ()  # formulas that take the place of the usual ones

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
        """What is known, cells of tables looked up."""
        return {name: _known(x) for name, x in self.knowns.items()}

    @property
    def computed(self) -> float:
        if self.value:
            if (found := _known(self.value)) == self.value:
                raise ValueError(f"{quoted(self.value)} is not a cell of a table, such as 'models.llama3_70b.layers'")
            return found
        got = self.made(*self._positional, **self.inputs)
        if isinstance(got, Formula):
            raise ValueError(f"{self.formula} still depends on {', '.join(got.inputs)}: give them in knowns")
        return got

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the most that is claimed, in base units; a side left open is infinite."""
        low, high = self.claimed if isinstance(self.claimed, list) else (self.claimed, self.claimed)
        least = quantity(self.letter, low) if low != "" else -math.inf
        most = quantity(self.letter, high) if high != "" else math.inf
        return least, most

    def fits(self, times: float = 1) -> bool:
        """Whether our number, so many times, lies within what is claimed and its tolerance."""
        low, high = self.bounds
        return low * (1 - self.tolerance) <= self.computed * times <= high * (1 + self.tolerance)

    def shown(self) -> str:
        """What is claimed, in words."""
        unit = NOTATION[self.letter].unit
        low, high = ("" if math.isinf(x) else show(x, unit) for x in self.bounds)
        if low == high:
            return low
        return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"

    def worked(self):
        """The formula with its numbers; of a cell of a table, where it comes from."""
        if self.value:
            return _row(self.value.rpartition(".")[0]).why(self.letter)
        return self.made.worked(*self._positional, **self.inputs)


@dataclass(frozen=True)
class Check:
    """What a sentence claims at a point, and the points or words that tell why it does not hold, or not always."""

    main: Point
    unless: Point | None = None
    then: Point | None = None
    belongs: Point | str | None = None
    sparsity: float = 0
    reads: str = ""  # how the sentence was read as a number, where that is not plain

    def verdict(self) -> str:
        """One of six verdicts, from the numbers as they are now."""
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
        """The second point, if there is one, by the word that introduces it."""
        found = {
            "where it fails": self.unless,
            "as it was": self.then,
            "what has it": self.belongs if isinstance(self.belongs, Point) else None,
        }
        return {name: x for name, x in found.items() if x}

    def said(self) -> str:
        """The two numbers, and the number of the second point."""
        unit = NOTATION[self.main.letter].unit
        parts = [f"claimed {self.main.shown()}", f"computed {show(self.main.computed, unit)}"]
        if self.sparsity:
            parts.append(f"with sparsity {show(self.main.computed * self.sparsity, unit)}")
        for name, point in self.others.items():
            also = "" if point.bounds == self.main.bounds else f" for {point.shown()}"
            parts.append(f"{name} {show(point.computed, NOTATION[point.letter].unit)}{also}")
        return ", ".join(parts)


_OF_POINT = {"claimed", "tolerance", "formula", "rows", "knowns", "value", "solve", "assume"}
_OF_CHECK = {"unless", "then", "belongs", "sparsity", "reads"}


def read(stanza: Mapping[str, Any]) -> Check:
    """A check from its stanza; a second point repeats only what differs from the first.

    >>> read(dict(claimed=1, tolerence=0))
    Traceback (most recent call last):
        ...
    ValueError: a check has no 'tolerence'; did you mean 'tolerance'?
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
    if {"formula", "value"} & given.keys():  # another formula: nothing of the first point's is known of it
        return _point({"claimed": main.claimed, "tolerance": main.tolerance, **given})
    return replace(main, **given | {"knowns": {**main.knowns, **given.get("knowns", {})}})
