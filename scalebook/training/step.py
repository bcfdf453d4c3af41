"""A training step at scale: its time and memory and their parts, as one sheet per strategy.

>>> from scalebook.tables import accelerators, frameworks, models
>>> run = training_step(models.gpt3_175b, accelerators.a100.at("bf16"), frameworks.megatron_2022, tp=8, pp=8, dp=1,
...                     microbatches=64, chunks=3, seq=2048, recompute="selective")
>>> round(run.mfu, 2), run.memory < 80e9
(0.52, True)
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import sympy.tensor.tensor  # noqa: F401  (SymPy's first sum would load it, for a quarter of a first step)
from sympy import Integer, Min, floor

from scalebook import _shown_by
from scalebook.block import Block, blocks_of
from scalebook.language import Formula, Row, Sheet, symbol
from scalebook.language.arguments import checked
from scalebook.language.building import uncollected
from scalebook.language.guide import Guided
from scalebook.language.latest import Latest
from scalebook.language.notation import nearest, quoted, unused
from scalebook.language.renamed import renamed
from scalebook.language.row import Call, Cell, gather, one_number, quantity
from scalebook.language.stanzas import tables_of
from scalebook.language.tabular import callable_said
from scalebook.machine import kernels
from scalebook.machine.collectives import collective
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.tables import accelerators, frameworks, models, precisions
from scalebook.training import assumptions, host, parts, totals
from scalebook.training.block_costs import block_formulas
from scalebook.training.contention import bandwidth_formulas
from scalebook.training.data_parallel import data_parallel_formulas
from scalebook.training.frameworks import UNNAMED, AnyFramework, settled
from scalebook.training.kinds import IN_TRAINING, OFFLOADS, kind_of, shape_of
from scalebook.training.memory import filled, memory_formulas, offload_formulas
from scalebook.training.newton_schulz import muon_formulas, updated
from scalebook.training.stages import with_first
from scalebook.training.strategy import CHOICES, WORDS, Strategy
from scalebook.training.trained_weights import model_flops_frozen, trained_share_adapters

__all__ = [
    "DEFAULT_LETTERS", "OFFLOADS", "Training", "default_letters_at", "memory_sheet", "training_sheet", "training_step",
]  # fmt: skip

__getattr__ = renamed(__name__)

DEFAULT_LETTERS = tables_of(__package__, "defaults.toml")["step"] | host.DEFAULT_LETTERS
_OPTIONAL = tables_of(__package__, "defaults.toml")["optional"]
_WHOLE_STREAM = Formula("whole_stream", "stream_efficiency", Integer(1), ["williams2009 §3"], "All of the bandwidth.")

_SHAPES = Latest(4096)  # what calls of a search share
_DECIDING = frozenset({*DEFAULT_LETTERS, *tables_of(__package__, "defaults.toml")["deciding"]["letters"]})


@cache
@uncollected()
def training_sheet(dense: Block | None, moe: Block | None, strategy: Strategy, *more: Formula) -> Sheet:
    """Return the sheet of a training step, for a model's blocks and a strategy. `more` formulas replace its own.

    >>> from scalebook.block import LLAMA
    >>> training_sheet(LLAMA, None, Strategy(recompute="full")).formulas["step_time"].inputs[:2]
    ('bubble_time', 'cp_exposed')
    """
    is_tiled = any(f.letter == "backward_reached" for f in more)
    formulas = [*_formulas_of(dense, moe, strategy, is_tiled)]
    used = {i for f in formulas for i in f.inputs}
    own = host.of_framework(moe is not None, strategy.schedule, used)
    for _ in range(3):  # formulas used by the formulas used, and so on
        used |= {i for f in (*own, *more) if f.letter in used for i in f.inputs}
    formulas += [f for f in own if f.letter in used]
    formulas += [f for f in more if f.letter in used]
    return Sheet("training step", *formulas, doc="A training step: its time and memory.")


@cache
@uncollected()
def _formulas_of(dense: Block | None, moe: Block | None, strategy: Strategy, is_tiled: bool) -> list[Formula]:
    formulas = [*block_formulas(dense, moe, strategy), *_around_blocks(replace(strategy, recompute="none"))]
    if strategy.trained.is_frozen:
        formulas = [strategy.trained.of(f, strategy.sharding.is_gathered) for f in formulas]
    formulas = [updated(f, strategy) for f in formulas]
    formulas += muon_formulas(dense, moe, strategy) if strategy.optimizer.mode else ()
    if strategy.kernels == "ideal":  # the optimizer streams at full bandwidth too
        formulas = [f.compose(_WHOLE_STREAM) if f.letter == "optimizer_time" else f for f in formulas]
    return [host.as_run(f, is_tiled) for f in formulas]


@cache
def _around_blocks(strategy: Strategy) -> list[Formula]:
    """Return the formulas of a step that do not depend on what its blocks recompute."""
    schedule, sharding = strategy.schedule, strategy.sharding
    x = symbol
    sent = x("batch") * x("seq") * x("hidden") / (x("tp") * x("cp")) * x("activation_bits") / 8
    # two stages are within one domain if all devices are
    inside = Min(1, x("scaleup_size") / (x("tp") * x("cp") * x("dp") * x("pp")), evaluate=False)
    transfer = sent, Integer(2), 1 + floor(inside, evaluate=False)
    sends = 2 * schedule.passes, Integer(1) if schedule.passes > 1 else x("chunks")  # forward and backward
    formulas = [
        *data_parallel_formulas(sharding, schedule.copies, strategy.offload),
        *memory_formulas(sharding, schedule, strategy.offload, strategy.trained.is_frozen, strategy.optimizer),
        *parts.STEP,
        *host.EXPOSED,
        *totals.TOTALS,
        filled,
        *kernels.DEFAULT_FORMULAS,
        assumptions.saved_bits_as_computed,
        schedule.bubble,
        parts.HEADS[schedule.ends],
        schedule.exposed,
        *bandwidth_formulas(sharding, *sends, transfer),
        Formula("transfer_time_split", "transfer_time", collective("send", *transfer), ["narayanan2021 §4.1"]),
    ]
    if strategy.offload:
        by_letter = {"bubble": parts.bubble_with_waits, "step_head": parts.with_waits, "bubble_time": parts.with_waits}
        formulas = [by_letter[f.letter](f) if f.letter in by_letter else f for f in formulas]
        formulas += offload_formulas(sharding, schedule, strategy.optimizer)
    else:
        formulas.append(assumptions.offload_exposed_none)
    if strategy.trained.is_frozen:
        frozen = {"model_flops": model_flops_frozen}
        formulas = [frozen.get(f.letter, f) for f in formulas] + [trained_share_adapters]
    return formulas


def memory_sheet(dense: Block | Mapping | None, moe: Block | None = None, **words: str | bool) -> Sheet:
    """Return the memory part of a training step's sheet: what a device holds, by default in the fullest stage.

    The model is a row, or its blocks. `words` are options such as recompute="full". No rule is checked, so stages may
    be unequal.

    >>> from scalebook.block import LLAMA
    >>> memory_sheet(LLAMA).formulas["memory"].inputs
    ('first_memory', 'last_memory')
    """
    if isinstance(dense, Mapping):
        dense, moe = blocks_of(dense)
    if stray := [x for x in words if x not in WORDS]:
        raise TypeError(f"a strategy has no word {quoted(stray[0])}; {nearest(stray[0], WORDS)}")
    return _memory_sheet(dense, moe, Strategy(**words))


@cache
def _memory_sheet(dense, moe, strategy):
    step = training_sheet(dense, moe, strategy, assumptions.expert_ways_same)
    asked = ["filled", "memory", *(["offload_memory", "train_away"] if strategy.offload else [])]
    doc = "Memory of a device of a pipeline stage in training."
    return Sheet("training memory", *step.only(*asked).formulas.values(), doc=doc)


def _offloads(letters: Mapping) -> list[str]:
    return [x for x in OFFLOADS if x in letters and np.any(quantity(x, letters[x]) != 0)]


def _product_bits(device: Mapping) -> float:
    """Return the bits of a product's inputs: 16 unless the device has another precision."""
    return _format_bits(f"peak_{x}") if (x := getattr(device, "words", {}).get("precision")) else 16


