"""What measured rows say of what is uncertain: how far each row is off, and what its prediction leans on.

Each confrontation's predictions are made once more while what they rest on is watched.  For each row follow the log of
measured over predicted (of a rate the other way round: of the time) and, by cause, the elasticity of the prediction:
the per cent that it moves where the cause moves by one.

>>> found = evidence("gemm_llmcompass")
>>> cause = next(x for x in found.leans if str(x) == "a100 matmul_bf16")
>>> float(found.leans[cause].max().round(2))
1.0
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from scalebook.language import Formula, Row, Sheet
from scalebook.language.interval import Ends, causes
from scalebook.language.row import Cell, gather
from scalebook.tables import accelerators, letter_of_kind

from . import CONFRONTATIONS, confront
from .confrontation import Readings

__all__ = ["FAMILIES", "CauseOf", "Evidence", "are_kin", "device_cells", "evidence", "family_of", "rows_of", "whole"]

# What is held to be uncertain: shares of peaks, launches, latencies and the like, of devices and of formulas.
UNCERTAIN = (
    "matmul_efficiency", "matmul_bf16", "expert_efficiency", "training_efficiency", "grouped_efficiency",
    "attention_whole", "grouped_whole", "stream_efficiency", "kernel_launch", "near_efficiency", "switch_efficiency",
    "near_latency", "collective_launch", "far_efficiency", "far_latency", "attention_efficiency", "attention_backward",
    "sustained_rate", "host_efficiency", "read_launch", "read_efficiency", "item_time", "prompt_launch",
    "prompt_efficiency", "score_flops", "routing_time_least", "assigned_passes", "inner_wait",
)  # fmt: skip
# Parts of a step that are uncertain beyond the letters they rest on, as their kernels are that were measured alone.
PARTS = ("experts_time", "routing_time", "cache_time", "exchange_time")
# Kernels of attention that are priced alone have other words for the same.
_WORDS = {
    "decode_kernel_time": {"launch_time": "read_launch", "bandwidth_efficiency": "read_efficiency"},
    "prefill_kernel_time": {"launch_time": "prompt_launch", "bandwidth_efficiency": "prompt_efficiency"},
}
# Sets by what they measure; each letter's own lack is learnt from the sets of its family.  Of a table of several kinds
# of rows, each kind is a set: of those rows whose group names it.
_SETS = {
    "step time": ("step_time", """
        korthikanti_table5 narayanan_table1 llama3 mlperf_training bloom_topology megascale megascale_530b
        narayanan_table2 megatron_core megatron_core_strong megatron_readme megatron_2020 mtnlg llm_foundry nanotron
        megatron_bridge torchtitan nemo_long_context nemo_long_context_without mlperf_training_51 amd_training
        gaudi_trainium tpu_training tpu_training_tables shoeybi_weak shoeybi_strong"""),
    "kernels: products": ("matmul_time", """
        gemm gemm_eleuther layer_eleuther gemm_infersim gemm_deepgemm gemm_llmcompass gemm_cards gemm_amd gemm_aiter
        gemm_xla eleuther_layers eleuther_attention layer_vidur:products azure:products ironwood:products"""),
    "kernels: streams": ("stream_time", "vector_kernels layer_vidur:streams"),
    "kernels: attention": ("kernel_time", """
        attention_prefill attention_decode attention_flash attention_mla attention_mla_decode attention_infersim
        attention_cards"""),
    "kernels: collectives": ("collective_time", """
        collectives collectives_published network_vidur custom_allreduce collectives_fabric fabric_mi300x
        azure:sums"""),
    "kernels: experts": ("matmul_time", "moe_gemm moe_gemm_down moe_layer moe_uneven"),
    "memory": ("memory", "megatron_memory megatron_peak nanotron_memory pytorch_saved"),
    "decoding": ("pass_time", """
        serving_tpot trtllm_static mlperf_offline mlperf_server mlperf_interactive mi300x_latency mi300x_max_load
        trtllm_max_load azure_engines serving_disaggregated infersim wide_ep h200_slo"""),
    # (`h200_slo_first` stands apart: half of its times are missing for a reason that is not known.)
    "first token": ("ttft", "serving_ttft trtllm_first_token"),
}  # fmt: skip
FAMILIES = {family: (letter, tuple(sets.split())) for family, (letter, sets) in _SETS.items()}
_KINDS = {
    "products": ("products",), "sums": ("all-reduce",),
    "streams": ("norms", "activations", "additions", "turning"),
}  # fmt: skip
# A set that measures a letter itself.
_THEMSELVES = {"attention_flash": "attention_efficiency"}
_MOST = {"step_time": 100, "pass_time": 100}  # rows of a set that are priced one by one
_STEP = 1.001  # a share near its peak has no room for more
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}


def family_of(name: str) -> str:
    """The family of a set, "" for one of none: floors, peers' predictions, arithmetic.

    Of a confrontation of several kinds of rows, the first kind's.
    """
    return next((family for family, (_, sets) in FAMILIES.items() if name in sets or name in map(whole, sets)), "")


def whole(name: str) -> str:
    """The confrontation that a set is of.

    >>> whole("azure:streams")
    'azure'
    """
    return name.partition(":")[0]


def rows_of(name: str) -> np.ndarray:
    """Which rows of its confrontation a set has: those of its kind that nothing was calibrated on.

    >>> int(rows_of("azure:products").sum())
    29
    """
    result, kind = confront(whole(name)), name.partition(":")[2]
    if not kind:
        return ~result.fitted
    said = map(result.confrontation.group, result.rows)
    return ~result.fitted & np.array([any(x in group for x in _KINDS[kind]) for group in said])


def are_kin(one: str, other: str) -> bool:
    """Whether two sets are of one table by the same authors: where one is left out, so is the other.

    >>> are_kin("megatron_memory", "megatron_peak"), are_kin("llama3", "narayanan_table1")
    (True, False)
    """
    a, b = (CONFRONTATIONS[whole(x)] for x in (one, other))
    return a.file == b.file and a.sources[0] == b.sources[0]


class CauseOf(NamedTuple):
    """A letter of a device's row, or of a formula where there is no device."""

    device: str
    letter: str

    def __str__(self):
        return " ".join(filter(None, self))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows of a set, or some evenly among them: log of measured over predicted time, and by cause the elasticity of
    each row's prediction; `readings` are logarithms of what rows may mean that do not say all, over what is
    predicted, a line each, and `chances` how likely each is; `devices` are their keys, "" where none can be told, and
    `repeats` says how many rows of the set are predicted the same: one machine, submitted by many.
    """

    name: str
    off: np.ndarray
    leans: Mapping[CauseOf, np.ndarray]
    readings: np.ndarray
    chances: np.ndarray
    devices: np.ndarray
    repeats: np.ndarray

    def only(self, picked: np.ndarray) -> "Evidence":
        """The same of some of the rows."""
        leans = {cause: lean[picked] for cause, lean in self.leans.items()}
        some = self.readings[:, picked], self.chances[:, picked], self.devices[picked], self.repeats[picked]
        return Evidence(self.name, self.off[picked], leans, *some)

    @property
    def weights(self) -> np.ndarray:
        """What each row counts: a set as the square root of what is predicted in it."""
        each = 1 / self.repeats
        return each / np.sqrt(max(1, each.sum()))

    @property
    def nearest(self) -> np.ndarray:
        """How far each row is off the nearest of its readings."""
        apart = self.off - self.readings
        return np.take_along_axis(apart, np.abs(apart).argmin(0)[None], 0)[0]


class _Met(NamedTuple):
    row: Row
    letter: str
    words: Mapping[str, str]


@contextmanager
def _watched(letters: tuple[str, ...]) -> Iterator[list[_Met]]:
    """The rows in which any of these letters is computed meanwhile."""
    met, sheet_call, formula_call = [], Sheet.__call__, Formula.__call__

    def call_sheet(self, *knowns, **given):
        row = sheet_call(self, *knowns, **given)
        met.extend(_Met(row, x, {}) for x in letters if x in row and row.cells[x].formula)
        return row

    def call_formula(self, *knowns, **given):
        value = formula_call(self, *knowns, **given)
        if self.letter in letters and not isinstance(value, Formula):
            f, _ = self._know(knowns, given)
            cells = gather(tuple(x for x in knowns if not isinstance(x, Formula)), given)
            top = Cell(value, self.name, formula=f, inputs={n: cells[n] for n in f.inputs})
            met.append(_Met(Row(self.name, {**cells, self.letter: top}), self.letter, _WORDS.get(self.name, {})))
        return value

    Sheet.__call__, Formula.__call__ = call_sheet, call_formula
    try:
        yield met
    finally:
        Sheet.__call__, Formula.__call__ = sheet_call, formula_call


@cache
def device_cells() -> dict[int, CauseOf]:
    """By the identity of a cell of the table of accelerators that was measured, which it is."""
    found = {}
    for row in accelerators.values():
        whole = accelerators[row.kin[-1]]  # a variant's cell is that of the device it is like
        for letter, cell in row.cells.items():
            is_same = letter in whole and whole[letter] == cell.value
            if letter != "matmul_efficiency" and "not measured" not in cell.note and cell.formula is None and is_same:
                found[id(cell)] = CauseOf(row.kin[-1], letter)
    return found


@cache
def _values() -> dict[tuple[str, float], tuple[CauseOf, ...]]:
    """By letter and value, the cells of devices that say so: what a confrontation hands on as numbers."""
    found: dict = {}
    for key, row in accelerators.items():  # where two devices say the same of everything, the first
        for letter, cell in row.cells.items():
            kind = "peak_flops" if letter.startswith("peak_") else letter_of_kind(letter)
            if (
                letter not in ("peak_flops", "matmul_efficiency")
                and "not measured" not in cell.note
                and len(row.kin) < 2
            ):
                found.setdefault((kind, cell.value), {})[CauseOf(key, letter)] = None
    return {k: tuple(x) for k, x in found.items()}


_TELLS = ("peak_flops", "hbm_bandwidth", "matmul_efficiency", "expert_efficiency", "stream_efficiency",
          "kernel_launch", "cores", "scaleup_bandwidth", "near_efficiency", "hbm_capacity")  # fmt: skip


@cache
def _device_of(told: tuple[tuple[str, float], ...]) -> str:
    """The device that most of these values are of."""
    votes: dict[str, int] = {}
    for letter, value in told:
        for x in dict.fromkeys(x.device for x in _values().get((letter, value), ())):
            votes[x] = votes.get(x, 0) + 1
    order = {x: i for i, x in enumerate(accelerators)}
    return min(votes, key=lambda x: (-votes[x], order[x]), default="")


def _cause(letter: str, value: float, told) -> CauseOf:
    """What a number is that came without its table: the cell of the device that the other numbers are of."""
    device = _device_of(told)
    kind = "matmul_efficiency" if letter in ("expert_efficiency", "training_efficiency") else letter_of_kind(letter)
    own = [x for x in _values().get((kind, value), ()) if x.device == device]
    return own[0] if own else CauseOf("", letter)


class _Lean(NamedTuple):
    """Of one result, point by point: its value, by cause how many per cent it moves where the cause moves by one, and
    the device's key.
    """

    value: np.ndarray
    by_cause: dict[CauseOf, np.ndarray]
    devices: np.ndarray


def _lean(met: _Met) -> _Lean:
    def ends_of(letter, cell):
        letter = met.words.get(letter, letter)
        is_uncertain = letter in PARTS if cell.inputs else letter in UNCERTAIN
        return Ends(1 / _STEP, _STEP) if is_uncertain else None

    value = met.row[met.letter]
    shape, leaves = np.shape(value), _leaves(met.row.cells[met.letter])
    told = {n: np.broadcast_to(leaves[n].value, shape).ravel() for n in _TELLS if n in leaves}
    lines = list(zip(*([(n, x) for x in told[n].tolist()] for n in told), strict=True)) or [()] * max(
        1, int(np.prod(shape))
    )
    found: dict[CauseOf, np.ndarray] = {}
    for cause in causes(met.row, met.letter, ends_of):
        size = np.broadcast_to(np.log(cause.high / cause.low) / (2 * np.log(_STEP)), shape).ravel()
        names = [n for n in leaves if leaves[n].origin == cause.origin or not cause.origin] or [cause.letter]
        cell = leaves.get(cause.letter) or leaves.get(names[0])
        letter = met.words.get(cause.letter, cause.letter)
        if known := device_cells().get(id(cell)):
            which = [known] * size.size
        elif cause.letter in PARTS or cell.formula or "not measured" in cell.note:
            which = [CauseOf("", letter)] * size.size
        else:
            values = np.broadcast_to(cell.value, shape).ravel().tolist()
            which = [_cause(letter, x, line) for x, line in zip(values, lines, strict=True)]
        for x in set(which):
            picked = np.array([y == x for y in which])
            found[x] = found.get(x, 0) + np.where(picked, size, 0)
    return _Lean(np.ravel(value), found, np.array([_device_of(x) for x in lines]))


def _together(parts: list[_Lean], least: float = 0.0) -> _Lean | None:
    """Of a row's parts what their sum leans on, as one point; what the sum is short of `least` leans on nothing."""
    if not parts:
        return None
    whole = max(least, sum(float(x.value.sum()) for x in parts))
    causes = {cause for x in parts for cause in x.by_cause}
    moved = {c: sum(float((x.value * x.by_cause[c]).sum()) for x in parts if c in x.by_cause) for c in causes}
    return _Lean(np.array([whole]), {c: np.array([x / whole]) for c, x in moved.items()}, parts[-1].devices[-1:])


