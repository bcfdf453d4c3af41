"""Price strategies.  One task of a search, which may run in another process, returns its best ones and counts."""

import math
import pickle
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalebook.language import Formula, symbol
from scalebook.language.domain import Condition
from scalebook.language.notation import nearest
from scalebook.language.row import gather, strays

from .bounds import least_of
from .plan import Block, Evaluated, Plan
from .problem import Problem, Slab, counts, distinct, layouts, nonempty, ruled, slabs

__all__ = ["Planned", "Priced", "Pricing", "built", "each_sheet", "joined", "planned_for", "price"]

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


def built(problem: Problem, words: dict, offload: bool) -> "_Built":
    """Return the formulas that a search needs for one combination of options, in order, and the constant inputs.

    Raises TypeError for inputs that the formulas need and nobody gave.
    """
    space = problem.space
    searched = [*problem.letters, *space.layout, *space.follows, *space.solved]
    told = dict.fromkeys([*problem.letters, *space.layout], 1.0) | problem.fixed
    swapped = [x for x in problem.knowns if isinstance(x, Formula)]
    told |= words | ({"offload": offload} if space.offloads else {})
    # pass formulas too: a letter that one of them gives gets no default
    sheet, knowns, told = problem.sheet.sheet(problem.knowns, told)
    formulas = (sheet.using(*swapped) if swapped else sheet).formulas
    knowns = tuple(x for x in knowns if not isinstance(x, Formula))
    cells = gather(knowns, told)
    given = {*cells, *searched}
    todo = [x for x in problem.axes if x not in given]
    if stray := [x for x in todo if x not in formulas]:
        raise TypeError(f"{sheet.name} gives no {stray[0]} to be sought; {nearest(stray[0], formulas)}")
    todo += [x for x in (space.solve[1] if space.solve else ()) if x not in given]
    # Default limits may be missing: without offloading there is no offloaded memory.
    usual = {x.split()[0] for x in space.limits}
    for letter, bound in ((x.letter, x.bound) for x in problem.limits):
        if letter in formulas or letter in given:
            todo += [x for x in (letter, bound) if isinstance(x, str) and x not in given]
        elif letter not in usual:
            raise TypeError(f"{sheet.name} has no {letter} to be limited; {nearest(letter, formulas)}")
    needed = set()
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo += [x for x in formulas[name].inputs if x not in given] if name in formulas else []
    if lacking := sorted(needed - formulas.keys()):
        rest = f"give {lacking[0]}=...{_idle(knowns, formulas, sheet)}"
        raise TypeError(f"this search needs {', '.join(lacking)}: {rest}")
    constants = {n: c.value for n, c in cells.items() if np.ndim(c.value) == 0 and n not in searched}
    return _Built({n: f for n, f in formulas.items() if n in needed}, constants)


class _Built(NamedTuple):
    formulas: dict[str, Formula]
    constants: dict[str, float]

    @property
    def conditions(self) -> list[tuple[Formula, Condition]]:
        """The conditions under which the formulas hold, each with its formula."""
        return [(f, x) for f in self.formulas.values() for x in f.domain]


def _idle(knowns, formulas, sheet) -> str:
    """Name the rows that the sheet does not use, as the end of a sentence about missing letters."""
    rows = (x for x in knowns if len(x) and not any(n in formulas or n in sheet.inputs for n in x))
    return "".join(f"; {getattr(x, 'name', 'a row')}, given by position, has only {', '.join(x)}" for x in rows)


def price(problem: Problem, combinations: list[tuple[int, dict]], places: range) -> Priced:
    """Compute one task: each combination of options on each layout in `places`. Return the best, and counts by rule."""
    found, rejected = EMPTY, Counter()

    def reject(name, rows, numbers):
        rejected[name] += int(numbers.sum())

    planned = planned_for(problem, combinations)
    with np.errstate(all="ignore"):
        for slab in slabs(problem, layouts(problem), places, [x for _, x in combinations], rejected):
            if len(slab.places):
                for pricing, kept in each_sheet(planned, problem, slab, reject):
                    found = pricing.best(kept, found, reject)
    return found._replace(rejected=rejected)


