"""Serving: what a model on devices gives its users, from the kernels of a step to the price of a token.

Users each send the next request when the last is answered.  Sequences decode together; a prompt is read in parts, each
in a step of its own beside the sequences that decode, and delays them by what it adds to the step.

>>> from scalebook.tables import accelerators, models
>>> row = serve(models.llama3_70b, accelerators.h200.at("fp8"), tp=8, users=64, prompt=1024, output=1024)
>>> round(row.tpot * 1e3, 1), round(row.ttft * 1e3)
(12.0, 172)
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
from sympy import Max, Min

from scalebook.block import Block
from scalebook.inference import bill, experts, prompts, queues, room, trust
from scalebook.inference.batches import offline, static
from scalebook.inference.capacity import LONG, Capacity, capacity
from scalebook.inference.halves import parts_of_step
from scalebook.inference.kernels import PARTS, Work, put
from scalebook.inference.layouts import posed, refuse_no_rate, users_for
from scalebook.inference.pools import Apart, apart
from scalebook.inference.rules import reason
from scalebook.inference.step import Step, step_formulas, tokens_of
from scalebook.language import Formula, Row, Sheet, formula, show, symbol

__all__ = [
    "Serve", "ServeSheet", "fullest_as_said", "mixed_formulas", "serve", "serve_sheet", "while_reading",
]  # fmt: skip

_SOURCES = ("agrawal2024 §4", "pope2022 §3")


@formula("batch", "kwon2023")
def batch_of_users(users, replicas, attention_dp):
    """Users are dealt evenly to the copies of a model, and to the groups that attend for their own; one is in one.

    >>> batch_of_users(users=256, replicas=2, attention_dp=8), batch_of_users(users=1, replicas=2, attention_dp=8)
    (16.0, 1.0)
    """
    return Max(1, users / (replicas * attention_dp), evaluate=False)


@formula("context", "kwon2023")
def context_mean(prompt, output):
    """What a new token attends to, in the mean over an answer.

    >>> context_mean(prompt=1024, output=512)
    1280.0
    """
    return room.cached_tokens.of(prompt=prompt, output=output)


@formula("token_time", "yu2022", domain={"users who have room": lambda users, max_users: users <= max_users})
def token_time_step(pass_time):
    """Every step gives each sequence a token; what does not fit has no time.

    >>> token_time_step(pass_time="10 ms", users=64, max_users=100)
    0.01
    """
    return pass_time


@formula("end_to_end", "little1961")
def end_to_end_group(batch, output, token_time, prompt_time, prompts_met, ttft):
    """The first token, and for each further one a step; while a sequence decodes, the others read their prompts.

    It meets all of these prompts where sequences end at times of their own.  Of sequences that begin together, are of
    one length, and wait until all prompts are read, the first waits for all others and the last for none: half.

    >>> group = dict(batch=64, output=201, token_time="10 ms", prompt_time="30 ms", ttft="100 ms")
    >>> end_to_end_group(group, prompts_met=1), end_to_end_group(group, prompts_met=0.5)
    (3.99, 3.045)
    """
    return ttft + (output - 1) * token_time + (batch - 1) * prompts_met * prompt_time


@formula("request_rate", "little1961")
def request_rate(users, end_to_end):
    """Little's law: users who each wait for an answer, over the time that it takes.

    >>> request_rate(users=64, end_to_end="4 s")
    16.0
    """
    return users / end_to_end


@formula("device_rate", "little1961")
def device_rate_of_users(request_rate, output, devices):
    """Output tokens a second, of each device.

    >>> device_rate_of_users(request_rate=16, output=200, devices=8)
    400.0
    """
    return request_rate * output / devices


@formula("devices", "pope2022 §3.1")
def devices_serving(tp, pp, attention_dp, replicas):
    """Of all copies of the model.

    >>> devices_serving(tp=1, pp=1, attention_dp=8, replicas=2)
    16.0
    """
    return tp * pp * attention_dp * replicas


_SERVING = (
    batch_of_users, context_mean, *prompts.READING, token_time_step,
    end_to_end_group, queues.tpot_from_ends, queues.user_rate, request_rate, device_rate_of_users,
    devices_serving, room.cached_tokens_windows, room.cache_room, room.workspace_usual,
    bill.million_cost, *trust.RANGES,
)  # fmt: skip


# What a step works on has letters of its own while a prompt is read.
_WHILE_READING = {
    "pass_tokens": "mixed_tokens", "layer_tokens": "mixed_layer_tokens", "visited_experts": "mixed_visited",
    "local_experts": "mixed_local", "expert_rows": "mixed_rows", "assigned_tokens": "mixed_assigned",
    "fullest_share": "mixed_fullest",
}  # fmt: skip


@cache
def mixed_formulas(dense: Block | None, moe: Block | None, exchange: str, overlap: str = "none") -> tuple[Formula, ...]:
    """A step that reads an equal part of a prompt, or several short ones, beside the other sequences of its group.

    A prompt's parts meet half of it in the mean.

    >>> from scalebook.block import LLAMA
    >>> [f.letter for f in mixed_formulas(LLAMA, None, "all_reduce")]
    ['mixed_time', 'mixed_tokens']
    """
    work = Work("mixed", exchange, overlap)
    parts = parts_of_step(dense, moe, work)
    whole = Formula(
        "mixed_step",
        "mixed_time",
        sum(parts.values(), symbol("engine_time")),
        _SOURCES,
        "A part of a prompt is read beside all others.",
    )
    chain = (
        experts.layer_tokens,
        experts.experts_touched,
        experts.local_experts,
        experts.assigned_tokens,
        experts.expert_rows,
    )
    found = (while_reading(f, work.passes) for f in (whole, tokens_of(work), *(chain if moe else ())))
    return (*found, *([fullest_as_said] if moe else []))


def _decoding():
    """Sequences of a group that decode: who still waits for a prompt to be read does not."""
    return Min(symbol("batch"), symbol("prompts_together") + symbol("prompts_beside"), evaluate=False)


def _of_service(f: Formula) -> Formula:
    """A formula of a step, of a service: of the sequences that decode."""
    if f.letter != "device_batch":
        return f
    return Formula(f"{f.name}_served", f.letter, put(f.rhs, {symbol("batch"): _decoding()}, {}), f.sources, f.__doc__)


def while_reading(f: Formula, passes: int = 1) -> Formula:
    """A formula of a step, of the step that reads a part of a prompt: its letters are that step's.

    >>> while_reading(experts.fullest_share).inputs
    ('ep', 'mixed_assigned')
    """
    x = symbol
    part = x("prompt") / x("chunks_of_prompt")
    others = Max(0, _decoding() - x("prompts_together"), evaluate=False) / (passes * x("pp"))
    given = {x("read_chunk"): part, x("past"): (x("prompt") - part) / 2}
    given |= {x("prompts"): x("prompts_together"), x("device_batch"): others}
    letters = {x(old): x(new) for old, new in _WHILE_READING.items()}
    name, letter = f"{f.name}_while_reading", _WHILE_READING.get(f.letter, f.letter)
    return Formula(name, letter, put(put(f.rhs, given, {}), letters, {}), f.sources, f.__doc__)


@formula("mixed_fullest", "raab1998 theorem 1")
def fullest_as_said(fullest_share):
    """A share that is said is that of every step; one that a formula gives is larger where fewer tokens come.

    >>> fullest_as_said(fullest_share=1.25)
    1.25
    """
    return fullest_share


class ServeSheet(Sheet):
    """A sheet in which a formula for the fullest device's load has one beside it for the step that reads a prompt."""

    def using(self, *formulas: Formula) -> Sheet:
        own = [f for f in formulas if isinstance(f, Formula) and f.letter == "fullest_share"]
        passes = 2 if "messages_time" in self.formulas else 1
        return super().using(*formulas, *(while_reading(f, passes) for f in own if "mixed_fullest" in self.formulas))