def _leaves(top: Cell) -> dict[str, Cell]:
    found, waiting = {}, list(top.inputs.items())
    while waiting:
        name, cell = waiting.pop()
        if name not in found:
            found[name] = cell
            waiting += cell.inputs.items()
    return {n: x for n, x in found.items() if not x.inputs}


@cache
def evidence(name: str) -> Evidence:
    """What the rows of a set say."""
    letter, result, of_it = FAMILIES[family_of(name)][0], confront(whole(name)), np.flatnonzero(rows_of(name))
    c, kept = result.confrontation, [result.rows[i] for i in of_it]
    asked = {letter, "matmul_time", "stream_time"} if letter in ("matmul_time", "stream_time") else {letter}
    asked = (*asked, *(["kernel_time"] if letter == "pass_time" else []))
    is_rate = c.unit.partition(" ")[0].strip(",") not in ("s", "ms", "us", "µs", "d", "B", "GiB")
    sign = -1 if is_rate else 1
    off = sign * np.log(result.measured / result.predicted)[of_it]
    read = c.readings(kept) if c.readings else Readings(result.predicted[None, of_it], np.ones((1, len(of_it))))
    readings, chances = sign * np.log(read.predicted / result.predicted[of_it]), read.chances
    nowhere = np.full(len(kept), "")
    _, which, times = np.unique(result.predicted[of_it], return_inverse=True, return_counts=True)
    repeats = times[which]
    if itself := _THEMSELVES.get(name):
        return Evidence(name, off, {CauseOf("", itself): np.ones(len(off))}, readings, chances, nowhere, repeats)
    n, predict, is_kernel = len(kept), c.predict, family_of(name).startswith("kernels")
    with _watched(asked) as met:
        predict(kept[:2])
        if n > 2 and met and _are_arrays(met, 2):  # priced together
            met.clear()
            predict(kept)
            if met and _are_arrays(met, n):
                found = _lean(max(met, key=lambda x: float(np.sum(x.row[x.letter]))))
                return Evidence(name, off, found.by_cause, readings, chances, found.devices, repeats)
        places, rows = np.unique(np.linspace(0, n - 1, min(n, _MOST.get(letter, 300))).astype(int)), []
        seen: dict[float, _Lean | None] = {}  # what is predicted the same leans on the same
        for i in places:
            if (said := float(result.predicted[of_it[i]])) in seen:
                rows.append(seen[said])
                continue
            met.clear()
            predict([kept[i]])
            # A row of kernels is the sum of what is priced for it; of steps the last is the one that is asked for.
            parts = [_lean(x) for x in met if not _is_at_peaks(x)] if is_kernel else [_lean(x) for x in met[-1:]]
            seen[said] = _together(parts, said * _SECONDS.get(c.unit, 0) if is_kernel else 0)
            rows.append(seen[said])
    leans = {
        cause: np.array([float(x.by_cause.get(cause, [0])[0]) if x else 0.0 for x in rows])
        for cause in {y for x in rows if x for y in x.by_cause}
    }
    devices = np.array([x.devices[0] if x else "" for x in rows])
    return Evidence(name, off[places], leans, readings[:, places], chances[:, places], devices, repeats[places])


def _is_at_peaks(met: _Met) -> bool:
    """Whether this is what the device would do without a loss: the roofline that is kept beside a prediction."""
    leaves = _leaves(met.row.cells[met.letter])
    shares = [leaves[x].value for x in leaves if met.words.get(x, x).endswith("efficiency")]
    return bool(shares) and all(np.all(np.asarray(x) == 1) for x in shares)


def _are_arrays(met: list[_Met], length: int) -> bool:
    return all(np.shape(x.row[x.letter]) == (length,) for x in met)
