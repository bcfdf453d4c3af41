"""The strategies a search goes through: words, layouts of devices, batches, and letters with few values.

>>> divisors(12)
(1, 2, 3, 4, 6, 12)
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalebook.parallelism import CHOICES
from scalebook.validity import RULES

__all__ = ["IDLE", "LAYOUT", "Problem", "Slab", "divisors", "layouts", "slabs", "usual_choices", "word_combinations"]

LAYOUT = ("tp", "cp", "ep", "pp", "dp")

# What says nothing where there is but one way of something: it then keeps its first value, and is not counted again.
IDLE = {
    "tp_overlap": "tp", "sequence_parallel": "tp", "cp_overlap": "cp", "ep_overlap": "ep", "pp_overlap": "pp",
    "schedule": "pp", "chunks": "pp", "dp_overlap": "shards", "sharding": "shards",
    "weight_offload": "room", "activation_offload": "room", "optimizer_offload": "room",
}  # fmt: skip
_OFFLOADS = ("weight_offload", "activation_offload", "optimizer_offload")
_AXES = 4096  # combinations of letters on axes of their own; more letters become columns
_RULED = {x for rule in RULES for x in rule.needs} - set(CHOICES)
SLAB, CANDIDATES = 1 << 13, 1 << 17  # rows priced at a time, and looked through at a time


def divisors(number: float) -> tuple[int, ...]:
    """All of them, in order."""
    number = int(number)
    small = [x for x in range(1, math.isqrt(number) + 1) if number % x == 0]
    return tuple(dict.fromkeys([*small, *(number // x for x in reversed(small))]))


def usual_choices(known: Mapping[str, Any]) -> dict[str, tuple]:
    """What is searched unless a call says otherwise.

    Every layout of the devices, sequences split where each device keeps 4,096 tokens, a few micro-batch sizes and
    chunks; fused attention, whole recomputation or none, sharded state, and the two common schedules.
    """
    ways = divisors(known["devices"])
    return {
        "recompute": ("none", "full"), "sequence_parallel": (True,), "attention": ("flash",),
        "sharding": ("zero1", "zero2", "zero3"), "schedule": ("1f1b", "interleaved"),
        "tp": tuple(x for x in ways if x <= known.get("heads", x)),
        "cp": tuple(x for x in ways if x == 1 or np.max(known.get("seq", 0)) >= 4096 * x),
        "ep": tuple(x for x in ways if x == 1 or (known.get("experts", 0) and known["experts"] % x == 0)),
        "pp": tuple(x for x in ways if x <= known.get("layers", x)),
        "batch": (1, 2, 4, 8), "chunks": (1, 2, 3, 4, 6, 8),
    }  # fmt: skip


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
        for name, values in sorted(self.letters.items(), key=lambda x: len(x[1])):
            if name not in _RULED and size * len(values) <= _AXES:
                on_axes.append(name)
                size *= len(values)
        object.__setattr__(self, "on_axes", tuple(x for x in self.letters if x in on_axes))
        object.__setattr__(self, "in_rows", tuple(x for x in self.letters if x not in on_axes and x not in LAYOUT))

    def live(self, live: Mapping[str, np.ndarray], rows: np.ndarray):
        """The letters on axes that say nothing in some of these rows, each with the rows in which it does."""
        for name in self.on_axes:
            if name in IDLE and len(self.letters[name]) > 1 and not live[IDLE[name]][rows].all():
                yield name, live[IDLE[name]][rows]

    def first(self, name: str) -> tuple:
        """What a letter is where it says nothing."""
        values = self.letters[name]
        return (0.0,) if name in _OFFLOADS and 0.0 in values else values[:1]

    def offloads(self, letters: Mapping[str, tuple]) -> bool:
        """Whether one of these values, or a known one, has something offloaded."""
        return any(x for n in _OFFLOADS for x in (*letters.get(n, ()), self.fixed.get(n, 0)))

    @property
    def always_offloads(self) -> bool:
        """Whether no strategy has everything near."""
        return any(self.fixed.get(n, 0) or 0.0 not in self.letters.get(n, (0.0,)) for n in _OFFLOADS)


def word_combinations(problem: Problem) -> list[dict]:
    """Combinations of words in order, without those that repeat another: fused attention runs itself again."""
    found = [dict(zip(problem.words, x, strict=True)) for x in itertools.product(*problem.words.values())]
    none = "none" in problem.words.get("recompute", ())
    return [x for x in found if not (none and x.get("recompute") == "selective" and x.get("attention") == "flash")]


def _live(problem: Problem, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """For each way, where there is more than one of it."""
    v = {**problem.values, **columns}
    live = {x: np.asarray(v[x]) > 1 for x in ("tp", "cp", "ep", "pp")}
    live["shards"] = np.asarray(v["dp"] * v["cp"]) > 1
    live["room"] = -(-v["layers"] // np.asarray(v["pp"])) >= v["near_blocks"]
    live["chunks"] = np.asarray(v["chunks"]) > 1
    return {n: np.broadcast_to(x, columns["tp"].shape) for n, x in live.items()}


def _weights(problem: Problem, live: Mapping[str, np.ndarray], combinations: list[dict]) -> np.ndarray:
    """How many strategies each row stands for."""
    return sum(_says(problem, words, live) for words in combinations) * _on_axes(problem, live)


def _on_axes(problem: Problem, live: Mapping[str, np.ndarray]) -> np.ndarray:
    """How many combinations of the letters on axes each row has."""
    total = np.ones(live["tp"].shape, np.int64)
    for name in problem.on_axes:
        total *= np.where(live[IDLE[name]] if name in IDLE else True, len(problem.letters[name]), 1)
    return total


def _says(problem: Problem, words: Mapping, live: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rows of which a combination of words is no repetition."""
    fits = np.ones(live["tp"].shape, bool)
    for name, word in words.items():
        if name in IDLE and word != problem.words[name][0]:
            fits &= live[IDLE[name]]
    if words.get("schedule") == "interleaved" and "1f1b" in problem.words["schedule"]:
        fits &= live["chunks"]  # interleaving one chunk is 1F1B
    elif words.get("schedule") != "interleaved" and problem.letters.get("chunks", ())[:1] == (1.0,):
        fits &= ~live["chunks"]  # the other schedules have no chunks to choose
    return fits


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
    """Rows that a search evaluates at once: `columns` of letters, their places among all, what is live in each, and
    the combinations of letters on axes that each stands for."""

    columns: dict[str, np.ndarray]
    places: np.ndarray
    live: dict[str, np.ndarray]
    combinations: np.ndarray

    def take(self, rows) -> "Slab":
        return Slab(*({n: x[rows] for n, x in y.items()} if isinstance(y, dict) else y[rows] for y in vars(self).values()))

    def says(self, problem: Problem, words: Mapping) -> np.ndarray:
        """Rows of which a combination of words is no repetition."""
        return _says(problem, words, self.live)


