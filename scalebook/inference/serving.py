"""Serving: latency and throughput of a model on devices, from the kernels of a step to the price of a token.

A prompt is read in chunks, each in a mixed step together with the decoding sequences, which it delays.
"""

from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType

import numpy as np
from sympy import Max, Min

from scalebook.block import Block
from scalebook.inference import assumptions, experts, prompts, queues, serving_memory, session_search, speculation
from scalebook.inference.assumptions import fullest_as_said
from scalebook.inference.batches import offline, static
from scalebook.inference.bill import million_cost
from scalebook.inference.capacity import LONG, capacity, valued
from scalebook.inference.encoder import encoder_time, with_encoder
from scalebook.inference.kernels import PARTS, Work
from scalebook.inference.layouts import TARGETS, posed, refuse_no_rate, users_for
from scalebook.inference.lengths import PERCENTILES, with_lengths
from scalebook.inference.pools import apart
from scalebook.inference.rules import reason, with_copies
from scalebook.inference.session_loop import sessions
from scalebook.inference.step import ENGINES, Step, step_formulas, tokens_of
from scalebook.inference.trust import RANGES
from scalebook.inference.two_batch_overlap import parts_of_step
from scalebook.language import Formula, Row, Sheet, show, symbol
from scalebook.language.building import uncollected
from scalebook.language.defaults import equations
from scalebook.language.guide import GuidedMethod
from scalebook.language.interval import Between
from scalebook.language.notation import quoted, replaced
from scalebook.language.row import Call, quantity
from scalebook.language.stanzas import tables_of
from scalebook.search.space import NothingFits
from scalebook.tables import Engine, engines

__all__ = ["Serve", "ServeSheet", "mixed_formulas", "serve", "serve_sheet", "while_reading"]

_SOURCES = ("agrawal2024 §4", "pope2022 §3")
_SERVING = (  # first those of serving.toml
    *vars(equations(__name__)).values(), *prompts.READING, queues.tpot_from_ends, queues.user_rate,
    serving_memory.cached_tokens_windows, serving_memory.cache_room, assumptions.workspace_usual, million_cost, *RANGES,
)  # fmt: skip


_LETTERS = tables_of(__package__, "defaults.toml")


@cache
def mixed_formulas(
    dense: Block | None, moe: Block | None, exchange: str, overlap: str = "none", drafts: bool = False
) -> tuple[Formula, ...]:  # fmt: skip
    """Return the formulas of a mixed step: it decodes, and reads a chunk of a prompt or several short prompts."""
    work = Work("mixed", exchange, overlap, drafts)
    parts = parts_of_step(dense, moe, work)
    whole = Formula("mixed_step", "mixed_time", sum(parts.values(), symbol("engine_time")), _SOURCES)
    found = (while_reading(f, work.passes) for f in (whole, tokens_of(work), *(experts.VISITED if moe else ())))
    return (*found, *([fullest_as_said] if moe else []))


def _decoding():
    """Return the decoding sequences of a group; sequences that wait for prefill are left out."""
    return Min(symbol("batch"), symbol("prompts_together") + symbol("prompts_beside"), evaluate=False)


def _of_service(f: Formula) -> Formula:
    """Return a step's formula for a service, in which only some sequences decode."""
    if f.letter != "device_batch":
        return f
    rhs = replaced(f.rhs, {symbol("batch"): _decoding()})
    return Formula(f"{f.name}_served", f.letter, rhs, f.sources, f.__doc__)


