"""Price strategies.  One task of a search, which may run in another process, returns its best ones and counts."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from scalebook.language.row import strays

from .plan import Block, Evaluated
from .planning import Planned, PlannedSheet, planned_for
from .problem import Problem, Slab, by_words, counts, distinct, layouts, nonempty, ruled, slabs

__all__ = ["EMPTY", "Priced", "Pricing", "each_sheet", "joined", "price"]

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


def price(problem: Problem, combinations: list[tuple[int, dict]], places: range) -> list[Priced]:
    """Compute one task: each combination of options on each layout in `places`, for the problem and its `others`.

    Returns the best strategies of each, and counts by rule.
    """
    found, rejected = [EMPTY for _ in problem.each], Counter()

    def reject(name, cases, rows, numbers):
        for case, number in zip(cases, numbers.sum(1).tolist(), strict=True):
            rejected[case.problem, name] += number

    planned, words = planned_for(problem, combinations), [x for _, x in combinations]
    with np.errstate(all="ignore"):
        for slab in slabs(problem, layouts(problem), places, words, rejected):
            for part in by_words(problem, slab, words) if len(slab.places) else ():
                for pricing, rows, allowed in each_sheet(planned, problem, part, reject):
                    pricing.best(rows, allowed, found, reject)
    own = [Counter({name: x for (j, name), x in rejected.items() if i == j and x}) for i in range(len(found))]
    return [x._replace(rejected=y) for x, y in zip(found, own, strict=True)]


def each_sheet(planned: Planned, problem: Problem, slab: Slab, reject: Callable, first: Iterable[int] = ()):
    """For each sheet, yield its `Pricing`, the rows that the rules allow for some case, and for which: [cases, rows].

    The sheets of the combinations with the numbers `first` come first.  `reject(rule, cases, rows, numbers)` is called
    with the rows that a rule forbids and the number of strategies that each stands for.
    """
    evaluated = Evaluated(planned.plan, slab.columns, len(slab.places))
    said, known = {}, {}
    early = {i: None for x in first for i, y in enumerate(planned.sheets) if any(x == c.place for c in y.cases)}
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
                reject(name, self.sheet.cases, rows, lost * numbers)
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

    def best(self, rows, allowed, found, reject):
        """Price rows with all combinations of values on axes.  Join the best and the front to `found`, by problem."""
        of = np.array(self.sheet.problems)
        for part in self.slices(len(rows)):
            block, own = Block(self.evaluated, rows[part]), allowed[:, part]
            if self.problem.space.solve:
                block = self._solved(block)
            fits, count, out = self.fitting(block)
            for name, numbers in out.items():
                reject(name, self.sheet.cases, block.rows, numbers * own)
            values, second = self.valued(block, fits & own.reshape(len(of), *(1,) * len(self.plan.shape), -1))
            numbers = (count * own).sum(1)
            for i in dict.fromkeys(self.sheet.problems):
                first, last = np.searchsorted(of, [i, i + 1])
                found[i] = self._joined(found[i], block, values, second, range(first, last), numbers[first:last].sum())

    def _joined(self, found, block, values, second, cases, count):
        """Return `found` of one problem joined with the best and the front of its cases."""
        values, second = values[cases.start : cases.stop], second[cases.start : cases.stop]
        lowest = _lowest(values, self.problem.best, found.best)
        known = np.concatenate([[_MOST], found.front[:, 0]])
        known = known[np.searchsorted(found.front[:, 1], second.ravel(), side="right")].reshape(second.shape)
        ahead = np.flatnonzero(values <= known)
        if not len(lowest) and not len(ahead):
            return found._replace(count=found.count + int(count))
        parts = (self.records(block, values, second, x, cases.start) for x in (lowest, ahead))
        return joined(found, Priced(*parts, Counter(), int(count)), self.problem.best)

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

    def records(self, block, values, second, flat, first=0):
        """Return the strategies at flat indices of a block as rows of five numbers (see `Priced`).

        `first` is the case that the block's values begin with.
        """
        index = np.unravel_index(flat, values.shape)
        second = np.broadcast_to(second, values.shape)[index]
        axis = flat // values.shape[-1] % math.prod(self.plan.shape)  # rows are the last dimension, but precede axes
        words = np.array([x.place for x in self.sheet.cases])[index[0] + first]
        return np.stack([values[index], second, words, self.slab.places[block.rows[index[-1]]], axis], axis=1)

    def _solved(self, block):
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
