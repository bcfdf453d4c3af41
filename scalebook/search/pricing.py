"""Price strategies.  One task of a search, which may run in another process, returns its best ones and counts."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from scalebook.language.row import strays

from . import problem as limits
from .plan import Block, Evaluated, firsts, numbered
from .planning import Planned, PlannedSheet, planned_for
from .problem import (
    Problem, Slab, by_words, counts, distinct, layouts, looked_through, nonempty, parted, ruled, stand_for, together,
)  # fmt: skip

__all__ = ["EMPTY", "Priced", "Pricing", "each_sheet", "joined", "price"]

SWEPT = 1 << 15  # rows that are priced at a time if only the best strategies are sought
FIRST = 8  # combinations of words that are priced first
_ROUNDING = 1 - 1e-9  # allows for rounding: a bound adds up its terms in another order
BLOCK = 1 << 16  # strategies evaluated at a time, so that the arrays stay in a core's cache
_NONE = np.empty((0, 5))
_MOST = np.finfo(float).max  # values of strategies that do not fit are infinite


class Priced(NamedTuple):
    """The result of a task: the best strategies, the Pareto front, and counts of rejected and priced strategies.

    A strategy is a row of five numbers: the two objectives, and its indices among the combinations of options, the rows
    and the values on axes.
    """

    best: np.ndarray
    front: np.ndarray
    rejected: Counter
    count: int


def _best(found: np.ndarray, number: int) -> np.ndarray:
    """Return the `number` strategies with the lowest values; ties keep the order words, rows, axes."""
    return found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0]))][:number]


def _front(found: np.ndarray) -> np.ndarray:
    """Return the Pareto front, sorted by the second objective.  It keeps the first of equal strategies."""
    found = found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0], found[:, 1]))]
    least = np.minimum.accumulate(np.concatenate([[np.inf], found[:-1, 0]]))
    return found[found[:, 0] < least]


def joined(a: Priced, b: Priced, best: int) -> Priced:
    """Join the results of two tasks, and keep the `best` best strategies.  The order of the two does not matter."""
    lowest, front = (np.concatenate(x) for x in ([a.best, b.best], [a.front, b.front]))
    return Priced(_best(lowest, best), _front(front), a.rejected + b.rejected, a.count + b.count)


EMPTY = Priced(_NONE, _NONE, Counter(), 0)


def price(sizes: list[Problem], combinations: list[tuple[int, dict]], parts: list, of=None) -> list[list[Priced]]:
    """Compute one task: each combination of options on ranges of rows, for each of the problems.

    `sizes` are problems that differ in `devices`, in increasing order, each with as many `others`.  `parts` are pairs
    of the index of a size and a range of its rows.  If `of` is given, only the best strategies are found, and a
    strategy is priced in full only if its lower bound lets it be among them; `of` is what the tasks share.  Returns
    what was found for each size and each of its problems.
    """
    with np.errstate(all="ignore"):
        return _Task(sizes, combinations, of).priced(parts)


class _Task:
    """What a task has found so far, for each size and each of the problems priced together."""

    def __init__(self, sizes, combinations, of):
        self.sizes, self.one, self.has_front = sizes, sizes[0], of is None
        self.words, self.planned = [x for _, x in combinations], planned_for(self.one, combinations, of)
        self.found = [[EMPTY for _ in self.one.each] for _ in sizes]
        self.least = np.full((len(sizes), len(self.one.each)), np.inf)  # what a strategy must not exceed
        self.counts = np.zeros(self.least.shape, np.int64)
        self.rejected: dict[str, np.ndarray] = {}

    def priced(self, parts):
        for slab in self._slabs(parts):
            for part in by_words(self.one, slab, self.words) if self.has_front else (slab,):
                self._price(part)
        return [[self._result(i, j) for j in range(len(own))] for i, own in enumerate(self.found)]

    def _result(self, i, j):
        rejected = Counter({n: int(x[i, j]) for n, x in self.rejected.items() if x[i, j]})
        return self.found[i][j]._replace(rejected=rejected, count=int(self.counts[i, j]))

    def _slabs(self, parts):
        """Yield the rows that all rules but those on options allow, in batches.  Count the others."""
        waiting, out, size = [], {}, SWEPT
        if self.has_front:
            size = limits.SLAB * (8 if self.one.space.solve else 1)  # solved letters are evaluated many times
        if self.has_front and hasattr(self.one.sheet, "kind"):  # a sheet then has several cases
            cases = len(self.one.each) * len(self.words) // max(len(set(map(self.one.judged_by, self.words))), 1)
            size = max(limits.SLAB // max(min(cases, limits.CASES), 1), min(limits.SLAB, 1024))
        for i, places in parts:
            for slab, left in looked_through(self.sizes[i], layouts(self.sizes[i]), places):
                waiting.append(slab)  # rows of several checks, because a slab has a fixed cost
                for name, x in left.items():
                    out.setdefault(name, []).append(x)
                    if sum(len(y.places) for y in out[name]) >= limits.CANDIDATES:
                        self._leave(name, out.pop(name))
                if sum(len(x.places) for x in waiting) >= size:
                    yield from parted(together(waiting), size)
                    waiting = []
        for name, x in out.items():
            self._leave(name, x)
        if waiting:
            yield from parted(together(waiting), size)

    def _leave(self, name, slabs):
        """Count the strategies of rows that a rule leaves out."""
        slab = together(slabs)
        if len(slab.places):
            numbers = slab.among * stand_for(self.one, slab, self.words)
            self._reject(self._sizes(slab), name, np.arange(len(numbers)), slice(None), numbers)

    def _sizes(self, slab):
        if len(self.sizes) == 1:
            return np.zeros(len(slab.places), int)
        return np.searchsorted([x.values["devices"] for x in self.sizes], slab.columns["devices"])

    def _reject(self, sizes, name, problems, rows, numbers):
        own = self.rejected.setdefault(name, np.zeros(self.least.shape, np.int64))
        _add(own, problems, sizes[rows], numbers)

    def _price(self, slab):
        sizes, first = self._sizes(slab), ()
        if not self.has_front:  # first the words of the best so far: their values rule out most other strategies
            words, often = np.unique(
                [x.best[0, 2] for own in self.found for x in own if len(x.best)], return_counts=True
            )
            first = words[np.argsort(-often, kind="stable")][:FIRST].astype(int).tolist()
        for pricing, rows, allowed in each_sheet(self.planned, self.one, slab, partial(self._reject, sizes), first):
            if not len(rows):
                continue
            if self.has_front:
                for part in pricing.slices(len(rows)):
                    block, own = Block(pricing.evaluated, rows[part]), allowed[:, part]
                    block = pricing.solved(block) if self.one.space.solve else block
                    fits = self._fitting(pricing, block, rows[part], own, sizes, np.arange(len(own[0])))
                    self._enter(pricing, block, fits & _deep(own, fits), sizes[rows[part]])
            else:
                self._bounded(pricing, rows, allowed, sizes)

    def _fitting(self, pricing, block, rows, allowed, sizes, places):
        """Return where the strategies of a block are within all limits; count those of `rows`, at `places` in it."""
        fits, count, out = pricing.fitting(block)
        of, allowed = pricing.sheet.problems, allowed * pricing.sheet.weights
        for name, numbers in out.items():
            self._reject(sizes, name, of, rows, numbers[:, places] * allowed)
        _add(self.counts, of, sizes[rows], count[:, places] * allowed)
        return fits

    def _bounded(self, pricing, rows, allowed, sizes):
        """Check all strategies against the limits, then fully price strategies that could be among the best."""
        places, count = _same_limits(pricing, rows)
        fits = self._fitting(
            pricing, Block(pricing.evaluated, rows[firsts(places, count)]), rows, allowed, sizes, places
        )
        could = fits.any(tuple(range(fits.ndim - 1)))[places]
        if not self.one.is_rising:
            # the bound is NaN if a letter has no value; such rows are kept
            least = np.atleast_1d(Block(pricing.evaluated, rows).value(pricing.sheet.least))
            most = _deep(self.least[sizes[rows]][:, pricing.sheet.problems].T, fits)
            could &= (~(least * _ROUNDING > most)).any(tuple(range(fits.ndim - 1)))
        could = np.flatnonzero(could)
        for part in pricing.slices(len(could)):
            own = could[part]
            fine = fits[..., places[own]] & _deep(allowed[:, own], fits)
            self._enter(pricing, Block(pricing.evaluated, rows[own]), fine, sizes[rows[own]])

    def _enter(self, pricing, block, fits, sizes):
        """Keep the strategies of a block that may be among the best or on a front."""
        values, second = pricing.valued(block, fits)
        of, lowest = np.array(pricing.sheet.problems), values.min(tuple(range(1, values.ndim - 1)))
        for j in dict.fromkeys(pricing.sheet.problems):
            cases = slice(*np.searchsorted(of, [j, j + 1]))
            low = lowest[cases].min(0)
            for i in np.unique(
                sizes[np.isfinite(low) if self.has_front else (low <= self.least[sizes, j]) & np.isfinite(low)]
            ):
                self._join(pricing, block, values, second, (i, j), cases, slice(*np.searchsorted(sizes, [i, i + 1])))

    def _join(self, pricing, block, values, second, owner, cases, rows):
        """Join a part of a block, cases of one problem and rows of one size, to what was found there."""
        i, j = owner
        found, values, second = self.found[i][j], values[cases, ..., rows], second[cases, ..., rows]
        kept = [_lowest(values, self.one.best, found.best)]
        if self.has_front:
            known = np.concatenate([[_MOST], found.front[:, 0]])
            known = known[np.searchsorted(found.front[:, 1], second.ravel(), side="right")].reshape(second.shape)
            kept.append(np.flatnonzero(values <= known))
        if any(map(len, kept)):
            best, *front = (pricing.records(block, values, second, x, cases.start, rows.start) for x in kept)
            more = Priced(best, *(front or [_NONE]), Counter(), 0)
            self.found[i][j] = joined(found, more, self.one.best)
            if len(best := self.found[i][j].best) == self.one.best:
                self.least[i, j] = best[-1, 0]


def _deep(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return values of cases and rows with the dimensions of axes between."""
    return values.reshape(len(values), *(1,) * (like.ndim - 2), -1)


