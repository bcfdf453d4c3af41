"""What strategies cost: a task of a search, which another process may run.

A task is one problem, some combinations of words and some layouts.  It gives the best, the front, and counts.
"""

from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np

from scalebook.language import Sheet
from scalebook.language.row import gather
from scalebook.parallelism import CHOICES
from scalebook.validity import RULES

from .columns import Columns, Grid, Held
from .space import _IDLE, Problem, slabs

__all__ = ["Priced", "built", "joined", "price"]

BLOCK = 1 << 18  # strategies evaluated at a time
_NONE = np.empty((0, 5))


class Priced(NamedTuple):
    """The best and the front, as rows of value, second value, and places among words, rows and axes; and counts."""

    best: np.ndarray
    front: np.ndarray
    rejected: Counter
    count: int


def _ordered(found: np.ndarray, first: int = 0) -> np.ndarray:
    """By value, then by place: equal strategies keep the order of the space."""
    keys = (found[:, 4], found[:, 3], found[:, 2], found[:, 1 - first], found[:, first])
    return found[np.lexsort(keys if first else (keys[0], keys[1], keys[2], keys[4]))]


def _front(found: np.ndarray) -> np.ndarray:
    """Those that none is better than in both values."""
    found = _ordered(found, 1)
    least = np.minimum.accumulate(np.concatenate([[np.inf], found[:-1, 0]]))
    return found[found[:, 0] < least]


def joined(a: Priced, b: Priced, best: int) -> Priced:
    """Two results as one, in whatever order they come."""
    return Priced(_ordered(np.concatenate([a.best, b.best]))[:best], _front(np.concatenate([a.front, b.front])),
                  a.rejected + b.rejected, a.count + b.count)  # fmt: skip


EMPTY = Priced(_NONE, _NONE, Counter(), 0)


class _Built(NamedTuple):
    sheet: Sheet
    constants: dict[str, float]


def built(problem: Problem, words: dict, offload: bool) -> _Built:
    """The part of a strategy's sheet that a search needs, and the letters that are the same for all rows.

    Raises TypeError naming the letters that it rests on and nobody gave.
    """
    searched = [*problem.letters, "tp", "cp", "ep", "pp", "dp", "microbatches"]
    told = dict.fromkeys(searched, 1.0) | problem.fixed
    told.pop("microbatches")
    formulas = [x for x in problem.knowns if hasattr(x, "letter")]
    knowns = tuple(x for x in problem.knowns if not hasattr(x, "letter"))
    sheet, knowns, told = problem.sheet.sheet(knowns, told | words | {"offload": offload})
    sheet = sheet.using(*formulas) if formulas else sheet
    cells = gather(knowns, {n: x for n, x in told.items() if n not in searched})
    wanted = dict.fromkeys([*problem.axes, *(x for limit in problem.limits for x in (limit[0], limit[2]) if isinstance(x, str))])
    given = {*cells, *searched}
    part = sheet.only(*(x for x in wanted if x in sheet.formulas and x not in given), given=given)
    if lacking := sorted({x for f in part.formulas.values() for x in f.inputs} - part.formulas.keys() - given):
        raise TypeError(f"this search needs {', '.join(lacking)}: give {lacking[0]}=...")
    return _Built(part, {n: c.value for n, c in cells.items() if np.ndim(c.value) == 0})


