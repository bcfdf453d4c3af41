"""Prediction intervals: how far a result may be from its value, by a few hundred random draws evaluated at once.

A value is uncertain if its table cell has `low` and `high`, or if it results from a formula for which `SPREADS` has
ends.  A value given in a call is certain.  Each uncertain quantity has one draw, however many formulas use it, so all
products of a device are slow together.  The draws are log-normal, and the same in every call.

>>> from scalebook import accelerators, models, training_step
>>> run = training_step(models.llama3_8b, accelerators.h100, batch=1, global_batch=128, seq=8192, dp=8)
>>> run.step_time in run.interval("step_time")
True
"""

import html
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from statistics import NormalDist
from typing import NamedTuple
from zlib import crc32

import numpy as np
import sympy

from . import code
from .notation import NOTATION, quoted, word
from .row import Call, Cell, Row, quantity, with_unit
from .stanzas import Stanzas
from .tabular import aligned, page_table, styled

__all__ = [
    "DRAWS", "SPREADS", "Between", "Cause", "Ends", "Interval", "Spreads", "causes", "interval", "measured_ends",
    "range_of", "usual_ends",
]  # fmt: skip

DRAWS = 400
MOST = 0.99  # beyond this level only two draws would decide
BEYOND = 0.05  # both bounds of a result between two bounds are widened by this share
TAIL = 0.1  # share of cases beyond each end of a cell or of `SPREADS`
_NORMAL = NormalDist()
_STEPS = np.array([_NORMAL.inv_cdf((i + 0.5) / DRAWS) for i in range(DRAWS)]) / -_NORMAL.inv_cdf(TAIL)


class Ends(NamedTuple):
    """The low and high end of a quantity's 80 % range, each divided by its value."""

    low: float | np.ndarray
    high: float | np.ndarray


class Spreads(Mapping):
    """How far results of formulas may be off: their 10 % and 90 % ends, by name."""

    _stanzas = Stanzas("", "")  # none until a file is added

    def add(self, path) -> None:
        """Read a TOML file: its tables `letters`, `experts` and one per device have ends by name."""
        self._stanzas = Stanzas(path.name, path.read_text("utf-8"), _ends)

    def of_device(self, key: str) -> Mapping[str, Ends]:
        """Return the 10 % and 90 % ends of a device's own measured quantities, by name; `key` is the device's."""
        return self._stanzas.get(key, {})

    @property
    def with_experts(self) -> Mapping[str, Ends]:
        """The ends of results for models with a mixture of experts, whose errors are larger."""
        return self.of_device("experts")

    def __getitem__(self, letter):
        return self.of_device("letters")[letter]

    def __iter__(self):
        return iter(self.of_device("letters"))

    def __len__(self):
        return len(self.of_device("letters"))


def _ends(text: str) -> dict[str, Ends]:
    return {NOTATION[name].name: Ends(x["low"], x["high"]) for name, x in tomllib.loads(text).items()}


SPREADS = Spreads()
# Formulas whose results have a spread of their own, and its stanza: kernels with a state, and of sparse attention
_KINDS = {"state_kernel_time": "states"} | dict.fromkeys(
    ("index_tile_time", "topk_time", "sparse_kernel_time", "encoder_kernel_time"), "prompts"
)


def usual_ends(letter: str, cell: Cell) -> Ends | None:
    """Return a value's 10 % and 90 % ends, divided by it, from its cell or `SPREADS`; None if it is certain."""
    if cell.low is not None:
        return Ends(cell.low / cell.value, cell.high / cell.value)
    if not cell.formula:
        return None
    kind = SPREADS.of_device(_KINDS.get(cell.formula.name, ""))
    own = SPREADS.with_experts.get(letter) if _visits_experts(cell) else kind.get(letter)
    return own or SPREADS.get(letter)


def _visits_experts(cell: Cell) -> bool:
    part = cell.inputs.get("experts_time")
    return part is not None and not isinstance(part.value, sympy.Basic) and bool(np.any(np.asarray(part.value) > 0))


