"""Offline and static batching: all requests are present at the start, and run in generations or as one batch."""

from functools import cache

import numpy as np
from sympy import Min, Rational, ceiling, floor

from scalebook.inference import assumptions, queues
from scalebook.inference.engine_terms import TERMS
from scalebook.inference.step import decode_step, prefill_step
from scalebook.language import Row, Sheet, formula, formulas_of, show
from scalebook.language.arguments import checked
from scalebook.language.notation import unused
from scalebook.language.row import quantity
from scalebook.memory.serving import sliding_window

_ENDLESS = 10**6  # default number of requests: so many that neither the start nor the end counts


# Memory: what an engine reserves for caches, and how many sequences it admits


@formula("hbm_reported", "kwon2023")
def hbm_reported_in_gib(hbm_capacity):
    """Memory as the driver reports it: makers print GB for memories that hold GiB.

    >>> hbm_reported_in_gib(hbm_capacity="80 GB") / 1e9
    85.89934592
    """
    return hbm_capacity * Rational(2**30, 10**9)


@formula("cached_tokens", "kwon2023", "beltagy2020 §3.1", given=[assumptions.kept_output_usual])
def cached_tokens_kept(prompt, output, kept_output, layers, window, window_layers):
    """Tokens for which an engine reserves cache: the prompt and a share of the answer, averaged over the layers.

    >>> cached_tokens_kept(prompt=1000, output=200, kept_output=1, layers=36, window=128, window_layers=0)
    1200.0
    """
    whole = prompt + kept_output * output
    return sliding_window.of(context=whole, layers=layers, window=window, window_layers=window_layers)


@formula("cache_room", "kwon2023", given=[hbm_reported_in_gib, assumptions.free_share_usual])
def cache_room_of_free(hbm_reported, cache_share, held_weights, workspace, free_share):
    """Memory for caches: a share of what is left of the engine's memory after weights and workspace.

    >>> held = dict(held_weights="63.5 GB", workspace="1.5 GB")
    >>> cache_room_of_free(held, hbm_reported="85 GB", cache_share=1, free_share=0.9)
    18000000000.0
    """
    return free_share * (hbm_reported * cache_share - held_weights - workspace)


@formula("full_batch", "kwon2023", given=[assumptions.batch_limit_usual])
def full_batch(max_users, replicas, attention_dp, batch_limit, requests):
    """Sequences of a group that run at once: what fits in memory, up to the engine's limit and the requests there are.

    >>> full_batch(max_users=800, replicas=1, attention_dp=8, batch_limit=2048, requests=3000)
    100.0
    """
    groups = replicas * attention_dp
    return Min(max_users / groups, batch_limit, requests / groups, evaluate=False)


@formula("whole_generations", "yu2022")
def whole_generations(requests, replicas, attention_dp, full_batch):
    """Number of times a group is filled completely with requests of one length, which start and end together.

    >>> whole_generations(requests=3000, replicas=1, attention_dp=1, full_batch=800)
    3.0
    """
    return floor(requests / (replicas * attention_dp * full_batch))


@formula("last_batch", "yu2022")
def last_batch(requests, replicas, attention_dp, full_batch):
    """Requests left for the last generation of a group.

    >>> last_batch(requests=3000, replicas=1, attention_dp=1, full_batch=800)
    600.0
    """
    each = requests / (replicas * attention_dp)
    return each - floor(each / full_batch) * full_batch


# Time


@formula("makespan", "yu2022", given=[assumptions.no_sequence_overhead, assumptions.kernel_share_usual])
def makespan_of_generations(
    requests, replicas, attention_dp, prompt_time, output, whole_generations, full_batch, full_time, last_batch,
    last_time, sequence_overhead, kernel_share,
):  # fmt: skip
    """Time until all requests of one length are answered, in seconds: all prompts plus all decode steps.

    >>> full = dict(prompt_time="10 ms", output=100, whole_generations=1, full_batch=1000, full_time="50 ms")
    >>> makespan_of_generations(full, requests=1500, replicas=1, attention_dp=1, last_batch=500, last_time="30 ms")
    23.0
    """
    full = full_time + sequence_overhead * full_batch
    last = Min(1, ceiling(last_batch), evaluate=False) * (last_time + sequence_overhead * last_batch)
    reading = requests / (replicas * attention_dp) * prompt_time
    return (reading + output * (whole_generations * full + last)) / kernel_share