def while_reading(f: Formula, passes: int = 1) -> Formula:
    """Return a step's formula rewritten for mixed steps, whose inputs have other names (`mixed_assigned`, ...).

    >>> while_reading(experts.fullest_share).inputs
    ('ep', 'mixed_assigned')
    """
    x = symbol
    part = x("prompt") / x("chunks_of_prompt")
    others = Max(0, _decoding() - x("prompts_together"), evaluate=False) / (passes * x("pp"))
    given = {x("read_chunk"): part, x("past"): (x("prompt") - part) / 2}
    given |= {x("prompts"): x("prompts_together"), x("device_batch"): others}
    letters = {x(old): x(new) for old, new in _LETTERS["while_reading"].items()}
    name, letter = f"{f.name}_while_reading", _LETTERS["while_reading"].get(f.letter, f.letter)
    places = letters | {old: replaced(new, letters) for old, new in given.items()}
    return Formula(name, letter, replaced(f.rhs, places), f.sources, f.__doc__)


_ENCODER = [x for x in sorted(encoder_time.parameters) if x.startswith("encoder_")]
_ADDED = ("acceptance", "prompt_spread", "answer_spread", *_ENCODER)  # letters that add formulas to a service


class ServeSheet(Sheet):
    """A sheet in which formulas for the fullest device's load also have a version for mixed steps."""

    def using(self, *formulas: Formula) -> Sheet:
        own = [f for f in formulas if isinstance(f, Formula) and f.letter == "fullest_share"]
        passes = 2 if "messages_time" in self.formulas else 1
        return super().using(*formulas, *(while_reading(f, passes) for f in own if "mixed_fullest" in self.formulas))


@cache
@uncollected()
def serve_sheet(
    dense: Block | None, moe: Block | None, exchange: str, *more: Formula, overlap: str = "none", drafts: bool = False
) -> Sheet:  # fmt: skip
    """Return the sheet of a service: a decode step, a mixed step, users, memory and the bill.

    `dense` and `moe` are the model's two kinds of block, or None. `exchange` says how tokens reach experts (see
    `Work`). With `drafts`, decoding sequences check drafted tokens.
    """
    rooms = serving_memory.memory_formulas(dense, moe)
    step = map(_of_service, step_formulas(dense, moe, Work("decode", exchange, overlap, drafts)))
    mixed, drafting = mixed_formulas(dense, moe, exchange, overlap, drafts), speculation.DRAFTS if drafts else ()
    formulas = [*step, *mixed, *_SERVING, *drafting, *rooms, *more]
    formulas = [*{f.letter: f for f in formulas}.values()]  # the time of a token with drafts replaces that without
    wanted = {f.letter for f in (*_SERVING, *rooms)} | {*PARTS, "engine_time", "messages_time", "pass_time"}
    used = wanted | {i for f in formulas for i in f.inputs}
    kept = [f for f in formulas if f.letter in used]
    return ServeSheet("serve", *kept, doc="A model on devices, and what it gives its users.")


