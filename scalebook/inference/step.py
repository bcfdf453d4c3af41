"""A serving step on devices that share a model: it decodes sequences, reads prompts, or both."""

from collections.abc import Mapping
from functools import cache, cached_property

import numpy as np
import sympy

from scalebook.attention import assumptions as attended
from scalebook.block import Block, served_blocks
from scalebook.inference import assumptions, experts, part_kernels
from scalebook.inference import two_batch_overlap as halves
from scalebook.inference.engine_terms import TERMS, not_run, with_engine_terms
from scalebook.inference.kernels import PARTS, Work
from scalebook.inference.rules import COUNTS, NETWORK, RULES, check, reach, reason, unreached
from scalebook.language import Formula, Row, Sheet
from scalebook.language.building import uncollected
from scalebook.language.defaults import equations
from scalebook.language.guide import Guided
from scalebook.language.notation import either, quoted, word
from scalebook.language.row import Cell, as_rows, gather, quantity, refuse_parts
from scalebook.language.rules import not_whole
from scalebook.language.stanzas import tables_of
from scalebook.language.tabular import callable_said
from scalebook.machine import kernels
from scalebook.machine.collective_rates import FABRIC
from scalebook.search.space import Space
from scalebook.tables import Device, Engine, KeysWith, accelerators, engines, models, precisions

__all__ = [
    "EXCHANGES", "OVERLAPS", "PARTS", "SERVING", "Step", "decode_step", "engine_time", "mixed_step", "prefill_step",
    "step_formulas", "step_sheet", "tokens_of",
]  # fmt: skip

ENGINES = KeysWith("engines", "chunk_tokens")  # the other engines serve one user
EXCHANGES = ("all_reduce", "all_to_all", "gather")
OVERLAPS = ("none", "half_batches")
DEFAULT_LETTERS = tables_of(__package__, "defaults.toml")["step"]
_SOURCES = ("pope2022 §3", "aiconfigurator")


_OWN = equations(__name__)  # those of step.toml
engine_time = _OWN.engine_time
_TOKENS = {
    "decode": (_OWN.decoded_tokens, _OWN.decoded_tokens),
    "prefill": (_OWN.read_tokens, halves.read_tokens_half),
    "mixed": (_OWN.mixed_tokens, halves.mixed_tokens_half),
}


def tokens_of(work: Work) -> Formula:
    """Return the formula for the tokens that pass the blocks together: a batch, or half with two-batch overlap."""
    f = _TOKENS[work.phase][work.passes - 1]
    more = Formula(f"{f.name}_drafted", f.letter, halves.with_drafts(f.rhs), f.sources, f.__doc__)
    return more if work.drafts else f


@cache
def step_formulas(dense: Block | None, moe: Block | None, work: Work) -> tuple[Formula, ...]:
    """Return the formulas of a serving step, its parts first. Only some models use the last ones."""
    times = halves.parts_of_step(dense, moe, work)
    parts = (Formula(f"{part}_of_step", part, time, _SOURCES) for part, time in times.items())
    indices = (dense or moe).indices
    kinds = {f.letter: f for index, own in part_kernels.DEFAULTS.items() if index in indices for f in own}
    kinds |= {f.letter: f for f in (assumptions.LATENT if "kv_rank" in indices else assumptions.GROUPED)}
    return (
        *parts, *([halves.messages_of(dense, moe, work), assumptions.exchange_cores_deepep] if work.passes > 1 else []),
        engine_time, _OWN.pass_time, tokens_of(work),
        *([_OWN.device_batch if work.passes == 1 else halves.device_batch_half] if work.decodes else []),
        *((*experts.VISITED, experts.devices_touched) if moe else ()), *kinds.values(), *assumptions.ASSUMED,
        *kernels.DEFAULT_FORMULAS, kernels.wide_efficiency, *FABRIC,
    )  # fmt: skip


@cache
@uncollected()
def step_sheet(dense: Block | None, moe: Block | None, work: Work, *more: Formula) -> Sheet:
    """Return the sheet of a serving step for a model's blocks, by default with the H100's efficiency of cache reads."""
    formulas = [*step_formulas(dense, moe, work), *more]
    outputs = {*PARTS, "engine_time", "messages_time", "pass_time"}
    used = outputs | {i for f in formulas for i in f.inputs}
    kept = (f for f in formulas if f.letter in used)
    return Sheet(f"{work.phase} step", *kept, doc="A step of serving, part by part.")


