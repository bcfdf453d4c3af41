"""A sheet is a set of formulas, as in a spreadsheet: give what you know, get everything that follows.

>>> from scalebook.language import Formula, Sheet, symbol
>>> arithmetic = Formula("arithmetic", "compute_time", symbol("flops") / symbol("peak_flops"), ["williams2009"])
>>> traffic = Formula("traffic", "memory_time", symbol("traffic") / symbol("hbm_bandwidth"))
>>> row = Sheet("kernel", arithmetic, traffic)(flops=1e12, peak_flops=1e15, traffic="1 GB", hbm_bandwidth="2 TB/s")
>>> row.memory_time
0.0005
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from graphlib import CycleError, TopologicalSorter

import numpy as np
import sympy

from . import code
from .arguments import checked
from .domain import Condition, OutsideDomain
from .formula import Formula
from .guide import Guided
from .notation import NOTATION, either, found_by, listed, nearest, quoted, refuse_stray, word
from .row import Cell, Computed, Row, fitting, gather
from .tabular import page_table, styled, table_cell
from .units import show

__all__ = ["Sheet"]


class Sheet(Guided):
    """A set of formulas.  Call it with the quantities that you know to get a Row of all that follow.

    `changes` maps inputs that a reader can change (devices, bits) to values: if a formula's condition fails, the error
    names the nearest of these that would work.  Raises ValueError for two formulas of one quantity and, at first use,
    for a circle.
    """

    def __init__(self, name: str, *formulas: Formula, doc="", changes: Mapping[str, Iterable[float]] | None = None):
        self.name, self.doc, self.changes = name, doc, dict(changes or {})
        by_letter = {}
        for f in formulas:
            if not isinstance(f, Formula):
                raise TypeError(f"{name} takes formulas, not {quoted(f)}")
            if f.method == "numeric":
                raise TypeError(f"{name} takes closed forms, and {f.letter} of {f.name} is found numerically")
            if by_letter.setdefault(f.letter, f) is not f:
                raise ValueError(f"{name} has two formulas for {f.letter}: {by_letter[f.letter].name} and {f.name}")
        self._by_letter, self._plans = by_letter, {}
        self._has_others = any(f.instead for f in by_letter.values())

    @cached_property
    def formulas(self) -> dict[str, Formula]:
        """The formulas by the name of the quantity they compute. Each comes after the formulas that it needs."""
        try:
            return {f.letter: f for f in _in_order(self._by_letter.values())}
        except CycleError as error:
            raise ValueError(f"{self.name} goes in a circle: {' → '.join(error.args[1])}") from None

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the quantities that a call must give, because no formula of the sheet computes them."""
        return tuple(sorted({i for f in self.formulas.values() for i in f.inputs} - self.formulas.keys()))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The names of all quantities that the sheet takes or computes."""
        return frozenset({*self.inputs, *self.formulas})

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names that include all inputs, known before any formula is worked out."""
        return frozenset().union(*(f.parameters for f in self._by_letter.values()))

    def _results(self, answers: Iterable[str]) -> set[str]:
        """Return the letters that only result from the sheet: these answers, and what none of their formulas reads."""
        own = self.only(*(x for x in answers if x in self.formulas)).formulas.values()
        return {*self.formulas} - ({i for f in own for i in f.inputs} - {*answers}) if own else set()

    def _refuse_results(self, thing, letters: Mapping) -> None:
        """Raise TypeError if a call of `thing` gives a letter that only results from the sheet."""
        computed = letters.keys() & self.formulas.keys()
        if computed and (given := computed & self._results(thing.finds)):
            raise TypeError(found_by(thing.name, name := min(given), letters[name]))

    @property
    def takes(self) -> dict[str, None]:
        return dict.fromkeys(self.inputs)

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(self.formulas)

    @cached_property
    def conditions(self) -> list[tuple[Formula, Condition]]:
        """The conditions under which formulas hold, as pairs of formula and condition."""
        return [(f, x) for f in self.formulas.values() for x in f.domain]

    def suited(self, *knowns: Mapping) -> "Sheet":
        """Return the sheet that a call with these rows uses. For some rows, a formula's `instead` replaces it."""
        if not self._has_others:
            return self
        known = {n for row in knowns if isinstance(row, Mapping) for n in row}
        own = tuple(f for x in self._by_letter.values() for suits, new in x.instead if suits(known) for f in new)
        if own not in self._plans:
            formulas = self._by_letter | {f.letter: f for f in own}
            self._plans[own] = Sheet(self.name, *formulas.values(), doc=self.doc, changes=self.changes)
        return self._plans[own] if own else self

    def __call__(self, *knowns, **letters) -> Row:
        """Compute everything that follows from what is known, as a row.

        Positional arguments are rows, results, and formulas, which replace the sheet's own.  A letter that is given a
        value keeps it.  A letter is missing from the row if an input is unknown, or if its formula does not hold or
        gives no finite number of the right sign; `row.missing` says why.
        """
        if (sheet := self.suited(*knowns, letters)) is not self:
            return sheet(*knowns, **letters)
        if swapped := [x for x in knowns if isinstance(x, Formula)]:
            return self.using(*swapped)(*(x for x in knowns if not isinstance(x, Formula)), **letters)
        self._refuse_unused(letters)
        return self._evaluated({n: c for n, c in gather(knowns, letters).items() if n in self.letters})

    def _refuse_unused(self, letters):
        if name := next((x for x in letters if x not in self.letters), None):
            refuse_stray(self.name, name, self.letters)

    def _evaluated(self, cells: dict[str, Cell]) -> Row:
        """Compute everything that follows from cells of the sheet's own letters, whose values were checked."""
        values = {n: c.value for n, c in cells.items()}
        are_floats = {*map(type, values.values())} <= {float}
        if not are_floats and (symbols := [n for n, x in values.items() if isinstance(x, sympy.Basic)]):
            how = f"use {self.name}.formula(letter)"
            raise TypeError(f"a sheet needs numbers, not symbols ({', '.join(symbols)}); {how}")
        inputs, steps, missing, point, vector = self._plan(frozenset(cells))
        known = {n: values[n] for n in inputs}
        if not are_floats and any(map(np.ndim, known.values())):
            results = code.blocks(vector(), known)
        else:
            results = self._at_point(point(), known, [x[0] for x in steps])
        missing, is_whole = dict(missing), True
        for (name, f, inputs, least, most), result in zip(steps, results, strict=True):
            if is_whole and type(result) is float and least <= result <= most:  # true for nearly all values
                values[name] = result
                continue
            if not is_whole and (bad := next((missing[i] for i in inputs if i in missing), None)):
                missing[name] = bad
                continue
            try:
                if f.domain:
                    f._check({i: values[i] for i in inputs})
                values[name] = fitting(name, result)
            except OutsideDomain as error:
                missing[name], is_whole = f"has no value here: {error}{self._would_do(f, cells)}", False
            except ValueError as error:
                missing[name], is_whole = f"has no value here: {error}", False
        return Computed(self.name, cells, values, self.formulas, missing)

    def _would_do(self, f, known):
        """End the sentence about a formula that does not hold: name each letter's nearest value that would work."""
        given = {n: x.value for n, x in known.items()}
        if any(map(np.ndim, given.values())):
            return ""
        asked = {n for x in f.domain for n in x.letters}
        part = self.only(*(asked & self.formulas.keys()))
        tried = {x: np.asarray(list(self.changes[x]), float) for x in self.changes if x in part.inputs and x in given}
        found = []
        for letter, values in tried.items():
            row = given | {letter: values}
            row |= part(row)
            if not asked <= row.keys():  # a letter of the condition has no value itself
                continue
            if len(fine := values[np.all([np.broadcast_to(x.holds(row), values.shape) for x in f.domain], axis=0)]):
                nearest_one = fine[np.argmin(np.abs(np.log(fine / given[letter])))]
                found.append(f"{letter}={show(nearest_one, NOTATION[letter].unit)}")
        if found or not tried:
            return f"; {either(found)} would do" if found else ""
        return f"; no {either(tried)} alone would do"

    def _plan(self, known):
        if (plan := self._plans.get(known)) is None:
            have, outputs, needs = set(known), [], {}
            for name, f in self.formulas.items():
                if name in known:
                    continue
                lacking = [i for i in f.inputs if i not in have]
                if lacking:
                    needs[name] = sorted({x for i in lacking for x in needs.get(i, [i])})
                else:
                    have.add(name)
                    outputs.append(name)
            statements = [(n, self.formulas[n].guarded) for n in outputs]
            inputs = sorted({i for n in outputs for i in self.formulas[n].inputs} & known)
            missing = {name: f"needs {_meant(letters)}" for name, letters in needs.items()}
            # the last two are the range of values that surely have the right sign
            steps = [(n, self.formulas[n], self.formulas[n].inputs, *_usually(self.formulas[n])) for n in outputs]
            point = cache(partial(_point, inputs, [self.formulas[n] for n in outputs]))
            vector = cache(partial(code.vector, inputs, statements, outputs))
            plan = self._plans.setdefault(known, (inputs, steps, missing, point, vector))  # that of the first thread
        return plan

    def _at_point(self, compiled, values, outputs):
        try:
            known = computed_at(compiled, values)
        except (ArithmeticError, TypeError, ValueError):
            known = dict(values)
            for name in outputs:  # evaluate one at a time: some letter has no value, but others may
                f = self.formulas[name]
                try:
                    known[name] = f._value({i: known[i] for i in f.inputs})
                except ValueError:
                    known[name] = float("nan")
        return [known[name] for name in outputs]

    def using(self, *formulas: Formula) -> "Sheet":
        """Return the sheet with some formulas replaced.  Raises ValueError for one of a quantity it does not use."""
        for f in formulas:
            if not isinstance(f, Formula):
                raise TypeError(f"{self.name} takes formulas, not {quoted(f)}")
            if f.letter not in self._by_letter and f.letter not in self.letters:
                said = f"does not use {f.letter}, which {f.name} gives; {nearest(f.letter, self.letters)}"
                raise ValueError(f"{self.name} {said}")
        own = self._by_letter | {f.letter: f for f in formulas}
        return type(self)(self.name, *own.values(), doc=self.doc, changes=self.changes)

    @checked
    def only(self, *letters: str, given: Iterable[str] = ()) -> "Sheet":
        """Return a smaller sheet that computes only these quantities, given the inputs and those in `given`."""
        wanted, todo = {}, [word(x) for x in letters]
        given = frozenset(word(x) for x in listed(given))
        if (key := ("only", *todo, given)) in self._plans:
            return self._plans[key]
        while todo:
            name = todo.pop()
            if name in self.formulas and name not in wanted and name not in given:
                wanted[name] = self.formulas[name]
                todo += wanted[name].inputs
            elif name not in self.formulas and name in letters:
                raise ValueError(f"{self.name} has no formula for {quoted(name)}; {nearest(name, self.formulas)}")
        return self._plans.setdefault(key, Sheet(self.name, *wanted.values(), doc=self.doc, changes=self.changes))

    @checked
    def formula(self, letter: str, *, keep: tuple[str, ...] = ()) -> Formula:
        """Return one formula that computes a quantity from the sheet's inputs and the quantities in `keep`."""
        letter = word(letter)
        for name in (letter, *map(word, listed(keep))):
            if name not in self.formulas:
                kept = " to keep" if name != letter else ""
                raise ValueError(f"{self.name} has no formula for {quoted(name)}{kept}; {nearest(name, self.formulas)}")
        f, others = self.formulas[letter], dict(self.formulas)
        for name in (letter, *keep):
            others.pop(name, None)
        while needed := [others[i] for i in f.inputs if i in others]:
            f = f.compose(*needed)
        return f

    @cached_property
    def js(self) -> str:
        """The sheet as JavaScript: a function from an object of inputs to an object of all results."""
        return code.javascript(self.inputs, [(n, f.guarded) for n, f in self.formulas.items()], list(self.formulas))

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for f in self.formulas.values() for s in f.sources))

    def __getstate__(self):
        return self.__dict__ | {"_plans": {}}  # compiled functions cannot go to another process

    def __repr__(self):
        return "\n".join([f"{self.name}({', '.join(self.inputs)})", *(f"  {f!r}" for f in self.formulas.values())])

    def _repr_html_(self):

        def line(f):
            letter = NOTATION[f.letter]
            equation = table_cell(rf"\({letter.tex} = {f.typeset()}\)", class_="mathjax_process tex2jax_process")
            return [equation, *map(table_cell, (letter.meaning, letter.unit, ", ".join(f.sources)))]

        lines = map(line, self.formulas.values())
        return styled(page_table(["formula", "meaning", "unit", "source"], lines, self.name, "sb-sheet"))


