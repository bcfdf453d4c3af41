"""How far what is uncertain may be off, as measured rows say, and how many rows then lie where eight in ten should.

- A letter of a device (what products reach at a precision, a launch, a latency): of the kernels whose time moves by at
  least 0.7 % where it moves by one, what it would have to be for each to be right; its ends are the 10th and the 90th
  percentile, of eight rows or more.
- A letter that nobody measured on a device: the same percentiles of what devices of the table reach, over what is taken
  for such a device; where the table has too few, those of the kernels that were priced with it.
- A computed letter (`step_time`, `memory`): what no formula has.  The draws of the other letters leave so much of each
  row unexplained, each set's own rows not asked; the ends are the least that leave a tenth of the rows beyond each.
- A row that does not say all has several readings: it is off the nearest, and its ends are those of all, by chance.

Rows that anything was calibrated on are not asked, and a set is left out with all sets of its table.  A set counts as
the square root of its rows that are asked, a hundred at the most where each is a step of its own, so that no set
decides alone.  Everything is in logarithms, in which causes add up as squares.
"""

from collections.abc import Iterable
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from scalebook.language.interval import Ends
from scalebook.language.row import Cell
from scalebook.machine import kernels
from scalebook.tables import accelerators
from scalebook.training import assumptions as training

from .evidence import FAMILIES, CauseOf, Evidence, are_kin, device_cells, evidence, family_of

__all__ = ["Covered", "coverage", "device_spreads", "letter_spreads", "stanzas", "typical_spreads"]

LEAST_LEAN, LEAST_ROWS, LEAST_DEVICES = 0.7, 8, 4
TAIL = 0.1
_NORMAL = NormalDist()
_normal_share = np.vectorize(_NORMAL.cdf, otypes=[float])
_TYPICAL = {
    "matmul_efficiency": kernels.typical_matmul_efficiency, "stream_efficiency": kernels.typical_stream_efficiency,
    "attention_efficiency": training.attention_efficiency,
}  # fmt: skip
# Letters of one group share what no formula has of them: kernels that are told apart by their formula only, and memory
# of the stage asked for.
_GROUPS = {"stream_time": "matmul_time", "train_memory": "memory"}


def is_rate(letter: str) -> bool:
    """Whether more of it is faster: shares of a peak; of launches and latencies less is."""
    return letter.startswith(("matmul_", "training_")) or letter.endswith("efficiency") or letter == "sustained_rate"


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


@cache
def device_spreads(without: frozenset[str] = frozenset()) -> dict[CauseOf, tuple[Ends, int]]:
    """The logarithms of the ends of each letter that enough kernels lean on, and their number; without some sets."""
    found: dict[CauseOf, list] = {}
    for name in _sets(is_kernel=True):
        if name not in without:
            for cause, values in _implied(evidence(name)).items():
                found.setdefault(cause, []).append(values)
    rows = {x: sum(map(len, values)) for x, values in found.items()}
    return {x: (_ends(values), rows[x]) for x, values in found.items() if rows[x] >= LEAST_ROWS}


@cache
def typical_spreads() -> dict[str, tuple[Ends, int]]:
    """The logarithms of the ends of what is taken where nothing was measured: what devices of the table reach."""
    reached: dict[str, list[float]] = {}
    for cause in device_cells().values():
        letter = "matmul_efficiency" if cause.letter.startswith("matmul_") else cause.letter
        reached.setdefault(letter, []).append(accelerators[cause.device][cause.letter])
    found = {}
    for letter, values in reached.items():
        usual = _TYPICAL[letter]() if letter in _TYPICAL else _default(letter)
        if usual and len(set(values)) >= LEAST_DEVICES:
            found[letter] = _ends([np.log(np.array(values) / usual)]), len(values)
    return found


def _default(letter: str) -> float | None:
    """What a device has of which it was not measured."""
    cells = (row.cells[letter] for row in accelerators.values() if letter in row.cells)
    return next((x.value for x in cells if "not measured" in x.note), None)


def _of(cause: CauseOf, known) -> Ends | None:
    """The logarithms of a cause's ends: its own, else those of its letter on any device, else the table's."""
    letter = "matmul_efficiency" if cause.letter.startswith("matmul_") else cause.letter
    own = known.get(cause) or typical_spreads().get(letter) or known.get(CauseOf("", letter))
    return own[0] if own else _stated(cause)


def _stated(cause: CauseOf) -> Ends | None:
    """The logarithms of the ends that a device's cell came with."""
    cell = accelerators[cause.device].cells[cause.letter] if cause.device else Cell(1.0)
    return None if cell.low is None else Ends(*np.log([cell.low / cell.value, cell.high / cell.value]).tolist())


