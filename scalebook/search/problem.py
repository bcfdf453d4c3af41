"""What a search is asked, and the strategies it goes through:
words, layouts of devices, and letters with few values.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .space import Searchable, Space, needs, told

__all__ = [
    "Limit", "Problem", "Rows", "Slab", "about", "counts", "distinct", "layouts", "looked_through", "parted", "rows_of",
    "ruled", "slabs", "some", "stand_for", "together", "word_combinations",
]  # fmt: skip

_AXES = 4096  # combinations of letters on axes of their own; more letters become columns
SLAB, CANDIDATES = 1 << 13, 1 << 17  # rows priced at a time, and looked through at a time
LOOKED, COUNTED = 1 << 15, 1 << 10  # rows that a count looks at, and of which it counts the strategies


class Limit(NamedTuple):
    """A letter that is at most ("<=") or at least (">=") a number or another letter; strategies beyond it are counted
    under its name.
    """

    letter: str
    relation: str
    bound: float | str
    name: str


@dataclass(frozen=True)
class Problem:
    """What a search is asked, small enough to be sent to another process.

    `values` are the known letters, `words` and `letters` those with several; `axes` are what is sought, the least of it
    or where it `is_rising` the most, and against what.
    """

    sheet: Searchable
    knowns: tuple
    fixed: dict[str, float]
    values: dict[str, float]
    words: dict[str, tuple]
    letters: dict[str, tuple]
    axes: tuple[str, ...]
    limits: tuple[Limit, ...]
    lifted: frozenset[str] = frozenset()
    best: int = 10
    is_rising: bool = False
    on_axes: tuple[str, ...] = field(init=False)
    in_rows: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        on_axes, size = [], 1
        ruled = {x for rule in self.space.rules for x in rule.needs} | {
            x for f in self.space.within(self) for x in needs(f)
        }
        for name, values in sorted(self.letters.items(), key=lambda x: len(x[1])):
            if name not in ruled and name not in self.space.layout and size * len(values) <= _AXES:
                on_axes.append(name)
                size *= len(values)
        object.__setattr__(self, "on_axes", tuple(x for x in self.letters if x in on_axes))
        object.__setattr__(
            self, "in_rows", tuple(x for x in self.letters if x not in on_axes and x not in self.space.layout)
        )

    @property
    def space(self) -> Space:
        return self.sheet.space

    @property
    def columned(self) -> tuple[str, ...]:
        """The letters that have a value in each row."""
        devices = ("devices",) if self.space.layout else ()  # the same for all rows, but in a sweep
        return tuple(dict.fromkeys([*self.space.layout, *devices, *self.in_rows, *self.space.follows]))

    @property
    def in_layout(self) -> int:
        """How many rows a layout stands for."""
        return math.prod(len(self.letters[x]) for x in self.in_rows)

    def columns(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The same with the letters that follow from them."""
        columns = dict(columns)
        for name, follows in self.space.follows.items():
            columns[name] = told(follows, {**self.values, **columns})
        return columns

    def first(self, name: str) -> Any:
        """What a letter or word is where it says nothing."""
        values = self.words.get(name) or self.letters[name]
        return 0.0 if name in self.space.offloads and 0.0 in values else values[0]

    def offloads(self, letters: Mapping[str, tuple]) -> bool:
        """Whether one of these values, or a known one, has something offloaded."""
        return any(x for n in self.space.offloads for x in (*letters.get(n, ()), self.fixed.get(n, 0)))

    @property
    def always_offloads(self) -> bool:
        """Whether no strategy has everything near."""
        return any(self.fixed.get(n, 0) or 0.0 not in self.letters.get(n, (0.0,)) for n in self.space.offloads)


def word_combinations(problem: Problem) -> list[dict]:
    """Combinations of words in order, without those that repeat another wherever they are."""
    found = [dict(zip(problem.words, x, strict=True)) for x in itertools.product(*problem.words.values())]
    return [x for x in found if all(part.any() for part in distinct(problem, x))]


