"""Spreads: how far uncertain values may be off, learnt from measured rows.

- A quantity of a device (efficiency of products at a precision, a launch, a latency): take the kernel rows whose
  elasticity to it is at least 0.7. For each, compute the value that would make its prediction right. The ends of the
  spread are the 10th and the 90th percentile, of at least eight rows.
- A quantity that was not measured on a device: the same percentiles of the values of devices in the table, over the
  default for such a device. If the table has too few, the kernels priced with the default replace them.
- A computed quantity (`step_time`, `memory`): the residual error that the spreads of the inputs leave unexplained,
  with the row's own set held out. The ends are the smallest interval that leaves a tenth of the rows beyond each end.

Rows used for calibration are left out. A set counts as the square root of its rows, so that no set decides alone. All
values are logarithms, in which independent errors add up as squares.
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
from scalebook.tables import accelerators, letter_of_kind, libraries
from scalebook.training import assumptions as training

from .evidence import FAMILIES, PARTS, CauseOf, Evidence, device_cells, evidence, family_of

__all__ = [
    "APART", "PARTS_OF_ROWS", "TAIL", "HeldOut", "device_spreads", "held_out_part", "kept", "letter_spreads",
    "letters", "residual_spread", "stanzas", "tails", "typical_spreads", "visits_experts",
]  # fmt: skip

APART = ("pass_time",)  # letters of steps that are learnt separately for steps that visit experts
LEAST_ELASTICITY, LEAST_ROWS, LEAST_DEVICES = 0.7, 8, 4
TAIL = 0.1
_TYPICAL = {
    "matmul_efficiency": kernels.typical_matmul_efficiency, "stream_efficiency": kernels.typical_stream_efficiency,
    "attention_efficiency": training.attention_efficiency,
}  # fmt: skip
# Residuals of a family are fitted as the spread of this letter, or as this stanza's; expert kernels are separate from
# dense products, and three kinds of attention kernels from the others.
_LETTERS = {
    "kernels: experts": "experts_time", "kernels: states": "states",
    "kernels: sparse attention over prompts, and encoders": "prompts",
    "kernels: latent modules, and sparse attention in decoding": "steps",
}  # fmt: skip
# A step reads caches with kernels of all kinds
_UNIONS = {"cache_time": ("kernel_time", "states", "prompts", "steps")}
_KINDS = ("states", "prompts", "steps")  # stanzas of their own, with the spread of `kernel_time`
# Letters that share the residual error of another letter: kernels that differ only in their formula, parts of a step
# that are such kernels, and the memory of one stage.
_GROUPS = {
    "routing_time": "experts_time",
    "exchange_time": "collective_time", "train_memory": "memory",
}  # fmt: skip


def is_rate(letter: str) -> bool:
    """Return True if a larger value of the quantity is faster (a share of the peak), False if slower (a launch)."""
    kind = letter_of_kind(letter)
    return kind.startswith(("training_", "grouped_")) or kind.endswith(("efficiency", "_whole", "sustained_rate"))


def _sets(is_kernel: bool | None = None) -> list[str]:
    of_it = [sets for x, (_, sets) in FAMILIES.items() if is_kernel is None or x.startswith("kernels") == is_kernel]
    return [x for sets in of_it for x in sets]


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), reached, values[order]))


def _ends(found: list[np.ndarray]) -> Ends:
    """Return percentile ends of logarithms; the interval always includes zero, the value itself."""
    values, weights = np.concatenate(found), np.concatenate([np.full(len(x), len(x) ** -0.5) for x in found])
    return Ends(min(0.0, _quantile(values, weights, TAIL)), max(0.0, _quantile(values, weights, 1 - TAIL)))


@cache
def _implied(found: Evidence) -> dict[CauseOf, np.ndarray]:
    """Return, by cause, the log change that would make each row right, for rows with enough elasticity to it."""
    if not found.elasticities:
        return {}
    most = np.max(list(found.elasticities.values()), axis=0)
    said = {}
    for cause, elasticity in found.elasticities.items():
        if (picked := (elasticity >= LEAST_ELASTICITY) & (elasticity == most)).any():
            said[cause] = found.off[picked] / elasticity[picked] * (-1 if is_rate(cause.letter) else 1)
    return said


class HeldOut(NamedTuple):
    """What to hold out while spreads are learnt: whole sets, and the fifth with this number of the rows of all sets."""

    sets: frozenset[str] = frozenset()
    part: int | None = None


NOTHING_HELD_OUT = HeldOut()
PARTS_OF_ROWS = 5


@cache
def _parts(name: str) -> np.ndarray:
    """Return the fifth that each row of a set belongs to, by a fixed random draw."""
    rng = np.random.default_rng(crc32(name.encode()))
    return rng.permutation(len(evidence(name).off)) % PARTS_OF_ROWS


@cache
def kept(name: str, part: int | None) -> Evidence:
    """Return the evidence of a set without the fifth of its rows that has number `part`."""
    return evidence(name) if part is None else evidence(name).only(_parts(name) != part)


def held_out_part(name: str, part: int) -> Evidence:
    """Return the evidence of one fifth of a set's rows, by the number of the fifth."""
    return evidence(name).only(_parts(name) == part)