@cache
def serve_sheet(dense: Block | None, moe: Block | None, exchange: str, *more: Formula, overlap: str = "none") -> Sheet:
    """The sheet of a service: a step of decoding part by part, one that reads a prompt, users, memory and the bill.

    >>> from scalebook.block import LLAMA
    >>> {"ttft", "tpot", "max_users", "million_cost"} <= set(serve_sheet(LLAMA, None, "all_reduce").formulas)
    True
    """
    rooms = room.room_formulas(dense, moe)
    formulas = [
        *map(_of_service, step_formulas(dense, moe, Work("decode", exchange, overlap))),
        *mixed_formulas(dense, moe, exchange, overlap),
        *_SERVING,
        *rooms,
        *more,
    ]
    wanted = {f.letter for f in (*_SERVING, *rooms)} | {*PARTS, "engine_time", "messages_time", "pass_time"}
    used = wanted | {i for f in formulas for i in f.inputs}
    kept = [f for f in formulas if f.letter in used]
    return ServeSheet("serve", *kept, doc="A model on devices, and what it gives its users.")


class Serve(Step):
    """Callable as a sheet is: `serve(model, device, tp=8, users=64, prompt=1024, output=1024, engine="vllm")`.

    `users` each send the next request when the last is answered; the engine is "ideal" unless it is said.  A `rate` in
    their place is served by as many users as wait for an answer then (Little's law), and is what the bill is for.
    A range that eight of ten public measurements lie in stands beside each answer (`tpot_low`, `tpot_high`).  Raises
    ValueError, saying what would do, for weights that do not fit and for users whose caches do not, and what a step
    raises.
    """

    usual = Step.usual | {"replicas": 1, "generations": 10}
    engine = "ideal"
    finds = ("tpot", "ttft", "end_to_end")  # what is measured of a service, and asked of it, never known

    def __init__(self):
        super().__init__("decode", "A model on devices, and what its users get: times per token, room, price.")
        self.name = "serve"

    def sheet_of(self, dense: Block | None, moe: Block | None, work: Work, *more: Formula) -> Sheet:
        return serve_sheet(dense, moe, work.exchange, *more, overlap=work.overlap)

    def plan(self, knowns: tuple, letters: Mapping, may_be_one: bool = False) -> tuple[Sheet, tuple, dict]:
        sheet, rows, left = super().plan(knowns, letters, may_be_one)
        return (_at_rate(sheet) if "rate" in left else sheet), rows, left

    def posed(self, cases: list[tuple], letters: Mapping) -> tuple:
        """How a search of a rate, of targets or of at most so many devices is read: `scalebook.inference.layouts`."""
        return posed(self, cases, letters)

    def apart(self, *knowns, **letters) -> Apart:
        """The cheapest two pools, one to read prompts and one to write answers: see `scalebook.inference.pools`."""
        return apart(self, *knowns, **letters)

    def __call__(self, *knowns, **letters) -> Row:
        if targets := [x for x in self.finds if x in letters]:
            raise TypeError(
                f"serve says what {targets[0]} is: leave it out; serve.capacity and search find what keeps to a tpot "
                "or a ttft"
            )
        if "rate" in letters:
            refuse_no_rate(letters["rate"])
        if "rate" in letters and "users" not in letters:
            letters = {"generations": LONG, **letters}
            letters["users"] = users_for(self, knowns, letters)
        row = self.priced(*knowns, **letters)
        if "rate" in letters and "request_rate" in row and np.any(over := row.rate > row.request_rate * (1 + 1e-9)):
            rate, most = (np.broadcast_to(x, np.shape(over))[over][0] for x in (row.rate, row.request_rate))
            raise ValueError(
                f"rate={show(rate, 'request/s')} is more than these users ask for, {show(most, 'request/s')}: leave "
                "users out, and as many as wait for an answer are taken"
            )
        return row

    def priced(self, *knowns, **letters) -> Row:
        """The same of so many users, whatever the rate."""
        sheet, knowns, letters, known = self.checked(knowns, letters)
        self.refuse(sheet, known)
        return (sheet if "price_hour" in known else _unpriced(sheet))(*knowns, **letters)

    def refuse(self, sheet: Sheet, known: Mapping) -> None:
        """Raise ValueError for what does not fit, as far as it is known."""
        memory = _memory(sheet)
        here = {n: known[n] for n in memory.inputs if n in known}
        if len(here) == len(memory.inputs) and all(np.ndim(x) == 0 for x in here.values()):
            refuse_what_does_not_fit(memory, known | {n: float(x) for n, x in here.items()})

    def offline(self, *knowns, **letters) -> Row:
        """Requests of one length that are all there at once: see `scalebook.inference.batches`."""
        return offline(self, *knowns, **letters)

    def static(self, *knowns, **letters) -> Row:
        """A batch that is read together and written together: see `scalebook.inference.batches`."""
        return static(self, *knowns, **letters)

    def capacity(self, *knowns, **letters) -> Capacity:
        """The most requests a second within the targets `ttft` and `tpot`, and what binds: see `capacity`."""
        return capacity(self, *knowns, **letters)


