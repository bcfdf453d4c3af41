"""Find the best strategies among ranges of a search's rows: one task of a search, which may run in another process."""

from collections import Counter
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from . import problem
from .distinct import firsts
from .plan import Block
from .planning import planned_for
from .pricing import Pricing, each_sheet, same_limits
from .problem import Problem, by_words, layouts, looked_through, parted, stand_for, together

__all__ = ["EMPTY", "Priced", "joined", "price"]

SWEPT = 1 << 15  # rows that are priced at a time if only the best strategies are sought
HELD = 1 << 20  # values that wait for being joined
_NONE = np.empty((0, 6))
_MOST = np.finfo(float).max  # values of strategies that do not fit are infinite


class Priced(NamedTuple):
    """The result of a task: the best strategies, the Pareto front, and counts of rejected and priced strategies.

    A strategy is a row of six numbers: the two objectives, its indices among the combinations of options, the rows and
    the values on axes, and how many combinations of options have these values.
    """

    best: np.ndarray
    front: np.ndarray
    rejected: Counter
    count: int


def _once(found: np.ndarray) -> np.ndarray:
    """Join strategies that differ in options alone and have equal values. The first stands for all."""
    found = found[np.lexsort(found[:, [2, 1, 4, 3, 0]].T)]
    own = found[:, [0, 1, 3, 4]]
    first = np.flatnonzero(np.concatenate([[True], (own[1:] != own[:-1]).any(1)])[: len(found)])
    return np.column_stack([found[first, :5], np.add.reduceat(found[:, 5], first)]) if len(found) else found


def _best(found: np.ndarray, number: int) -> np.ndarray:
    """Return the `number` strategies with the lowest values; ties keep the order words, rows, axes."""
    found = _once(found)
    return found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0]))][:number]


def _front(found: np.ndarray) -> np.ndarray:
    """Return the Pareto front, sorted by the second objective.  It keeps the first of equal strategies."""
    found = _once(found)
    found = found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0], found[:, 1]))]
    least = np.minimum.accumulate(np.concatenate([[np.inf], found[:-1, 0]]))
    return found[found[:, 0] < least]


def joined(a: Priced, b: Priced, best: int) -> Priced:
    """Join the results of two tasks, and keep the `best` best strategies.  The order of the two does not matter."""
    lowest, front = (np.concatenate(x) for x in ([a.best, b.best], [a.front, b.front]))
    return Priced(_best(lowest, best), _front(front), a.rejected + b.rejected, a.count + b.count)


EMPTY = Priced(_NONE, _NONE, Counter(), 0)


def price(sizes: list[Problem], combinations: list[tuple[int, dict]], parts: list, pareto=True) -> list[list[Priced]]:
    """Compute one task: each combination of options on ranges of rows, for each of the problems.

    `sizes` are problems that differ in `devices`, in increasing order, each with the same number of `others`.  `parts`
    are pairs of the index of a size and a range of its rows.  If `pareto` is false, only strategies within all limits
    are priced in full.  Returns what was found for each size and each of its problems.
    """
    with np.errstate(all="ignore"):
        return _Task(sizes, combinations, pareto).priced(parts)


