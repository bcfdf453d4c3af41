"""How wrong each measured row's prediction is, and which uncertain inputs could explain it.

A residual is the log of measured over predicted time (rates are inverted). An elasticity is the change of a prediction
in per cent if one uncertain input (its cause, such as a device's `kernel_launch`) changes by one per cent.

>>> found = evidence("gemm_llmcompass")
>>> cause = next(x for x in found.elasticities if str(x) == "a100 matmul_fp16")
>>> float(found.elasticities[cause].max().round(2))
1.0
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from scalebook.language import Formula, Row, Sheet
from scalebook.language.interval import Ends, causes
from scalebook.language.row import Cell
from scalebook.measurements import CONFRONTATIONS, confront
from scalebook.measurements.calls import Call, Sum, arrays, called, grouped, row_of
from scalebook.measurements.confrontation import TIMES, Readings
from scalebook.measurements.expressions import names
from scalebook.measurements.sets import stanzas
from scalebook.search.space import searchable
from scalebook.tables import accelerators, letter_of_kind, libraries

__all__ = ["FAMILIES", "CauseOf", "Evidence", "are_kin", "device_cells", "evidence", "family_of", "rows_of", "whole"]

# Letters treated as uncertain: efficiencies, launches, latencies and the like, of devices and of formulas.
UNCERTAIN = (
    "matmul_efficiency", "matmul_bf16", "expert_efficiency", "training_efficiency", "grouped_efficiency",
    "attention_whole", "grouped_whole", "stream_efficiency", "kernel_launch", "near_efficiency", "switch_efficiency",
    "near_latency", "collective_launch", "far_efficiency", "far_latency", "attention_efficiency", "attention_backward",
    "sustained_rate", "host_efficiency", "read_launch", "read_efficiency", "item_time", "prompt_launch",
    "prompt_efficiency", "score_flops", "routing_time_least", "assigned_passes", "inner_wait", "core_bandwidth",
    "expert_stream_efficiency", "launch_time", "widen_flops",
)  # fmt: skip
# Parts of a step with a residual error of their own, like that of their kernels when measured alone.
PARTS = ("experts_time", "routing_time", "cache_time", "exchange_time")
_SAID = tomllib.loads((files(__package__) / "families.toml").read_text("utf-8"))
FAMILIES = {family: (said["letter"], tuple(said["sets"].split())) for family, said in _SAID.items()}
_STREAMS = ("norms", "activations", "additions", "turning")
_KINDS = {"products": ("products",), "sums": ("all-reduce",), "streams": _STREAMS}  # words of groups
_THEMSELVES = {"attention_flash": "attention_efficiency"}  # sets that measure a letter directly
_MOST = 200  # most rows of a set that are priced one by one
_STEPS = ("step_time", "pass_time", "memory", "ttft")  # letters of whole steps
_STEP = 1.001  # a small step, because a share near its peak cannot grow by more


def family_of(name: str) -> str:
    """Return the family that a measured set belongs to, such as "kernels: experts"; "" if it belongs to none.

    Lower bounds and the predictions of other models have none. If a set's rows are of several families, the first
    counts.
    """
    return next((family for family, (_, sets) in FAMILIES.items() if name in sets or name in map(whole, sets)), "")


def whole(name: str) -> str:
    """Return the name of the confrontation behind the name of a part of it: "azure" for "azure:streams"."""
    return name.partition(":")[0]


def rows_of(name: str) -> np.ndarray:
    """Return a boolean mask over a confrontation's rows: rows of the set on which nothing was calibrated."""
    result, kind = confront(whole(name)), name.partition(":")[2]
    if not kind:
        return ~result.fitted
    said = map(result.confrontation.group, result.rows)
    return ~result.fitted & np.array([any(x in group for x in _KINDS[kind]) for group in said])


def are_kin(one: str, other: str) -> bool:
    """Return True if two sets come from the same table of the same authors. Such sets are held out together.

    >>> are_kin("megatron_memory", "megatron_peak"), are_kin("llama3", "narayanan_table1")
    (True, False)
    """
    a, b = (CONFRONTATIONS[whole(x)] for x in (one, other))
    return a.file == b.file and a.sources[0] == b.sources[0]