@cache
def _unpriced(sheet: Sheet) -> Sheet:
    """A device whose price is not known gives everything but the bill."""
    return Sheet(sheet.name, *(f for f in sheet.formulas.values() if not f.letter.startswith("million_cost")))


@cache
def _at_rate(sheet: Sheet) -> Sheet:
    """What is written, and paid for, is what is asked for, however much more could be."""
    return sheet.using(queues.device_rate_served)


@cache
def _memory(sheet: Sheet) -> Sheet:
    """The part of the sheet that says what a device holds."""
    return sheet.only("filled", "max_users")


def refuse_what_does_not_fit(memory: Sheet, known: Mapping[str, float]) -> None:
    """Raise ValueError with one sentence where weights or caches do not fit: what is short, and what would do."""

    def at(**changed):
        held = memory.only("held_weights", "workspace", "cache_room")
        return held(**{n: {**known, **changed}[n] for n in held.inputs})

    here = at()
    usable = here.cache_room + here.held_weights + here.workspace
    if here.cache_room < 0:
        devices = known["tp"] * known["pp"] * known["attention_dp"]
        wider = (n * known["tp"] for n in (2, 4, 8, 16, 32, 64))
        wider = (n for n in wider if at(tp=n).cache_room >= 0)
        wider = (n for n in wider if not reason(known | {"tp": n}))
        would = next((f"tp={n:g} would hold them" for n in wider), "fewer weight_bits or more pp may let them in")
        each, whole = show(here.held_weights, "B"), show(known["hbm_capacity"], "B")
        weights = f"{each} of weights are too many for a device of {whole}"
        if devices > 1:
            total = show(here.held_weights * devices, "B")
            weights = f"{total} of weights are {each} on each of {devices:g} devices of {whole}"
        raise ValueError(
            f"{weights}, of which {show(usable, 'B')} are for weights, caches and {show(here.workspace, 'B')} of work "
            f"space; {would}"
        )
    full = memory(**{n: known[n] for n in memory.inputs})
    if known["users"] > full.max_users:
        raise ValueError(
            f"the caches of {known['users']:,.0f} users at {full.cached_tokens:,.0f} tokens do not fit: "
            f"{full.max_users:,.0f} fit; more devices, fewer kv_bits or shorter prompts would let more in"
        )


serve = Serve()
