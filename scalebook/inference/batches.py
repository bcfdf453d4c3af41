"""Offline and static batching: all requests are present at the start, and run in generations or as one batch."""

from functools import cache, partial
from math import prod

import numpy as np

from scalebook.inference import assumptions, queues
from scalebook.inference.bill import million_cost
from scalebook.inference.engine_terms import TERMS
from scalebook.inference.step import decode_step, prefill_step
from scalebook.inference.trust import with_ends
from scalebook.language import Row, Sheet, formula, formulas_of, show
from scalebook.language.arguments import checked
from scalebook.language.code import broadcast
from scalebook.language.defaults import equations
from scalebook.language.notation import unused
from scalebook.language.row import quantity
from scalebook.language.stanzas import tables_of
from scalebook.memory.serving import sliding_window
from scalebook.search.arguments import at_most
from scalebook.search.space import NothingFits
from scalebook.tables import Device

_ENDLESS = 10**6  # default number of requests: so many that neither the start nor the end counts
_OWN = equations(__name__)  # those of batches.toml
_LETTERS = tables_of(__package__, "defaults.toml")["offline"]


@formula("cached_tokens", "kwon2023", "beltagy2020 §3.1", given=[assumptions.kept_output_usual])
def cached_tokens_kept(prompt, output, kept_output, layers, window, window_layers):
    """Tokens for which an engine reserves cache: the prompt and a share of the answer, averaged over the layers.

    >>> cached_tokens_kept(prompt=1000, output=200, kept_output=1, layers=36, window=128, window_layers=0)
    1200.0
    """
    whole = prompt + kept_output * output
    return sliding_window.of(context=whole, layers=layers, window=window, window_layers=window_layers)


_OFFLINE = (
    _OWN.hbm_reported_in_gib, assumptions.free_share_usual, assumptions.kept_output_usual, cached_tokens_kept,
    _OWN.cache_room_of_free, assumptions.batch_limit_usual, _OWN.full_batch, _OWN.whole_generations, _OWN.last_batch,
    assumptions.no_sequence_overhead, assumptions.kernel_share_usual, _OWN.makespan_of_generations,
    _OWN.seconds_between_tokens, _OWN.device_rate_offline,
)  # fmt: skip
static_batch = Sheet(
    "static_batch", queues.end_to_end, _OWN.device_rate_of_batch, million_cost,
    doc="A batch that begins and ends together.",
)  # fmt: skip


@cache
def _offline_sheet(sheet: Sheet) -> Sheet:
    doc = "Requests that are all there at once, in generations."
    whole = Sheet("offline", *{**sheet.formulas, **{f.letter: f for f in _OFFLINE}}.values(), doc=doc)
    return whole.only(*_LETTERS["gives"])


@cache
def _part(sheet: Sheet, *letters: str, given: tuple[str, ...] = ()) -> Sheet:
    return sheet.only(*letters, given=given)


class _Call:
    """The letters of one call, with methods that price the parts of its sheet."""

    def __init__(self, serve, knowns, letters):
        if stray := next((x for x in _LETTERS["unused"] if x in letters), None):
            raise TypeError(f"serve.offline does not use {stray}: {_LETTERS['unused'][stray]}")
        sheet, self.rows, self.letters, known = serve.checked(knowns, {"requests": _ENDLESS} | letters)
        if several := [n for n, x in known.items() if np.ndim(x)]:
            raise TypeError(f"offline is of one batch: give {several[0]} one value, and ask for each in turn")
        self.sheet = _offline_sheet(sheet)
        if strange := next((x for x in self.letters if x not in self.sheet.letters or x in _LETTERS["finds"]), None):
            raise TypeError(unused("serve.offline", strange, self.sheet.letters))
        self.groups = float(np.prod([float(known.get(x, 1)) for x in ("replicas", "attention_dp")]))

    def priced(self, *wanted: str, **more) -> Row:
        part = _part(self.sheet, *wanted, given=tuple(more))
        return part(*self.rows, **{n: x for n, x in (self.letters | more).items() if n in part.letters})

    def steps(self, batches) -> Row:
        """Return the times of steps for these batch sizes per group, and the time to read a prompt, which adds to them.

        The whole batch decodes, however long it takes to read prompts.
        """
        everyone = dict(users=np.asarray(batches) * self.groups, prompts_beside=1e12)
        return self.priced("pass_time", "prompt_time", **everyone)

    def within(self, target: float, most: float) -> float:
        """Return the largest batch, up to `most`, that keeps the mean time per output token within `target`."""
        batches = np.append(np.arange(1, np.ceil(most)), most)
        steps = self.steps(batches)
        said = dict(full_time=steps.pass_time, prompt_time=steps.prompt_time, full_batch=batches)
        each = np.broadcast_to(self.priced("tpot", **said).tpot, batches.shape)
        if each[0] > target:
            raise ValueError(
                f"tpot={show(target, 's')} is met by no batch: one sequence alone has {show(each[0], 's')}"
            )
        return float(batches[each <= target].max())