def _add(total: np.ndarray, problems, sizes: np.ndarray, numbers: np.ndarray) -> None:
    """Add up numbers of cases and rows by size and problem.  Both are in order."""
    numbers = np.broadcast_to(numbers, (len(problems), len(sizes)))
    of, cases = np.unique(problems, return_index=True)
    own, rows = np.unique(sizes, return_index=True)
    total[np.ix_(own, of)] += np.add.reduceat(np.add.reduceat(numbers, cases, 0), rows, 1).T


def each_sheet(planned: Planned, problem: Problem, slab: Slab, reject: Callable, first: Iterable[int] = ()):
    """For each sheet, yield its `Pricing`, the rows that the rules allow for some case, and for which: [cases, rows].

    The sheets of the combinations with the numbers `first` come first.  `reject(rule, problems, rows, numbers)` is called
    with the rows that a rule forbids and the number of strategies that each stands for.
    """
    evaluated = Evaluated(planned.plan, slab.columns, len(slab.places))
    said, known = {}, {}
    early = {i: None for x in first for i, y in enumerate(planned.sheets) if any(x in c.places for c in y.cases)}
    for place, sheet in [*((None, planned.sheets[i]) for i in early), *enumerate(planned.sheets)]:
        if place not in early:
            key = problem.judged_by(sheet.words)
            if key not in known:
                parts = distinct(problem, sheet.words, slab, said)
                known[key] = parts, np.flatnonzero(nonempty(parts))
            parts, kept = known[key]
            if len(kept):
                pricing = Pricing(problem, sheet, evaluated, slab, parts)
                allowed = pricing.allowed(kept, reject, said)
                some = allowed.any(0)
                yield pricing, kept[some], allowed[:, some]
        if place is not None:
            evaluated.forget(sheet.last)