def each_sheet(planned: "Planned", problem: Problem, slab: Slab, reject: Callable, first: tuple[int, ...] = ()):
    """For each combination of options, yield its `Pricing` and the rows that the rules allow.

    Combinations with the numbers `first` come first.  `reject(rule, rows, numbers)` is called with the rows that a rule
    forbids and the number of strategies that each stands for.
    """
    evaluated = Evaluated(planned.plan, slab.columns, len(slab.places))
    said, known = {}, {}
    for place, sheet in [*((None, planned.sheets[i]) for i in first), *enumerate(planned.sheets)]:
        if place not in first:
            key = problem.judged_by(sheet.words)
            if key not in known:
                parts = distinct(problem, sheet.words, slab, said)
                known[key] = parts, np.flatnonzero(nonempty(parts))
            parts, kept = known[key]
            if len(kept):
                pricing = Pricing(problem, sheet, evaluated, slab, parts)
                yield pricing, pricing.allowed(kept, reject, said)
        if place is not None:
            evaluated.forget(sheet.last)


class _Sheet(NamedTuple):
    """The sheet of one combination of words, as places in a plan."""

    place: int
    words: dict
    letters: dict[str, int]
    conditions: list[tuple[str, Condition | str, dict[str, int]]]  # a str is a letter that must have its sign
    last: list[int]  # places that no later sheet needs
    least: int | None  # place of a lower bound of the objective that depends on no axis, for a sweep


class Planned:
    """A search problem compiled: formulas of all combinations of options as one list of operations.

    If `has_bounds`, the plan also has a lower bound of the objective for each combination.
    """

    def __init__(self, problem: Problem, combinations: list[tuple[int, dict]], has_bounds: bool = False):
        space, axes = problem.space, {n: problem.letters[n] for n in problem.on_axes}
        self.plan = Plan(problem.columned, axes, space.solved)
        self.sheets, seen = [], set()
        for bound in (x.bound for x in problem.limits if not isinstance(x.bound, str)):
            self.plan.constant(bound)  # now, because the plan cannot change during evaluation
        for place, words in combinations:
            own = built(problem, words, problem.offloads(problem.letters))
            letters = {n: self.plan.constant(x) for n, x in own.constants.items()} | self.plan.letters
            given, conditions = set(letters), []
            for name, f in own.formulas.items():
                if name not in given:
                    letters[name] = self.plan.add(f.rhs, letters)
            for name, f in own.formulas.items():
                for x in f.domain:
                    conditions.append((f"{f.name} holds for {x.words}", x, {n: letters[n] for n in x.letters}))
                if space.is_signed:
                    conditions.append((f"{name} has a value", name, {name: letters[name]}))
            least = least_of(self.plan, symbol(problem.axes[0]), own.formulas, letters) if has_bounds else None
            self.sheets.append(_Sheet(place, words, letters, conditions, [], least))
        for sheet in reversed(self.sheets):
            sheet.last.extend(self.plan.above(_ends(problem, sheet), seen.__contains__))
            seen.update(sheet.last)


def _ends(problem: Problem, sheet: _Sheet) -> set[int]:
    """Return the places of a sheet's results."""
    ends = {sheet.letters[x] for x in (*problem.axes, *(problem.space.solve[1] if problem.space.solve else ()))}
    ends |= {sheet.letters[x] for y in problem.limits for x in (y.letter, y.bound) if x in sheet.letters}
    ends |= {x for _, _, places in sheet.conditions for x in places.values()}
    return ends | (set() if sheet.least is None else {sheet.least})


_PLANS: dict[bytes, Planned] = {}


def planned_for(problem: Problem, combinations: list[tuple[int, dict]], of=None) -> Planned:
    """Return the `Planned` of a task.  A second task with the same problem (or the same `of`, if given) reuses it.

    So does a task with another number of devices, because a layout has that number as a column.
    """
    letters = {n: x for n, x in problem.letters.items() if n not in problem.space.layout}
    fixed = {n: x for n, x in problem.fixed.items() if n not in problem.columned}
    known = problem.sheet, problem.knowns, letters, fixed, problem.columned, problem.axes, problem.limits
    key = pickle.dumps((known if of is None else of, combinations))
    if key not in _PLANS:
        _PLANS.clear()
        _PLANS[key] = Planned(problem, combinations, has_bounds=of is not None)
    return _PLANS[key]