def _searched(known: Mapping) -> dict[str, tuple]:
    """Return the choices of `exchange` to search for a model with experts, if none is given."""
    return {"exchange": EXCHANGES} if known.get("experts") else {}


def remark(problem, rejected: Mapping[str, int]) -> str:
    """Return a search's remark on layouts left out because the device's row lacks a network, or ""."""
    return unreached([x for x in problem.knowns if isinstance(x, Mapping)], problem.values, rejected)


SERVING = Space(
    words={"engine": ENGINES, "exchange": EXCHANGES, "overlap": OVERLAPS}, usual=_searched, letters=DEFAULT_LETTERS,
    rules=RULES, reason=reason, is_signed=True,
    worded={"cache_room": "weights fit in memory", "token_time_step": "caches of all users fit in memory"},
    wrong=lambda name, value: not_whole(name, value) if name in COUNTS else None, remark=remark,
    unable=lambda knowns, engine: not_run([x for x in knowns if isinstance(x, Mapping)], engine),
)  # fmt: skip


class Step(Guided):
    """Price one step: `decode_step(model, device, tp=8, batch=64, context=4096)` returns a Row with its `pass_time`.

    The device's precision sets the widths of weights, caches, activations and experts unless they are given. `exchange`
    says how tokens reach experts: "all_reduce" if every device of a group has all tokens, "all_to_all" (the default
    with attention_dp), or "gather". `overlap` is "none", or "half_batches" for two-batch overlap. `engine` is a row of
    `tables.engines`, or its name. Raises ValueError for a layout that cannot run, and TypeError for a missing input.
    """

    usual = DEFAULT_LETTERS
    space = SERVING
    engine: str | None = None  # default engine
    finds: tuple[str, ...] = ("pass_time",)  # its answers, which a call cannot give

    def __init__(self, phase: str, doc: str):
        self.phase, self.name, self.doc = phase, f"{phase}_step", doc

    def __repr__(self):
        return callable_said(self.name, "model, device, tp=, ...", self.doc)

    @cached_property
    def _shown(self) -> Sheet:
        """The sheet of a model with experts, whose letters are shown."""
        return self.plan((models.mixtral_8x7b, accelerators.h100), {"tp": 2.0, "attention_dp": 2.0})[0]

    @property
    def choices(self) -> Mapping:
        return self.space.words

    @property
    def takes(self) -> dict[str, float | str | None]:
        """The inputs and options of a call by name, with defaults."""
        usual = self.usual | {"overlap": "none", "engine": self.engine}
        return {x: usual.get(x) for x in (*self._shown.inputs, *TERMS, "overlap", "engine")}

    @property
    def gives(self) -> tuple[str, ...]:
        """The names of the quantities that a call computes."""
        return tuple(self._shown.formulas)

    @cached_property
    def letters(self) -> frozenset[str]:
        """The names of all inputs and results for a model with experts, and quantities that engines' rows may set."""
        return frozenset({*self.takes, *self.gives, *self.choices})

    def sheet_of(self, dense: Block | None, moe: Block | None, work: Work, *more: Formula) -> Sheet:
        """Return the sheet of formulas for a model's blocks and a kind of step; `more` formulas are added to it."""
        return step_sheet(dense, moe, work, *more)

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """Return (sheet, rows, inputs) for a search. Every term of a step is kept, because inputs vary."""
        known = {n: x for row in (*knowns, letters) if isinstance(row, Mapping) for n, x in row.items()}
        return self.plan(knowns, letters, may_be_one=np.all(reach(known) == 1))

    def plan(self, knowns: tuple, letters: Mapping, may_be_one: bool = False) -> tuple[Sheet, tuple, dict]:
        """Return the sheet for a call, the rows to call it with, and the inputs that are numbers.

        With `may_be_one`, a single device that lacks a network gets a sheet that needs none.
        """
        self._refuse_strange(letters)
        letters, exchange = dict(letters), letters.get("exchange")
        letters.pop("exchange", None)
        engine, knowns = _engine_of(as_rows(knowns), letters.pop("engine", _UNSAID), self.engine)
        overlap = _checked("overlap", letters.pop("overlap", None), OVERLAPS) or "none"
        rows = [k for k in knowns if isinstance(k, Mapping)]
        known = {n: v for row in rows for n, v in row.items()} | letters
        model = next((row for row in rows if "layers" in row and "gating" in row), None)
        if model is None:
            raise TypeError(f"{self.name} needs a model's row with layers and gating, such as models.llama3_70b")
        own = Row("this call", letters) if engine is None or "head_efficiency" in letters else engine
        if why := not_run([*rows, letters], own):
            raise ValueError(why)
        groups = quantity("attention_dp", known.get("attention_dp", 1))
        if engine is not None:
            has_scales = _has_scales(rows, known)
            unused = {*known, *(() if has_scales else ("scale_kernels",))}
            knowns = (*knowns, Row(engine.name, {n: cell for n, cell in engine.cells.items() if n not in unused}))
            knowns = tuple(map(_by_blocks, knowns)) if has_scales else knowns
            known = {n: x for n, x in engine.items() if n not in unused} | known
            if is_over_one(groups) and np.any(quantity("experts", model.get("experts", 0)) != 0):
                exchange = exchange or engine.words.get("exchange")
        exchange = _exchange(exchange, groups, quantity("ep", known.get("ep", 1)))
        ways = [quantity(x, known.get(x, 1)) for x in ("tp", "pp")]
        if may_be_one and not {*NETWORK} <= {*known} and not any(map(is_over_one, (groups, *ways))):
            exchange = "none"
        peak = kernels.attention_peak_bf16 if "peak_bf16" in known else kernels.attention_peak_same
        more = [peak] if "attention_peak" not in known else []
        if model.get("index_heads") and "index_peak" not in known:
            more.append(attended.index_peak_fp8 if "peak_fp8" in known else attended.index_peak_same)
        state = model.cells.get("linear_state")
        if state and letters.keys() & state.inputs.keys():  # the row's own value is of other letters
            more.append(state.formula)
        dense, moe = served_blocks(model)
        sheet = self.sheet_of(dense, moe, Work(self.phase, exchange, overlap, "drafted" in known), *more)
        sheet = with_engine_terms(sheet, self.phase, known)
        if swapped := [x for x in knowns if isinstance(x, Formula)]:
            sheet, knowns = sheet.using(*swapped), tuple(x for x in knowns if not isinstance(x, Formula))
        usual = self.usual | _bits(rows) | {"window_layers": 0, "window": 1}
        used = {*sheet.inputs, *(sheet.formulas.keys() & letters.keys())}
        filled = {n: Cell(float(v), "usual") for n, v in usual.items() if n not in known and n in used}
        said, kinds = {*known, *(f.letter for f in swapped)}, part_kernels.kinds_of_attention(dense, moe)
        read = assumptions.read_by(assumptions.kind_read(model), *rows).cells
        read |= part_kernels.measured_kernels(kinds, engine, *rows).cells
        filled |= {n: cell for n, cell in read.items() if n in sheet.letters and n not in said}
        return sheet, (*knowns, Row("usual", filled | _assumed(sheet, known))), letters

    def checked(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict, dict]:
        """Check a call; return its sheet of formulas, and the rows, inputs and all known values for it."""
        sheet, rows, left = self.plan(knowns, letters, may_be_one=True)
        cells = gather(rows, left)
        known = {n: cell.value for n, cell in cells.items()}
        if symbols := [n for n, x in known.items() if isinstance(x, sympy.Basic)]:
            raise TypeError(f"{self.name} is priced for numbers, not for symbols ({', '.join(symbols)})")
        for name, value in known.items():
            refuse_parts(name, value)
        if lacking := [x for x in ("hbm_bandwidth", "peak_flops") if x not in known]:
            raise TypeError(f"{self.name} needs a device's row, such as accelerators.h100, for {either(lacking)}")
        check(known | {x: letters[x] for x in ("exchange", "overlap") if letters.get(x)})
        if lacking := [x for x in NETWORK if x in sheet.inputs and x not in known]:
            name = next((row.name for row in rows if "hbm_bandwidth" in row and hasattr(row, "name")), "the device")
            raise ValueError(
                f"{name} has no {either(lacking)}, which devices that share a model need: "
                f"give {', '.join(f'{x}=...' for x in lacking)}, or use one device"
            )
        known = {n: x for n, x in known.items() if cells[n].note != _LENT}
        left = {n: x for n, x in left.items() if n in sheet.letters or n not in COUNTS or is_over_one(quantity(n, x))}
        return sheet, rows, left, known

    def __call__(self, *knowns, **letters) -> Row:
        sheet, knowns, letters, _ = self.checked(knowns, letters)
        return sheet(*knowns, **letters)


