"""Write the formulas of all strategies of a search as one plan, one sheet for all strategies with the same formulas.

A case is one of the problems priced together (a device) with one combination of options (a framework).  Cases with the
same formulas differ only in numbers, so their sheet has an array of a number of each.
"""

import math
import pickle
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from scalebook.language import Formula
from scalebook.language import Sheet as FormulaSheet
from scalebook.language.building import uncollected
from scalebook.language.domain import Condition
from scalebook.language.latest import Latest
from scalebook.language.notation import nearest
from scalebook.language.row import gather

from .plan import Mixed, Plan
from .problem import CASES, Problem

__all__ = ["Planned", "PlannedSheet", "built", "needed_for", "planned_for"]


def _told(problem: Problem, words: dict, offload: bool) -> dict:
    """Return what to pass to the searched thing by keyword: 1 for each letter that has columns or axes."""
    told = dict.fromkeys([*problem.letters, *problem.space.layout], 1.0) | problem.fixed
    return told | words | ({"offload": offload} if problem.space.offloads else {})


def _called(problem: Problem, words: dict, offload: bool):
    """Return the sheet for one combination of options, the rows to call it with, and all known inputs as cells."""
    # pass formulas too: a letter that one of them gives gets no default
    sheet, knowns, told = problem.sheet.sheet(problem.knowns, _told(problem, words, offload))
    knowns = tuple(x for x in knowns if not isinstance(x, Formula))
    return sheet, knowns, {n: c.value for n, c in gather(knowns, told).items()}


def built(problem: Problem, words: dict, offload: bool, known: tuple = ()) -> "_Built":
    """Return the formulas that a search needs for one combination of options, in order, and the constant inputs.

    `known` is what `_called` returns for these options.  Raises TypeError for needed inputs that nobody gave.
    """
    space = problem.space
    searched = [*problem.letters, *space.layout, *space.follows, *space.solved]
    swapped = [x for x in problem.knowns if isinstance(x, Formula)]
    sheet, knowns, cells = known or _called(problem, words, offload)
    formulas = (sheet.using(*swapped) if swapped else sheet).formulas
    given = {*cells, *searched}
    todo = [x for x in problem.axes if x not in given]
    if stray := [x for x in todo if x not in formulas]:
        raise _absent(problem, sheet, stray[0], "gives no {} to be sought")
    todo += [x for x in (space.solve[1] if space.solve else ()) if x not in given]
    # Default limits may be missing: without offloading there is no offloaded memory.
    usual = {x.split()[0] for x in space.limits}
    for letter, bound in ((x.letter, x.bound) for x in problem.limits):
        if letter in formulas or letter in given:
            todo += [x for x in (letter, bound) if isinstance(x, str) and x not in given]
        elif letter not in usual:
            raise _absent(problem, sheet, letter, "has no {} to be limited")
    needed = needed_for(todo, formulas, given) - given
    used = {i for n in needed & formulas.keys() for i in formulas[n].inputs}
    if lacking := sorted(needed - formulas.keys()):
        rest = f"give {lacking[0]}=...{_idle(knowns, formulas, sheet)}"
        raise TypeError(f"this search needs {', '.join(lacking)}: {rest}")
    used.update(problem.axes, *((x.letter, x.bound) for x in problem.limits))
    constants = {n: x for n, x in cells.items() if n in used and n not in searched and np.ndim(x) == 0}
    return _Built({n: f for n, f in formulas.items() if n in needed}, constants)


def _absent(problem: Problem, sheet: FormulaSheet, letter: str, said: str) -> TypeError:
    """Return the error for an objective or a limited quantity that the sheet does not give."""
    space = problem.space
    if letter in space.shown and space.shown_with:
        return TypeError(f"this search needs {space.shown_with} for {letter}: give {space.shown_with}=...")
    return TypeError(f"{sheet.name} {said.format(letter)}; {nearest(letter, sheet.formulas)}")


def needed_for(letters: list[str], formulas: Mapping[str, Formula], given: Container[str]) -> set[str]:
    """Return the names of these letters and of all that they are computed from; nothing given is computed."""
    found, todo = set(), list(letters)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += formulas[name].inputs if name in formulas and name not in given else ()
    return found


class _Built(NamedTuple):
    formulas: dict[str, Formula]
    constants: dict[str, float]

    @property
    def conditions(self) -> list[tuple[Formula, Condition]]:
        """The conditions under which the formulas hold, each with its formula; rules read them."""
        return [(f, x) for f in self.formulas.values() for x in f.domain]