class Cause(NamedTuple):
    """One uncertain quantity behind a result, and the result when this quantity alone is at its low or high end."""

    letter: str
    origin: str
    low: float | np.ndarray
    high: float | np.ndarray
    share: float

    @property
    def label(self) -> str:
        return f"{self.letter} ({self.origin})"


@dataclass(frozen=True, eq=False)
class Interval:
    """A result with its prediction interval: `low` and `high` hold it with probability `level`.

    All are arrays if the row has arrays.  `ranked` lists the causes, strongest first.
    """

    letter: str
    low: float | np.ndarray
    typical: float | np.ndarray
    high: float | np.ndarray
    level: float
    _rank: Callable[[], tuple[Cause, ...]]

    @cached_property
    def ranked(self) -> tuple[Cause, ...]:
        return self._rank()  # when it is first asked for, as it takes longer than the ends

    def __contains__(self, value) -> bool:
        """Return True if a value (in base units, or text with unit) lies between the ends, everywhere for an array."""
        value = quantity(self.letter, value)
        return bool(np.all((self.low <= value) & (value <= self.high)))

    @cached_property
    def width(self) -> float | np.ndarray:
        """The distance between low and high end, divided by the value."""
        return (self.high - self.low) / self.typical

    def _shown(self, value) -> str:
        return with_unit(value, NOTATION[self.letter].unit)

    def _lines(self):
        for x in self.ranked[:6]:
            yield [x.label, self._shown(x.low), self._shown(x.high), f"{x.share:.0%}"]

    @property
    def _title(self) -> str:
        low, typical, high = map(self._shown, (self.low, self.typical, self.high))
        return f"{self.letter} {typical}; {100 * self.level:g}% of cases between {low} and {high}"

    def __repr__(self):
        if not self.ranked:
            return f"{self._title}: nothing that it rests on has a spread"
        return f"{self._title}\n" + aligned([["", "from", "to", "share"], *self._lines()], right=True, gap="  ")

    def _repr_html_(self):
        if not self.ranked:
            return f"<p>{html.escape(repr(self))}.</p>"
        return styled(page_table(["alone", "from", "to", "share of the spread"], self._lines(), self._title))


class Between:
    """The possible results of a call that names no framework or engine (`what`): one for each row of `named()`."""

    def __init__(self, call: Call, what: str, named: Callable[[], Iterable[Row]]):
        self.call, self.what, self._named = call, what, named

    @cached_property
    def ends(self) -> list[Row]:
        """The results of the call, one for each framework or engine that it may have meant and that can run it."""
        found = []
        for row in self._named():
            with suppress(ValueError):  # the caches do not fit beside what this engine reserves
                found.append(self.call.thing(*self.call.knowns, row, **self.call.letters))
        return found

    def widest(self, letter: str) -> Cause | None:
        """Return the least and the most of a quantity among the results, or None if all have the same."""
        found = [row[letter] for row in self.ends if letter in row]
        low, high = (np.minimum.reduce(found), np.maximum.reduce(found)) if found else (0, 0)
        return Cause(self.what, f"no {self.what} named", low, high, 0) if np.any(low != high) else None


def range_of(row: Row, letter: str) -> tuple[float, float]:
    """Return the ends of a quantity's interval, which every form of an answer prints."""
    found = interval(row, letter)
    return found.low, found.high


def _measured(row: Row, letter: str, level: float) -> tuple[float, float]:
    """Return the range that measured services have around a prediction, of any engine if the call names none."""
    rows = ((x, measured_ends(x, letter)) for x in (row, *(row.between.ends if row.between else ())))
    further = _NORMAL.inv_cdf((1 + level) / 2) / -_NORMAL.inv_cdf(TAIL)  # own ends hold 80 %
    ends = zip(*([x[letter] * (end / x[letter]) ** further for end in own] for x, own in rows if own), strict=True)
    return np.minimum.reduce(next(ends)), np.maximum.reduce(next(ends))


