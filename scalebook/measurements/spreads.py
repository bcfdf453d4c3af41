"""How far what is uncertain may be off, as measured rows say.

- A letter of a device (what products reach at a precision, a launch, a latency): of the kernels whose time moves by at
  least 0.7 % where it moves by one, what it would have to be for each to be right; its ends are the 10th and the 90th
  percentile, of eight rows or more.  Experts' grouped products say nothing of dense ones.
- A letter that nobody measured on a device: the same percentiles of what devices of the table reach, over what is taken
  for such a device; where the table has too few, those of the kernels that were priced with it.
- A computed letter (`step_time`, `memory`): what no formula has.  The draws of the other letters leave so much of each
  row unexplained, each set's own rows not asked; the ends are the least that leave a tenth of the rows beyond each.
  Of decoding it is learnt apart for steps that visit experts, and a step's parts that are kernels (`PARTS`) have what
  their kernels lack.

Rows that anything was calibrated on are not asked.  A set counts as the square root of its rows that are asked, a
hundred at the most where each is a step of its own, so that no set decides alone.  Everything is in logarithms, in
which causes add up as squares.  `coverage` asks how many rows then lie where eight in ten should.
"""

from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

import numpy as np

from scalebook.language.interval import Ends
from scalebook.language.row import Cell
from scalebook.machine import kernels
from scalebook.tables import accelerators, letter_of_kind
from scalebook.training import assumptions as training

from .evidence import FAMILIES, PARTS, CauseOf, Evidence, device_cells, evidence, family_of

__all__ = [
    "APART", "PARTS_OF_ROWS", "TAIL", "Left", "device_spreads", "kept", "lack", "left_out", "letter_spreads", "letters",
    "stanzas", "tails", "typical_spreads", "visits_experts",
]  # fmt: skip

APART = ("pass_time",)  # letters of steps that are learnt apart where experts are visited
LEAST_LEAN, LEAST_ROWS, LEAST_DEVICES = 0.7, 8, 4
TAIL = 0.1
_TYPICAL = {
    "matmul_efficiency": kernels.typical_matmul_efficiency, "stream_efficiency": kernels.typical_stream_efficiency,
    "attention_efficiency": training.attention_efficiency,
}  # fmt: skip
# What no formula has of a family's rows is learnt as that of a letter: experts' kernels are apart from dense products.
_LETTERS = {"kernels: experts": "experts_time"}
# Letters that share what no formula has of another: kernels that are told apart by their formula only, parts of a step
# that are such kernels, and memory of the stage asked for.
_GROUPS = {
    "routing_time": "experts_time", "cache_time": "kernel_time",
    "exchange_time": "collective_time", "train_memory": "memory",
}  # fmt: skip


def is_rate(letter: str) -> bool:
    """Whether more of it is faster: shares of a peak; of launches and latencies less is."""
    kind = letter_of_kind(letter)
    return (
        kind.startswith(("training_", "grouped_"))
        or kind.endswith(("efficiency", "_whole"))
        or kind == "sustained_rate"
    )


def _sets(is_kernel: bool | None = None) -> list[str]:
    of_it = [sets for x, (_, sets) in FAMILIES.items() if is_kernel is None or x.startswith("kernels") == is_kernel]
    return [x for sets in of_it for x in sets]


def _weights(found: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.full(len(x), len(x) ** -0.5) for x in found])


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), reached, values[order]))


def _ends(found: list[np.ndarray]) -> Ends:
    """The ends of logarithms, with the value itself between them."""
    values, weights = np.concatenate(found), _weights(found)
    return Ends(min(0.0, _quantile(values, weights, TAIL)), max(0.0, _quantile(values, weights, 1 - TAIL)))


@cache
def _implied(found: Evidence) -> dict[CauseOf, np.ndarray]:
    """By cause, the log of what it would have to be, over what it is, for each row that leans on it to be right."""
    if not found.leans:
        return {}
    most = np.max(list(found.leans.values()), axis=0)
    said = {}
    for cause, lean in found.leans.items():
        if (picked := (lean >= LEAST_LEAN) & (lean == most)).any():
            said[cause] = found.off[picked] / lean[picked] * (-1 if is_rate(cause.letter) else 1)
    return said


class Left(NamedTuple):
    """What is left out while spreads are learnt: whole sets, and a part of the rows of all, by its number."""

    sets: frozenset[str] = frozenset()
    part: int | None = None