@cache
def _tails(found: Evidence, without: frozenset[str]) -> tuple[np.ndarray, np.ndarray]:
    """The squares of how far letters alone move each row at their ends: to the slow side, and to the fast one."""
    known = device_spreads(without) if found.leans else {}  # which asks every set of kernels
    slow, fast = np.zeros(len(found.off)), np.zeros(len(found.off))
    for cause, lean in found.leans.items():
        if ends := _of(cause, known):
            low, high = (-ends.high, -ends.low) if is_rate(cause.letter) else ends
            slow, fast = slow + (lean * high) ** 2, fast + (lean * low) ** 2
    return slow, fast


def _kernels_of(*names: str) -> frozenset[str]:
    """Those of the sets that letters are learnt from."""
    return frozenset(x for x in names if family_of(x).startswith("kernels"))


def _lack(sets: Iterable[str], without: tuple[str, ...], slow: bool) -> float:
    """The least end of what no formula has that leaves a tenth of the rows beyond."""
    found = [evidence(x) for x in sets]
    off = np.concatenate([x.nearest for x in found]) * (1 if slow else -1)
    moved = np.concatenate([_tails(x, _kernels_of(x.name, *without))[0 if slow else 1] for x in found])
    weights = _weights([x.off for x in found])
    low, high = 0.0, 5.0
    if (weights * (off > np.sqrt(moved))).sum() <= TAIL * weights.sum():
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        is_beyond = (weights * (off > np.sqrt(moved + middle**2))).sum() > TAIL * weights.sum()
        low, high = (middle, high) if is_beyond else (low, middle)
    return high


def _letters() -> dict[str, list[str]]:
    """The sets of each computed letter."""
    found: dict[str, list[str]] = {}
    for name in _sets():
        letter = FAMILIES[family_of(name)][0]
        found.setdefault(_GROUPS.get(letter, letter), []).append(name)
    return found


@cache
def letter_spreads() -> dict[str, tuple[Ends, int, int]]:
    """The logarithms of the ends of what no formula has, of each computed letter; its rows and sets."""
    found = {}
    for letter, sets in _letters().items():
        ends = Ends(-_lack(sets, (), slow=False), _lack(sets, (), slow=True))
        for name in (letter, *(x for x, group in _GROUPS.items() if group == letter)):
            found[name] = ends, sum(len(evidence(x).off) for x in sets), len(sets)
    return found


class Covered(NamedTuple):
    """A set left out whole, with all of its table: the share of its rows within eight in ten, and the median width of
    these over the value.
    """

    name: str
    family: str
    rows: int
    covered: float
    below: float
    above: float
    width: float


def _kin(name: str) -> tuple[str, ...]:
    """What is left out where a set is: itself, and what is of the same table."""
    return tuple(x for x in _sets() if are_kin(x, name))


def _ends_of_readings(readings: np.ndarray, chances: np.ndarray, fast: np.ndarray, slow: np.ndarray) -> Ends:
    """The ends that leave a tenth beyond each, over the readings of rows; of one reading, its own.

    >>> even = np.full((2, 1), 0.5)
    >>> _ends_of_readings(np.array([[0.0], [1.0]]), even, np.array([0.1]), np.array([0.1])).high.round(3)
    array([1.066])
    """
    if len(readings) == 1:
        return Ends(readings[0] - fast, readings[0] + slow)
    found = []
    for share in (TAIL, 1 - TAIL):
        least, most = readings.min(0) - 2 * fast, readings.max(0) + 2 * slow
        for _ in range(40):
            middle = (least + most) / 2
            apart = middle - readings
            steps = apart / np.where(apart < 0, fast, slow) * _NORMAL.inv_cdf(1 - TAIL)
            is_less = (chances * _normal_share(steps)).sum(0) < share
            least, most = np.where(is_less, middle, least), np.where(is_less, most, middle)
        found.append(middle)
    return Ends(*found)


@cache
def coverage() -> tuple[Covered, ...]:
    """Every set, with all that is uncertain learnt from the others."""
    found = []
    for sets in _letters().values():
        for name in sets:
            kin, own = _kin(name), evidence(name)
            rest = [x for x in sets if x not in kin]
            slow, fast = _tails(own, _kernels_of(*kin))
            low, high = _ends_of_readings(
                own.readings,
                own.chances,
                np.sqrt(fast + _lack(rest, kin, slow=False) ** 2),
                np.sqrt(slow + _lack(rest, kin, slow=True) ** 2),
            )
            below, above = float((own.off < low).mean()), float((own.off > high).mean())
            width = float(np.median(np.exp(high) - np.exp(low)))
            found.append(Covered(name, family_of(name), len(own.off), 1 - below - above, below, above, width))
    return tuple(found)


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
    for key in accelerators:
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