class CauseOf(NamedTuple):
    """An uncertain input: a quantity of a device's row or a library's, or of a formula if `device` is ""."""

    device: str
    letter: str

    def __str__(self):
        return " ".join(filter(None, self))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Residuals of the rows of a measured set (or of an even sample), and elasticities to uncertain inputs.

    - `off`: the log of measured over predicted time of each row.
    - `elasticities`: by uncertain input, the change in per cent of each row's prediction per per cent of the input.
    - `readings`: for rows that may mean several things, the log of each meaning's prediction over the one used, a line
      per meaning; `chances`: their probabilities.
    - `devices`: keys of the rows' devices, "" if unknown.
    - `repeats`: how many rows of the set have the same prediction, such as one machine submitted by many.
    """

    name: str
    off: np.ndarray
    elasticities: Mapping[CauseOf, np.ndarray]
    readings: np.ndarray
    chances: np.ndarray
    devices: np.ndarray
    repeats: np.ndarray

    def only(self, picked: np.ndarray) -> "Evidence":
        """Return the same evidence for only the rows that the mask `picked` selects."""
        elasticities = {cause: elasticity[picked] for cause, elasticity in self.elasticities.items()}
        some = self.readings[:, picked], self.chances[:, picked], self.devices[picked], self.repeats[picked]
        return Evidence(self.name, self.off[picked], elasticities, *some)

    @property
    def weights(self) -> np.ndarray:
        """Weight of each row. A set with n distinct predictions weighs √n in all, so that no large set dominates."""
        each = 1 / self.repeats
        return each / np.sqrt(max(1, each.sum()))

    @property
    def nearest(self) -> np.ndarray:
        """Residual of each row relative to its best reading: the prediction closest to the measurement."""
        apart = self.off - self.readings
        return np.take_along_axis(apart, np.abs(apart).argmin(0)[None], 0)[0]


@cache
def device_cells() -> dict[int, CauseOf]:
    """Return all measured values of devices, and those of libraries with a stated range.

    The result maps the `id` of a table's cell to its device (or its library's row) and quantity.
    """
    cells = ((CauseOf(key, letter), cell) for key, row in libraries.items() for letter, cell in row.cells.items())
    found = {id(cell): cause for cause, cell in cells if cell.low is not None}
    for row in accelerators.values():
        whole = accelerators[row.kin[-1]]  # a variant's cell counts for the device it is like
        for letter, cell in row.cells.items():
            is_same = letter in whole and whole[letter] == cell.value
            if letter != "matmul_efficiency" and "not measured" not in cell.note and cell.formula is None and is_same:
                found[id(cell)] = CauseOf(row.kin[-1], letter)
    return found


class _Elasticities(NamedTuple):
    """A result, point by point: its value, and its elasticity to each cause."""

    value: np.ndarray
    by_cause: dict[CauseOf, np.ndarray]


def _elasticities_of_row(row: Row, letter: str) -> _Elasticities:
    """Return a letter's elasticities, including those through the results that it was made of."""
    if letter in row.made_of:
        return _Elasticities(np.ravel(row[letter]), _elasticities_of_row(*row.made_of[letter]).by_cause)

    def ends_of(name, cell):
        name = letter_of_kind(name)
        is_known = name in UNCERTAIN or name in row.made_of or cell.low is not None
        is_uncertain = name in PARTS if cell.inputs else is_known
        return Ends(1 / _STEP, _STEP) if is_uncertain else None

    top, found = row.cells[letter], {}
    shape, leaves = np.shape(row[letter]), _leaves(top)
    for cause in causes(row, letter, ends_of):
        size = np.broadcast_to(np.log(cause.high / cause.low) / (2 * np.log(_STEP)), shape).ravel()
        if cause.letter in row.made_of:
            for which, part in _elasticities_of_row(*row.made_of[cause.letter]).by_cause.items():
                found[which] = found.get(which, 0) + size * part
            continue
        names = [n for n in leaves if leaves[n].origin == cause.origin or not cause.origin] or [cause.letter]
        cell = leaves.get(cause.letter) or leaves.get(names[0])
        which = device_cells().get(id(cell)) or CauseOf("", letter_of_kind(cause.letter))
        found[which] = found.get(which, 0) + size
    return _Elasticities(np.ravel(row[letter]), found)


