"""The problem of a search and its strategies: combinations of options, device layouts, and values of other inputs."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from scalebook.language import NOTATION
from scalebook.language.units import show

from .space import Searchable, Space, called_with, needs

__all__ = [
    "CASES", "Limit", "Problem", "Slab", "about", "by_words", "counts", "distinct", "layouts", "looked_through",
    "nonempty", "parted", "ruled", "stand_for", "together", "word_combinations",
]  # fmt: skip

_AXES = 4096  # at most this many combinations of letters on axes; the other letters become columns
CASES = 1 << 8  # cases of a sheet
SLAB, CANDIDATES = 1 << 13, 1 << 17  # rows priced at a time, and rows checked against the rules at a time
LOOKED, COUNTED = 1 << 15, 1 << 10  # rows that an estimate samples, and rows whose strategies it counts


class Limit(NamedTuple):
    """An upper ("<=") or lower (">=") limit on a quantity, by a number or by another quantity."""

    letter: str
    relation: str
    bound: float | str
    name: str
    margin: float = 0.0  # with 0.06, a value of 75 GB counts as 79.5 GB

    def breach(self, values: Mapping[str, float]) -> str:
        """Return how values break the limit, such as "memory = 75 GB is above 70 GB", or "" if they do not."""
        own, most = values.get(self.letter), values.get(self.bound) if isinstance(self.bound, str) else self.bound
        if own is None or most is None:
            return ""
        need, unit = own * (1 + self.margin), NOTATION[self.letter].unit
        if need <= most if self.relation == "<=" else need >= most:
            return ""
        named = f"{self.bound} = " if isinstance(self.bound, str) else ""
        beside = f" with its margin of {100 * self.margin:.2g} %" if self.margin else ""
        than = "above" if self.relation == "<=" else "below"
        return f"{self.letter} = {show(own, unit)}{beside} is {than} {named}{show(most, unit)}"


@dataclass(frozen=True)
class Problem:
    """The arguments of a search, small enough to send to another process.

    A row of a search is a layout with values of the inputs in `in_rows`; each row tries all values of those in
    `on_axes`.
    """

    sheet: Searchable
    knowns: tuple
    fixed: dict[str, float]  # letters with one value that the call gives
    values: dict[str, float]  # these and those of rows and of the space
    words: dict[str, tuple]  # with the values to search
    letters: dict[str, tuple]
    axes: tuple[str, ...]  # the two objectives: the first is minimized, or maximized if `is_rising`
    limits: tuple[Limit, ...]
    lifted: frozenset[str] = frozenset()
    best: int = 10
    is_rising: bool = False
    others: tuple["Problem", ...] = ()  # problems priced with this one, whose rows differ only by rules
    on_axes: tuple[str, ...] = field(init=False)
    in_rows: tuple[str, ...] = field(init=False)
    judged: tuple[str, ...] = field(init=False)  # the words that a rule or a condition depends on

    def __post_init__(self):
        on_axes, size = [], 1
        ruled = {x for rule in self.space.rules for x in rule.needs}
        ruled |= {x for f in self.space.within(self) for x in needs(f)}
        for name, values in sorted(self.letters.items(), key=lambda x: len(x[1])):
            if name not in ruled and name not in self.space.layout and size * len(values) <= _AXES:
                on_axes.append(name)
                size *= len(values)
        in_rows = (x for x in self.letters if x not in on_axes and x not in self.space.layout)
        object.__setattr__(self, "on_axes", tuple(x for x in self.letters if x in on_axes))
        object.__setattr__(self, "in_rows", tuple(in_rows))
        needed = ruled.union(self.space.idle, *map(needs, self.space.idle.values()))
        object.__setattr__(self, "judged", tuple(x for x in self.words if x in needed))

    @property
    def space(self) -> Space:
        return self.sheet.space

    @property
    def each(self) -> tuple["Problem", ...]:
        return (self, *self.others)

    @property
    def like(self) -> tuple:
        """A key that two problems share if one plan can price both.  Devices and rules about rows may differ."""
        space, within = self.space, self.space.within(self)
        read = {n for f in (*within, *space.idle.values(), *space.follows.values()) for n in needs(f)}
        read = read.union(space.offloads) - {"devices", *self.letters, *space.layout}
        same = [(f.__code__, *(x.cell_contents for x in f.__closure__ or ())) for f in within]
        own = {n: self.letters.get(n) for n in (*self.on_axes, *space.idle)}
        fixed = {n: x for n, x in self.fixed.items() if n != "devices"}
        known = {n: x for n, x in self.values.items() if n in read}
        more = self.words, self.in_rows, self.axes, self.limits, self.lifted, self.best, self.is_rising
        return self.sheet, repr((same, own, fixed, known, more))

    @property
    def columned(self) -> tuple[str, ...]:
        """The names of the inputs that have a column of values, one per row of the search."""
        devices = ("devices",) if self.space.layout else ()  # the same for all rows of one size
        return tuple(dict.fromkeys([*self.space.layout, *devices, *self.in_rows, *self.space.follows]))

    @property
    def in_layout(self) -> int:
        """Number of rows that each layout of devices has in the search."""
        return math.prod(len(self.letters[x]) for x in self.in_rows)

    def columns(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the columns, together with columns for inputs that follow from them."""
        columns = dict(columns)
        for name, follows in self.space.follows.items():
            columns[name] = called_with(follows, {**self.values, **columns})
        return columns

    def judged_by(self, words: Mapping) -> tuple:
        """Return a key of a combination of options. Two combinations that no rule can distinguish have the same key."""
        return tuple(words[n] for n in self.judged)

    def first(self, name: str) -> Any:
        """Return the value that an input keeps in strategies where it has no effect: its first, or 0 for an offload."""
        values = self.words.get(name) or self.letters[name]
        return 0.0 if name in self.space.offloads and 0.0 in values else values[0]

    def offloads(self, letters: Mapping[str, tuple]) -> bool:
        """Return True if a value in `letters`, or one that the search fixes, moves something out of device memory."""
        return any(x for n in self.space.offloads for x in (*letters.get(n, ()), self.fixed.get(n, 0)))

    @property
    def always_offloads(self) -> bool:
        """Return True if every strategy moves something out of device memory."""
        return any(self.fixed.get(n, 0) or 0.0 not in self.letters.get(n, (0.0,)) for n in self.space.offloads)


