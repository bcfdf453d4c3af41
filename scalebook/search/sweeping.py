"""Search at each of many numbers of devices, and price what does not depend on this number only once.

>>> from scalebook.calculon import Strategies, application, library
>>> model, machine = application(library.models["gpt3-1.3B"]), library.systems["h100_80g_nvl8"]
>>> found = sweep(Strategies(machine), model, devices=[8, 16, 24], global_batch=16, fused=True, progress=False)
>>> {n: float(f"{x:.3g}") for n, x in found.values.items()}
{8: 0.0062, 16: 0.00367, 24: 0.0031}
>>> found[24].fitting + sum(found[24].rejected.values())
637640
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial, reduce
from operator import or_

import numpy as np

from scalebook.language import NOTATION
from scalebook.language.arguments import as_list, checked
from scalebook.language.notation import quoted
from scalebook.language.row import one_number
from scalebook.language.tabular import aligned, page_table
from scalebook.language.units import show

from .arguments import problem_of, refuse_unused
from .parts import check_executor, gathered
from .plan import Block, firsts, numbered
from .planning import planned_for
from .pricing import Priced, each_sheet
from .problem import Problem, layouts, looked_through, parted, stand_for, together, word_combinations
from .results import Search

__all__ = ["Sweep", "sweep"]

SIZES, SWEPT = 128, 1 << 15  # sizes of a task, and rows priced at a time
FIRST = 8  # combinations of words that are priced first
_ROUNDING = 1 - 1e-9  # allows for rounding: a bound adds up its terms in another order


class Sweep(Mapping):
    """The result of a sweep: a mapping from number of devices to its `Search` (whose Pareto front is empty).

    `values` maps each number that has a strategy within all limits to the best value of the objective.  `count`
    strategies have a price, and `fitting` are within all limits.  `note` says what is missing, unless it `is_whole`.
    """

    def __init__(self, question: Callable, found: Iterable[tuple[float, Priced]], problem: Problem, seconds, note):
        self._question, self.seconds, self.note, self.is_whole = question, seconds, note, not note
        self._found, self._letter = dict(sorted(found)), problem.axes[0]
        self.count = sum(x.count for x in self._found.values())
        self.fitting = self.count - sum(x.rejected[y.name] for x in self._found.values() for y in problem.limits)
        sign = -1 if problem.is_rising else 1
        self.values: dict[float, float] = {n: sign * float(x.best[0, 0]) for n, x in self._found.items() if len(x.best)}

    def __getitem__(self, devices) -> Search:
        if devices not in self._found:
            raise KeyError(f"{quoted(devices)} is none of the {len(self):,} sizes that were swept")
        problem = self._question(devices=devices)
        return Search(problem, layouts(problem), word_combinations(problem), self._found[devices], self.seconds, "")

    def __iter__(self) -> Iterator[float]:
        return iter(self._found)

    def __len__(self):
        return len(self._found)

    def _table(self):
        rows = [[f"{n:,}", show(x, NOTATION[self._letter].unit)] for n, x in self.values.items()]
        return ["devices", self._letter], rows[:10] + [["...", ""]] * (len(rows) > 10)

    @property
    def _summary(self):
        said = f"{len(self):,} sizes, {self.count:,} strategies, {self.fitting:,} within all limits"
        return "; ".join(filter(None, [said, self.note]))

    def __repr__(self):
        if not self.values:
            return self._summary
        heads, rows = self._table()
        return "\n\n".join([self._summary, aligned([heads, *rows], gap="  ")])

    def _repr_html_(self):
        return f"<p>{self._summary}</p>" + (page_table(*self._table(), "best at each size") if self.values else "")


@checked
def sweep(
    sheet,
    *knowns,
    devices: Iterable[int] = range(8, 16385, 8),
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: str | Iterable[str] = (),
    lift: str | Iterable[str] = (),
    best: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
    **letters,
) -> Sweep:
    """Search at each number of devices.  Much faster than separate searches, and their best strategies are the same.

    Takes the arguments of `search`, with a single device's row and a thing that lays out devices (a training step,
    Calculon's strategies), and raises what it raises.  A strategy is priced in full only if its lower bound over the
    values on axes (offloads, overlaps) lets it be among the best.  For Dask, `executor=client.get_executor()`.
    """
    check_executor(executor)
    if (many := as_list(devices)) is None:
        raise TypeError(
            f"a sweep goes over several sizes, as in devices=range(8, 99, 8), not devices={quoted(devices)}"
        )
    sizes = list(dict.fromkeys(one_number("devices", x) for x in many))
    if not sizes:
        raise ValueError("devices has no values to sweep: give at least one, as in devices=range(8, 1025, 8)")
    question = partial(problem_of, sheet, knowns, minimize, maximize, None, subject_to, lift, best, letters)
    start, first = time.perf_counter(), question(devices=sizes[0])
    if not first.space.layout or first.space.solve:
        raise TypeError(f"a sweep goes over devices in a layout, and {first.sheet.name} has none: search it instead")
    refuse_unused(first, letters)
    # each task gets sizes from the whole range, because small sizes take longer
    number = -(-len(sizes) // SIZES)
    calls = [(priced_sizes, question, sizes[i::number]) for i in range(number)]
    says = f"sweep of {len(sizes):,} sizes"
    done, why = gathered(calls, executor, says, progress, lambda x: sum(y.count for _, y in x))
    found = [y for x in done for y in x]
    left = len(sizes) - len(found)
    note = f"the sizes so far, {why}: {left:,} of {len(sizes):,} were not priced" if left else ""
    result = Sweep(question, found, first, time.perf_counter() - start, note)
    if not note and not result.values:
        raise ValueError(f"no strategy can run at any of the {len(sizes):,} sizes; search one of them to see why")
    return result


def priced_sizes(question: Callable, sizes: list[float]) -> list[tuple[float, Priced]]:
    """Compute one task of a sweep: search at these numbers of devices, and return each with what was found."""
    groups: dict = {}
    for n in sorted(sizes):
        problem = question(devices=n)
        groups.setdefault(_alike(problem), []).append(problem)
    return [x for alike, problems in groups.items() for x in _Swept(problems, (question, alike)).priced()]


def _alike(problem: Problem) -> tuple:
    """Return a key that two sizes share if the conditions on words, and the plan, are the same for both."""
    space = problem.space
    within = [(f.__code__, *(x.cell_contents for x in f.__closure__ or ())) for f in space.within(problem)]
    own = {n: problem.letters.get(n) for n in (*problem.on_axes, *space.idle)}
    fixed = {n: x for n, x in problem.fixed.items() if n != "devices"}
    return (*map(repr, (within, own, fixed, problem.words)), problem.in_rows, problem.on_axes)


class _Swept:
    """Several sizes priced together, in increasing order.  The devices of a row say which size it belongs to."""

    def __init__(self, problems: list[Problem], of: tuple):
        self.problems, self.one = problems, problems[0]
        self.devices = np.array([x.values["devices"] for x in problems])
        self.combinations = word_combinations(self.one)
        self.planned = planned_for(self.one, list(enumerate(self.combinations)), of)
        self.counts = np.zeros(len(problems), np.int64)
        self.rejected: dict[str, np.ndarray] = {}
        self.least = np.full(len(problems), np.inf)  # the value that a strategy must beat, by size
        self.best = np.empty((0, 6))
        self._waiting: list[np.ndarray] = []

    def priced(self) -> list[tuple[float, Priced]]:
        """Price all rows.  Return each number of devices with what was found there."""
        waiting, out = [], {}
        for problem in self.problems:
            whole = layouts(problem)
            for slab, left in looked_through(problem, whole, range(len(whole) * problem.in_layout)):
                waiting.append(slab)
                for name, x in left.items():
                    out.setdefault(name, []).append(x)
            if waiting and (problem is self.problems[-1] or sum(len(x.places) for x in waiting) >= SWEPT):
                with np.errstate(all="ignore"):
                    self._slab(together(waiting), {name: together(x) for name, x in out.items()})
                waiting, out = [], {}
        self._join()
        result = []
        for i, n in enumerate(self.devices):
            rejected = Counter({name: int(x[i]) for name, x in self.rejected.items() if x[i]})
            best = self.best[self.best[:, 5] == i, :5]
            result.append((int(n), Priced(best, best[:0], rejected, int(self.counts[i]))))
        return result

    def _sizes(self, slab):
        return np.searchsorted(self.devices, slab.columns["devices"])

    def _slab(self, slab, out):
        """Price rows, and count the strategies of the rows that each rule leaves out."""
        for name, rows in out.items():
            self._reject(self._sizes(rows), name, None, slice(None), stand_for(self.one, rows, self.combinations)[None])
        for part in parted(slab, SWEPT):
            sizes = self._sizes(part)
            # price the words of the best so far first: their values rule out most other strategies
            words, often = np.unique(self.best[:, 2].astype(int), return_counts=True)
            first = words[np.argsort(-often, kind="stable")][:FIRST].tolist()
            for pricing, kept, own in each_sheet(self.planned, self.one, part, partial(self._reject, sizes), first):
                if len(kept):
                    self._price(pricing, kept, own, sizes)
            self._join()

    def _reject(self, sizes, name, cases, rows, numbers):
        """Add numbers of rejected strategies, [cases, rows], to the counts of their sizes."""
        own = self.rejected.setdefault(name, np.zeros(len(self.problems), np.int64))
        own += np.bincount(sizes[rows], numbers.sum(0), len(own)).astype(np.int64)

    def _price(self, pricing, rows, allowed, sizes):
        """Check all strategies against the limits, then fully price strategies that could be among the best."""
        places, count = _same_limits(pricing, rows)
        fits, left, out = pricing.fitting(Block(pricing.evaluated, rows[firsts(places, count)]))
        for name, numbers in out.items():
            self._reject(sizes, name, pricing.sheet.cases, rows, numbers[:, places] * allowed)
        number = (left[:, places] * allowed).sum(0)
        self.counts += np.bincount(sizes[rows], number, len(self.counts)).astype(np.int64)
        allowed = allowed.reshape(len(allowed), *(1,) * len(pricing.plan.shape), -1)
        could = fits.any(tuple(range(fits.ndim - 1)))[places]
        if not self.one.is_rising:
            # the bound is NaN if a letter has no value; such rows are kept
            least = np.atleast_1d(Block(pricing.evaluated, rows).value(pricing.sheet.least))
            could &= (~(least * _ROUNDING > self.least[sizes[rows]])).any(tuple(range(least.ndim - 1)))
        could = np.flatnonzero(could)
        for part in pricing.slices(len(could)):
            own = could[part]
            fine = fits[..., places[own]] & allowed[..., own]
            self._enter(pricing, Block(pricing.evaluated, rows[own]), fine, sizes[rows[own]])

    def _enter(self, pricing, block, fits, sizes):
        """Keep the strategies of a block that may be among the best."""
        values, second = pricing.valued(block, fits)
        if self.one.best == 1:
            np.minimum.at(self.least, sizes, values.min(tuple(range(values.ndim - 1))))
        flat = np.flatnonzero((values <= self.least[sizes]) & np.isfinite(values))
        if len(flat):
            records = pricing.records(block, values, second, flat)
            self._waiting.append(np.column_stack([records, sizes[flat % len(sizes)]]))
        if sum(map(len, self._waiting)) > (1 << 14):
            self._join()

    def _join(self):
        """Merge the waiting strategies into the best of each size, in order."""
        found = np.concatenate([self.best, *self._waiting])
        found = found[np.lexsort((found[:, 4], found[:, 3], found[:, 2], found[:, 0], found[:, 5]))]
        size = found[:, 5].astype(int)
        place = np.arange(len(size)) - np.searchsorted(size, size)
        last = place == self.one.best - 1
        self.least[size[last]] = found[last, 0]
        self.best, self._waiting = found[place < self.one.best], []


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
