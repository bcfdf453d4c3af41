"""What measured rows say of what is uncertain: how far each row is off, and what its prediction leans on.

Each confrontation's predictions are made once more while what they rest on is watched.  For each row follow the log of
measured over predicted (of a rate the other way round: of the time) and, by cause, the elasticity of the prediction:
the per cent that it moves where the cause moves by one.

>>> found = evidence("gemm_llmcompass")
>>> cause = next(x for x in found.leans if str(x) == "a100 matmul_fp16")
>>> float(found.leans[cause].max().round(2))
1.0
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from scalebook.language import Row
from scalebook.language.interval import Ends, causes
from scalebook.language.row import Cell
from scalebook.tables import accelerators, letter_of_kind

from . import CONFRONTATIONS, confront
from .calls import Call, Sum, results
from .confrontation import Readings
from .expressions import names
from .sets import stanzas

__all__ = ["FAMILIES", "CauseOf", "Evidence", "are_kin", "device_cells", "evidence", "family_of", "rows_of", "whole"]

# What is held to be uncertain: shares of peaks, launches, latencies and the like, of devices and of formulas.
UNCERTAIN = (
    "matmul_efficiency", "matmul_bf16", "expert_efficiency", "training_efficiency", "grouped_efficiency",
    "attention_whole", "grouped_whole", "stream_efficiency", "kernel_launch", "near_efficiency", "switch_efficiency",
    "near_latency", "collective_launch", "far_efficiency", "far_latency", "attention_efficiency", "attention_backward",
    "sustained_rate", "host_efficiency", "read_launch", "read_efficiency", "item_time", "prompt_launch",
    "prompt_efficiency", "score_flops", "routing_time_least", "assigned_passes", "inner_wait", "core_bandwidth",
    "expert_stream_efficiency",
)  # fmt: skip
# Parts of a step that are uncertain beyond the letters they rest on, as their kernels are that were measured alone.
PARTS = ("experts_time", "routing_time", "cache_time", "exchange_time")
# Sets by what they measure; each letter's own lack is learnt from the sets of its family.  Of a table of several kinds
# of rows, each kind is a set: of those rows whose group names it.
_SETS = {
    "step time": ("step_time", """
        korthikanti_table5 narayanan_table1 llama3 mlperf_training bloom_topology megascale megascale_530b
        narayanan_table2 megatron_core megatron_core_strong megatron_readme megatron_2020 mtnlg llm_foundry nanotron
        megatron_bridge torchtitan nemo_long_context nemo_long_context_without mlperf_training_51 amd_training
        gaudi_trainium tpu_training tpu_training_tables shoeybi_weak shoeybi_strong"""),
    "kernels: products": ("matmul_time", """
        gemm gemm_2026 gemm_eleuther layer_eleuther gemm_infersim gemm_deepgemm gemm_llmcompass gemm_cards gemm_amd
        gemm_aiter gemm_xla eleuther_layers eleuther_attention layer_vidur:products azure:products
        ironwood:products"""),
    "kernels: streams": ("stream_time", "vector_kernels layer_vidur:streams quantize"),
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
_MOST = 100  # rows of a set that are priced one by one
_STEPS = ("step_time", "pass_time", "memory", "ttft")  # letters of whole steps
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


@cache
def device_cells() -> dict[int, CauseOf]:
    """The measured cells of the table of accelerators, by the identity of the cell."""
    found = {}
    for row in accelerators.values():
        whole = accelerators[row.kin[-1]]  # a variant's cell is that of the device it is like
        for letter, cell in row.cells.items():
            is_same = letter in whole and whole[letter] == cell.value
            if letter != "matmul_efficiency" and "not measured" not in cell.note and cell.formula is None and is_same:
                found[id(cell)] = CauseOf(row.kin[-1], letter)
    return found


class _Lean(NamedTuple):
    """A result, point by point: its value, and by cause the elasticity of the result to that cause."""

    value: np.ndarray
    by_cause: dict[CauseOf, np.ndarray]


def _lean(row: Row, letter: str) -> _Lean:
    """What a letter of a result leans on, also through the results that it was made of."""
    if letter in row.made_of:
        return _Lean(np.ravel(row[letter]), _lean(*row.made_of[letter]).by_cause)

    def ends_of(name, cell):
        name = letter_of_kind(name)
        is_uncertain = name in PARTS if cell.inputs else name in UNCERTAIN or name in row.made_of
        return Ends(1 / _STEP, _STEP) if is_uncertain else None

    top, found = row.cells[letter], {}
    shape, leaves = np.shape(row[letter]), _leaves(top)
    for cause in causes(row, letter, ends_of):
        size = np.broadcast_to(np.log(cause.high / cause.low) / (2 * np.log(_STEP)), shape).ravel()
        if cause.letter in row.made_of:
            for which, part in _lean(*row.made_of[cause.letter]).by_cause.items():
                found[which] = found.get(which, 0) + size * part
            continue
        names = [n for n in leaves if leaves[n].origin == cause.origin or not cause.origin] or [cause.letter]
        cell = leaves.get(cause.letter) or leaves.get(names[0])
        which = device_cells().get(id(cell)) or CauseOf("", letter_of_kind(cause.letter))
        found[which] = found.get(which, 0) + size
    return _Lean(np.ravel(row[letter]), found)


def _leaves(top: Cell) -> dict[str, Cell]:
    found, waiting = {}, list(top.inputs.items())
    while waiting:
        name, cell = waiting.pop()
        if name not in found:
            found[name] = cell
            waiting += cell.inputs.items()
    return {n: x for n, x in found.items() if not x.inputs}


def _letter_of(call: Call, row: Row, usual: str) -> str:
    """The letter that a call's answer is made of: of a step the family's, of a kernel the first that was computed."""
    if usual in row and usual in _STEPS:
        return usual
    return next(x for x in names(call.answer) if x in row and (row.cells[x].formula or x in row.made_of))


def _leans(calls: list[Call | Sum], letter: str) -> dict[CauseOf, np.ndarray]:
    """By cause, the elasticity of each call's answer: of a sum, its terms' by their values."""
    terms = [(i, x) for i, call in enumerate(calls) for x in (call.terms if isinstance(call, Sum) else [call])]
    total, moved = np.zeros(len(calls)), {}
    for places, call, row in results([x for _, x in terms]):
        at = [terms[i][0] for i in places]
        lean = _lean(row, _letter_of(call, row, letter))
        value = np.broadcast_to(lean.value, len(at))
        np.add.at(total, at, value)
        for cause, size in lean.by_cause.items():
            np.add.at(moved.setdefault(cause, np.zeros(len(calls))), at, value * size)
    return {cause: x / total for cause, x in moved.items()}


def _device_of(call: Call | Sum) -> str:
    """The key of the device that a call names, or of the one that it is like; "" for none."""
    rows = (call.terms[-1] if isinstance(call, Sum) else call).rows
    return next((accelerators[key].kin[-1] for kind, key, *_ in rows if kind == "accelerators"), "")


@cache
def evidence(name: str) -> Evidence:
    """What the rows of a set say."""
    letter, result, of_it = FAMILIES[family_of(name)][0], confront(whole(name)), np.flatnonzero(rows_of(name))
    c, kept = result.confrontation, [result.rows[i] for i in of_it]
    is_rate = c.unit.partition(" ")[0].strip(",") not in ("s", "ms", "us", "µs", "d", "B", "GiB")
    sign = -1 if is_rate else 1
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
    devices = np.array(list(map(_device_of, some)))
    return Evidence(
        name, off[places], _leans(some, letter), readings[:, places], chances[:, places], devices, repeats[places]
    )