def word_combinations(problem: Problem) -> list[dict]:
    """Return all combinations of the searched options, except any that equals another in every layout."""
    found = [dict(zip(problem.words, x, strict=True)) for x in itertools.product(*problem.words.values())]
    kept = {key for key, (x, _) in _kinds(problem, found).items() if all(y.any() for y in distinct(problem, x))}
    return [x for x in found if problem.judged_by(x) in kept]


def _kinds(problem: Problem, combinations: list[dict]) -> dict[tuple, tuple[dict, int]]:
    """Group combinations by `judged_by`.  Return the first combination of each group and the size of the group."""
    numbers = Counter(map(problem.judged_by, combinations))
    return {problem.judged_by(x): (x, numbers[problem.judged_by(x)]) for x in reversed(combinations)}


def distinct(
    problem: Problem, words: Mapping, slab: "Slab | None" = None, said: dict | None = None
) -> list[np.ndarray]:
    """Return boolean arrays that select the strategies which repeat no other: all of the arrays must hold.

    Each has a dimension for rows and one per axis, and no two depend on the same axis.  If no slab of rows is given,
    they cover only the inputs that options decide.  `said` caches results for the same rows and other options.
    """
    axes, v, said = len(problem.on_axes), dict(words), {} if said is None else said
    if slab is not None:
        v |= dict.fromkeys(problem.space.offloads, 0.0) | problem.values
        v |= {n: x.reshape(-1, *(1,) * axes) for n, x in slab.columns.items()}
        for place, name in enumerate(problem.on_axes):
            v[name] = np.reshape(problem.letters[name], [-1 if x == place + 1 else 1 for x in range(axes + 1)])

    def once(place, f, name=None):  # where a condition holds, or an idle letter has its first value
        key = (place, *(words[n] for n in (*needs(f), name) if n in words))
        if key not in said:
            live = called_with(f, v)
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
    """Return how many strategies each row stands for.  `parts` is what `distinct` returned.  Shape [rows]."""
    total = reduce(np.multiply, [_flat(x).sum(1) for x in parts])
    free = [len(problem.letters[n]) for i, n in enumerate(problem.on_axes) if all(x.shape[i + 1] == 1 for x in parts)]
    return total * math.prod(free)