def _leaves(top: Cell) -> dict[str, Cell]:
    found, waiting = {}, list(top.inputs.items())
    while waiting:
        name, cell = waiting.pop()
        if name not in found:
            found[name] = cell
            waiting += cell.inputs.items()
    return {n: x for n, x in found.items() if not x.inputs}


def _letter_of(call: Call, row: Row, usual: str) -> str:
    """Return the letter behind a call's answer: the family's for a step, the first computed one for a kernel."""
    if usual in row and usual in _STEPS:
        return usual
    computed = (x for x in names(call.answer) if x in row and (row.cells[x].formula or x in row.made_of))
    return next(computed, names(call.answer)[0])


def _results(calls: list[Call]) -> Iterator[tuple[list[int], Call, Row]]:
    """Yield (indices in `calls`, a call, result) for each group that is evaluated as one call; results hold arrays."""
    if not isinstance(called(calls[0].thing), Sheet | Formula):
        for place, call in enumerate(calls):
            yield [place], call, call.runs[0]
        return
    for (thing, rows, words, letters, _), places in grouped(calls, [[""]] * len(calls)).items():
        said, known = arrays([calls[i] for i in places], letters, dict(words)), tuple(map(row_of, rows))
        yield places, calls[places[0]], searchable(called(thing), known, said)(*known, **said)


def _elasticities(calls: list[Call | Sum], letter: str) -> dict[CauseOf, np.ndarray]:
    """Return, by cause, the elasticity of each call's answer; a sum weights its terms by their values."""
    terms = [(i, x) for i, call in enumerate(calls) for x in (call.terms if isinstance(call, Sum) else [call])]
    total, moved = np.zeros(len(calls)), {}
    for places, call, row in _results([x for _, x in terms]):
        at = [terms[i][0] for i in places]
        elasticity = _elasticities_of_row(row, _letter_of(call, row, letter))
        value = np.broadcast_to(elasticity.value, len(at))
        np.add.at(total, at, value)
        for cause, size in elasticity.by_cause.items():
            np.add.at(moved.setdefault(cause, np.zeros(len(calls))), at, value * size)
    return {cause: x / total for cause, x in moved.items()}


def _device_of(call: Call | Sum) -> str:
    """Return the key of the device that a call names (or of the one it is like), or ""."""
    rows = (call.terms[-1] if isinstance(call, Sum) else call).rows
    return next((accelerators[key].kin[-1] for kind, key, *_ in rows if kind == "accelerators"), "")


@cache
def evidence(name: str) -> Evidence:
    """Compare a measured set (by name) with its predictions. Return the residuals and elasticities of its rows."""
    letter, result, of_it = FAMILIES[family_of(name)][0], confront(whole(name)), np.flatnonzero(rows_of(name))
    c, kept = result.confrontation, [result.rows[i] for i in of_it]
    sign = 1 if c.unit.partition(" ")[0].strip(",") in (*TIMES, "B", "GiB") else -1  # of rates
    off = sign * np.log(result.measured / result.predicted)[of_it]
    read = c.readings(kept) if c.readings else Readings(result.predicted[None, of_it], np.ones((1, len(of_it))))
    readings, chances = sign * np.log(read.predicted / result.predicted[of_it]), read.chances
    _, which, times = np.unique(result.predicted[of_it], return_inverse=True, return_counts=True)
    repeats, n = times[which], len(kept)
    if itself := _THEMSELVES.get(name):
        return Evidence(name, off, {CauseOf("", itself): np.ones(n)}, readings, chances, np.full(n, ""), repeats)
    calls = list(map(stanzas()[whole(name)].call, kept))
    places = np.arange(n)
    if letter in _STEPS:
        places = np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(int))
    some = [calls[i] for i in places]
    devices, elasticities = np.array(list(map(_device_of, some))), _elasticities(some, letter)
    return Evidence(name, off[places], elasticities, readings[:, places], chances[:, places], devices, repeats[places])