class Serve(Step):
    """Predict a service: `serve(model, device, tp=8, users=64, prompt=1024, output=1024, engine="vllm")` returns a Row.

    Each of `users` sends the next request when the last is answered; with a `rate` instead, they are those who wait for
    an answer at that rate. `devices` hold as many copies of the model as they can (`replicas`), with no device left
    over. The default engine is "ideal". Next to each answer is a range that holds eight of ten public
    measurements (`tpot_low`, `tpot_high`). With `drafted` and `acceptance`, or a row of `tables.drafts`, each step
    checks drafted tokens. With `prompt_spread` or `answer_spread`, lengths are lognormal, and the row has the 50th,
    95th and 99th percentiles of its times (`ttft_p95`). `encoder_tokens` are added to each prompt by the encoder of a
    model that was read from a config.json. Raises ValueError if weights or caches do not fit, and whatever a step
    raises.
    """

    usual = Step.usual | {"replicas": 1, "generations": 10}
    defaults_said = MappingProxyType({"generations": f"10, or {LONG:,} at a rate and for a capacity"})
    billed = frozenset({"device_price", "service_life", "utilization", "system_factor", "pue", "power_price"})
    engine = "ideal"
    finds = ("tpot", "ttft", "end_to_end", *PERCENTILES, "device_rate", "filled", "max_users", "million_cost")

    def __init__(self):
        super().__init__("decode", "A model on devices, and what its users get: times per token, room, price.")
        self.name = "serve"
        for function in (apart, offline, static, capacity, sessions):
            without = [*_LETTERS["without"][function.__name__], *(_ENCODER if function is not capacity else ())]
            setattr(self, function.__name__, _Part(function, self, without))

    def sheet_of(self, dense: Block | None, moe: Block | None, work: Work, *more: Formula) -> Sheet:
        return serve_sheet(dense, moe, work.exchange, *more, overlap=work.overlap, drafts=work.drafts)

    @property
    def takes(self) -> dict[str, float | str | None]:
        return super().takes | {"rate": None, "devices": None} | dict.fromkeys(_ENCODER)

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(x for x in super().gives if x != "cached_tokens")

    def plan(self, knowns: tuple, letters: Mapping, may_be_one: bool = False) -> tuple[Sheet, tuple, dict]:
        for name, others in _LETTERS["follows"].items():  # half of the sheet would not follow them
            if name in letters:
                raise TypeError(f"serve does not use {name}, which follows from {others}: give these")
        letters = with_copies(knowns, letters)
        sheet, rows, left = super().plan(knowns, letters, may_be_one)
        sheet._refuse_results(self, left)
        known = [x for x in (*rows, left) if isinstance(x, Mapping)]
        said = {x for x in _ADDED if any(x in y for y in known)}
        if "step_tokens" in sheet.formulas and "acceptance" not in said:
            raise TypeError("drafted needs acceptance, the share of drafted tokens that are right, such as 0.8")
        if {"prompt_spread", "answer_spread"} & said:
            sheet = with_lengths(sheet)
        if "encoder_tokens" in said:
            if lacking := [x for x in _ENCODER if x not in said]:
                wrapper = "models.read finds them in the config.json of a model with a vision or audio encoder"
                raise TypeError(f"encoder_tokens needs {', '.join(lacking)} of an encoder: {wrapper}")
            sheet = with_encoder(sheet)
        sheet = _of_room(sheet) if "cache_room" in left else sheet
        return (_at_rate(sheet) if "rate" in left else sheet), rows, left

    targets = (*TARGETS, *PERCENTILES)  # letters whose value in a search is the most that may be

    posed = posed

    def __call__(self, *knowns, **letters) -> Row:
        call = Call(self, knowns, letters)
        letters = self.unbilled(letters)
        if "rate" in letters:
            refuse_no_rate(letters["rate"])
            letters = letters if "users" in letters else {"generations": LONG, **letters}
            users = users_for(self, knowns, {n: x for n, x in letters.items() if n != "users"})
            letters["users"] = said = letters.get("users", users)  # a found strategy says both
            if np.any(quantity("users", said) != users):
                rate = f"rate={quoted(letters['rate'])} is what {users:,.0f} users ask for"
                raise ValueError(f"{rate}, not users={quoted(said)}: give one of both")
        row = self.priced(*knowns, **letters)
        row.call = call
        return row

    def priced(self, *knowns, **letters) -> Row:
        """Return the service's row for the given number of users; a `rate` in the call is ignored."""
        call = Call(self.priced, knowns, letters)
        sheet, knowns, letters, known = self.checked(knowns, letters)
        self.refuse(sheet, known)
        row = (sheet if "price_hour" in known else _unpriced(sheet))(*knowns, **letters)
        if not _names_engine(call):
            row.name = f"{row.name} ({engines[self.engine].name.lower()}: its host takes no time)"
            row.between = Between(call, "engine", _engines)
        return row

    def refuse(self, sheet: Sheet, known: Mapping) -> Row | None:
        """Raise ValueError if weights or caches do not fit. Return how much they fill, as far as `known` tells."""
        memory = _memory(sheet)
        here = {n: known[n] for n in memory.inputs if n in known}
        if len(here) == len(memory.inputs) and all(np.ndim(x) == 0 for x in here.values()):
            return refuse_what_does_not_fit(memory, {n: float(x) for n, x in known.items() if np.ndim(x) == 0})
        return None