@formula("tpot", "agrawal2024 §3", given=[assumptions.no_sequence_overhead, assumptions.kernel_share_usual])
def seconds_between_tokens(full_time, full_batch, output, prompt_time, sequence_overhead, kernel_share):
    """Mean time per output token while a group is full: a step, and the prompts read as answers end.

    >>> seconds_between_tokens(full_time="50 ms", full_batch=100, output=200, prompt_time="10 ms")
    0.055
    """
    return (full_time + sequence_overhead * full_batch + full_batch / output * prompt_time) / kernel_share


@formula("tpot_target", "mlperf-inference", given=[assumptions.tail_of_batch])
def tpot_within_tail(tpot_p99, tpot_tail):
    """Largest mean time per output token whose 99th percentile stays within a limit.

    >>> tpot_within_tail(tpot_p99="40 ms", tpot_tail=1.6)
    0.025
    """
    return tpot_p99 / tpot_tail


@formula("device_rate", "yu2022", given=[makespan_of_generations])
def device_rate_offline(requests, output, makespan, devices):
    """Output tokens per second and device, from the first prompt to the last token.

    >>> device_rate_offline(requests=1000, output=200, makespan="100 s", devices=8)
    250.0
    """
    return requests * output / (makespan * devices)


@formula("device_rate", "yu2022")
def device_rate_of_batch(batch, output, end_to_end, devices):
    """Output tokens per second and device if the next batch starts when the last one has ended.

    >>> device_rate_of_batch(batch=64, output=200, end_to_end="10 s", devices=8)
    160.0
    """
    return batch * output / (end_to_end * devices)


_OFFLINE = (
    hbm_reported_in_gib, assumptions.free_share_usual, assumptions.kept_output_usual, cached_tokens_kept,
    cache_room_of_free, assumptions.batch_limit_usual, full_batch, whole_generations, last_batch,
    assumptions.no_sequence_overhead, assumptions.kernel_share_usual, makespan_of_generations, seconds_between_tokens,
    device_rate_offline,
)  # fmt: skip
static_batch = Sheet(
    "static_batch", queues.end_to_end, device_rate_of_batch, doc="A batch that begins and ends together."
)


# Results of a batch, of its steps, and of the memory that limits it
_GIVEN = (
    "device_rate", "tpot", "max_users", "full_batch", "whole_generations", "last_batch", "pass_time", "prompt_time",
)  # fmt: skip


@cache
def _offline_sheet(sheet: Sheet) -> Sheet:
    doc = "Requests that are all there at once, in generations."
    whole = Sheet("offline", *{**sheet.formulas, **{f.letter: f for f in _OFFLINE}}.values(), doc=doc)
    return whole.only(*_GIVEN)


@cache
def _part(sheet: Sheet, *letters: str, given: tuple[str, ...] = ()) -> Sheet:
    return sheet.only(*letters, given=given)