def measured_ends(row: Row, letter: str) -> tuple | None:
    """Return the ends that measured services have around a quantity, or None if it has none.

    They are letters, such as `tpot_low`, or results at both ends of a step's time.
    """
    if f"{letter}_low" in row:
        return row[f"{letter}_low"], row[f"{letter}_high"]
    if not np.all(row[letter]):
        return None
    found = [x[letter] for x in row.at_ends() if letter in x]
    return (np.minimum(*found), np.maximum(*found)) if len(found) == 2 and np.any(found[0] != found[1]) else None


class _Part(NamedTuple):
    """The part of a computation that is uncertain: formulas in order, known cells, and ends by letter."""

    formulas: tuple
    known: dict[str, Cell]
    ends: dict[str, Ends]
    cells: dict[str, Cell]


def _part(letter: str, top: Cell, ends_of: Callable[[str, Cell], Ends | None]) -> _Part:
    found: dict[str, bool] = {}
    formulas, ends, cells, order = {}, {}, {}, []

    def walk(name, cell):
        if name in found:
            return found[name]
        found[name] = False
        below = [walk(n, x) for n, x in cell.inputs.items()] if cell.formula else []
        if (own := ends_of(name, cell)) is not None and not isinstance(cell.value, sympy.Basic):
            ends[name] = own
        cells[name], found[name] = cell, any(below) or name in ends
        if any(below):
            formulas[name] = cell.formula
            order.append(name)
        return found[name]

    walk(letter, top)
    needed = {i for f in formulas.values() for i in f.inputs} | {letter}
    known = {n: cells[n] for n in sorted(needed) if n in cells and n not in formulas}
    used = {n: x for n, x in ends.items() if n in known or n in formulas}
    return _Part(tuple((n, formulas[n]) for n in order), known, used, cells)


@lru_cache(64)
def _function(letter: str, known: tuple[str, ...], factors: tuple[str, ...], formulas: tuple) -> Callable:
    """Compile formulas to one NumPy function of the known letters and of the letters' random `factors`."""

    def with_factor(name, rhs):
        return sympy.Mul(sympy.Symbol(f"{name}__factor"), rhs, evaluate=False) if name in factors else rhs

    inputs = [*known, *(f"{x}__factor" for x in factors)]
    return code.vector(inputs, [(name, with_factor(name, f.rhs)) for name, f in formulas], [letter])


@lru_cache(1024)
def _draws(cause: str) -> np.ndarray:
    """Return stratified standard-normal draws for a cause, ordered by mulberry32 so that pages have the same ones."""
    x = np.uint32(crc32(cause.encode())) + np.arange(1, DRAWS + 1, dtype=np.uint32) * np.uint32(0x6D2B79F5)
    t = (x ^ x >> 15) * (x | 1)
    t ^= t + (t ^ t >> 7) * (t | 61)
    return _STEPS[np.argsort(t ^ t >> 14, kind="stable")]


def _factor(ends: Ends, steps: np.ndarray) -> np.ndarray:
    """Return the factor for draws: the low end at -1, 1 at 0, the high end at +1."""
    low, high = (np.asarray(x, float) for x in ends)
    steps = steps.reshape(steps.shape + (1,) * max(low.ndim, high.ndim))
    return np.where(steps < 0, low ** np.abs(steps), high ** np.abs(steps))


def _groups(part: _Part) -> list[tuple[str, ...]]:
    """Group letters that share a cell, such as a device's efficiency at one precision, because they share a draw."""
    groups = {}
    for name in part.ends:
        cell = part.cells[name]
        groups.setdefault(id(cell) if not cell.formula else name, []).append(name)
    return [tuple(x) for x in groups.values()]


