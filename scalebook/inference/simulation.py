"""Simulation of continuous batching: which requests wait, are read or decode, step by step.

`simulation.js` in this folder does the same in a web page, to the last digit. If you change one, change both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf

import numpy as np

from scalebook.inference.arrivals import drawn
from scalebook.inference.results import Served, Steps
from scalebook.language.arguments import checked, is_number
from scalebook.language.notation import quoted
from scalebook.language.row import one_number
from scalebook.language.stanzas import tables_of

__all__ = ["simulate_serving"]

MOST_STEPS = 2_000_000  # about ten seconds of computing
LATEST = 1e290  # seconds; sums of later times are more than a float holds
MEANINGS = tables_of(__package__, "defaults.toml")["simulated"]


@checked
def simulate_serving(
    *, prompt: int, output: int, rate: float | str | None = None, users: int | None = None,
    base_time: float | str | None = None, added_time: float | str = 0, prompt_time: float | str = 0,
    step: Callable[[int, int], float] | None = None, requests: int | None = None, chunk: int = 8192,
    max_batch: int | None = None, cache_limit: int | None = None, hits: float = 0, shortest: float = 1,
    prompt_spread: float = 0, answer_spread: float = 0, warmup: int = 0, seed: int = 0,
) -> Served:  # fmt: skip
    """Simulate a server with requests that arrive at random at a `rate`, or with `users` in a closed loop.

    A step decodes all running sequences and reads up to `chunk` prompt tokens, first come, first served. It takes
    `base_time + batch * added_time + tokens read * prompt_time / prompt`, or what `step(batch, tokens read)` returns.
    Lengths are `prompt` and `output`, or are drawn uniformly from `shortest` to 1 times these. With a spread, the
    standard deviation of their logarithm, they are lognormal with these means. A share `hits` of
    each prompt is in the prefix cache and not read, except its last token. At most `max_batch` requests run at once.
    Each reserves its prompt and its output in a cache of `cache_limit` tokens. A request that does not fit waits, and
    so do all after it; none is preempted.

    All users start together. `requests` is the number sent in all, by default 10 per user, or 1,000 at a rate; the
    first `warmup` count in no result. The same seed draws the same requests for every engine. `step` is called once for
    many equal steps. Raises ValueError for requests that cannot be served.

    >>> engine = dict(base_time="10 ms", added_time="50 us", prompt_time="30 ms")
    >>> simulate_serving(prompt=1000, output=1000, users=256, **engine)
    2560 requests at 8394 token/s: mean ttft 0.6656 s, end to end 30.48 s
    """
    if (rate is None) == (users is None):
        raise ValueError("give either rate, if requests come at random, or users, if each waits for an answer")
    prompt, output, users = _whole("prompt", prompt), _whole("output", output), _whole("users", users, usual=0)
    number = _whole("requests", requests, usual=10 * users or 1000)
    chunk, warmup, seed = _whole("chunk", chunk), _whole("warmup", warmup, least=0), _whole("seed", seed, least=0)
    most, room = _whole("max_batch", max_batch, usual=inf), _whole("cache_limit", cache_limit, usual=inf)
    hits, shortest = _share("hits", hits), _share("shortest", shortest)
    if number < users:
        raise ValueError(f"requests={number} are fewer than users={users}, who send at least one each")
    if number <= warmup:
        raise ValueError(f"warmup={warmup} leaves none of requests={number} to count: less would do")
    if prompt + output > room:
        raise ValueError(f"a request reserves {prompt + output} tokens, and cache_limit={room} would never have them")
    if number * (4 + prompt // chunk) > MOST_STEPS:
        raise ValueError(f"requests={number} in chunks of {chunk} may take over {MOST_STEPS:,} steps: fewer would do")
    if (step is None) == (base_time is None) or (step and (added_time, prompt_time) != (0, 0)):
        raise ValueError("give either base_time and what is added to it, or step, a function of batch and tokens read")
    if step is not None and not callable(step):
        raise TypeError(f"step is a function of batch and tokens read that says seconds, not {quoted(step)}")
    step = step or _linear(prompt, base_time, added_time, prompt_time)
    rate = None if rate is None else _number("rate", rate)
    spreads = tuple(_number(n, x) for n, x in (("prompt_spread", prompt_spread), ("answer_spread", answer_spread)))
    prompts, outputs, arrivals = drawn(number, prompt, output, shortest, rate, seed, spreads)
    unread = [max(1, x - int(hits * x)) for x in prompts]
    sizes = [a + b for a, b in zip(prompts, outputs, strict=True)]
    if (longest := max(sizes)) > room:
        raise ValueError(f"the longest request has {longest} tokens, and cache_limit={room} would never have them")
    traffic = _Requests(arrivals or [0.0] * users, unread, outputs, sizes, step, most, room)
    run_engine(traffic, chunk)
    times = traffic.arrivals, traffic.starts, traffic.firsts, traffic.ends
    return Served(np.array(outputs), *map(np.array, times), traffic.steps, warmup)


@dataclass(slots=True)
class Request:
    """A request of an engine: tokens in its cache, tokens still to read, and tokens of its answer."""

    key: int
    past: float
    unread: float
    output: int


def run_engine(traffic, chunk: float):
    """Run an engine step by step while it has traffic.

    A step decodes all running requests and reads up to `chunk` prompt tokens of admitted requests. Steps that only
    decode follow each other without a look at the traffic, until a sequence ends or the traffic changes.
    """
    now, done, context, current, running = 0.0, 0, 0.0, None, []  # running: a heap by last step
    while traffic.begin_step(now):
        budget, parts, read, batch = chunk, [], [], len(running)
        while budget > 0 and (current or (current := traffic.admit(now, batch + len(read)))):
            new = min(current.unread, budget)
            parts.append((current.past, new))
            current.past, current.unread, budget = current.past + new, current.unread - new, budget - new
            if current.unread <= 1e-9:
                read.append(current)
                current = None
        if not parts and not batch:
            now = max(now, traffic.next_time())
            continue
        seconds, most = _seconds(traffic.seconds(batch, context, parts), now), 1 if parts else running[0][0] - done
        count, now, context = traffic.steps_taken(most, now, seconds, batch, context, len(read))
        done += count
        for request in read:
            traffic.first_token(request.key, now)
            heappush(running, (done + request.output - 1, request.key, request))
            context += request.past + 1
        while running and running[0][0] == done:
            request = heappop(running)[2]
            context -= request.past + request.output
            traffic.end(request.key, now)


class _Requests:
    """Requests of one turn: they come at given times, or each user sends the next one when the last is answered."""

    def __init__(self, arrivals, unread, outputs, sizes, step, most, room):
        self.arrivals, self.unread, self.outputs, self.sizes = arrivals, unread, outputs, sizes
        self.step, self.most, self.room = step, most, room
        self.starts, self.firsts, self.ends, self.steps = [], [0.0] * len(outputs), [0.0] * len(outputs), []
        self.held = self.ended = 0  # tokens reserved in the cache, requests

    def begin_step(self, now) -> bool:
        return self.ended < len(self.outputs)

    def admit(self, now, busy) -> Request | None:
        new = len(self.starts)
        if new == len(self.arrivals) or self.arrivals[new] > now or busy >= self.most:
            return None
        if self.held + self.sizes[new] > self.room:
            return None
        self.starts.append(now)
        self.held += self.sizes[new]
        return Request(new, 0, self.unread[new], self.outputs[new])

    def next_time(self) -> float:
        return self.arrivals[len(self.starts)]

    def seconds(self, batch, context, parts) -> float:
        return self.step(batch, sum(new for _, new in parts))

    def steps_taken(self, most, now, seconds, batch, context, read) -> tuple[int, float, float]:
        """Take up to `most` equal steps, until the next arrival. Return their number, and time and context after."""
        new = len(self.starts)
        if batch < self.most and new < len(self.arrivals) and self.arrivals[new] > now:
            most = min(most, ceil((self.arrivals[new] - now) / seconds))
        self.steps.append(Steps(now, most * seconds, batch, most * batch + read))
        return most, now + most * seconds, context + most * batch

    def first_token(self, key, now):
        self.firsts[key] = now

    def end(self, key, now):
        self.ends[key], self.held, self.ended = now, self.held - self.sizes[key], self.ended + 1
        if len(self.arrivals) < len(self.outputs):  # its user sends the next request
            self.arrivals.append(now)


def _seconds(said, now: float) -> float:
    """Return the time of a step that begins at `now`, if it is one."""
    if not is_number(said):
        raise TypeError(f"step is a function of batch and tokens read that says seconds, not {quoted(said)}")
    if not now < now + said < LATEST:
        moved = f"a step of {said:g} s does not move a clock at {now:g} s"
        raise ValueError(f"{moved}: one of longer times would, up to {LATEST:g} s in all")
    return float(said)


def _linear(prompt, base_time, added_time, prompt_time):
    """Return a step's time in seconds, linear in the sequences and in the tokens read."""
    base, each = _number("base_time", base_time), _number("added_time", added_time)
    token = _number("prompt_time", prompt_time) / prompt
    return lambda batch, tokens: base + batch * each + tokens * token


def _number(name, value):
    value = one_number(name, value)
    if name == "rate" and not value:
        raise ValueError(f"{name} must be above zero, not {quoted(value)}")
    return value


def _whole(name, value, least=1, usual=None):
    if value is None and usual is not None:
        return usual
    if not is_number(value) or not least <= value < 2**53 or value % 1 != 0:
        raise ValueError(f"{name} must be a whole number from {least} up, not {quoted(value)}: it is {MEANINGS[name]}")
    return int(value)


def _share(name, value):
    if not is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, not {quoted(value)}: it is {MEANINGS[name]}")
    return float(value)