class _Call:
    """The letters of one call, with methods that price the parts of its sheet."""

    def __init__(self, serve, knowns, letters):
        if "drafted" in letters:
            raise TypeError("serve.offline does not use drafted: its steps give one token per sequence")
        if "encoder_tokens" in letters:
            raise TypeError("serve.offline does not use encoder_tokens: its prompts are of text; serve uses them")
        sheet, self.rows, self.letters, known = serve.checked(knowns, {"requests": _ENDLESS} | letters)
        if several := [n for n, x in known.items() if np.ndim(x)]:
            raise TypeError(f"offline is of one batch: give {several[0]} one value, and ask for each in turn")
        self.sheet = _offline_sheet(sheet)
        found = ("users", "full_time", "last_time")  # the batch that fits, and the times of its steps
        if strange := next((x for x in self.letters if x not in self.sheet.letters or x in found), None):
            raise TypeError(unused("serve.offline", strange, self.sheet.letters))
        self.groups = float(np.prod([float(known.get(x, 1)) for x in ("replicas", "attention_dp")]))

    def priced(self, *wanted: str, **more) -> Row:
        part = _part(self.sheet, *wanted, given=tuple(more))
        return part(*self.rows, **{n: x for n, x in (self.letters | more).items() if n in part.letters})

    def steps(self, batches) -> Row:
        """Return the times of steps for these batch sizes per group."""
        return self.priced("pass_time", "prompt_time", users=np.asarray(batches) * self.groups)

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
    default `requests` never end. Returns a row with `device_rate`, `makespan`, `tpot` and `full_batch`. Raises
    ValueError if not even one sequence fits or keeps to the target.

    >>> from scalebook.inference.serving import serve
    >>> from scalebook.tables import accelerators, models
    >>> known = models.llama2_70b, accelerators.h200.at("fp8")
    >>> serve.offline(*known, prompt=294, output=294, tpot_p99="40 ms").full_batch
    37.0
    """
    asked = _Call(serve, knowns, letters)
    room = asked.priced("full_batch")
    most = float(room["full_batch"]) if "full_batch" in room else 0.0  # none if the weights alone do not fit
    if most < 1:
        raise ValueError("the weights and one sequence do not fit: more devices or fewer bits would let them in")
    targets = [] if tpot is None else [quantity("tpot", tpot)]
    if tpot_p99 is not None:
        tail = {} if tpot_tail is None else {"tpot_tail": tpot_tail}
        targets.append(tpot_within_tail(*asked.rows, tpot_p99=tpot_p99, **tail))
    if not all(isinstance(x, float) for x in targets):
        raise TypeError("offline is of one batch: give tpot one value, and ask for each in turn")
    full = asked.within(float(min(targets)), most) if targets else most
    left = asked.priced("whole_generations", "last_batch", full_batch=full)
    step, last = asked.steps(full), asked.steps(max(1.0, float(left.last_batch)))
    times = dict(full_time=(step, "pass_time"), last_time=(last, "pass_time"), prompt_time=(step, "prompt_time"))
    values = {n: row[letter] for n, (row, letter) in times.items()}
    found = asked.priced("device_rate", "tpot", "max_users", full_batch=full, **values)
    found.made_of = times
    return found


@checked
def static(serve, *knowns, prompt, output, batch=1, **letters) -> Row:
    """Serve one static batch: all prompts are read together, all answers are decoded together, nobody joins.

    Called as `serve.static(model, device, batch=8, prompt=1024, output=129)`. Returns a row with `ttft`, `tpot`,
    `end_to_end` and `device_rate`.
    """
    given = {n: quantity(n, x) for n, x in (("prompt", prompt), ("output", output), ("batch", batch))}
    prompt, output = given["prompt"], given["output"]
    reading, decoding = _by_step(knowns, letters)
    read = prefill_step(*knowns, prompts=batch, read_chunk=prompt, **reading)
    step = decode_step(*knowns, batch=batch, context=prompt + output / 2, **decoding)
    ways = {n: quantity(n, letters.get(n, 1)) for n in ("tp", "pp", "attention_dp")}
    given = {n: x for n, x in given.items() if n != "prompt"}
    found = static_batch(**given, ttft=read.pass_time, tpot=step.pass_time, devices=np.prod([*ways.values()]))
    found.made_of = {"ttft": (read, "pass_time"), "tpot": (step, "pass_time")}
    return found


def _by_step(knowns, letters) -> list[dict]:
    """Return the inputs of the prefill step and of the decode step: an engine's term may be of only one of them."""
    if letters.keys().isdisjoint(TERMS):
        return [letters, letters]
    used = [step.plan(knowns, letters)[0].letters for step in (prefill_step, decode_step)]
    if stray := next((n for n in letters if n in TERMS and not any(n in x for x in used)), None):
        raise TypeError(unused("serve.static", stray, used[0] | used[1]))
    return [{n: x for n, x in letters.items() if n not in TERMS or n in own} for own in used]


__all__ = [*formulas_of(__name__), "static_batch"]