@checked
def offline(serve, *knowns, tpot=None, tpot_p99=None, tpot_tail=None, **letters) -> Row:
    """Serve requests of one length that are all present at the start, as in an offline benchmark.

    As many sequences run together as memory, the engine and the targets allow (`tpot` for the mean, `tpot_p99`). By
    default `requests` never end. Returns a row with `device_rate`, `makespan`, `tpot`, `full_batch` and `million_cost`.
    For their ranges, the same batch runs with all steps as fast, or as slow, as those measured of `serve`.
    Raises ValueError if not even one sequence fits or keeps to the target.

    >>> from scalebook.inference.serving import serve
    >>> from scalebook.tables import accelerators, models
    >>> known = models.llama2_70b, accelerators.h200.at("fp8")
    >>> found = serve.offline(*known, prompt=294, output=294, tpot_p99="40 ms")
    >>> found.full_batch, found.million_cost == 1e6 * known[1].price_hour / 3600 / found.device_rate
    (37.0, True)
    """
    asked = _Call(serve, knowns, letters)
    room = asked.priced("full_batch")
    most = float(room["full_batch"]) if "full_batch" in room else 0.0  # none if the weights alone do not fit
    if most < 1:
        if room.missing.get("full_batch", "").startswith("needs"):
            raise TypeError(f"serve.offline {room.missing['full_batch']}")
        _refuse(serve, knowns, letters, 1.0)
        raise NothingFits("the weights and one sequence do not fit: more devices or fewer bits would let them in")
    targets = [] if tpot is None else [at_most("tpot", tpot)]
    if tpot_tail is not None and tpot_p99 is None:
        raise TypeError("tpot_tail says what tpot_p99 means for the mean: give both")
    if tpot_p99 is not None:
        tail = {} if tpot_tail is None else {"tpot_tail": tpot_tail}
        targets.append(_OWN.tpot_within_tail(*asked.rows, tpot_p99=at_most("tpot_p99", tpot_p99), **tail))
    if not all(isinstance(x, float) for x in targets):
        raise TypeError("offline is of one batch: give tpot one value, and ask for each in turn")
    full = asked.within(float(min(targets)), most) if targets else most
    left = asked.priced("whole_generations", "last_batch", full_batch=full)
    step, last = asked.steps(full), asked.steps(max(1.0, float(left.last_batch)))
    times = dict(full_time=(step, "pass_time"), last_time=(last, "pass_time"), prompt_time=(step, "prompt_time"))
    values = {n: row[letter] for n, (row, letter) in times.items()}
    price = partial(asked.priced, "device_rate", "tpot", "max_users", "million_cost", full_batch=full)
    found = with_ends(price, **values)
    found.made_of = times
    return found


@checked
def static(serve, *knowns, prompt, output, batch=1, **letters) -> Row:
    """Serve one static batch: all prompts are read together, all answers are decoded together, nobody joins.

    Called as `serve.static(model, device, batch=8, prompt=1024, output=129)`. Returns a row with `ttft`, `tpot`,
    `end_to_end`, `device_rate` and `million_cost`. `ttft` and `tpot` have the same ranges as in `serve`, and the
    others follow from these.

    >>> from scalebook.inference.serving import serve
    >>> from scalebook.tables import accelerators, models
    >>> found = serve.static(models.llama2_70b, accelerators.h200, tp=2, prompt=294, output=294, price_hour=2)
    >>> round(found.million_cost * found.device_rate * 3600 / 1e6, 9)
    2.0
    """
    if twice := [n for n in ("prompts", "read_chunk", "context") if n in letters]:
        raise TypeError(f"batch, prompt and output of a static batch say {twice[0]}: leave {twice[0]} out")
    given = {n: quantity(n, x) for n, x in (("prompt", prompt), ("output", output), ("batch", batch))}
    broadcast(given)
    prompt, output = given["prompt"], given["output"]
    given |= {n: letters.pop(n) for n in ("price_hour",) if n in letters}
    reading, decoding = _by_step(knowns, letters)
    read = prefill_step(*knowns, prompts=batch, read_chunk=prompt, **reading)
    step = decode_step(*knowns, batch=batch, context=prompt + output / 2, **decoding)
    # no engine keeps memory free
    room = _refuse(serve, knowns, letters | {"prompt": prompt, "output": output}, given["batch"], cache_share=1.0)
    ways = {n: quantity(n, letters.get(n, 1)) for n in ("tp", "pp", "attention_dp")}
    given = {n: x for n, x in given.items() if n != "prompt"}
    rows = [x for x in knowns if isinstance(x, Device)]
    price = partial(static_batch, *rows, **given, devices=prod(ways.values()))
    found = with_ends(price, ttft=read.pass_time, tpot=step.pass_time)
    steps = {"ttft": (read, "pass_time"), "tpot": (step, "pass_time")}
    found.made_of = ({"max_users": (room, "max_users")} if room else {}) | steps  # the steps have the cells' origins
    return found


def _refuse(serve, knowns, letters, batch, **own) -> Row | None:
    """Raise NothingFits, as `serve` does, if weights or the caches of `batch` sequences of each group do not fit.

    Return the memory that they fill, as far as it is known.
    """
    users = batch * prod(quantity(x, letters.get(x, 1)) for x in ("replicas", "attention_dp"))
    sheet, _, _, known = serve.checked(knowns, letters | {"users": users})
    held = known["users"] * (known["prompt"] + known["output"])
    if is_several := np.ndim(held) > 0:  # the batch that holds most
        arrays = {n: np.broadcast_to(x, held.shape) for n, x in known.items() if np.ndim(x)}
        known |= {n: float(x.flat[held.argmax()]) for n, x in arrays.items()}
    full = serve.refuse(sheet, known | own)
    return None if is_several else full


def _by_step(knowns, letters) -> list[dict]:
    """Return the inputs of the prefill step and of the decode step: an engine's term may be of only one of them."""
    if letters.keys().isdisjoint(TERMS):
        return [letters, letters]
    used = [step.plan(knowns, letters)[0].letters for step in (prefill_step, decode_step)]
    if stray := next((n for n in letters if n in TERMS and not any(n in x for x in used)), None):
        raise TypeError(unused("serve.static", stray, used[0] | used[1]))
    return [{n: x for n, x in letters.items() if n not in TERMS or n in own} for own in used]


__all__ = [*formulas_of(__name__), "static_batch"]