@cache
def device_spreads(held_out: HeldOut = NOTHING_HELD_OUT) -> dict[CauseOf, tuple[Ends, int]]:
    """Return, for quantities of devices that enough kernel rows measure: log ends of the spread, and number of rows."""
    found: dict[CauseOf, list] = {}
    for name in _sets(is_kernel=True):
        if name not in held_out.sets and family_of(name) != "kernels: experts":  # no evidence on dense products
            for cause, values in _implied(kept(name, held_out.part)).items():
                found.setdefault(cause, []).append(values)
    rows = {x: sum(map(len, values)) for x, values in found.items()}
    return {x: (_ends(values), rows[x]) for x, values in found.items() if rows[x] >= LEAST_ROWS}


@cache
def typical_spreads() -> dict[str, tuple[Ends, int]]:
    """Return, by quantity, the log 10 % and 90 % ends of devices' values over the default, and their number."""
    reached: dict[str, list[float]] = {}
    for cause in (x for x in dict.fromkeys(device_cells().values()) if x.device in accelerators):
        letter = letter_of_kind(cause.letter)
        reached.setdefault(letter, []).append(accelerators[cause.device][cause.letter])
    found = {}
    for letter, values in reached.items():
        usual = _TYPICAL[letter]() if letter in _TYPICAL else _default(letter)
        if usual and len(set(values)) >= LEAST_DEVICES:
            found[letter] = _ends([np.log(np.array(values) / usual)]), len(values)
    return found


def _default(letter: str) -> float | None:
    """Return the default that devices have for a letter that was not measured on them."""
    cells = (row.cells[letter] for row in accelerators.values() if letter in row.cells and len(row.kin) < 2)
    return next((x.value for x in cells if "not measured" in x.note), None)


def _of(cause: CauseOf, held_out: HeldOut) -> Ends | None:
    """Return the log ends of a cause: its own, or its letter's on any device, or the ends stated in the table."""
    if cause.letter in PARTS:
        return residual_spread(_GROUPS.get(cause.letter, cause.letter), held_out)
    if cause.device in libraries:
        return _stated(cause)
    known, letter = device_spreads(held_out), letter_of_kind(cause.letter)
    own = known.get(cause) or typical_spreads().get(letter) or known.get(CauseOf("", letter))
    return own[0] if own else _stated(cause)


def _stated(cause: CauseOf) -> Ends | None:
    """Return the log ends stated in a device's cell, or in a library's."""
    table = libraries if cause.device in libraries else accelerators
    cell = table[cause.device].cells[cause.letter] if cause.device else Cell(1.0)
    return None if cell.low is None else Ends(*np.log([cell.low / cell.value, cell.high / cell.value]).tolist())


def tails(found: Evidence, held_out: HeldOut) -> Ends:
    """Return for each row how far uncertain inputs may move its prediction, towards fast and towards slow.

    Both are sums of squared logarithms, with each input at the end of its interval.
    """
    slow, fast = np.zeros(len(found.off)), np.zeros(len(found.off))
    for cause, elasticity in found.elasticities.items():
        if ends := _of(cause, held_out):
            low, high = (-ends.high, -ends.low) if is_rate(cause.letter) else ends
            slow, fast = slow + (elasticity * high) ** 2, fast + (elasticity * low) ** 2
    return Ends(fast, slow)


@cache
def _own_tails(name: str, held_out: HeldOut) -> Ends:
    """Return `tails` of a set that letters are learnt from, with each set held out in turn."""
    return tails(kept(name, held_out.part), held_out)


def _kernels_of(names: Iterable[str]) -> frozenset[str]:
    """Return the kernel sets among these, which are the sets that letters are learnt from."""
    return frozenset(x for x in names if family_of(x).startswith("kernels"))


def visits_experts(found: Evidence) -> np.ndarray:
    """Return a boolean mask of the rows whose steps compute a mixture of experts."""
    return found.elasticities.get(CauseOf("", "experts_time"), np.zeros(len(found.off))) > 0