NOTHING_LEFT = Left()
PARTS_OF_ROWS = 5


@cache
def _parts(name: str) -> np.ndarray:
    """Which fifth each row of a set is of: by lot, but always the same."""
    rng = np.random.default_rng(crc32(name.encode()))
    return rng.permutation(len(evidence(name).off)) % PARTS_OF_ROWS


@cache
def kept(name: str, part: int | None) -> Evidence:
    """What a set says without a part of its rows."""
    return evidence(name) if part is None else evidence(name).only(_parts(name) != part)


def left_out(name: str, part: int) -> Evidence:
    """What that part of a set's rows says."""
    return evidence(name).only(_parts(name) == part)


@cache
def device_spreads(left: Left = NOTHING_LEFT) -> dict[CauseOf, tuple[Ends, int]]:
    """The logarithms of the ends of each letter that enough kernels lean on, and their number."""
    found: dict[CauseOf, list] = {}
    for name in _sets(is_kernel=True):
        if name not in left.sets and family_of(name) != "kernels: experts":  # which say nothing of dense products
            for cause, values in _implied(kept(name, left.part)).items():
                found.setdefault(cause, []).append(values)
    rows = {x: sum(map(len, values)) for x, values in found.items()}
    return {x: (_ends(values), rows[x]) for x, values in found.items() if rows[x] >= LEAST_ROWS}


@cache
def typical_spreads() -> dict[str, tuple[Ends, int]]:
    """The logarithms of the ends of what is taken where nothing was measured: what devices of the table reach."""
    reached: dict[str, list[float]] = {}
    for cause in dict.fromkeys(device_cells().values()):
        letter = letter_of_kind(cause.letter)
        reached.setdefault(letter, []).append(accelerators[cause.device][cause.letter])
    found = {}
    for letter, values in reached.items():
        usual = _TYPICAL[letter]() if letter in _TYPICAL else _default(letter)
        if usual and len(set(values)) >= LEAST_DEVICES:
            found[letter] = _ends([np.log(np.array(values) / usual)]), len(values)
    return found


def _default(letter: str) -> float | None:
    """What a device has of which it was not measured."""
    cells = (row.cells[letter] for row in accelerators.values() if letter in row.cells and len(row.kin) < 2)
    return next((x.value for x in cells if "not measured" in x.note), None)


def _of(cause: CauseOf, left: Left) -> Ends | None:
    """The logarithms of a cause's ends: its own, else those of its letter on any device, else the table's."""
    if cause.letter in PARTS:
        return lack(_GROUPS.get(cause.letter, cause.letter), left)
    known, letter = device_spreads(left), letter_of_kind(cause.letter)
    own = known.get(cause) or typical_spreads().get(letter) or known.get(CauseOf("", letter))
    return own[0] if own else _stated(cause)


def _stated(cause: CauseOf) -> Ends | None:
    """The logarithms of the ends that a device's cell came with."""
    cell = accelerators[cause.device].cells[cause.letter] if cause.device else Cell(1.0)
    return None if cell.low is None else Ends(*np.log([cell.low / cell.value, cell.high / cell.value]).tolist())


def tails(found: Evidence, left: Left) -> Ends:
    """The squares of how far letters alone move each row at their ends: to the fast side, and to the slow one."""
    slow, fast = np.zeros(len(found.off)), np.zeros(len(found.off))
    for cause, lean in found.leans.items():
        if ends := _of(cause, left):
            low, high = (-ends.high, -ends.low) if is_rate(cause.letter) else ends
            slow, fast = slow + (lean * high) ** 2, fast + (lean * low) ** 2
    return Ends(fast, slow)


@cache
def _own_tails(name: str, left: Left) -> Ends:
    """Those of the rows of a set that letters are learnt from, where each set is left out in its turn."""
    return tails(kept(name, left.part), left)


def _kernels_of(names: Iterable[str]) -> frozenset[str]:
    """Those of the sets that letters are learnt from."""
    return frozenset(x for x in names if family_of(x).startswith("kernels"))


def visits_experts(found: Evidence) -> np.ndarray:
    """Which rows are steps that visit experts."""
    return found.leans.get(CauseOf("", "experts_time"), np.zeros(len(found.off))) > 0