class _Task:
    """What a task has found so far, for each size and each of the problems priced together."""

    def __init__(self, sizes, combinations, pareto):
        self.sizes, self.one, self.has_front = sizes, sizes[0], pareto
        self.words, self.planned = [x for _, x in combinations], planned_for(self.one, combinations)
        self.found = [[EMPTY for _ in self.one.each] for _ in sizes]
        self.counts = np.zeros((len(sizes), len(self.one.each)), np.int64)
        self.rejected: dict[str, np.ndarray] = {}
        self.held: dict[tuple[int, int], list[_Held]] = {}
        self.number = self.known = 0  # of values entered, and of those joined

    def priced(self, parts):
        for slab in self._slabs(parts):
            for part in by_words(self.one, slab, self.words) if self.has_front else (slab,):
                self._price(part)
        self._join_held()
        return [[self._result(i, j) for j in range(len(own))] for i, own in enumerate(self.found)]

    def _result(self, i, j):
        rejected = Counter({n: int(x[i, j]) for n, x in self.rejected.items() if x[i, j]})
        return self.found[i][j]._replace(rejected=rejected, count=int(self.counts[i, j]))

    def _slabs(self, parts):
        """Yield the rows that all rules but those on options allow, in batches.  Count the others."""
        waiting, out, size = [], {}, SWEPT
        if self.has_front:
            size = problem.SLAB * (8 if self.one.space.solve else 1)  # solved letters are evaluated many times
        if self.has_front and hasattr(self.one.sheet, "kind"):  # a sheet then has several cases
            cases = len(self.one.each) * len(self.words) // max(len(set(map(self.one.judged_by, self.words))), 1)
            size = max(problem.SLAB // max(min(cases, problem.CASES), 1), min(problem.SLAB, 2048))
        for i, places in parts:
            for slab, left in looked_through(self.sizes[i], layouts(self.sizes[i]), places):
                waiting.append(slab)  # rows of several checks, because a slab has a fixed cost
                for name, x in left.items():
                    out.setdefault(name, []).append(x)
                    if sum(len(y.places) for y in out[name]) >= problem.CANDIDATES:
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
        own = self.rejected.setdefault(name, np.zeros(self.counts.shape, np.int64))
        _add(own, problems, sizes[rows], numbers)

    def _price(self, slab):
        sizes = self._sizes(slab)
        for pricing, rows, allowed in each_sheet(self.planned, self.one, slab, partial(self._reject, sizes)):
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
        """Return which strategies of a block are within all limits.  Count them for `rows`, at `places` in it."""
        fits, count, out = pricing.fitting(block)
        of, allowed = pricing.sheet.problems, allowed * pricing.sheet.weights
        for name, numbers in out.items():
            self._reject(sizes, name, of, rows, numbers[:, places] * allowed)
        _add(self.counts, of, sizes[rows], count[:, places] * allowed)
        return fits

    def _bounded(self, pricing, rows, allowed, sizes):
        """Check all strategies against the limits, once per distinct inputs of these, then price those within them."""
        places, count = same_limits(pricing, rows)
        block = Block(pricing.evaluated, rows[firsts(places, count)])
        fits = self._fitting(pricing, block, rows, allowed, sizes, places)
        could = np.flatnonzero(fits.any(tuple(range(fits.ndim - 1)))[places])
        for part in pricing.slices(len(could)):
            own = could[part]
            fine = fits[..., places[own]] & _deep(allowed[:, own], fits)
            self._enter(pricing, Block(pricing.evaluated, rows[own]), fine, sizes[rows[own]])

    def _enter(self, pricing, block, fits, sizes):
        """Hold a block's values until as many are held as were joined before, because joining has a fixed cost."""
        values, second = pricing.valued(block, fits)
        order = "F" if values.flags.f_contiguous else "C"
        for j, of in _ranges(pricing.sheet.problems):
            for i, rows in _ranges(sizes):
                own = _Held(pricing, block.rows[rows], of.start, values[of, ..., rows], second[of, ..., rows], order)
                self.held.setdefault((i, j), []).append(own)
        self.number += values.size
        if self.number >= 2 * self.known or self.number - self.known > HELD:
            self._join_held()

    def _join_held(self):
        for owner, held in self.held.items():
            self._join(owner, held)
        self.held, self.known = {}, self.number

    def _join(self, owner, held):
        """Join the values that are held for a size and a problem to what was found, if they may be best or on front."""
        i, j = owner
        found, number = self.found[i][j], self.one.best
        values, second = (np.concatenate(x) for x in zip(*(x.flat for x in held), strict=True))
        least = most = found.best[-1, 0] if len(found.best) >= number else _MOST
        if self.has_front:  # first compare with the middle of the front, which is fast
            value, holds = found.front[len(found.front) // 2, :2] if len(found.front) else (_MOST, _MOST)
            most = np.where(second < holds, _MOST, max(value, least))
        places = np.flatnonzero(values <= most)
        if self.has_front:  # then with the strategy on it that needs no more of the second objective
            known = np.concatenate([[_MOST], found.front[:, 0]])
            known = known[np.searchsorted(found.front[:, 1], second[places], side="right")]
            places = places[values[places] <= np.maximum(known, least)]
        if not len(places):
            return
        own, other = values[places], second[places]
        lowest = np.unique(own[own <= least])[:number]  # equal ones may count once
        is_kept = own <= (lowest[-1] if len(lowest) == number else least)
        if self.has_front:
            order = np.argsort(other)
            is_kept[order[own[order] <= np.minimum.accumulate(own[order])]] = True
        if is_kept.any():
            places = places[is_kept]
            ends = np.cumsum([x.values.size for x in held])
            parts = np.split(places, np.searchsorted(places, ends[:-1]))
            new = [x.records(y - end + x.values.size) for x, y, end in zip(held, parts, ends, strict=True) if len(y)]
            new = np.concatenate(new)
            more = Priced(new, new if self.has_front else _NONE, Counter(), 0)
            self.found[i][j] = joined(found, more, number)


class _Held(NamedTuple):
    """Both objectives of some rows of a block, for one problem. The first is infinite where a strategy is left out."""

    pricing: Pricing
    rows: np.ndarray
    case: int  # the first
    values: np.ndarray
    second: np.ndarray
    order: Literal["F", "C"]  # in which they lie in memory

    @property
    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        return self.values.ravel(self.order), np.broadcast_to(self.second, self.values.shape).ravel(self.order)

    def records(self, flat: np.ndarray) -> np.ndarray:
        """Return the strategies at these indices of `flat`, as in `Priced`."""
        index = np.unravel_index(flat, self.values.shape, self.order)
        second = np.broadcast_to(self.second, self.values.shape)[index]
        return self.pricing.records(self.values[index], second, index[0] + self.case, index[1:-1], self.rows[index[-1]])


def _ranges(numbers) -> list[tuple[int, slice]]:
    """Return each number of a sequence in order, and where it stands."""
    own, starts = np.unique(numbers, return_index=True)
    return [*zip(own, map(slice, starts, [*starts[1:], len(numbers)]), strict=True)]


def _deep(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return values of cases and rows with the dimensions of axes between."""
    return values.reshape(len(values), *(1,) * (like.ndim - 2), -1)


def _add(total: np.ndarray, problems, sizes: np.ndarray, numbers: np.ndarray) -> None:
    """Add up numbers of cases and rows by size and problem.  Both are in order."""
    numbers = np.broadcast_to(numbers, (len(problems), len(sizes)))
    of, cases = np.unique(problems, return_index=True)
    own, rows = np.unique(sizes, return_index=True)
    total[np.ix_(own, of)] += np.add.reduceat(np.add.reduceat(numbers, cases, 0), rows, 1).T