@cache
def _format_bits(peak: str) -> float:
    rows = precisions._naming(f'"{peak}"')  # no other row is read
    return min((x.activation_bits for x in rows if x.kind == "format" and x.peak == peak), default=16)


@checked
@cache
def default_letters_at(bits: float) -> dict[str, Cell]:
    """Return the default values that depend on the precision: for products whose inputs have `bits` bits.

    Above 16 bits all tensors are as wide as the inputs, and the weights are their own master copy.

    >>> default_letters_at(32)["optimizer_bits"].value
    64.0
    """
    usual = {n: Cell(float(v), "usual") for n, v in DEFAULT_LETTERS.items()}
    if one_number("weight_bits", bits) > 16:
        wide = {n: x.value / 32 for n, x in precisions.adam_fp32.cells.items() if n in DEFAULT_LETTERS}
        wide["logit_bits"] = 1.0
        note = f"products take {bits:g} bits"
        usual |= {n: Cell(x * bits, "usual", note=note) for n, x in wide.items()}
    return usual


def _is_usual(letter: str, value) -> bool:
    return letter in DEFAULT_LETTERS and bool(np.all(quantity(letter, value) == DEFAULT_LETTERS[letter]))


class Planned(NamedTuple):
    """What a call of `training_step` evaluates: rows, a sheet, a strategy, and the model's blocks (dense, experts)."""

    rows: tuple
    sheet: Sheet
    strategy: Strategy
    dense: Block | None
    moe: Block | None