def distinct(
    problem: Problem, words: Mapping, slab: "Slab | None" = None, said: dict | None = None
) -> list[np.ndarray]:
    """Where rows, times the letters on axes, repeat no other strategy: truths of which all must hold, each on axes of
    its own.  Without rows, as far as words alone say it.  In `said` truths are kept for the same rows with other words.
    """
    axes, v, said = len(problem.on_axes), dict(words), {} if said is None else said
    if slab is not None:
        v |= dict.fromkeys(problem.space.offloads, 0.0) | problem.values
        v |= {n: x.reshape(-1, *(1,) * axes) for n, x in slab.columns.items()}
        for place, name in enumerate(problem.on_axes):
            v[name] = np.reshape(problem.letters[name], [-1 if x == place + 1 else 1 for x in range(axes + 1)])

    def once(place, f, name=None):  # the truths of a condition, and of a letter that says nothing unless it holds
        key = (place, *(words[n] for n in (*needs(f), name) if n in words))
        if key not in said:
            live = told(f, v)
            said[key] = live if live is None or name is None else live | (v[name] == problem.first(name))
        return said[key]

    conditions = [once(i, f) for i, f in enumerate(problem.space.within(problem))]
    for name, says in problem.space.idle.items():
        if name in v and len(problem.words.get(name) or problem.letters.get(name, ())) > 1:
            conditions.append(once(name, says, name))
    rows = 1 if slab is None else len(slab.places)
    parts = {frozenset(): np.ones((rows, *(1,) * axes), bool)}
    for x in conditions:
        if x is not None and not np.all(x):
            part = np.asarray(x).reshape(np.shape(x) or (1,) * (axes + 1))
            own = frozenset(i for i, n in enumerate(part.shape) if i and n > 1)
            for other in [k for k in parts if k & own or k == own]:
                part, own = part & parts.pop(other), own | other
            parts[own] = part
    return [np.broadcast_to(x, (rows, *x.shape[1:])) for x in parts.values()]


def counts(problem: Problem, parts: list[np.ndarray]) -> np.ndarray:
    """How many strategies each row stands for."""
    total = reduce(np.multiply, [_flat(x).sum(1) for x in parts])
    free = [len(problem.letters[n]) for i, n in enumerate(problem.on_axes) if all(x.shape[i + 1] == 1 for x in parts)]
    return total * math.prod(free)


def some(parts: list[np.ndarray]) -> np.ndarray:
    """Rows that stand for any."""
    return reduce(np.logical_and, [_flat(x).any(1) for x in parts])


def _flat(part: np.ndarray) -> np.ndarray:
    return part.reshape(len(part), math.prod(part.shape[1:]))  # also where there are no rows


def layouts(problem: Problem) -> np.ndarray:
    """All combinations of the layout's letters, the last being what is left of the devices;
    one empty row without a layout.
    """
    space, devices = problem.space, problem.values.get("devices")
    if not space.layout:
        return np.empty((1, 0))
    *names, rest = space.layout
    lists = {n: np.asarray(problem.letters.get(n, (problem.values.get(n, 1.0),)), float) for n in names}
    lists = {
        n: x if n in space.beside else x[devices % x == 0] for n, x in lists.items()
    }  # others leave no whole number
    columns = [x.reshape(-1) for x in np.meshgrid(*lists.values(), indexing="ij")]
    left = devices / math.prod(x for n, x in zip(names, columns, strict=True) if n not in space.beside)
    found = np.stack([*columns, left], axis=1)
    found = found[left == np.floor(left)]
    return found[np.isin(found[:, -1], problem.letters[rest])] if rest in problem.letters else found


class Rows(NamedTuple):
    """Some rows of a search: layouts, the place of the first,
    and places among these layouts' combinations with other letters.
    """

    layouts: np.ndarray
    start: int
    places: range


def rows_of(problem: Problem, whole: np.ndarray, first: int, last: int) -> Rows:
    """The rows from one place to another among all, with the layouts that they need."""
    start, end = first // problem.in_layout, -(-last // problem.in_layout)
    gone = start * problem.in_layout
    return Rows(whole[start:end], start, range(first - gone, min(last, len(whole) * problem.in_layout) - gone))


@dataclass(frozen=True)
class Slab:
    """Rows that a search evaluates at once: `columns` of letters, and their places among all."""

    columns: dict[str, np.ndarray]
    places: np.ndarray

    def take(self, rows) -> "Slab":
        return Slab({n: x[rows] for n, x in self.columns.items()}, self.places[rows])


def _slab(problem: Problem, layouts: np.ndarray, digits: list[np.ndarray], places: np.ndarray) -> Slab:
    """Layouts with values of the letters that are columns, by the place of each value in its list."""
    columns = dict(zip(problem.space.layout, layouts.T, strict=True))
    if problem.space.layout:
        columns["devices"] = np.full(len(places), problem.values["devices"])
    columns |= {n: np.asarray(problem.letters[n], float)[x] for n, x in zip(problem.in_rows, digits, strict=True)}
    return Slab(problem.columns(columns), places)


