"""Search at each of many system sizes, and price what does not depend on the size only once.

>>> from scalebook.calculon import Strategies, application, library
>>> model, machine = application(library.models["gpt3-1.3B"]), library.systems["h100_80g_nvl8"]
>>> found = sweep(Strategies(machine), model, devices=[8, 16, 24], global_batch=16, fused=True, progress=False)
>>> {n: float(f"{x:.3g}") for n, x in found.values.items()}
{8: 0.0062, 16: 0.00367, 24: 0.0031}
>>> found[24].fitting + sum(found[24].rejected.values())
637640
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scalebook.language import NOTATION
from scalebook.language.tabular import aligned, page_table
from scalebook.language.units import show

from . import pricing
from .arguments import joined, one_number, problem_of
from .columns import firsts, numbered
from .parts import gathered
from .plan import Block
from .pricing import Priced, Pricing, each_sheet, planned_for
from .problem import (
    Problem,
    Rows,
    layouts,
    looked_through,
    parted,
    stand_for,
    together,
    word_combinations,
)
from .results import Search

__all__ = ["Sweep", "sweep"]

SIZES, SWEPT = 128, 1 << 15  # sizes of a task, and rows priced at a time
FIRST = 8  # combinations of words that are priced first
_ROUNDING = 1 - 1e-9  # allows for rounding: a bound adds up its terms in another order
_NONE = np.empty((0, 5))


class _Arguments(NamedTuple):
    """The arguments that are the same at every size."""

    sheet: Any
    rows: tuple
    minimize: str | None
    maximize: str | None
    subject_to: Any
    lift: Any
    best: int
    letters: dict

    def problem(self, devices: float) -> Problem:
        letters = {**self.letters, "devices": devices}
        return problem_of(
            self.sheet,
            self.rows,
            self.minimize,
            self.maximize,
            None,
            self.subject_to,
            None,
            self.lift,
            self.best,
            letters,
        )


class Sized(NamedTuple):
    """The result at one size: the best strategies, how many have a price, and how many each rule or limit rejects."""

    devices: float
    best: np.ndarray
    count: int
    rejected: dict[str, int]


class Sweep(Mapping):
    """The result of a sweep: a mapping from number of devices to its `Search`, whose Pareto front is not kept.

    `values` maps each size to the best value of the objective.  A size at which no strategy is within all limits has
    neither a value nor a best strategy.  `count` strategies have a price, found in `seconds`, and `fitting` are within
    all limits.  `note` says what is missing, and why, if the sweep was interrupted or a worker failed.  It is empty if
    the sweep `is_whole`.
    """

    def __init__(self, question: _Arguments, sizes: list[Sized], seconds: float, note: str):
        self._question, self.seconds, self.note, self.is_whole = question, seconds, note, not note
        self._sizes = {x.devices: x for x in sorted(sizes, key=lambda x: x.devices)}
        self.count = sum(x.count for x in sizes)
        limits = {x.name for x in question.problem(sizes[0].devices).limits} if sizes else set()
        self.fitting = self.count - sum(n for x in sizes for name, n in x.rejected.items() if name in limits)
        sign = 1 if question.maximize is None else -1
        self.values: dict[float, float] = {n: sign * float(x.best[0, 0]) for n, x in self._sizes.items() if len(x.best)}

    def __getitem__(self, devices) -> Search:
        if devices not in self._sizes:
            raise KeyError(f"{devices!r} is none of the {len(self):,} sizes that were swept")
        one = self._sizes[devices]
        problem = self._question.problem(devices)
        priced = Priced(one.best, _NONE, Counter(one.rejected), one.count)
        return Search(problem, layouts(problem), word_combinations(problem), priced, self.seconds, "")

    def __iter__(self) -> Iterator[float]:
        return iter(self._sizes)

    def __len__(self):
        return len(self._sizes)

    def _table(self):
        letter = self[next(iter(self))].problem.axes[0]
        rows = [[f"{n:,}", show(x, NOTATION[letter].unit)] for n, x in self.values.items()]
        return ["devices", letter], [*rows[:10], *([["...", ""]] if len(rows) > 10 else [])]

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


def sweep(
    sheet,
    *knowns,
    devices: Iterable[int] = range(8, 16385, 8),
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: str | Iterable[str] = (),
    choices: Mapping[str, Iterable] | None = None,
    lift: str | Iterable[str] = (),
    best: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
    **letters,
) -> Sweep:
    """Search at each number of devices, pricing what does not depend on it only once.

    The best strategies equal those of separate searches to the last digit.

    Arguments are those of `search`, with a row of one device.  The thing searched must have a layout, as a training
    step and Calculon's strategies have.  Every strategy is counted and checked against the limits.  Only those that
    could be among the best, by a lower bound over all values of the letters on axes (offloads, overlaps), are priced in
    full.

    `executor` is any executor in the style of concurrent.futures (for Dask, `client.get_executor()`).  If the sweep is
    interrupted, or a worker fails, it returns the sizes so far, and `note` says what is missing.  Raises what `search`
    raises for unsuitable arguments, and ValueError if no strategy can run at any size.
    """
    from scalebook.search import check_executor, shown

    check_executor(executor)
    devices = devices.tolist() if isinstance(devices, np.ndarray) else devices
    if not isinstance(devices, Iterable) or isinstance(devices, str):
        raise TypeError(f"a sweep goes over several sizes, as in devices=range(8, 1025, 8), not devices={devices!r}")
    sizes = list(dict.fromkeys(one_number("devices", x) for x in devices))
    if not sizes:
        raise ValueError("devices has no values to sweep: give at least one, as in devices=range(8, 1025, 8)")
    question = _Arguments(sheet, knowns, minimize, maximize, subject_to, lift, best, joined(letters, choices))
    start, first = time.perf_counter(), question.problem(sizes[0])
    if not first.space.layout or first.space.solve:
        raise TypeError(
            f"a sweep goes over the devices of a layout, and {first.sheet.name} has none: search it instead"
        )
    # each task gets sizes from the whole range, because small sizes take longer
    number = -(-len(sizes) // SIZES)
    calls = [(priced_sizes, question, sizes[i::number]) for i in range(number)]
    bar = shown(len(calls), f"sweep of {len(sizes):,} sizes", progress)
    try:
        done, why = gathered(calls, executor, bar, lambda x: sum(y.count for y in x))
    finally:
        bar.close()
    found = [y for x in done for y in x]
    left = len(sizes) - len(found)
    note = f"the sizes so far, {why}: {left:,} of {len(sizes):,} were not priced" if left else ""
    result = Sweep(question, found, time.perf_counter() - start, note)
    if not note and not result.values:
        raise ValueError(f"no strategy can run at any of the {len(sizes):,} sizes; search one of them to see why")
    return result


def priced_sizes(question: _Arguments, sizes: list[float]) -> list[Sized]:
    """Price one task: a number of sizes.  Sizes that share the same sheets are priced together."""
    problems = [question.problem(n) for n in sizes]
    groups: dict = {}
    for place, problem in enumerate(problems):
        groups.setdefault(_alike(problem), []).append(place)
    found = []
    for alike, places in groups.items():
        swept = _Swept([problems[i] for i in places], (question, alike))
        swept.price()
        found += swept.found()
    return found


def _alike(problem: Problem) -> tuple:
    """Return a key that is equal for two sizes if the conditions on words, and the plan, are the same for both."""
    space = problem.space
    within = [(f.__code__, *(x.cell_contents for x in f.__closure__ or ())) for f in space.within(problem)]
    own = {n: problem.letters.get(n) for n in (*problem.on_axes, *space.idle)}
    fixed = {n: x for n, x in problem.fixed.items() if n != "devices"}
    return (*map(repr, (within, own, fixed, problem.words)), problem.in_rows, problem.on_axes)


class _Swept:
    """Several sizes priced together.  Each row belongs to the size at its place in `problems`."""

    def __init__(self, problems: list[Problem], of: tuple):
        self.problems, self.one = problems, problems[0]
        self.combinations = word_combinations(self.one)
        self.planned = planned_for(self.one, list(enumerate(self.combinations)), of)
        self.counts = np.zeros(len(problems), np.int64)
        self.rejected: dict[str, np.ndarray] = {}
        self.least = np.full(len(problems), np.inf)  # the value that a strategy must beat, by size
        self.best = np.empty((0, 6))
        self._waiting: list[np.ndarray] = []

    def price(self) -> None:
        """Price all rows."""
        waiting, sizes, out = [], [], {}
        for size, problem in enumerate(self.problems):
            whole = layouts(problem)
            rows = Rows(whole, 0, range(len(whole) * problem.in_layout))
            for slab, left in looked_through(problem, rows):
                waiting.append(slab)
                sizes.append(np.full(len(slab.places), size))
                for name, x in left.items():
                    out.setdefault(name, []).append((x, np.full(len(x.places), size)))
            if sum(map(len, sizes)) >= SWEPT:
                self._slab(together(waiting), np.concatenate(sizes), out)
                waiting, sizes, out = [], [], {}
        if waiting:
            self._slab(together(waiting), np.concatenate(sizes), out)
        self._join()

    def _slab(self, slab, sizes, out):
        with np.errstate(all="ignore"):
            for name, parts in out.items():
                whole = together([x for x, _ in parts])
                self.count(name, np.concatenate([x for _, x in parts]), stand_for(self.one, whole, self.combinations))
            for place, part in zip(range(0, len(sizes), SWEPT), parted(slab, SWEPT), strict=True):
                own = sizes[place : place + SWEPT]
                # price the words of the best so far first: their values rule out most other strategies
                words, often = np.unique(self.best[:, 2].astype(int), return_counts=True)
                first = tuple(words[np.argsort(-often, kind="stable")][:FIRST].tolist())
                for sheet, kept in each_sheet(self.planned, part, self, partial(_Pricing, own), first):
                    sheet.price(kept, self)
                self._join()

    def count(self, name: str, sizes: np.ndarray, numbers: np.ndarray) -> None:
        """Add numbers of rejected strategies to the counts of their sizes."""
        own = self.rejected.setdefault(name, np.zeros(len(self.problems), np.int64))
        own += np.bincount(sizes, numbers, len(self.problems)).astype(np.int64)

    def enter(self, records: np.ndarray) -> None:
        """Add strategies that may be among the best."""
        self._waiting.append(records)
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

    def found(self) -> list[Sized]:
        result = []
        for i, problem in enumerate(self.problems):
            rejected = {n: int(x[i]) for n, x in self.rejected.items() if x[i]}
            best = self.best[self.best[:, 5] == i, :5]
            result.append(Sized(int(problem.fixed["devices"]), best, int(self.counts[i]), rejected))
        return result


class _Spread(NamedTuple):
    """Counts of representative rows, entered for every row that each represents."""

    swept: _Swept
    sizes: np.ndarray
    places: np.ndarray

    def count(self, name: str, _, numbers: np.ndarray) -> None:
        self.swept.count(name, self.sizes, numbers[self.places])


class _Pricing(Pricing):
    """Price one sheet on rows of several sizes."""

    def __init__(self, sizes: np.ndarray, *of):
        super().__init__(*of)
        self.sizes = sizes

    def count(self, rows, numbers, name, rejected):
        rejected.count(name, self.sizes[rows], numbers)

    def price(self, rows, swept):
        """Check all strategies against the limits, then fully price those that could be among the best."""
        if not len(rows):  # the rules allow no row with these words
            return
        places, count = self._alike(rows)
        sizes = self.sizes[rows]
        fits, left = self.fitting(Block(self.evaluated, rows[firsts(places, count)]), _Spread(swept, sizes, places))
        swept.counts += np.bincount(sizes, left[places], len(swept.counts)).astype(np.int64)
        could = fits.any(tuple(range(fits.ndim - 1)))[places]
        if not self.problem.is_rising:
            # the bound is NaN if a letter has no value; such rows are kept
            could &= ~(Block(self.evaluated, rows).value(self.sheet.least) * _ROUNDING > swept.least[sizes])
        could = np.flatnonzero(could)
        step = max(1, pricing.BLOCK // math.prod(self.plan.shape))
        for x in range(0, len(could), step):
            some = could[x : x + step]
            self._best(Block(self.evaluated, rows[some]), fits[..., places[some]], swept)

    def _alike(self, rows):
        """Number the rows, giving one number to rows with equal inputs to the limits; return how many numbers there
        are.

        Only one row of each number is then checked against the limits.
        """
        letters, bits = self.sheet.letters, 0
        rest = [
            letters[x] for y in self.problem.limits if y.letter in letters for x in (y.letter, y.bound) if x in letters
        ]
        for _, _, own in self.sheet.conditions:
            rest += own.values() if any(map(self.plan.is_wide, own.values())) else ()
        for x in rest:
            bits |= self.plan.bits[x] & self.plan.in_columns
        first, inverse = self.evaluated.columns.key(bits)
        places, span = inverse[rows], len(first)
        for part in self.parts:
            if part.strides[0] and part[0].size > 1:  # other parts are the same for all of these rows
                for byte in np.packbits(part[rows].reshape(len(rows), -1), axis=1).T:
                    own, count = numbered(byte, 256)
                    places, span = numbered(places * count + own, span * count)
        return numbered(places, span)

    def _best(self, block, fits, swept):
        values, second, places = self.valued(block, fits)
        sizes = self.sizes[block.rows]
        if swept.one.best == 1:
            np.minimum.at(swept.least, sizes, values.min(tuple(range(values.ndim - 1))))
        flat = np.flatnonzero((values <= swept.least[sizes]) & np.isfinite(values))
        if len(flat):
            own = sizes[flat % len(sizes)]
            swept.enter(np.column_stack([places.records(values, second, flat), own]))