def _idle(knowns, formulas, sheet) -> str:
    """Name the rows that the sheet does not use, as the end of a sentence about missing letters."""
    rows = (x for x in knowns if len(x) and not any(n in formulas or n in sheet.inputs for n in x))
    return "".join(f"; {getattr(x, 'name', 'a row')}, given by position, has only {', '.join(x)}" for x in rows)


class Case(NamedTuple):
    """Combinations of one problem's options that have equal results, by their indices (`places`)."""

    problem: int
    places: tuple[int, ...]
    cells: Mapping[str, float]  # the known inputs


class PlannedSheet(NamedTuple):
    """The sheet of several cases, as places in a plan."""

    cases: list[Case]
    words: dict  # of the first case
    letters: dict[str, int]
    conditions: list[tuple[str, Condition | str, dict[str, int]]]  # a str is a letter that must have its sign
    last: list[int]  # places that no later sheet needs

    @property
    def problems(self) -> list[int]:
        """The number of each case's problem."""
        return [x.problem for x in self.cases]

    @property
    def weights(self) -> np.ndarray:
        """How many combinations of options each case stands for.  Shape [cases, 1]."""
        return np.array([[len(x.places)] for x in self.cases])


def _grouped(problem: Problem, combinations: list[tuple[int, dict]]) -> list[tuple[list[Case], FormulaSheet | None]]:
    """Group the cases that have the same formulas, and return each group with its sheet; None for a case alone."""
    found: dict[tuple, tuple[list[Case], FormulaSheet | None]] = {}
    kinds: dict[tuple, int] = {}  # numbered, because a key of many formulas takes long to hash
    judged = {place: problem.judged_by(words) for place, words in combinations}
    free = {place: tuple(y for n, y in words.items() if n not in problem.judged) for place, words in combinations}
    for i, x in enumerate(problem.each):
        offload, known = x.offloads(x.letters), {}
        is_alone = not hasattr(x.sheet, "kind") or any(isinstance(y, Formula) for y in x.knowns)
        for place, words in combinations:
            if is_alone:
                found[judged[place], i, place] = [Case(i, (place,), {})], None
                continue
            if free[place] not in known:
                kind, _, cells = x.sheet.kind(x.knowns, _told(x, words, offload))
                number = kinds.setdefault(kind, len(kinds))
                known[free[place]] = number, {n: c.value for n, c in cells.items()}
            kind, cells = known[free[place]]
            if (judged[place], kind) not in found:  # `known` may hold the sheet of other words that rules judge
                found[judged[place], kind] = [], x.sheet.kind(x.knowns, _told(x, words, offload))[1]
            found[judged[place], kind][0].append(Case(i, (place,), cells))
    return _merged([*found.values()])


def _merged(groups: list[tuple[list[Case], FormulaSheet | None]]) -> list[tuple[list[Case], FormulaSheet | None]]:
    """Join the cases of a problem that know the same numbers, such as two releases of a framework.

    Numbers count that any sheet uses, so that all sheets have the same cases and share values.
    """
    used = {n for _, sheet in groups if sheet for n in sheet.letters}
    numbers: dict[frozenset, int] = {}
    same: dict[int, int] = {}  # a number by what a case knows
    for x in {id(x.cells): x.cells for cases, _ in groups for x in cases}.values():
        own = frozenset((n, y if isinstance(y, (int, float)) else id(y)) for n, y in x.items() if n in used)
        same[id(x)] = numbers.setdefault(own, len(numbers))
    found = []
    for cases, sheet in groups:
        kept: dict[tuple[int, int], list[Case]] = {}
        for i, x in enumerate(cases):
            kept.setdefault((x.problem, same[id(x.cells)] if sheet else i), []).append(x)
        joined = (x[0]._replace(places=tuple(y for case in x for y in case.places)) for x in kept.values())
        found.append(([*joined], sheet))
    return found


class _Settled(NamedTuple):
    """The cases of a kind, with what of it depends on no column."""

    cases: list[Case]
    sheet: FormulaSheet
    cells: Callable[[str], np.ndarray]  # what the cases know of a letter, NaN for those that do not
    columns: dict[str, np.ndarray]
    left: dict[str, Formula]  # which depend on columns
    partly: set[str]  # letters that some cases know and others compute or lack
    is_alone: np.ndarray  # which cases are to be planned alone