def nonempty(parts: list[np.ndarray]) -> np.ndarray:
    """Return which rows stand for any strategy.  `parts` is what `distinct` returned.  Shape [rows], dtype bool."""
    return reduce(np.logical_and, [_flat(x).any(1) for x in parts])


def _flat(part: np.ndarray) -> np.ndarray:
    return part.reshape(len(part), math.prod(part.shape[1:]))  # works for zero rows too


def layouts(problem: Problem) -> np.ndarray:
    """Return all ways to lay out the devices, one per line, with a column for each input in `space.layout`.

    The last input takes the devices that the others leave.  If `space.layout` is empty, there is one empty line.
    """
    space, devices = problem.space, problem.values.get("devices")
    if not space.layout:
        return np.empty((1, 0))
    *names, rest = space.layout
    lists = {n: np.asarray(problem.letters.get(n, (problem.values.get(n, 1.0),)), float) for n in names}
    lists = {n: x if n in space.beside else x[devices % x == 0] for n, x in lists.items()}
    columns = [x.reshape(-1) for x in np.meshgrid(*lists.values(), indexing="ij")]
    left = devices / math.prod(x for n, x in zip(names, columns, strict=True) if n not in space.beside)
    found = np.stack([*columns, left], axis=1)
    found = found[left == np.floor(left)]
    return found[np.isin(found[:, -1], problem.letters[rest])] if rest in problem.letters else found


@dataclass(frozen=True)
class Slab:
    """A batch of a search's rows."""

    columns: dict[str, np.ndarray]  # of their inputs
    places: np.ndarray  # their numbers among all rows
    among: np.ndarray  # which of them each of the problems priced together has: [problems, rows]

    def take(self, rows) -> "Slab":
        return Slab({n: x[rows] for n, x in self.columns.items()}, self.places[rows], self.among[:, rows])


def _candidates(problem: Problem, layouts: np.ndarray, places: np.ndarray) -> Slab:
    """Return the rows at the given places: layouts combined with values of the column letters."""
    sizes = [len(problem.letters[x]) for x in problem.in_rows]
    layout, *digits = np.unravel_index(places, (len(layouts), *sizes))
    columns = dict(zip(problem.space.layout, layouts[layout].T, strict=True))
    if problem.space.layout:
        columns["devices"] = np.full(len(places), problem.values["devices"])
    columns |= {n: np.asarray(problem.letters[n], float)[x] for n, x in zip(problem.in_rows, digits, strict=True)}
    return Slab(problem.columns(columns), places, np.ones((len(problem.each), len(places)), bool))


def ruled(problem: Problem, slab: Slab, words: Mapping):
    """Yield, for each rule broken in a slab (batch of rows), its name and which rows keep it: [problems, rows].

    With `words`, one combination of options, only rules about options are checked; otherwise only the others.
    """
    values = [{**x.values, **slab.columns, **words} for x in problem.each]
    for rule in problem.space.rules:
        is_of_words = not set(problem.space.words).isdisjoint(rule.needs)
        if rule.name not in problem.lifted and is_of_words == bool(words):
            own = [tuple(x.get(n, id(x)) for n in rule.needs if n not in slab.columns) for x in values]
            found = {k: rule.of(x) for k, x in dict(zip(own, values, strict=True)).items()}  # devices are often alike
            found = {k: np.broadcast_to(x is None or np.asarray(x, bool), slab.places.shape) for k, x in found.items()}
            holds = np.stack([found[k] for k in own])
            if not holds.all():
                yield rule.name, holds