def _in_order(formulas: Iterable[Formula]) -> Iterator[Formula]:
    """Yield formulas in an order in which each follows all that it needs. Raises CycleError if they go in a circle."""
    by_letter = {f.letter: f for f in formulas}
    order = TopologicalSorter({n: f.inputs for n, f in by_letter.items()}).static_order()
    return (by_letter[n] for n in order if n in by_letter)


def _point(inputs: list[str], formulas: list[Formula]) -> tuple[dict, list[str], list[str], Callable]:
    """Return numbers and copies of known letters, and the other formulas compiled, with the letters in and out."""
    filled = {}  # apart, so that calls that differ in these letters alone share their code
    for f in formulas:
        is_number = f.rhs.is_Number and abs(f.rhs) < sys.float_info.max
        if not f.domain and (is_number or (f.rhs.is_Symbol and f.rhs.name in (*inputs, *filled))):
            filled[f.letter] = float(f.rhs) if is_number else filled.get(f.rhs.name, f.rhs.name)
    # in one order, so that calls that compute the same quantities share their code
    others = [*_in_order(sorted((f for f in formulas if f.letter not in filled), key=lambda f: f.letter))]
    names = [f.letter for f in others]
    needed = sorted({i for f in others for i in f.inputs}.difference(names))
    return filled, needed, names, code.point(needed, [(f.letter, f.guarded) for f in others], names)


def computed_at(compiled: tuple, values: dict[str, float]) -> dict[str, float]:
    """Return the values of a plan's inputs and of all quantities that it computes, from what `_point` returned."""
    filled, needed, names, function = compiled
    known = values | {letter: values.get(x, x) for letter, x in filled.items()}
    known |= zip(names, map(float, function(*[known[i] for i in needed])), strict=True)
    return known


def _meant(letters):
    return ", ".join(f"{x} ({NOTATION[x].meaning})" if len(letters) < 4 else x for x in letters)


def _usually(f: Formula) -> tuple[float, float]:
    """Return the range of values that surely have the letter's sign; an empty range if a condition must be checked."""
    sign = NOTATION[f.letter].sign
    if f.domain:
        return math.inf, -math.inf
    return sys.float_info.min if sign == "positive" else 0.0, 1.0 if sign == "share" else sys.float_info.max