class _Part(GuidedMethod):
    """A function of a service, whose result has an answer and a range of its own, unless it is a result of `serve`."""

    def __call__(self, *knowns, **letters):
        found = super().__call__(*knowns, **letters)
        row = found if isinstance(found, Row) else found.row
        if row.call is None:
            row.call = row.asked
            row.between = None if _names_engine(row.asked) else Between(row.call, "engine", _engines)
        return found


def _names_engine(call: Call) -> bool:
    return "engine" in call.letters or any(isinstance(x, Engine) for x in call.knowns)


def _engines() -> list[Engine]:
    return [engines[x] for x in ENGINES if len(engines[x].kin) == 1]  # releases differ less


@cache
def _unpriced(sheet: Sheet) -> Sheet:
    return Sheet(sheet.name, *(f for f in sheet.formulas.values() if not f.letter.startswith("million_cost")))


@cache
def _at_rate(sheet: Sheet) -> Sheet:
    """Return the sheet with throughput set to the request rate, although the devices could do more."""
    return sheet.using(queues.device_rate_served)


@cache
def _of_room(sheet: Sheet) -> Sheet:
    """Return the sheet with its `filled` a share of weights, workspace and the room for caches that a call gives."""
    f, x = sheet.formulas["filled"], symbol
    of_room = x("hbm_capacity") * x("cache_share") / (x("held_weights") + x("workspace") + x("cache_room"))
    return sheet.using(Formula("filled_of_room", "filled", f.rhs * of_room, f.sources, f.__doc__))


@cache
def _memory(sheet: Sheet) -> Sheet:
    """Return the part of the sheet that computes a device's memory."""
    return sheet.only("filled", "max_users")


def refuse_what_does_not_fit(memory: Sheet, known: Mapping[str, float]) -> Row:
    """Raise ValueError if weights or users' caches do not fit in memory: what is short, and what would do."""

    def at(**changed):
        held = memory.only("held_weights", "workspace")
        return held(**{n: {**known, **changed}[n] for n in held.inputs})

    here, room = at(), memory.formulas["cache_room"]  # which has no value where it would be negative
    usable = float(room.numpy(*({**known, "held_weights": 0, "workspace": 0}[n] for n in room.inputs)))
    if here.held_weights + here.workspace > usable:
        devices = known["tp"] * known["pp"] * known["attention_dp"]
        wider = (n * known["tp"] for n in (2, 4, 8, 16, 32, 64))
        wider = (n for n in wider if (x := at(tp=n)).held_weights + x.workspace <= usable)
        wider = (n for n in wider if not reason(known | {"tp": n}))
        would, n = "fewer weight_bits or more pp may let them in", next(wider, 0)
        if n:
            own = n / known["tp"] * devices  # of a copy
            would = f"tp={n:g}{f' and devices={own:g}' if known.get('devices', own) % own else ''} would hold them"
        each, whole = show(here.held_weights, "B"), show(known["hbm_capacity"], "B")
        weights = f"{each} of weights are too many for a device of {whole}"
        if devices > 1:
            total = show(here.held_weights * devices, "B")
            weights = f"{total} of weights are {each} on each of {devices:g} devices of {whole}"
        shared = f"{show(usable, 'B')} are for weights, caches and {show(here.workspace, 'B')} of work space"
        raise NothingFits(f"{weights}, of which {shared}; {would}")
    full = memory(**{n: known[n] for n in (*memory.inputs, "cache_room") if n in known})
    if known["users"] > valued(full, "max_users"):
        raise NothingFits(
            f"the caches of {show(known['users'])} user{'s' * (known['users'] > 1)} at {full.cached_tokens:,.0f} "
            f"tokens do not fit: {full.max_users:,.0f} fit; more devices, fewer kv_bits or shorter prompts let more in"
        )
    return full


serve = Serve()
serve.sessions.posed = partial(session_search.cheapest_sessions, serve)
serve.sessions.targets = session_search.TARGETS