class Pricing:
    """Prices the cases of one sheet on a slab, a batch of a search's rows."""

    def __init__(
        self, problem: Problem, sheet: PlannedSheet, evaluated: Evaluated, slab: Slab, parts: list[np.ndarray]
    ):
        self.problem, self.sheet, self.evaluated, self.slab, self.parts = problem, sheet, evaluated, slab, parts
        self.plan, self.shape = evaluated.plan, (len(sheet.cases), *evaluated.plan.shape)

    def allowed(self, rows, reject, said):
        """Return which `rows` the rules and domains allow, [cases, rows]; `reject` counts the others by rule."""
        of = self.sheet.problems
        numbers = counts(self.problem, [x[rows] for x in self.parts])
        allowed = np.asfortranarray(self.slab.among[:, rows][of])

        def keep(name, holds):
            nonlocal allowed
            if (lost := allowed & ~holds).any():
                reject(name, of, rows, lost * numbers * self.sheet.weights)
                allowed = allowed & holds

        # if offloading is searched, the limits decide where there is room for it
        words = self.sheet.words | {"offload": self.problem.always_offloads}
        key = "rules", *self.problem.judged_by(words)
        if key not in said:
            said[key] = list(ruled(self.problem, self.slab, words))
        for name, holds in said[key]:
            keep(name, holds[:, rows][of])
        for name, condition, places in self.sheet.conditions:
            if any(map(self.plan.is_wide, places.values())):
                continue
            key = (id(condition), *places.values())
            if key not in said:
                said[key] = self._holds(condition, places, Block(self.evaluated, np.arange(len(self.slab.places))))
            if not np.all(said[key]):
                holds = np.broadcast_to(said[key], (*self.shape[:1], *(1,) * len(self.plan.shape), self.evaluated.size))
                keep(name, holds.reshape(len(of), -1)[:, rows])
        return allowed

    def _holds(self, condition, places, block):
        """Return where a condition holds, or where a letter's value has its sign."""
        values = {n: block.value(x) for n, x in places.items()}
        return ~strays(condition, values[condition]) if isinstance(condition, str) else condition.holds(values)

    def slices(self, number):
        """Split `number` rows into slices so short that all their strategies fit a core's cache."""
        step = max(1, BLOCK // math.prod(self.shape))
        return [slice(start, start + step) for start in range(0, number, step)]

    def valued(self, block, fits):
        """Return both objectives of a block's strategies.  The first is infinite where a strategy does not fit."""
        first, second = (block.value(self.sheet.letters[x]) for x in self.problem.axes)
        first = -first if self.problem.is_rising else first
        second = first if len(set(self.problem.axes)) == 1 else second
        values = np.broadcast_to(np.where(fits & np.isfinite(first), first, np.inf), (*self.shape, len(block.rows)))
        second = _as_deep(second, values.ndim)
        return values, np.broadcast_to(second, (len(values), *second.shape[1:-1], len(block.rows)))

    def records(self, block, values, second, flat, case, row):
        """Return the strategies at flat indices of values as rows of five numbers (see `Priced`).

        The values begin with the given case and with the given row of the block.
        """
        index = np.unravel_index(flat, values.shape)
        second = np.broadcast_to(second, values.shape)[index]
        axis = flat // values.shape[-1] % math.prod(self.plan.shape)  # rows are the last dimension, but precede axes
        places = [self.sheet.cases[x + case].places for x in index[0]]
        often = np.fromiter(map(len, places), int)
        found = [values[index], second, self.slab.places[block.rows[index[-1] + row]], axis]
        first, second, rows, axis = (np.repeat(x, often) for x in found)
        return np.stack([first, second, np.fromiter(itertools.chain(*places), float), rows, axis], axis=1)

    def solved(self, block):
        """Solve for the letter that follows from each choice.  Only the letters that the solver needs are evaluated."""
        name, _, solve = self.problem.space.solve
        place, parts = self.plan.letters[name], {}

        def at(letter, values, places=None):  # here rows are the first dimension
            if id(places) not in parts:
                parts.clear()
                parts[id(places)] = Block(self.evaluated, block.rows if places is None else block.rows[places]), places
            part = parts[id(places)][0].solved({place: np.moveaxis(values, 0, -1) if np.ndim(values) else values})
            parts[id(places)] = part, places
            found = _as_deep(part.value(self.sheet.letters[letter]), len(self.plan.shape) + 1)
            return np.moveaxis(found, -1, 0)

        return block.solved({place: np.moveaxis(solve(at, (len(block.rows), *self.plan.shape)), 0, -1)})

    def fitting(self, block):
        """Return where strategies fit: they repeat no other, have values, and are within all limits.

        Also return, for each case and row, how many strategies have values, and how many each condition leaves out.
        """
        fits = np.ones((*(1,) * len(self.shape), len(block.rows)), bool)
        for part in self.parts:
            fits = fits & np.moveaxis(part[block.rows], 0, -1)
        count = left = self._numbers(fits)
        out = Counter()
        for name, holds, is_limit in self._conditions(block):
            fits = fits & holds
            now = self._numbers(fits)
            if (now != left).any():
                out[name] = out[name] + left - now
            left, count = now, count if is_limit else now
        return fits, count, out

    def _numbers(self, fits):
        """Count, for each case and row, the strategies that are left.  Shape [cases or 1, rows], dtype int."""
        each = math.prod(fits.shape[1:-1])
        own = fits.reshape(len(fits), each, fits.shape[-1])
        kind = np.uint8 if each < 256 else np.intp  # adding up bytes is faster
        return own.view(np.uint8).sum(1, dtype=kind).astype(np.intp) * (math.prod(self.plan.shape) // each)

    def _conditions(self, block):
        """Yield a name, where the condition holds, and whether it is a limit; limits come last."""
        for name, condition, places in self.sheet.conditions:
            if any(map(self.plan.is_wide, places.values())):
                yield name, self._holds(condition, places, block), False
        letters = self.sheet.letters
        for letter, relation, bound, name, margin in self.problem.limits:
            if letter in letters:
                other = letters[bound] if isinstance(bound, str) else self.plan.constant(bound)  # entered with the plan
                own, most = block.value(letters[letter]) * (1 + margin), block.value(other)
                yield name, own <= most if relation == "<=" else own >= most, True


def _as_deep(values: np.ndarray, axes: int) -> np.ndarray:
    return np.reshape(values, (1,) * (axes - np.ndim(values)) + np.shape(values))


def _lowest(values: np.ndarray, number: int, best: np.ndarray) -> np.ndarray:
    """Return the flat indices of the lowest values, enough to include all that could be among the best `number`."""
    flat = np.flatnonzero(values <= (best[-1, 0] if len(best) >= number else _MOST))
    if len(flat) <= number:
        return flat
    own = values[np.unravel_index(flat, values.shape)]
    return flat[own <= np.partition(own, number - 1)[number - 1]]


def _same_limits(pricing, rows):
    """Number the rows, giving one number to rows with equal inputs to the limits; return how many numbers there are."""
    plan, letters = pricing.plan, pricing.sheet.letters
    limits = [(x.letter, x.bound) for x in pricing.problem.limits if x.letter in letters]
    used = [letters[x] for pair in limits for x in pair if x in letters]
    for _, _, own in pricing.sheet.conditions:
        used += own.values() if any(map(plan.is_wide, own.values())) else ()
    bits = reduce(or_, (plan.bits[x] for x in used), 0)
    first, inverse = pricing.evaluated.columns.key(bits & plan.in_columns)
    places, span = inverse[rows], len(first)
    for part in pricing.parts:
        if part.strides[0] and part[0].size > 1:  # other parts are the same for all of these rows
            for byte in np.packbits(part[rows].reshape(len(rows), -1), axis=1).T:
                own, count = numbered(byte, 256)
                places, span = numbered(places * count + own, span * count)
    return numbered(places, span)