def looked_through(problem: Problem, layouts: np.ndarray, places: range) -> Iterator[tuple[Slab, dict[str, Slab]]]:
    """Yield, in batches (slabs), the rows that pass all rules but those on options, and the rejected rows by rule."""
    for place in range(places.start, places.stop, CANDIDATES):
        slab = _candidates(problem, layouts, np.arange(place, min(place + CANDIDATES, places.stop)))
        slab = slab.take(nonempty(distinct(problem, {}, slab)))
        left, out = slab.among, {}
        for name, holds in ruled(problem, slab, {}):
            if (lost := left & ~holds).any():
                out[name] = replace(slab, among=lost).take(lost.any(0))
                left = left & holds
        yield replace(slab, among=left).take(left.any(0)), out


def stand_for(problem: Problem, slab: "Slab", combinations: list[dict]) -> np.ndarray:
    """Count the strategies that each row of a slab (a batch of rows) stands for, over all combinations of options."""
    said: dict = {}
    kinds = _kinds(problem, combinations).values()
    return sum(number * counts(problem, distinct(problem, words, slab, said)) for words, number in kinds)


def parted(slab: "Slab", size: int) -> Iterator["Slab"]:
    """Split a slab (a batch of a search's rows) into slabs of at most `size` rows."""
    for first in range(0, len(slab.places), size):
        yield slab.take(slice(first, first + size))


def by_words(problem: Problem, slab: Slab, combinations: list[dict]) -> Iterator[Slab]:
    """Split a slab into the rows that the same combinations of options use, so that none is evaluated in vain.

    A small part joins a larger one that all its combinations use too, because each slab has a fixed cost.
    """
    said: dict = {}
    used = [nonempty(distinct(problem, words, slab, said)) for words, _ in _kinds(problem, combinations).values()]
    kinds, part, numbers = np.unique(np.array(used), axis=1, return_inverse=True, return_counts=True)
    part = part.ravel()
    for x in np.flatnonzero(32 * numbers < len(part)):
        wider = [y for y in range(len(numbers)) if y != x and (kinds[:, x] <= kinds[:, y]).all()]
        part[part == x] = min(wider, key=lambda y: kinds[:, y].sum(), default=x)
    for x in np.unique(part):
        yield slab.take(np.flatnonzero(part == x))


def together(slabs: list[Slab]) -> Slab:
    if len(slabs) == 1:
        return slabs[0]
    columns = {n: np.concatenate([x.columns[n] for x in slabs]) for n in slabs[0].columns}
    return Slab(columns, *(np.concatenate([getattr(x, n) for x in slabs], -1) for n in ("places", "among")))


def about(problem: Problem, whole: np.ndarray, combinations: list[dict]) -> tuple[int, bool]:
    """Return how many strategies the rules allow, and whether this is exact: large searches are sampled at random."""
    number, random = len(whole) * problem.in_layout, np.random.default_rng(0)
    places = np.arange(number) if number <= LOOKED else random.integers(number, size=LOOKED)
    slab, share = _candidates(problem, whole, places), max(number / LOOKED, 1)
    slab = slab.take(nonempty(distinct(problem, {}, slab)))
    slab = slab.take(_all(ruled(problem, slab, {}), slab))
    if len(slab.places) > COUNTED:
        share *= len(slab.places) / COUNTED
        slab = slab.take(random.choice(len(slab.places), COUNTED, replace=False))
    total = 0
    for words, number in _kinds(problem, combinations).values():
        holds = _all(ruled(problem, slab, words | {"offload": problem.always_offloads}), slab)
        total += number * int(counts(problem, distinct(problem, words, slab))[holds].sum())
    return round(total * share), share == 1


def _all(rules, slab: Slab) -> np.ndarray:
    return reduce(np.logical_and, (holds[0] for _, holds in rules), np.ones(len(slab.places), bool))