class Pricing:
    """Prices one combination of options on a slab, a batch of a search's rows."""

    def __init__(self, problem: Problem, sheet: _Sheet, evaluated: Evaluated, slab: Slab, parts: list[np.ndarray]):
        self.problem, self.sheet, self.evaluated, self.slab, self.parts = problem, sheet, evaluated, slab, parts
        self.plan = evaluated.plan

    def allowed(self, rows, reject, said):
        """Return the `rows` that the rules and the formulas' domains allow; `reject` counts the others by rule."""
        # if offloading is searched, the limits decide where there is room for it
        words = self.sheet.words | {"offload": self.problem.always_offloads}
        key = "rules", *self.problem.judged_by(words)
        if key not in said:
            said[key] = list(ruled(self.problem, self.slab, words))
        for name, holds in said[key]:
            rows = self._keep(rows, holds[rows], name, reject)
        for name, condition, places in self.sheet.conditions:
            if any(map(self.plan.is_wide, places.values())):
                continue
            key = (id(condition), *places.values())
            if key not in said:
                said[key] = self._holds(condition, places, Block(self.evaluated, np.arange(len(self.slab.places))))
            if not np.all(said[key]):
                rows = self._keep(rows, np.broadcast_to(said[key], self.evaluated.size)[rows], name, reject)
        return rows

    def _holds(self, condition, places, block):
        """Return where a condition holds, or where a letter's value has its sign."""
        values = {n: block.value(x) for n, x in places.items()}
        return ~strays(condition, values[condition]) if isinstance(condition, str) else condition.holds(values)

    def _keep(self, rows, holds, name, reject):
        if not holds.all():
            out = rows[~holds]
            reject(name, out, counts(self.problem, [x[out] for x in self.parts]))
        return rows[holds]

    def best(self, rows, found, reject):
        """Price rows with all combinations of values on axes.  Return `found` joined with the best and the front."""
        for part in self.slices(len(rows)):
            block = Block(self.evaluated, rows[part])
            if self.problem.space.solve:
                block = self._solved(block)
            fits, count, out = self.fitting(block)
            for name, numbers in out.items():
                reject(name, block.rows, numbers)
            values, second = self.valued(block, fits)
            lowest = _lowest(values, self.problem.best, found.best)
            known = np.concatenate([[_MOST], found.front[:, 0]])
            known = known[np.searchsorted(found.front[:, 1], second.ravel(), side="right")].reshape(second.shape)
            ahead = np.flatnonzero(values <= known)
            parts = (self.records(block, values, second, x) for x in (lowest, ahead))
            found = joined(found, Priced(*parts, Counter(), int(count.sum())), self.problem.best)
        return found

    def slices(self, number):
        """Split `number` rows into slices so short that all their strategies fit a core's cache."""
        step = max(1, BLOCK // math.prod(self.plan.shape))
        return [slice(start, start + step) for start in range(0, number, step)]

    def valued(self, block, fits):
        """Return both objectives of a block's strategies.  The first is infinite where a strategy does not fit."""
        first, second = (block.value(self.sheet.letters[x]) for x in self.problem.axes)
        first = -first if self.problem.is_rising else first
        second = first if len(set(self.problem.axes)) == 1 else second
        values = np.broadcast_to(np.where(fits & np.isfinite(first), first, np.inf), block.shape)
        second = _as_deep(second, values.ndim)
        return values, np.broadcast_to(second, (*second.shape[:-1], len(block.rows)))

    def records(self, block, values, second, flat):
        """Return the strategies at flat indices of a block as rows of five numbers (see `Priced`)."""
        index = np.unravel_index(flat, block.shape)
        second = np.broadcast_to(second, block.shape)[index]
        axis = flat // block.shape[-1]  # rows are the last dimension of a block, but precede axes in the space
        words, rows = np.full(len(flat), self.sheet.place), self.slab.places[block.rows[index[-1]]]
        return np.stack([values[index], second, words, rows, axis], axis=1)

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
            found = _as_deep(part.value(self.sheet.letters[letter]), len(block.shape))
            return np.moveaxis(found, -1, 0)

        return block.solved({place: np.moveaxis(solve(at, (len(block.rows), *block.shape[:-1])), 0, -1)})

    def fitting(self, block):
        """Return where strategies fit: they repeat no other, have values, and are within all limits.

        Also return, for each row, how many strategies have values, and how many each condition leaves out.
        """
        fits = np.ones((*(1,) * len(self.plan.shape), len(block.rows)), bool)
        for part in self.parts:
            fits = fits & np.moveaxis(part[block.rows], 0, -1)
        count = left = self._numbers(fits)
        out = Counter()
        for name, holds, is_limit in self._conditions(block):
            fits = fits & holds
            now = self._numbers(fits)
            if not np.array_equal(now, left):
                out[name] = out[name] + left - now
            left, count = now, count if is_limit else now
        return fits, count, out

    def _numbers(self, fits):
        """Count, for each row, the strategies that are left.  Shape [rows], dtype int."""
        own = fits.reshape(-1, fits.shape[-1])
        kind = np.uint8 if len(own) < 256 else np.intp  # adding up bytes is faster
        return own.view(np.uint8).sum(0, dtype=kind).astype(np.intp) * (math.prod(self.plan.shape) // len(own))

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
