"""What strategies cost: a task of a search, which another process may run.

A task is one problem, some combinations of words and some layouts.  It gives the best, the front, and counts.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from scalebook.language import Formula
from scalebook.language.notation import nearest
from scalebook.language.row import gather, strays

from .columns import Columns, Grid, Held, Prepared
from .problem import Problem, Rows, counts, distinct, ruled, slabs, some

__all__ = ["Priced", "built", "joined", "price"]

BLOCK = 1 << 18  # strategies evaluated at a time
_NONE = np.empty((0, 5))


class Priced(NamedTuple):
    """The best and the front, as rows of value, second value, and places among words, rows and axes; and counts."""

    best: np.ndarray
    front: np.ndarray
    rejected: Counter
    count: int


def _best(found: np.ndarray, number: int) -> np.ndarray:
    """The lowest; equal ones keep the order of the space, by words, rows and axes."""
    return found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0]))][:number]


def _front(found: np.ndarray) -> np.ndarray:
    """Those that none is better than in both values, by the second; of equal ones the first."""
    found = found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0], found[:, 1]))]
    least = np.minimum.accumulate(np.concatenate([[np.inf], found[:-1, 0]]))
    return found[found[:, 0] < least]


def joined(a: Priced, b: Priced, best: int) -> Priced:
    """Two results as one, in whatever order they come."""
    return Priced(
        _best(np.concatenate([a.best, b.best]), best),
        _front(np.concatenate([a.front, b.front])),
        a.rejected + b.rejected,
        a.count + b.count,
    )


EMPTY = Priced(_NONE, _NONE, Counter(), 0)


class _Built(NamedTuple):
    formulas: dict[str, Formula]
    constants: dict[str, float]


def built(problem: Problem, words: dict, offload: bool) -> _Built:
    """The formulas of a strategy's sheet that a search needs, in order, and the letters that are the same for all rows.

    Raises TypeError naming the letters that it rests on and nobody gave, and a row that nothing is taken from.
    """
    space = problem.space
    searched = [*problem.letters, *space.layout, *space.follows, *space.solved]
    told = dict.fromkeys([*problem.letters, *space.layout], 1.0) | problem.fixed
    swapped = [x for x in problem.knowns if isinstance(x, Formula)]
    knowns = tuple(x for x in problem.knowns if not isinstance(x, Formula))
    sheet, knowns, told = problem.sheet.sheet(knowns, told | words | ({"offload": offload} if space.offloads else {}))
    formulas = (sheet.using(*swapped) if swapped else sheet).formulas
    cells = gather(knowns, told)
    given = {*cells, *searched}
    todo = [x for x in problem.axes if x not in given]
    if stray := [x for x in todo if x not in formulas]:
        raise TypeError(f"{sheet.name} gives no {stray[0]} to be sought; {nearest(stray[0], formulas)}")
    todo += [x for x in (space.solve[1] if space.solve else ()) if x not in given]
    usual = {x.split()[0] for x in space.limits}  # where nothing is offloaded there is no memory away to limit
    for letter, _, bound, _ in problem.limits:
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
        raise TypeError(
            f"this search needs {', '.join(lacking)}: give {lacking[0]}=...{_idle(knowns, formulas, sheet)}"
        )
    constants = {n: c.value for n, c in cells.items() if np.ndim(c.value) == 0 and n not in searched}
    return _Built({n: f for n, f in formulas.items() if n in needed}, constants)


def _idle(knowns, formulas, sheet) -> str:
    """Rows that nothing is taken from, as the end of a sentence about what lacks."""
    rows = (x for x in knowns if len(x) and not any(n in formulas or n in sheet.inputs for n in x))
    return "".join(f"; {getattr(x, 'name', 'a row')}, given by position, has only {', '.join(x)}" for x in rows)


def price(problem: Problem, combinations: list[tuple[int, dict]], rows: Rows) -> Priced:
    """One task: these combinations of words, with their places, on these rows."""
    found, rejected, made = EMPTY, Counter(), {}
    axes = {n: problem.letters[n] for n in problem.on_axes}
    with np.errstate(all="ignore"):
        for slab in slabs(problem, rows, [x for _, x in combinations], rejected):
            constants = {n: x for n, x in problem.values.items() if n not in slab.columns and n not in axes}
            columns, shared = Columns(slab.columns, constants, len(slab.places)), {}
            for place, words in combinations:
                parts = distinct(problem, words, slab)
                kept = np.flatnonzero(some(parts))
                if len(kept):
                    if place not in made:
                        made[place] = built(problem, words, problem.offloads(problem.letters))
                    pricing = _Pricing(problem, made[place], columns, shared, slab, axes, parts)
                    kept = pricing.allowed(kept, words, rejected)
                    found = pricing.best(kept, place, found, rejected)
    return found._replace(rejected=rejected)


class _Pricing:
    """One sheet on the columns of a slab."""

    def __init__(self, problem, built, columns, shared, slab, axes, parts):
        self.problem, self.formulas, self.columns, self.slab, self.axes = problem, built.formulas, columns, slab, axes
        self.parts = parts
        self.letters = {n: Held(0, np.float64(x)) for n, x in built.constants.items()}
        self.letters |= {n: x for n, x in columns.letters.items() if x.bits}
        self.later = {}
        versions = {n: (n, float(x.array)) if x.bits == 0 else n for n, x in self.letters.items()}
        on_axes = {*axes, *problem.space.solved}
        for name, f in self.formulas.items():
            if name in self.letters:
                continue
            # Sheets that share a formula and what it rests on share its value.
            version = (f.rhs, *(versions.get(x) for x in f.inputs))
            if on_axes.intersection(f.inputs):
                on_axes.add(name)
                if version not in shared:
                    shared[version] = Prepared(columns, f.rhs, self.letters)
                self.later[name] = shared[version]
                continue
            if version not in shared:
                shared[version] = (name, len(shared)), columns.evaluate(f.rhs, self.letters)
            versions[name], self.letters[name] = shared[version]

    def allowed(self, rows, words, rejected):
        """The rows that rules about words and the domains of formulas allow."""
        words = words | {
            "offload": self.problem.always_offloads
        }  # else it is tried where there is room, and only there
        for name, holds in ruled(self.problem, self.slab, words):
            rows = self._keep(rows, holds[rows], name, rejected)
        for name, f in self.formulas.items():
            for x in f.domain:
                if all(n in self.letters for n in x.letters):
                    known = {n: self.columns.spread(self.letters[n]) for n in x.letters}
                    said = f"{f.name} holds for {x.words}"
                    rows = self._keep(rows, np.broadcast_to(x.holds(known), self.columns.size)[rows], said, rejected)
            if self.problem.space.is_signed and name in self.letters:
                held = self.letters[name]
                if (bad := strays(name, held.array)).any():
                    bad = np.broadcast_to(self.columns.spread(held._replace(array=bad)), self.columns.size)
                    rows = self._keep(rows, ~bad[rows], f"{name} has a value", rejected)
        return rows

    def _keep(self, rows, holds, name, rejected):
        if not holds.all():
            rejected[name] += int(counts(self.problem, [x[rows[~holds]] for x in self.parts]).sum())
        return rows[holds]

    def best(self, rows, place, found, rejected):
        """The rows with all combinations of the axes, in blocks of bounded size, joined to what was found."""
        step = max(1, BLOCK // int(np.prod([len(x) for x in self.axes.values()])))
        for start in range(0, len(rows), step):
            found = self._block(rows[start : start + step], place, found, rejected)
        return found

    def _block(self, rows, place, found, rejected):
        grid = Grid(self.columns, rows, self.axes)
        letters = {**self.letters, **grid.axes}
        if self.problem.space.solve:
            letters |= self._solved(grid, letters)
        for name, prepared in self.later.items():
            letters[name] = grid.finish(prepared, letters)
        first, second = (grid.array(letters[x]) for x in self.problem.axes)
        first = -first if self.problem.is_rising else first
        second = first if len(set(self.problem.axes)) == 1 else second
        fits, count = self._fitting(grid, letters, rejected)
        values = np.broadcast_to(np.where(fits & np.isfinite(first), first, np.inf), grid.shape)
        second = (
            np.broadcast_to(second, (len(rows), *np.shape(second)[1:]))
            if np.ndim(second)
            else np.full((1,) * values.ndim, second)
        )
        places = _Places(self.slab.places[rows], place, grid.shape)
        best = places.lowest(values, second, self.problem.best, found.best)
        front = places.front(values, second, found.front)
        return joined(found, Priced(best, front, Counter(), count), self.problem.best)

    def _solved(self, grid, letters):
        """The letter that follows from each choice, by evaluating only what it is found by."""
        name, _, solve = self.problem.space.solve
        paths, parts = {}, {}

        def at(letter, values, places=None):
            if letter not in paths:
                rests_on = self._rests_on(letter)
                paths[letter] = [n for n in self.later if n in rests_on]
            if id(places) not in parts:
                parts.clear()
                parts[id(places)] = grid.some(places), places
            part, known = parts[id(places)][0], {**letters, name: values}
            for n in paths[letter]:
                known[n] = part.finish(self.later[n], known)
            return part.array(known[letter])

        return {name: solve(at, grid.shape)}

    def _rests_on(self, letter):
        """The letter, and all that it is made of by the formulas of the sheet."""
        found, todo = set(), [letter]
        while todo:
            if (name := todo.pop()) not in found:
                found.add(name)
                todo += self.formulas[name].inputs if name in self.formulas else ()
        return found

    def _fitting(self, grid, letters, rejected):
        """Where a strategy that repeats no other has values and keeps the limits, and how many have values;
        the rest is counted.
        """
        fits = np.ones((len(grid.rows), *(1,) * len(grid.axes)), bool)
        for part in self.parts:
            fits = fits & part[grid.rows]
        size = int(np.prod(grid.shape))
        count = left = int(np.count_nonzero(fits)) * (size // fits.size)
        for name, holds, is_limit in self._conditions(grid, letters):
            fits = fits & holds
            now = int(np.count_nonzero(fits)) * (size // fits.size)
            if now < left:
                rejected[name] += left - now
            left, count = now, count if is_limit else now
        return fits, count

    def _conditions(self, grid, letters):
        """Names, truths and whether it is a limit: the domains and signs of formulas that rest on the axes,
        then the limits.
        """
        for name in self.later:
            f = self.formulas[name]
            for x in f.domain:
                if not all(n in self.letters for n in x.letters):
                    yield (
                        f"{f.name} holds for {x.words}",
                        x.holds({n: grid.array(letters[n]) for n in x.letters}),
                        False,
                    )
            if self.problem.space.is_signed:
                yield f"{name} has a value", ~strays(name, letters[name]), False
        for letter, relation, bound, name in self.problem.limits:
            if letter in letters:
                own, other = (
                    grid.array(letters[letter]),
                    grid.array(letters[bound]) if isinstance(bound, str) else bound,
                )
                yield name, own <= other if relation == "<=" else own >= other, True


class _Places:
    """Where in the space the entries of a block are."""

    def __init__(self, rows, words, shape):
        self.rows, self.words, self.shape = rows, words, shape
        self.axes = int(np.prod(shape[1:]))

    def records(self, values, second, flat):
        """Rows of a result for entries of a block, by their place in it."""
        index = np.unravel_index(flat, self.shape)
        second = np.broadcast_to(second, self.shape)[index]
        return np.stack(
            [values[index], second, np.full(len(flat), self.words), self.rows[index[0]], flat % self.axes], axis=1
        )

    def lowest(self, values, second, number, best):
        """The lowest, no more than could be among the best."""
        enough = best[-1, 0] if len(best) >= number else np.inf
        flat = (
            np.flatnonzero(values.ravel() <= enough)
            if np.isfinite(enough)
            else np.flatnonzero(np.isfinite(values.ravel()))
        )
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