def price(problem: Problem, combinations: list[tuple[int, dict]], part: np.ndarray, start: int) -> Priced:
    """One task: these combinations of words, with their places, on these layouts."""
    found, rejected = EMPTY, Counter()
    sheets = cache(lambda place, offload: built(problem, dict(combinations)[place], offload))
    for slab in slabs(problem, part, start, [x for _, x in combinations], rejected):
        constants = {n: x for n, x in problem.values.items() if n not in slab.columns}
        columns, shared = Columns(slab.columns, constants), {}
        kinds = np.stack([*slab.live.values()], axis=1) @ (1 << np.arange(len(slab.live)))
        for kind in np.unique(kinds):
            live = {n: bool(kind >> i & 1) for i, n in enumerate(slab.live)}
            axes = problem.live_axes(live)
            for place, words in combinations:
                rows = np.flatnonzero((kinds == kind) & slab.says(problem, words))
                if len(rows):
                    pricing = _Pricing(problem, sheets(place, problem.offloads(axes)), columns, shared, axes)
                    rows = pricing.allowed(rows, slab, words, rejected)
                    found = pricing.best(rows, slab, place, found, rejected)
    return found._replace(rejected=rejected)


class _Pricing:
    """One sheet on the columns of a slab."""

    def __init__(self, problem, built, columns, shared, axes):
        self.problem, self.sheet, self.columns, self.all_axes = problem, built.sheet, columns, axes
        self.axes = {n: x for n, x in axes.items() if len(x) > 1}
        self.size = int(np.prod([len(x) for x in axes.values()]))
        constants = built.constants | {n: x[0] for n, x in axes.items() if len(x) == 1}
        self.letters = {n: Held(0, np.float64(x)) for n, x in constants.items()} | {n: x for n, x in columns.letters.items() if x.bits}
        self.held, self.later = {}, []
        versions = {n: (n, float(x.array)) if x.bits == 0 else n for n, x in self.letters.items()}
        on_axes = set(self.axes)
        for name, f in self.sheet.formulas.items():
            if name in self.letters:
                continue
            if on_axes & set(f.inputs):
                on_axes.add(name)
                self.later.append(f)
                continue
            version = (f.rhs, *(versions[x] for x in f.inputs))
            versions[name] = shared.setdefault(("version", version), (name, len(shared)))
            if versions[name] not in shared:
                shared[versions[name]] = columns.evaluate(f.rhs, self.letters)
            self.letters[name] = shared[versions[name]]

    def allowed(self, rows, slab, words, rejected):
        """The rows that rules about words and the domains of formulas allow."""
        values = {**self.problem.values, **{n: x[rows] for n, x in slab.columns.items()}, **words}
        values["offload"] = False  # strategies that offload are only made where there is room
        for rule in RULES:
            if set(rule.needs) & set(CHOICES) and rule.name not in self.problem.lifted:
                holds = rule.of(values)
                if holds is not None:
                    rows, values = self._keep(rows, values, np.broadcast_to(np.asarray(holds, bool), rows.shape), rule.name, rejected)
        for name, conditions in self.sheet.domain.items():
            for x in conditions:
                if all(n in self.letters for n in x.letters):
                    known = {n: np.broadcast_to(self.columns.spread(self.letters[n], rows), rows.shape) for n in x.letters}
                    said = f"{self.sheet.formulas[name].name} holds for {x.words}"
                    rows, values = self._keep(rows, values, np.broadcast_to(x.holds(known), rows.shape), said, rejected)
        return rows

    def _keep(self, rows, values, holds, name, rejected):
        if holds.all():
            return rows, values
        rejected[name] += int((~holds).sum()) * self.size
        return rows[holds], {n: x[holds] if np.ndim(x) else x for n, x in values.items()}

    def best(self, rows, slab, place, found, rejected):
        """The rows with all combinations of the axes, in blocks of bounded size, joined to what was found."""
        step = max(1, BLOCK // self.size)
        for start in range(0, len(rows), step):
            found = self._block(rows[start : start + step], slab, place, found, rejected)
        return found

    def values(self, rows):
        """All letters on a grid of rows and axes."""
        grid = Grid(self.columns, rows, self.axes)
        letters = {**self.letters, **grid.axes}
        for f in self.later:
            letters[f.letter] = grid.evaluate(f.rhs, letters, self.held)
        return grid, letters

    def _block(self, rows, slab, place, found, rejected):
        with np.errstate(all="ignore"):
            grid, letters = self.values(rows)
            first, second = (grid.array(letters[x]) for x in self.problem.axes[:2])
            fits = self._fitting(grid, letters, rejected)
            values = np.where(fits & np.isfinite(first), first, np.inf)
        values = np.broadcast_to(values, grid.shape)
        places = _Places(self, slab.places[rows], place, grid.shape)
        best = places.lowest(values, second, self.problem.best, found.best)
        front = places.front(values, second, found.front)
        return joined(found, Priced(best, front, Counter(), values.size), self.problem.best)

    def _fitting(self, grid, letters, rejected):
        """Where the limits are kept; what breaks one is counted under the first."""
        fits, left = np.ones((1,) * len(grid.shape), bool), int(np.prod(grid.shape))
        for letter, relation, bound, name in self.problem.limits:
            if letter not in letters or isinstance(bound, str) and bound not in letters:
                continue
            own, other = grid.array(letters[letter]), grid.array(letters[bound]) if isinstance(bound, str) else bound
            fits = fits & (own <= other if relation == "<=" else own >= other)
            now = int(np.count_nonzero(fits)) * (int(np.prod(grid.shape)) // fits.size)
            if now < left:
                rejected[name] += left - now
            left = now
        return fits


class _Places:
    """Where in the space the entries of a block are."""

    def __init__(self, pricing, rows, words, shape):
        self.pricing, self.rows, self.words, self.shape = pricing, rows, words, shape

    def records(self, values, second, flat):
        """Rows of a result for entries of a block, by their place in it."""
        index = np.unravel_index(flat, self.shape)
        second = np.broadcast_to(second, self.shape)[index]
        letters, axis = self.pricing.problem.letters, np.zeros(len(flat))
        at = dict(zip(self.pricing.axes, index[1:], strict=True))
        for name, own in self.pricing.all_axes.items():
            axis = axis * len(letters[name]) + (at[name] if name in at else letters[name].index(own[0]))
        return np.stack([values[index], second, np.full(len(flat), self.words), self.rows[index[0]], axis], axis=1)

    def lowest(self, values, second, number, best):
        """The lowest, no more than could be among the best."""
        enough = best[-1, 0] if len(best) >= number else np.inf
        flat = np.flatnonzero(values.ravel() <= enough) if np.isfinite(enough) else np.flatnonzero(np.isfinite(values.ravel()))
        if len(flat) > number:
            own = values.ravel()[flat]
            flat = flat[own <= np.partition(own, number - 1)[number - 1]]
        return self.records(values, second, flat)

    def front(self, values, second, front):
        """Those that nothing in their block and nothing known is better than in both values."""
        others = tuple(i for i in range(1, values.ndim) if second.shape[i] == 1)
        least = values.min(axis=others, keepdims=True)  # along these axes only the least can be on the front
        second = np.broadcast_to(second, least.shape)
        known = np.concatenate([[np.inf], front[:, 0]])[np.searchsorted(front[:, 1], second.ravel(), side="right")]
        keep = np.flatnonzero((least.ravel() <= known) & np.isfinite(least.ravel()))
        if not len(keep):
            return _NONE
        order = np.lexsort((least.ravel()[keep], second.ravel()[keep]))
        keep = keep[order]
        own = least.ravel()[keep]
        keep = keep[own <= np.minimum.accumulate(own)]
        flat = []
        for place in zip(*np.unravel_index(keep, least.shape), strict=True):
            at = tuple(slice(None) if i in others else x for i, x in enumerate(place))
            inner = np.unravel_index(np.argmin(values[at]), [self.shape[i] for i in others]) if others else ()
            whole = list(place)
            for i, x in zip(others, inner, strict=True):
                whole[i] = x
            flat.append(np.ravel_multi_index(whole, self.shape))
        return _front(self.records(values, np.broadcast_to(second, least.shape), np.array(flat, int)))