_LENT = "nothing leaves the scale-up domain"


def _assumed(sheet: Sheet, known: Mapping) -> dict[str, Cell]:
    """Return substitutes for cells that a device lacks: unused ports, cores."""
    found = {}
    ways = np.prod([np.max(quantity(x, known.get(x, 1))) for x in ("tp", "pp", "attention_dp")])
    near = {x: quantity(x, known[x]) for x in ("scaleup_size", "scaleup_bandwidth") if x in known}
    if any(isinstance(x, sympy.Basic) for x in (ways, near.get("scaleup_size"))):
        return {}
    if len(near) == 2 and ways <= np.min(near["scaleup_size"]):
        found["scaleout_bandwidth"] = Cell(near["scaleup_bandwidth"], "usual", note=_LENT)
    if "cores" not in known:  # with the default of one core, a single core would read all caches
        note = "left out: the device's row has no cores, which start on pieces of a cache and send messages"
        found |= {n: Cell(0.0, "usual", note=note) for n in ("item_time", "exchange_cores")}
    return {n: cell for n, cell in found.items() if n in sheet.letters and n not in known}


_UNSAID = object()


def _engine_of(knowns: tuple, said, usual: str | None) -> tuple[Row | None, tuple]:
    """Return the engine that a call names, as a row or by `engine=`, or the default one, and the call's other rows."""
    named = [*(x for x in knowns if isinstance(x, Engine)), *([] if said is _UNSAID else [said])]
    if len(named) > 1:
        raise TypeError("a service is of one engine: name it once")
    others = tuple(x for x in knowns if not isinstance(x, Engine))
    return None if not named and usual is None else _engine(named[0] if named else usual), others


