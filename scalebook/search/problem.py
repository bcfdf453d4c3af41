"""What a search is asked, and the strategies it goes through: words, layouts of devices, and letters with few values."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from .space import LAYOUT, OFFLOADS, TRAINING, Space, needs, told

__all__ = ["Problem", "Slab", "counts", "distinct", "layouts", "slabs", "some", "word_combinations"]

_AXES = 4096  # combinations of letters on axes of their own; more letters become columns
SLAB, CANDIDATES = 1 << 13, 1 << 17  # rows priced at a time, and looked through at a time


@dataclass(frozen=True)
class Problem:
    """What a search is asked, small enough to be sent to another process.

    `values` are the known letters, `words` and `letters` those with several; `limits` are letter, relation, letter or
    number, and the name they are counted under.
    """

    sheet: Any
    knowns: tuple
    fixed: dict[str, float]
    values: dict[str, float]
    words: dict[str, tuple]
    letters: dict[str, tuple]
    axes: tuple[str, ...]
    limits: tuple[tuple[str, str, Any, str], ...]
    lifted: frozenset[str] = frozenset()
    best: int = 10
    on_axes: tuple[str, ...] = field(init=False)
    in_rows: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        on_axes, size = [], 1
        ruled = {x for rule in self.space.rules for x in rule.needs} | {x for f in self.space.within(self) for x in needs(f)}
        for name, values in sorted(self.letters.items(), key=lambda x: len(x[1])):
            if name not in ruled and size * len(values) <= _AXES:
                on_axes.append(name)
                size *= len(values)
        object.__setattr__(self, "on_axes", tuple(x for x in self.letters if x in on_axes))
        object.__setattr__(self, "in_rows", tuple(x for x in self.letters if x not in on_axes and x not in LAYOUT))

    @property
    def space(self) -> Space:
        return getattr(self.sheet, "space", TRAINING)

    def columns(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The same with the letters that follow from them."""
        return {**columns, **self.space.follows({**self.values, **columns})}

    def first(self, name: str) -> Any:
        """What a letter or word is where it says nothing."""
        values = self.words.get(name) or self.letters[name]
        return 0.0 if name in OFFLOADS and 0.0 in values else values[0]

    def offloads(self, letters: Mapping[str, tuple]) -> bool:
        """Whether one of these values, or a known one, has something offloaded."""
        return any(x for n in OFFLOADS for x in (*letters.get(n, ()), self.fixed.get(n, 0)))

    @property
    def always_offloads(self) -> bool:
        """Whether no strategy has everything near."""
        return any(self.fixed.get(n, 0) or 0.0 not in self.letters.get(n, (0.0,)) for n in OFFLOADS)


def word_combinations(problem: Problem) -> list[dict]:
    """Combinations of words in order, without those that repeat another wherever they are."""
    found = [dict(zip(problem.words, x, strict=True)) for x in itertools.product(*problem.words.values())]
    return [x for x in found if all(part.any() for part in distinct(problem, x))]


def distinct(problem: Problem, words: Mapping, columns: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
    """Where rows, times the letters on axes, repeat no other strategy: truths of which all must hold, each on axes of
    its own.  Without columns, as far as words alone say it."""
    axes, v = len(problem.on_axes), dict(words)
    if columns is not None:
        v |= dict.fromkeys(OFFLOADS, 0.0) | problem.values | {n: x.reshape(-1, *(1,) * axes) for n, x in columns.items()}
        for place, name in enumerate(problem.on_axes):
            v[name] = np.reshape(problem.letters[name], [-1 if x == place + 1 else 1 for x in range(axes + 1)])
    conditions = [told(f, v) for f in problem.space.within(problem)]
    for name, says in problem.space.idle.items():
        if name in v and len(problem.words.get(name) or problem.letters.get(name, ())) > 1:
            live = told(says, v)
            conditions.append(None if live is None else live | (v[name] == problem.first(name)))
    rows = len(columns["tp"]) if columns else 1
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
    total = reduce(np.multiply, [x.reshape(len(x), -1).sum(1) for x in parts])
    free = [len(problem.letters[n]) for i, n in enumerate(problem.on_axes) if all(x.shape[i + 1] == 1 for x in parts)]
    return total * math.prod(free)


def some(parts: list[np.ndarray]) -> np.ndarray:
    """Rows that stand for any."""
    return reduce(np.logical_and, [x.reshape(len(x), -1).any(1) for x in parts])


def layouts(problem: Problem) -> np.ndarray:
    """All combinations of tp, cp, ep and pp with the dp that is left, as rows of five numbers."""
    lists = [np.asarray(problem.letters.get(x, (problem.values.get(x, 1.0),)), float) for x in LAYOUT[:4]]
    columns = [x.reshape(-1) for x in np.meshgrid(*lists, indexing="ij")]
    dp = problem.values["devices"] / (columns[0] * columns[1] * columns[3])
    found = np.stack([*columns, dp], axis=1)
    found = found[dp == np.floor(dp)]
    return found[np.isin(found[:, 4], problem.letters["dp"])] if "dp" in problem.letters else found


@dataclass(frozen=True)
class Slab:
    """Rows that a search evaluates at once: `columns` of letters, and their places among all."""

    columns: dict[str, np.ndarray]
    places: np.ndarray

    def take(self, rows) -> "Slab":
        return Slab({n: x[rows] for n, x in self.columns.items()}, self.places[rows])


def _candidates(problem: Problem, part: np.ndarray, places: np.ndarray, start: int) -> Slab:
    """Layouts with values of the letters that are columns, by their places among all of a part."""
    sizes = [len(problem.letters[x]) for x in problem.in_rows]
    layout, *digits = np.unravel_index(places, (len(part), *sizes))
    columns = dict(zip(LAYOUT, part[layout].T, strict=True))
    columns |= {n: np.asarray(problem.letters[n], float)[x] for n, x in zip(problem.in_rows, digits, strict=True)}
    return Slab(problem.columns(columns), start * math.prod(sizes) + places)


def slabs(problem: Problem, part: np.ndarray, start: int, combinations: list[dict], rejected: Counter):
    """The rows of some layouts that the rules allow, a bounded number at a time; the others are counted."""
    number = len(part) * math.prod(len(problem.letters[x]) for x in problem.in_rows)
    for place in range(0, number, CANDIDATES):
        slab = _candidates(problem, part, np.arange(place, min(place + CANDIDATES, number)), start)
        slab = slab.take(some(distinct(problem, {}, slab.columns)))
        for rule in problem.space.rules:
            if rule.name in problem.lifted or set(rule.needs) & set(problem.space.words):
                continue
            holds = rule.of({**problem.values, **slab.columns})
            if holds is not None and not np.all(holds):
                holds = np.broadcast_to(np.asarray(holds, bool), slab.places.shape)
                out = {n: x[~holds] for n, x in slab.columns.items()}
                rejected[rule.name] += int(sum(counts(problem, distinct(problem, words, out)).sum() for words in combinations))
                slab = slab.take(holds)
        for first in range(0, len(slab.places), SLAB):
            yield slab.take(slice(first, first + SLAB))