class Planned:
    """A search problem compiled: formulas of all combinations of options as one list of operations."""

    lacking: dict[int, TypeError]  # of problems that lack a letter, which have no sheets

    @uncollected()
    def __init__(self, problem: Problem, combinations: list[tuple[int, dict]]):
        space, axes = problem.space, {n: problem.letters[n] for n in problem.on_axes}
        self.plan, self.problem = Plan(problem.columned, axes, space.solved), problem
        self.sheets, self.lacking, self._words, self._cells = [], {}, dict(combinations), {}
        for bound in (x.bound for x in problem.limits if not isinstance(x.bound, str)):
            self.plan.constant(bound)  # now, because the plan cannot change during evaluation
        settled = [x for cases, sheet in _grouped(problem, combinations) for x in self._settle(cases, sheet)]
        partly = {n for x in settled for n in x.partly}
        for x in settled:
            self._kind(x, partly)
        seen: set[int] = set()
        for sheet in reversed(self.sheets):
            sheet.last.extend(self.plan.above(_ends(problem, sheet), seen.__contains__))
            seen.update(sheet.last)
        ends = set().union(*(_ends(problem, x) for x in self.sheets))
        self.plan.uses = Counter(y for x in seen for y in self.plan.args[x] if y in seen and y not in ends)

    def _kind(self, own: _Settled, partly: set[str]) -> None:
        """Add the sheets of cases with the same formulas, each for cases that know the same of the letters `partly`."""
        parts: dict[tuple, list[int]] = {}
        keys = [~np.isnan(own.cells(n)) for n in sorted(partly)] or [np.zeros(len(own.cases), bool)]
        for i, key in enumerate(zip(*keys, strict=True)):
            if own.is_alone[i]:
                self._alone(own.cases[i])
            else:
                parts.setdefault(key, []).append(i)
        for part in parts.values():
            self._part(own, part)

    def _part(self, settled: _Settled, part: list[int]) -> None:
        """Add the sheet of the cases at the indices `part`, which know the same of the letters with formulas left."""
        cases, columns = settled.cases, settled.columns
        while part := [i for i in part if cases[i].problem not in self.lacking]:
            try:
                own = self._built(cases[part[0]], settled.sheet)
            except TypeError as error:
                self.lacking[cases[part[0]].problem] = error
            else:
                break
        else:
            return None
        formulas = {n: f for n, f in own.formulas.items() if n in settled.left}
        used = _limited(self.problem) & {*own.constants, *own.formulas}
        used = used.union(*(f.inputs for f in formulas.values()))
        names = used & columns.keys() - formulas.keys()
        values = np.array([columns[n] for n in names]).reshape(len(names), len(cases))[:, part]
        lacks = np.isnan(values).any(0)
        for i in np.array(part)[lacks]:
            self._alone(cases[i])
        own = _Built(formulas, dict(zip(names, values[:, ~lacks], strict=True)))
        return self._enter([cases[i] for i in np.array(part)[~lacks]], own)

    def _settle(self, cases: list[Case], sheet) -> Iterator[_Settled]:
        """Compute what depends on no column for all cases of a kind. Add the sheet of a case without others."""
        if len(cases) == 1:
            return self._alone(cases[0])
        same = tuple(id(x.cells) for x in cases)  # other options of the same cases know the same
        column = cache(lambda name: np.array([x.cells.get(name, np.nan) for x in cases], float))
        own = _Settled(cases, sheet, self._cells.setdefault(same, column), {}, {}, set(), np.zeros(len(cases), bool))
        try:
            self._fill(own)
        except Mixed as mixed:
            for part in _parts(cases, mixed):
                yield from self._settle(part, sheet)
        else:
            yield own

    def _fill(self, own: _Settled) -> None:
        """Fill in what the cases of a kind know, and which formulas depend on columns."""
        columns, left, cells, formulas = own.columns, own.left, own.cells, own.sheet.formulas
        searched = {*self.problem.letters, *self.plan.letters}
        places: dict[str, int] = {}

        def known(name):
            columns[name] = cells(name)
            places[name] = self.plan.constant(columns[name])

        there = searched.union(formulas)
        own.partly.update(_limited(self.problem, lambda x: x in there or not np.isnan(cells(x)).all()) - there)
        for name in own.partly:
            known(name)
        for name, f in formulas.items():
            for x in f.inputs:
                if x not in columns and x not in left and x not in searched:
                    known(x)
            if name in searched:
                continue
            told = ~np.isnan(cells(name))
            if all(x in columns for x in f.inputs) and not told.all():
                value = np.broadcast_to(self.plan.values[self.plan.add(f.rhs, places)].reshape(-1), len(told))
                values = {n: columns[n] for n in f.inputs} | {name: value}
                for x in f.domain:
                    own.is_alone[:] |= ~x.holds(values) & ~told
                columns[name] = np.where(told, cells(name), value)
                places[name] = self.plan.constant(columns[name])
            elif told.all():
                known(name)
            else:
                left[name] = f
                if told.any():
                    own.partly.add(name)
                    columns[name] = cells(name)

    def _built(self, case: Case, sheet: FormulaSheet | None = None) -> "_Built":
        """Return the formulas for one case. If its kind's sheet is given, keep its formulas for unknown letters."""
        problem = self.problem.each[case.problem]
        known = (sheet, problem.knowns, case.cells) if sheet else ()
        return built(problem, self._words[case.places[0]], problem.offloads(problem.letters), known)

    def _alone(self, case: Case) -> None:
        try:
            self._enter([case], self._built(case))
        except TypeError as error:
            self.lacking.setdefault(case.problem, error)

    def _enter(self, cases: list[Case], own: "_Built") -> None:
        """Add the sheet of some cases, or, if they need different operations, the sheets of each part of them."""
        if not cases:
            return None
        try:
            sheet = self._sheet(cases, own)
        except Mixed as mixed:
            parts = _parts(range(len(cases)), mixed)
        else:
            most = max(1, CASES // math.prod(self.plan.shape))
            if len(cases) <= most:
                return self.sheets.append(sheet)
            parts = [range(x, min(x + most, len(cases))) for x in range(0, len(cases), most)]
        for part in map(list, parts):
            columns = {n: x[part] for n, x in own.constants.items()}
            self._enter([cases[i] for i in part], _Built(own.formulas, columns))
        return None

    def _sheet(self, cases, own) -> PlannedSheet:
        letters = {n: self.plan.constant(x) for n, x in own.constants.items()} | self.plan.letters
        given, conditions, worded = set(letters), [], self.problem.space.worded
        for name, f in own.formulas.items():
            if name not in given:
                letters[name] = self.plan.add(f.rhs, letters)
        for name, f in own.formulas.items():
            for x in f.domain:
                said = worded.get(f.name, f"{f.name} holds for {x.words}")
                conditions.append((said, x, {n: letters[n] for n in x.letters}))
            if self.problem.space.is_signed:
                conditions.append((worded.get(name, f"{name} has a value"), name, {name: letters[name]}))
        return PlannedSheet(cases, self._words[cases[0].places[0]], letters, conditions, [])


def _parts(cases, mixed: Mixed) -> list[list]:
    """Split cases by the kind of operations that they need."""
    holds = np.ravel(mixed.holds)
    return [[x for x, is_own in zip(cases, part, strict=True) if is_own] for part in (holds, ~holds)]


def _limited(problem: Problem, is_there: Callable[[str], bool] = lambda letter: True) -> set[str]:
    """Return the letters of the objectives, the solver and the limits on letters that are there."""
    ends = {*problem.axes, *(problem.space.solve[1] if problem.space.solve else ())}
    limits = (x for x in problem.limits if is_there(x.letter))
    return ends | {x for y in limits for x in (y.letter, y.bound) if isinstance(x, str)}


def _ends(problem: Problem, sheet: PlannedSheet) -> set[int]:
    """Return the places of a sheet's results."""
    ends = {sheet.letters[x] for x in _limited(problem) if x in sheet.letters}
    return ends | {x for _, _, places in sheet.conditions for x in places.values()}


_PLANS = Latest(8)  # of the devices of each vendor


def planned_for(problem: Problem, combinations: list[tuple[int, dict]]) -> Planned:
    """Return the `Planned` of a task, kept from one of those before if both have the same problem.

    Another number of devices is the same problem, because the number is a column of a layout.
    """
    letters = {n: x for n, x in problem.letters.items() if n not in problem.space.layout}
    fixed = {n: x for n, x in problem.fixed.items() if n not in problem.columned}
    knowns = [x.knowns for x in problem.each]
    known = problem.sheet, knowns, letters, fixed, problem.columned, problem.axes, problem.limits
    key = pickle.dumps((known, combinations))
    return _PLANS.get(key, lambda: Planned(problem, combinations), None)