def interval(
    row: Row, letter: str, level: float = 0.8, ends_of: Callable[[str, Cell], Ends | None] = usual_ends
) -> Interval:
    """Return the prediction interval of a quantity of a row at `level`.  Its value always lies between the ends.

    `ends_of` returns the ends of a single uncertain quantity and cell.  Raises ValueError if `level` is not a share.
    """
    letter = word(letter)
    typical = row[letter]
    if not isinstance(level, int | float) or not 0 < level <= MOST:
        said = f"such as 0.8, not {quoted(level)}: of {DRAWS} draws no rarer case can be told"
        raise ValueError(f"level is a share of cases between 0 and {MOST}, {said}")
    if isinstance(typical, sympy.Basic):
        needed = ", ".join(sorted(map(str, typical.free_symbols)))
        raise TypeError(f"{letter} of {row.name} is a formula: give numbers for {needed}")
    part = _part(letter, row.cells[letter], _with_steps(row, ends_of))
    groups = _groups(part)
    low, high = _drawn(letter, part, groups, typical, level)
    is_open = row.between is not None and ends_of is usual_ends
    assumed = [names for names in groups if part.cells[names[0]].is_assumed]
    own, ranked = (partial(_ranked, letter, part, x, typical) for x in (assumed, groups))
    found = _between(row, letter, level, low, high, own) if is_open else None
    if is_open and not found and (other := row.between.widest(letter)):  # holds what was not said
        low, high = _plain(np.minimum(low, other.low)), _plain(np.maximum(high, other.high))
        ranked = partial(_ranked_with, other, ranked, typical)
    if ends_of is usual_ends and measured_ends(row, letter):
        least, most = _measured(row, letter, level)
        low, high = _plain(np.minimum(low, least)), _plain(np.maximum(high, most))
    return found or Interval(letter, low, typical, high, level, ranked)


def _with_steps(row: Row, ends_of: Callable[[str, Cell], Ends | None]) -> Callable[[str, Cell], Ends | None]:
    """Extend `ends_of`: letters taken from other results get the intervals computed for those results."""

    def ends(name, cell):
        if name not in row.made_of or cell is not row.cells[name]:
            return ends_of(name, cell)
        other, letter = row.made_of[name]
        found = interval(other, letter, 1 - 2 * TAIL, ends_of)
        return Ends(found.low / found.typical, found.high / found.typical) if np.all(found.typical) else None

    return ends if row.made_of else ends_of


def _drawn(letter, part: _Part, groups, typical, level: float):
    if not groups:
        return typical, typical
    steps = {names: _draws(f"{min(names)} {part.cells[names[0]].origin}") for names in groups}
    draws = np.sort(_evaluated(letter, part, steps, np.shape(typical)), axis=0)
    low, high = (_quantile(draws, x) for x in ((1 - level) / 2, (1 + level) / 2))
    # If spreads are lopsided the value is not in the middle of the draws, but it must lie between the ends.
    return _plain(np.minimum(low, typical)), _plain(np.maximum(high, typical))


def _quantile(draws: np.ndarray, share: float):
    """Interpolate between sorted draws as `np.quantile` does, whose first call would import `numpy.ma`."""
    at = share * (len(draws) - 1)
    below, above, part = draws[int(at)], draws[int(np.ceil(at))], at % 1
    return below + (above - below) * part if part < 0.5 else above - (above - below) * (1 - part)


def _between(row: Row, letter: str, level: float, least, most, own: Callable) -> Interval | None:
    """Return the interval between two bounding results, widened; None if the step time does not matter."""
    if letter != "step_time" and "step_time" not in row.cells[letter].letters:
        return None
    typical = row[letter]
    first, last = (row.between.ends[i][letter] for i in (0, -1))
    rises = np.all(np.asarray(last) >= first)
    first, last = ((1 - BEYOND) * first, (1 + BEYOND) * last) if rises else (first / (1 - BEYOND), last / (1 + BEYOND))
    low, high = np.minimum(np.minimum(first, last), typical), np.maximum(np.maximum(first, last), typical)
    wider = _NORMAL.inv_cdf((1 + level) / 2) / -_NORMAL.inv_cdf(TAIL)
    low, high = typical * (low / typical) ** wider, typical * (high / typical) ** wider
    low, high = np.minimum(low, least), np.maximum(high, most)

    return Interval(
        letter, _plain(low), typical, _plain(high), level, partial(_moved, row.between, letter, own, typical)
    )