@cache
def _apart(name: str, part: int | None, of_experts: bool) -> np.ndarray:
    """Return a mask of the rows to use: steps with or without experts; all rows for other families."""
    found = kept(name, part)
    is_asked = visits_experts(found) == of_experts
    return is_asked if FAMILIES[family_of(name)][0] in APART else np.ones(len(found.off), bool)


@cache
def residual_spread(letter: str, held_out: HeldOut = NOTHING_HELD_OUT, of_experts: bool = False) -> Ends:
    """Return log ends of the 80 % range of measured over predicted that uncertain inputs do not explain.

    The interval is the smallest that leaves a tenth of the rows beyond each end. The inputs of a set's rows are taken
    as if learnt without this set.
    """
    names = [x for part in _UNIONS.get(letter, (letter,)) for x in letters()[part] if x not in held_out.sets]
    picked = [_apart(x, held_out.part, of_experts) for x in names]
    found = [kept(x, held_out.part).only(y) for x, y in zip(names, picked, strict=True)]
    weights, off = (np.concatenate([y(x) for x in found]) for y in (attrgetter("weights"), attrgetter("nearest")))
    kernels_held_out = _kernels_of(held_out.sets)
    moved = [_own_tails(x, HeldOut(kernels_held_out | _kernels_of([x]), held_out.part)) for x in names]
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
    """Return, for each computed quantity such as step_time, the names of the sets that measure it."""
    found: dict[str, list[str]] = {}
    for name in _sets():
        family = family_of(name)
        found.setdefault(_LETTERS.get(family, FAMILIES[family][0]), []).append(name)
    return found


def letter_spreads() -> dict[str, tuple[Ends, int, int]]:
    """Return, for each computed quantity, log ends of its unexplained error, and how many rows and sets it is from."""
    found = {}
    for letter, sets in letters().items():
        rows = [int(_apart(x, None, False).sum()) for x in sets]
        for name in (letter, *(x for x, group in _GROUPS.items() if group == letter)):
            found[name] = residual_spread(letter), sum(rows), sum(map(bool, rows))
    for letter, parts in _UNIONS.items():
        rows, sets = (sum(found[x][i] for x in parts) for i in (1, 2))
        found[letter] = residual_spread(letter), rows, sets
    return found


def _line(name: str, ends: Ends, **more: int) -> str:
    low, high = (f"{float(np.exp(x)):.3f}" for x in ends)
    said = "".join(f", {what} = {number}" for what, number in more.items() if number)
    return f"{name} = {{low = {low}, high = {high}{said}}}"


def stanzas() -> str:
    """Compute all spreads and return the text of the file `spreads.toml`, without its header."""
    known = device_spreads()
    lines = ["[letters]"]
    constants = {x.letter: y for x, y in known.items() if not x.device} | typical_spreads()
    lines += [_line(x, ends, rows=rows) for x, (ends, rows) in sorted(constants.items())]
    computed = letter_spreads()
    kinds = {x: computed.pop(x) for x in _KINDS}
    lines += [_line(x, ends, rows=rows, sets=sets) for x, (ends, rows, sets) in sorted(computed.items())]
    for kind, (ends, rows, sets) in kinds.items():
        lines += ["", f"[{kind}]", _line("kernel_time", ends, rows=rows, sets=sets)]
    lines += ["", "[experts]"]
    for letter in APART:
        rows = [int(_apart(x, None, True).sum()) for x in letters()[letter]]
        lines.append(_line(letter, residual_spread(letter, of_experts=True), rows=sum(rows), sets=sum(map(bool, rows))))
    for key in (x for x, row in accelerators.items() if len(row.kin) < 2):
        own = {letter: found for letter in accelerators[key].cells if (found := _own(key, letter, known))}
        if own:
            lines += ["", f"[{key}]", *(_line(x, ends, rows=rows) for x, (ends, rows) in own.items())]
    return "\n".join(lines) + "\n"


def _own(key: str, letter: str, known):
    """Return the spread learnt for a device's letter, or for a cell with the same value and source elsewhere."""
    cell = accelerators[key].cells[letter]
    if "not measured" in cell.note:
        return None
    like = cell.value, cell.source, accelerators[key].get("peak_flops")

    def is_same(device):
        other = accelerators[device].cells[letter]
        return (other.value, other.source, accelerators[device].get("peak_flops")) == like

    same = (known[x] for x in known if x.letter == letter and x.device and is_same(x.device))
    return known.get(CauseOf(key, letter)) or next(same, None)