def _candidates(problem: Problem, rows: Rows, places: np.ndarray) -> Slab:
    """The rows at these places."""
    sizes = [len(problem.letters[x]) for x in problem.in_rows]
    layout, *digits = np.unravel_index(places, (len(rows.layouts), *sizes))
    return _slab(problem, rows.layouts[layout], digits, rows.start * problem.in_layout + places)


def ruled(problem: Problem, slab: Slab, words: Mapping):
    """The rules that some rows break, with where each holds:
    without words those that speak of none, else the others.
    """
    for rule in problem.space.rules:
        is_of_words = not set(problem.space.words).isdisjoint(rule.needs)
        if rule.name not in problem.lifted and is_of_words == bool(words):
            holds = rule.of({**problem.values, **slab.columns, **words})
            if holds is not None and not np.all(holds):
                yield rule.name, np.broadcast_to(np.asarray(holds, bool), slab.places.shape)


def looked_through(problem: Problem, rows: Rows) -> Iterator[tuple["Slab", dict[str, "Slab"]]]:
    """The rows that rules without words allow, a number of candidates at a time, and those that each leaves out."""
    for place in range(rows.places.start, rows.places.stop, CANDIDATES):
        slab = _candidates(problem, rows, np.arange(place, min(place + CANDIDATES, rows.places.stop)))
        slab = slab.take(some(distinct(problem, {}, slab)))
        left, out = np.ones(len(slab.places), bool), {}
        for name, holds in ruled(problem, slab, {}):
            if (left & ~holds).any():
                out[name] = slab.take(left & ~holds)
                left = left & holds
        yield slab.take(left), out


def stand_for(problem: Problem, slab: "Slab", combinations: list[dict]) -> np.ndarray:
    """How many strategies each row stands for, of all words together."""
    said: dict = {}
    return sum(counts(problem, distinct(problem, words, slab, said)) for words in combinations)


def slabs(problem: Problem, rows: Rows, combinations: list[dict], rejected: Counter) -> Iterator["Slab"]:
    """The rows that the rules allow, a bounded number at a time; the others are counted."""
    waiting, size = [], SLAB * (8 if problem.space.solve else 1)  # what is solved is evaluated many times
    for slab, out in looked_through(problem, rows):
        for name, x in out.items():
            rejected[name] += int(stand_for(problem, x, combinations).sum())
        waiting.append(slab)
        if sum(len(x.places) for x in waiting) >= size:
            # where most are left out, those of several looks: a slab costs as a row does
            yield from parted(together(waiting), size)
            waiting = []
    if waiting:
        yield from parted(together(waiting), size)


def parted(slab: "Slab", size: int) -> Iterator["Slab"]:
    """A slab in parts of bounded size."""
    for first in range(0, len(slab.places), size):
        yield slab.take(slice(first, first + size))


def together(slabs: list[Slab]) -> Slab:
    """Several slabs as one."""
    if len(slabs) == 1:
        return slabs[0]
    columns = {n: np.concatenate([x.columns[n] for x in slabs]) for n in slabs[0].columns}
    return Slab(columns, np.concatenate([x.places for x in slabs]))


def about(problem: Problem, whole: np.ndarray, combinations: list[dict]) -> tuple[int, bool]:
    """How many strategies the rules allow, and whether that is exact: of many rows some, drawn at random, are counted.

    What formulas have no value for is among them, and so is what limits leave out.
    """
    number, random = len(whole) * problem.in_layout, np.random.default_rng(0)
    if number <= LOOKED:
        slab, share = _candidates(problem, Rows(whole, 0, range(number)), np.arange(number)), 1
    else:
        layout, *digits = (
            random.integers(n, size=LOOKED) for n in (len(whole), *(len(problem.letters[x]) for x in problem.in_rows))
        )
        slab, share = _slab(problem, whole[layout], digits, np.arange(LOOKED)), number / LOOKED
    slab = slab.take(some(distinct(problem, {}, slab)))
    slab = slab.take(_all(ruled(problem, slab, {}), slab))
    if len(slab.places) > COUNTED:
        share *= len(slab.places) / COUNTED
        slab = slab.take(random.choice(len(slab.places), COUNTED, replace=False))
    total = 0
    for words in combinations:
        holds = _all(ruled(problem, slab, words | {"offload": problem.always_offloads}), slab)
        total += int(counts(problem, distinct(problem, words, slab))[holds].sum())
    return round(total * share), share == 1


def _all(rules, slab: Slab) -> np.ndarray:
    return reduce(np.logical_and, (holds for _, holds in rules), np.ones(len(slab.places), bool))