def _by_blocks(row):
    """Return the device with the efficiency of block-scaled 8-bit products, if that was measured."""
    if not isinstance(row, Device) or "matmul_fp8_block" not in row:
        return row
    return Row(row.name, row.cells | {"matmul_efficiency": row.cells["matmul_fp8_block"]}, row.words)


def _engine(engine) -> Row:
    if not isinstance(engine, str | Row) or (isinstance(engine, Row) and "chunk_tokens" not in engine):
        said = getattr(engine, "name", None) if isinstance(engine, Row) else quoted(engine)
        raise TypeError(f"engine is {either(map(repr, ENGINES))}, or a row of tables.engines, not {said}")
    row = engine if isinstance(engine, Row) else engines[word(engine)]
    if "chunk_tokens" not in row:
        raise ValueError(f"{row.name} runs one sequence at a time: token_time_engine prices it")
    return row


def _exchange(said, groups, ep) -> str:
    """Return the given word for how tokens reach experts, or the default for these attention groups."""
    usual = "all_reduce" if not is_over_one(groups) else "all_to_all" if is_over_one(ep) else "gather"
    return _checked("exchange", said, EXCHANGES) or usual


def _checked(name: str, said, known: tuple[str, ...]) -> str | None:
    """Return a word after checking that it is one of `known`; None stays None."""
    if said is not None and (not isinstance(said, str) or said not in known):
        raise ValueError(f"{name} is {either(map(repr, known))}, not {quoted(said)}")
    return said


def is_over_one(value) -> bool:
    """Return True if a value exceeds one, or is a symbol and may."""
    return isinstance(value, sympy.Basic) or bool(np.any(np.asarray(value) > 1))


def _has_scales(rows, known) -> bool:
    """Return True if weights are used in 8 bits with block scales, so that activations need scales too."""
    is_fp8 = "scale_block" in known and _precision(rows) == "fp8"
    return is_fp8 and bool(np.all(quantity("weight_bits", known.get("weight_bits", 8)) == 8))


def _precision(rows) -> str:
    return next((row.words["precision"] for row in rows if "precision" in getattr(row, "words", {})), "bf16")


def _bits(rows) -> dict[str, float]:
    """Return the widths of weights, caches and activations at the device's precision; 16 bits by default."""
    row = precisions.get(_precision(rows), precisions.bf16)
    bits = {name: row[name] for name in ("weight_bits", "kv_bits", "activation_bits")}
    return bits | {"expert_bits": bits["weight_bits"]}


decode_step = Step("decode", "A step that gives each sequence a token, kernel by kernel, on shared devices.")
prefill_step = Step("prefill", "A step that reads prompts, or parts of them.")
mixed_step = Step("mixed", "A step that reads parts of prompts beside sequences that decode.")