class Training(Guided):
    """A training step under a strategy: its time, memory and cost.

    Call it with rows, quantities and options: `training_step(model, device, tp=8, recompute="full")`.

    If some blocks have sliding windows, fused attention skips pairs outside the window; unfused attention computes all.
    With 8-bit products, attention and logits stay in 16 bits; on a device without bf16 they run at the peak of the
    requested precision. If there are fewer key-value heads than tensor-parallel devices, several hold the same head. An
    input that only other strategies use may be given at its default (`chunks=1`). `lora_rank=16` alone trains adapters
    of that rank (`trained="lora"`). A framework may have other defaults, of words too. Raises ValueError, in one
    sentence, for a strategy that cannot run.
    """

    name = "training_step"
    inside = IN_TRAINING  # letters of a call that have other names in its sheet
    finds = ("step_time", "memory", "train_memory", "offload_memory", "mfu", "hfu")  # which a call cannot give
    billed = frozenset(tables_of(__package__, "defaults.toml")["bill"]["letters"])

    def __repr__(self):
        return callable_said(self.name, "model, device, tp=, pp=, global_batch=, seq=, recompute=, ...", self.doc)

    @property
    def space(self):
        """The description of the strategies that `search` tries for a training step."""
        from scalebook.training.space import TRAINING  # it searches the sheets of this module

        return TRAINING

    choices: Mapping[str, tuple] = CHOICES | {"framework": tuple(frameworks)}

    @property
    def doc(self) -> str:
        return type(self).__doc__

    @cached_property
    def _shown(self) -> Sheet:
        return self.sheet((models.mixtral_8x7b, accelerators.h100), dict(devices=8, global_batch=8))[0]

    @property
    def takes(self) -> dict[str, float | str | None]:
        usual = DEFAULT_LETTERS | {n: x[0] for n, x in CHOICES.items()}
        usual |= {n: x for n, x in frameworks[UNNAMED].items() if n in usual}
        return dict.fromkeys([*_OPTIONAL["inputs"], *self._shown.inputs]) | usual | dict.fromkeys(_OPTIONAL["follow"])

    @property
    def defaults_said(self) -> dict[str, str]:
        """What a call without a framework uses, which differs from what most frameworks do."""
        (*_, row), _ = settled((models.mixtral_8x7b, accelerators.h100), {})
        said = {n: f"{x:g} if no framework is named, else the framework's" for n, x in row.items()}
        return said | {"library_rate": said["library_rate"].replace(" if", " on an H100 if")}

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(self._shown.formulas)

    @cached_property
    def letters(self) -> frozenset[str]:
        """The names of all inputs and results of a training step with experts, under any strategy."""
        return frozenset({*self.takes, *self.gives, *self.billed, *self.choices})

    def plan(self, knowns: tuple, letters: dict) -> Planned:
        """Return the rows, sheet, strategy and blocks for a call. It removes the strategy's options from `letters`."""
        knowns, defaults = settled(knowns, letters)
        strategy, blocks, more, known = self._asked(knowns, letters, defaults)
        more = [f for f in more if f.letter not in known]
        sheet = with_first(training_sheet(*blocks, strategy, *more), strategy.schedule, known)
        return Planned(knowns, sheet, strategy, *blocks)

    def _asked(self, knowns, letters, defaults) -> tuple[Strategy, tuple, list[Formula], set[str]]:
        """Return a call's strategy, blocks, formulas for what is known, and that; remove the options from `letters`."""
        for said in ("framework", "mtp_blocks"):  # already in the rows
            letters.pop(said, None)
        words = defaults | {k: letters.pop(k) for k in list(letters) if k in WORDS}
        words = {n: WORDS[n].value(x) for n, x in words.items()}
        if "lora_rank" in letters:
            words.setdefault("trained", "lora")
        for alone, inside in IN_TRAINING.items():  # a call's letters for products apply to those of its step
            if alone in letters:
                letters.setdefault(inside, quantity(alone, letters.pop(alone)))  # its error names the letter
        rows = [k for k in knowns if isinstance(k, Mapping)]
        known = {n for row in rows for n in row} | letters.keys()
        model = next((row for row in rows if "layers" in row and "gating" in row), None)
        if model is None:
            raise TypeError(f"{self.name} needs a model's row with layers and gating, such as models.llama3_70b")
        words.setdefault("offload", bool(_offloads(letters)))
        words.setdefault("quantized", any(_product_bits(x) <= 8 for x in rows))
        if words.get("blocks", "fused") != "fused":
            words.setdefault("family", getattr(model, "words", {}).get("family", "llama"))
        if "schedule" not in words and np.any(np.asarray(letters.get("chunks", 1)) != 1):
            words["schedule"] = next(x for x in SCHEDULES.values() if x.plain == WORDS["schedule"].usual)
        strategy, blocks = Strategy(**words), blocks_of(model)
        if strategy.modules and words["recompute"] != defaults.get("recompute"):  # which may be for other models
            strategy.refuse_absent(blocks)
        more = [
            totals.batch_of_microbatches if "microbatches" in known else totals.microbatches_of_batch,
            totals.ways_left if "devices" in known and "dp" not in known else totals.devices_of_ways,
            kernels.attention_peak_bf16 if "peak_bf16" in known else kernels.attention_peak_same,
            assumptions.longest_sequence,
            kernels.wide_efficiency,
            *assumptions.measured(model, letters, known),
        ]
        return strategy, blocks, more, known

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """Return the sheet for a call, the rows to call it with, and the inputs that are numbers."""
        letters = dict(letters)
        planned = self.plan(knowns, letters)
        sheet, rows, letters = self._called(planned.sheet, planned.rows, letters)
        if "train_tokens" not in letters:
            return sheet, rows, letters
        sheet, defaults = _shown_by("with_bill")(sheet)
        row = Row("bill", {n: x for n, x in defaults.items() if not any(n in y for y in rows)})
        return sheet, (row, *rows), letters

    def kind(self, knowns: tuple, letters: Mapping) -> tuple[tuple, Sheet, dict[str, Cell]]:
        """Return a key that calls with the same formulas share, their sheet with defaults, and all that is known."""
        rows, defaults = settled(knowns, letters)
        said = shape_of(rows, letters, defaults, _DECIDING)  # devices and frameworks often differ in numbers alone
        key, sheet, usual, names, more = _SHAPES.get(said, lambda: self._shape(rows, dict(letters), defaults), rows)
        cells = gather((*rows, usual), {n: letters[x] for n, x in names.items()} | more)
        if "train_tokens" in letters:
            sheet, defaults = _shown_by("with_bill")(sheet)
            cells = defaults | cells
        return key, sheet, cells

    def _shape(self, rows, letters, defaults):
        """Return a kind's key and sheet, the row of defaults, the letters as the sheet calls them, and further ones."""
        given = set(letters)
        strategy, blocks, more, known = self._asked(rows, letters, defaults)
        more = [f for f in more if f.letter not in known or f in assumptions.MEASURED]
        own = tuple(sorted(known & {"first_blocks", "last_blocks", "stage_blocks"}))
        sheet = with_first(training_sheet(*blocks, strategy, *more), strategy.schedule, known)
        _, (*_, usual), said = self._called(sheet, rows, dict(letters))
        outer = {inside: x for x, inside in IN_TRAINING.items() if inside not in given}
        names = {n: outer.get(n, n) for n in letters}  # of all options
        rest = {n: x for n, x in said.items() if n not in names}
        return (strategy, *blocks, *more, own), sheet, usual, names, rest

    def _called(self, sheet, knowns, letters):
        known = {n for row in knowns if isinstance(row, Mapping) for n in row} | letters.keys()
        used = sheet.letters
        of_run = self.billed if "train_tokens" in known else frozenset()  # a cluster says how often devices fail
        for row in knowns:
            if isinstance(row, Mapping) and row and (used | of_run).isdisjoint(row):
                said = f"{getattr(row, 'name', 'a row')} has nothing that {self.name} uses ({', '.join(row)})"
                raise TypeError(f"{said}: give a device, such as accelerators.h100")
        device = next((row for row in knowns if isinstance(row, Mapping) and "peak_flops" in row), {})
        if _product_bits(device) < 5 and "quantized_bits" in used:  # including shared scales
            letters.setdefault("quantized_bits", 4)
        usual = {n: x for n, x in default_letters_at(_product_bits(device)).items() if n not in known}
        if "dp" in sheet.inputs and "dp" not in known:  # neither was given
            usual["dp"] = Cell(1.0, "usual")
        letters = {n: v for n, v in letters.items() if n in used or not (n in OFFLOADS or _is_usual(n, v))}
        if "experts" not in used and not _is_usual("ep_overlap", letters.get("ep_overlap", 0)):
            raise TypeError(unused(self.name, "ep_overlap", used))  # its sum has a term of no exchange
        if "attention_efficiency" in letters and "attention_short" in known:
            raise TypeError(unused(self.name, "attention_efficiency", used))  # a library's letters take its place
        return sheet, (*knowns, Row("usual", usual)), letters

    def __call__(self, *knowns, **letters) -> Row:
        if (found := _offloads(letters)) and not letters.get("offload", True):
            raise ValueError(f"offload=False contradicts {found[0]}={letters[found[0]]}: leave one of them out")
        own = self.unbilled(letters, "train_tokens")
        kind = kind_of(self, knowns, own)
        run = kind.evaluated(own)
        run.call = Call(self, knowns, letters)
        if kind.is_open:
            run.between = AnyFramework(run.call)
        return run


training_step = Training()