def _candidates(problem: Problem, part: np.ndarray, places: np.ndarray, start: int) -> Slab:
    """Layouts with values of the letters that are columns, by their places among all of a part."""
    sizes = [len(problem.letters[x]) for x in problem.in_rows]
    layout, *digits = np.unravel_index(places, (len(part), *sizes))
    columns = dict(zip(LAYOUT, part[layout].T, strict=True))
    columns |= {n: np.asarray(problem.letters[n], float)[x] for n, x in zip(problem.in_rows, digits, strict=True)}
    v = {**problem.values, **columns}
    columns["microbatches"] = v["global_batch"] / (v["dp"] * v["batch"])
    live = _live(problem, columns)
    return Slab(columns, start * math.prod(sizes) + places, live, _on_axes(problem, live))


def slabs(problem: Problem, part: np.ndarray, start: int, combinations: list[dict], rejected: Counter):
    """The rows of some layouts that the rules allow, a bounded number at a time; the others are counted."""
    number = len(part) * math.prod(len(problem.letters[x]) for x in problem.in_rows)
    for place in range(0, number, CANDIDATES):
        slab = _candidates(problem, part, np.arange(place, min(place + CANDIDATES, number)), start)
        once = np.ones(len(slab.places), bool)
        for name in set(problem.in_rows) & set(IDLE):
            once &= slab.live[IDLE[name]] | (slab.columns[name] == problem.first(name)[0])
        slab = slab.take(once)
        for rule in RULES:
            if rule.name in problem.lifted or set(rule.needs) & set(CHOICES):
                continue
            holds = rule.of({**problem.values, **slab.columns})
            if holds is not None and not np.all(holds):
                holds = np.broadcast_to(np.asarray(holds, bool), slab.places.shape)
                rejected[rule.name] += int(_weights(problem, {n: x[~holds] for n, x in slab.live.items()}, combinations).sum())
                slab = slab.take(holds)
        for first in range(0, len(slab.places), SLAB):
            yield slab.take(slice(first, first + SLAB))