def _moved(between: Between, letter: str, own: Callable, typical) -> tuple[Cause, ...]:
    moved = [(*x[:2], np.minimum(*x[2:]), np.maximum(*x[2:])) for x in between.causes(letter)]
    return _by_share([*moved, *(x[:4] for x in own())], typical)


def causes(row: Row, letter: str, ends_of: Callable[[str, Cell], Ends | None] = usual_ends) -> tuple[Cause, ...]:
    """Rank the uncertain quantities behind a result (`letter` of the row) by how far each moves it, largest first."""
    part = _part(letter, row.cells[letter], ends_of)
    return _ranked(letter, part, _groups(part), row[letter])


def _ranked(letter, part, groups, typical) -> tuple[Cause, ...]:
    if not groups:
        return ()
    # Two draws for each cause: this cause alone at its low end, and alone at its high end.
    steps = np.zeros((len(groups), 2 * len(groups)))
    for i in range(len(groups)):
        steps[i, 2 * i : 2 * i + 2] = -1, 1
    results = _evaluated(letter, part, dict(zip(groups, steps, strict=True)), np.shape(typical))
    alone = results.reshape(len(groups), 2, *np.shape(typical))
    names = ((_named(x, letter), _origin(part.cells[x[0]])) for x in groups)
    return _by_share([(*n, np.minimum(*x), np.maximum(*x)) for n, x in zip(names, alone, strict=True)], typical)


def _ranked_with(other: Cause, ranked: Callable, typical) -> tuple[Cause, ...]:
    return _by_share([x[:4] for x in (*ranked(), other)], typical)


def _by_share(moved: list[tuple], typical) -> tuple[Cause, ...]:
    """Rank quantities, given as (letter, origin, low, high), by their share of the spread, largest first."""
    size = np.where(np.asarray(typical) == 0, 1, typical)
    squares = np.array([np.mean(((x[3] - x[2]) / size) ** 2) for x in moved])
    shares = (squares / (squares.sum() or 1)).tolist()
    found = (Cause(*x[:2], _plain(x[2]), _plain(x[3]), s) for x, s in zip(moved, shares, strict=True))
    return tuple(x for x in sorted(found, key=lambda x: -x.share) if x.share > 0)


def _named(names, letter) -> str:
    return min(names, key=len) if letter not in names else letter


def _origin(cell) -> str:
    """Return where an uncertainty comes from: the row of a table, a formula, or the residual error of the formulas."""
    if not cell.formula:
        return cell.origin
    return "what no formula has" if cell.inputs else cell.formula.name


def _plain(value):
    return float(value) if np.ndim(value) == 0 else value


def _evaluated(letter, part: _Part, steps: dict[tuple, np.ndarray], shape: tuple) -> np.ndarray:
    """Evaluate the letter for every draw.  The result has one line of the row's shape per draw."""
    factors = {n: _factor(part.ends[n], x) for names, x in steps.items() for n in names}
    lines = len(next(iter(steps.values())))

    def spread(value):  # draws are the first dimension, before those of the row's own arrays
        value = np.asarray(value, float)
        return value.reshape((lines,) + (1,) * (len(shape) - value.ndim + 1) + value.shape[1:])

    values = {n: np.asarray(x.value, float) for n, x in part.known.items()}
    for n in factors.keys() & values.keys():
        values[n] = spread(factors[n]) * values[n]
        if NOTATION[n].sign == "share":  # a share is at most 1: no kernel exceeds the peak
            values[n] = np.minimum(values[n], 1)
    if not part.formulas:
        return np.broadcast_to(values[letter], (lines, *shape))
    computed = dict(part.formulas)
    more = {f"{n}__factor": spread(x) for n, x in factors.items() if n in computed}
    names = tuple(n.removesuffix("__factor") for n in more)
    function = _function(letter, tuple(values), names, part.formulas)
    [results] = code.blocks(function, values | more)
    return np.broadcast_to(results, (lines, *shape))
