"""Price the strategies of one sheet on a batch of a search's rows."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import or_

import numpy as np

from scalebook.language.row import strays

from .distinct import numbered
from .plan import Block, Evaluated
from .planning import Planned, PlannedSheet
from .problem import Problem, Slab, counts, distinct, nonempty, ruled

__all__ = ["Pricing", "each_sheet", "same_limits"]

BLOCK = 1 << 16  # strategies evaluated at a time, so that the arrays stay in a core's cache


def each_sheet(planned: Planned, problem: Problem, slab: Slab, reject: Callable):
    """Yield for each sheet its `Pricing`, the rows that the rules allow for any case, and for which: [cases, rows].

    `reject(rule, problems, rows, numbers)` is called with the rows that a rule forbids and how many strategies each
    stands for.
    """
    evaluated, said = {}, {}
    for sheet in planned.sheets:
        parts, own = distinct(problem, sheet.words, slab, said), tuple(dict.fromkeys(sheet.problems))
        if own not in evaluated:
            evaluated[own] = Evaluated(planned.plan, slab.columns, slab.among[own, :].any(0))
        kept = np.flatnonzero(evaluated[own].kept & nonempty(parts))
        if len(kept):
            pricing = Pricing(problem, sheet, evaluated[own], slab, parts)
            allowed = pricing.allowed(kept, reject, said)
            some = allowed.any(0)
            yield pricing, kept[some], allowed[:, some]
        evaluated[own].forget(sheet.last)


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
            key = (self.evaluated, id(condition), *places.values())
            if key not in said:
                said[key] = self._holds(condition, places, Block(self.evaluated, np.arange(len(self.slab.places))))
            if not np.all(said[key]):
                deep = len(of), *(1,) * len(self.plan.shape), len(self.slab.places)
                keep(name, np.broadcast_to(said[key], deep).reshape(len(of), -1)[:, rows])
        return allowed

    def _holds(self, condition, places, block):
        """Return where a condition holds, or where a letter's value has its sign."""
        values = {n: block.value(x) for n, x in places.items()}
        return ~strays(condition, values[condition]) if isinstance(condition, str) else condition.holds(values)

    def slices(self, number):
        """Split `number` rows into slices so short that what is computed row by row fits a core's cache."""
        if not self.plan.shape and not self.plan.solved:  # then nothing is
            return [slice(0, number)]
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

    def records(self, values, second, cases, axes, rows):
        """Return strategies as in `Priced`, by their values, cases, indices on each axis, and rows of the slab."""
        axis = np.ravel_multi_index(axes, self.plan.shape) if axes else np.zeros(len(rows))
        places = [self.sheet.cases[x].places for x in cases]
        often = np.fromiter(map(len, places), int)
        found = [values, second, self.slab.places[rows], axis]
        values, second, rows, axis = (np.repeat(x, often) for x in found)
        words = np.fromiter(itertools.chain(*places), float)
        return np.stack([values, second, words, rows, axis, np.ones(len(words))], axis=1)

    def solved(self, block):
        """Solve for the quantity that follows from each choice. Only quantities that the solver needs are evaluated."""
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
        """Return which strategies of the block differ from all earlier ones, have values, and keep every limit.

        Also return, for each case and row, how many have values, and how many each condition leaves out.
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


def same_limits(pricing, rows):
    """Number the rows, one number for rows with equal inputs to the limits. Return the numbers and how many differ."""
    plan, letters = pricing.plan, pricing.sheet.letters
    limits = [(x.letter, x.bound) for x in pricing.problem.limits if x.letter in letters]
    used = [letters[x] for pair in limits for x in pair if x in letters]
    for _, _, own in pricing.sheet.conditions:
        used += own.values() if any(map(plan.is_wide, own.values())) else ()
    bits = reduce(or_, (plan.bits[x] for x in used), 0)
    first, inverse = pricing.evaluated.columns.key(bits & plan.in_columns)
    places, span = inverse[pricing.evaluated.places[rows]], len(first)
    for part in pricing.parts:
        if part.strides[0] and part[0].size > 1:  # other parts are the same for all of these rows
            for byte in np.packbits(part[rows].reshape(len(rows), -1), axis=1).T:
                own, count = numbered(byte, 256)
                places, span = numbered(places * count + own, span * count)
    return numbered(places, span)