@cache
def _apart(name: str, part: int | None, of_experts: bool) -> np.ndarray:
    """Which rows of a set are asked: of steps those with experts, or those without; of all else every row."""
    found = kept(name, part)
    is_asked = visits_experts(found) == of_experts
    return is_asked if FAMILIES[family_of(name)][0] in APART else np.ones(len(found.off), bool)


@cache
def lack(letter: str, left: Left = NOTHING_LEFT, of_experts: bool = False) -> Ends:
    """The logarithms of the least ends of what no formula has that leave a tenth of the rows beyond each.

    Of each set the rows are asked as if it were not among those that letters are learnt from.
    """
    names = [x for x in letters()[letter] if x not in left.sets]
    picked = [_apart(x, left.part, of_experts) for x in names]
    found = [kept(x, left.part).only(y) for x, y in zip(names, picked, strict=True)]
    weights, off = (np.concatenate([y(x) for x in found]) for y in (attrgetter("weights"), attrgetter("nearest")))
    kernels_left = _kernels_of(left.sets)
    moved = [_own_tails(x, Left(kernels_left | _kernels_of([x]), left.part)) for x in names]
    fast, slow = (
        np.concatenate([x[y] for x, y in zip(side, picked, strict=True)]) for side in zip(*moved, strict=True)
    )
    return Ends(-_least(-off, fast, weights), _least(off, slow, weights))


def _least(off: np.ndarray, moved: np.ndarray, weights: np.ndarray) -> float:
    low, high = 0.0, 5.0
    if (weights * (off > np.sqrt(moved))).sum() <= TAIL * weights.sum():
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        is_beyond = (weights * (off > np.sqrt(moved + middle**2))).sum() > TAIL * weights.sum()
        low, high = (middle, high) if is_beyond else (low, middle)
    return high


@cache
def letters() -> dict[str, list[str]]:
    """The sets of each letter that something lacks."""
    found: dict[str, list[str]] = {}
    for name in _sets():
        family = family_of(name)
        found.setdefault(_LETTERS.get(family, FAMILIES[family][0]), []).append(name)
    return found


def letter_spreads() -> dict[str, tuple[Ends, int, int]]:
    """The logarithms of the ends of what no formula has, of each computed letter; its rows and sets."""
    found = {}
    for letter, sets in letters().items():
        rows = [int(_apart(x, None, False).sum()) for x in sets]
        for name in (letter, *(x for x, group in _GROUPS.items() if group == letter)):
            found[name] = lack(letter), sum(rows), sum(map(bool, rows))
    return found


def _line(name: str, ends: Ends, **more: int) -> str:
    low, high = (f"{float(np.exp(x)):.3f}" for x in ends)
    said = "".join(f", {what} = {number}" for what, number in more.items() if number)
    return f"{name} = {{low = {low}, high = {high}{said}}}"


def stanzas() -> str:
    """The file of the tables' room, but for its head."""
    known = device_spreads()
    lines = ["[letters]"]
    constants = {x.letter: y for x, y in known.items() if not x.device} | typical_spreads()
    lines += [_line(x, ends, rows=rows) for x, (ends, rows) in sorted(constants.items())]
    lines += [_line(x, ends, rows=rows, sets=sets) for x, (ends, rows, sets) in sorted(letter_spreads().items())]
    lines += ["", "[experts]"]
    for letter in APART:
        rows = [int(_apart(x, None, True).sum()) for x in letters()[letter]]
        lines.append(_line(letter, lack(letter, of_experts=True), rows=sum(rows), sets=sum(map(bool, rows))))
    for key in (x for x, row in accelerators.items() if len(row.kin) < 2):
        own = {letter: found for letter in accelerators[key].cells if (found := _own(key, letter, known))}
        if own:
            lines += ["", f"[{key}]", *(_line(x, ends, rows=rows) for x, (ends, rows) in own.items())]
    return "\n".join(lines) + "\n"


def _own(key: str, letter: str, known):
    """What rows say of a device's letter, or of a cell of the same value and source on another device."""
    cell = accelerators[key].cells[letter]
    if "not measured" in cell.note:
        return None
    same = (
        x
        for x in known
        if x.letter == letter
        and x.device
        and accelerators[x.device].get("peak_flops") == accelerators[key].get("peak_flops")
        and (other := accelerators[x.device].cells[letter]).value == cell.value
        and other.source == cell.source
    )
    return known.get(CauseOf(key, letter)) or next((known[x] for x in same), None)
