"""Simulation of agents' sessions on one attention group, step by step: what judges the closed forms of `sessions`.

The engine reads turns in the order in which they come. A step reads at most `chunk_tokens` tokens, while other turns
decode. The whole cache of a turn that is read or decoded is in device memory; a turn that finds no room waits. All
other caches form one stack over the tiers. The least recently used tokens are evicted first.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from scalebook.inference.session_loop import Loop
from scalebook.inference.simulation import Request, run_engine
from scalebook.language.arguments import checked, is_number
from scalebook.language.notation import quoted

__all__ = ["Simulated", "simulate_sessions"]


@dataclass(frozen=True)
class Simulated:
    """What simulated sessions got: turns per second, shares found, and times by turn in seconds."""

    turn_rate: float
    found_turns: float
    hit_share: float
    ttft: np.ndarray = field(repr=False)
    tpot: np.ndarray = field(repr=False)
    end_to_end: np.ndarray = field(repr=False)


class _Tiers:
    """A stack of caches over tiers, by session: what the first has no room for moves to the next, at last away."""

    def __init__(self, rooms):
        self.rooms, self.kept, self.used = rooms, [OrderedDict() for _ in rooms], [0.0] * len(rooms)

    def put(self, key, tokens):
        self.kept[0][key] = self.kept[0].pop(key, 0.0) + tokens
        self.used[0] += tokens

    def take(self, key) -> list[float]:
        """Remove a session's cache and return how many of its tokens each tier had."""
        found = [kept.pop(key, 0.0) for kept in self.kept]
        self.used = [a - b for a, b in zip(self.used, found, strict=True)]
        return found

    def trim(self, reserved: float):
        """Evict tokens that no longer fit, when `reserved` tokens of device memory are in use."""
        for place, room in enumerate(self.rooms):
            kept, most = self.kept[place], room - (reserved if place == 0 else 0)
            while self.used[place] > most and kept:
                key, tokens = next(iter(kept.items()))
                cut = min(tokens, self.used[place] - most)
                self.used[place] -= cut
                kept[key] = tokens - cut
                if cut >= tokens - 1e-9:
                    del kept[key]
                if place + 1 < len(self.rooms):
                    below = self.kept[place + 1]
                    below[key] = below.pop(key, 0.0) + cut
                    self.used[place + 1] += cut


class _Sessions:
    """Turns of sessions as an engine's traffic: which are asleep, wait, are fetched, or have a cache in some tier."""

    def __init__(self, loop: Loop, sessions: int, seconds: float, seed: int):
        self.loop, self.x, self.seconds_in_all = loop, loop.known, seconds
        self.random, self.of_lengths = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        x = self.x
        self.base_time, self.added_time = float(x["base_time"]), float(x["added_time"] / loop.context)
        self.turn = self.random.integers(0, int(x["turns"]), sessions).tolist()
        self.own = [float(sum(sum(self.lengths()) for _ in range(turn))) for turn in self.turn]  # tokens of a session
        self.next = [self.lengths() for _ in self.turn]
        self.tiers, self.reserved, self.is_moved = _Tiers(loop.rooms), x["prefix"], True  # since they were trimmed
        self.asleep = [(t, i) for i, t in enumerate(self.random.random(sessions) * 2 * x["pause_mean"])]
        heapify(self.asleep)
        self.waiting, self.fetching, self.ready = deque(), [], deque()
        self.asked, self.first, self.links = [0.0] * sessions, [0.0] * sessions, [0.0] * len(loop.rooms)
        self.start, self.counted, self.ttft, self.tpot, self.whole = None, np.zeros(4), [], [], []
        for i, tokens in enumerate(self.own):
            if tokens:
                self.tiers.put(i, tokens)

    def lengths(self) -> tuple[float, int]:
        """Draw the new tokens and the answer of a turn."""
        x, found = self.x, []
        for mean, spread in ((x["appended"], x["prompt_spread"]), (int(x["output"]), x["answer_spread"])):
            drawn = mean * self.of_lengths.lognormal(-(spread**2) / 2, spread) if spread else mean
            found.append(max(2, round(drawn)) if spread else mean)
        return tuple(found)

    def pause(self) -> float:
        if self.loop.pauses == "exponential":
            return self.random.exponential(self.x["pause_mean"])
        return float(self.x["pause"] * np.exp(self.x["pause_spread"] * self.random.standard_normal()))

    def begin_step(self, now) -> bool:
        if self.start is None and now >= self.seconds_in_all / 3:
            self.start, self.counted, self.ttft, self.tpot, self.whole = now, np.zeros(4), [], [], []
        self.now = now
        self.trim()
        return now < self.seconds_in_all

    def trim(self):
        """Evict what has no room, if anything was moved since."""
        if self.is_moved:
            self.tiers.trim(self.reserved)
            self.is_moved = False

    def admit(self, now, busy) -> Request | None:
        """Return the next turn to read, or None. Fetched caches go first, then the turn that has waited longest."""
        while self.asleep and self.asleep[0][0] <= now:
            at, i = heappop(self.asleep)
            self.asked[i] = at
            self.waiting.append(i)
        while self.fetching and self.fetching[0][0] <= now:
            self.ready.append(heappop(self.fetching)[2])
        if self.ready:
            return self.ready.popleft()
        while self.waiting:
            i = self.waiting[0]
            need, (new, output), prefix = self.own[i], self.next[i], self.x["prefix"]
            whole = need + new + output
            if self.reserved + whole > self.loop.rooms[0] and self.reserved > prefix:
                return None
            self.waiting.popleft()
            found = self.tiers.take(i)
            have, self.reserved, self.is_moved = sum(found), self.reserved + whole, True
            self.counted += np.array([need > 0, need > 0 and have >= need - 1, prefix + need + new, prefix + have])
            turn = Request(i, prefix + have, need - have + new, output)
            if (at := self.fetched(found)) <= now:
                return turn
            heappush(self.fetching, (at, i, turn))
        return None

    def fetched(self, found) -> float:
        """Return when a cache arrives from lower tiers. Each tier sends one cache at a time."""
        x, at = self.x, self.now
        mean = (x["appended"] + x["output"]) * x["turns"] / 2
        for place in range(1, len(found)):
            if found[place]:
                busy = self.loop.fetches[place] * found[place] / mean
                self.links[place] = max(self.links[place], self.now) + busy
                at = max(at, self.links[place])
        return at

    def next_time(self) -> float:
        return min(x[0][0] for x in (self.asleep, self.fetching) if x)

    def seconds(self, batch, context, parts) -> float:
        seconds = self.base_time + self.added_time * context
        if parts:
            step, token, pair = self.loop.reading
            seconds += sum(new * (token + pair * (past + new / 2)) for past, new in parts) + step
        return seconds

    def steps_taken(self, most, now, seconds, batch, context, read) -> tuple[int, float, float]:
        """Take up to `most` steps, each longer than the last as contexts grow, until there is something else to do."""
        count, now, context = 1, now + seconds, context + batch
        if most > 1:
            self.trim()
            marks = [self.seconds_in_all / (3 if self.start is None else 1)]
            end = min(marks + [x[0][0] for x in (self.asleep, self.fetching) if x])
            while count < most and now < end:
                count, now, context = count + 1, now + (self.base_time + self.added_time * context), context + batch
        return count, now, context

    def first_token(self, i: int, now: float):
        self.first[i] = now
        self.ttft.append(now - self.asked[i])

    def end(self, i: int, now: float):
        """End a turn: its cache may now be evicted, and its session pauses; after the last turn a new one begins."""
        self.tpot.append((now - self.first[i]) / (self.next[i][1] - 1))
        self.whole.append(now - self.asked[i])
        self.turn[i] += 1
        self.own[i] += sum(self.next[i])
        self.reserved, self.is_moved = self.reserved - self.own[i], True
        is_last = self.turn[i] == self.x["turns"]
        self.tiers.put((i, now) if is_last else i, self.own[i])
        if is_last:
            self.turn[i], self.own[i] = 0, 0.0
        self.next[i] = self.lengths()
        heappush(self.asleep, (now + self.pause(), i))


@checked
def simulate_sessions(loop: Loop, sessions: int, seconds: float = 1800.0, seed: int = 0) -> Simulated:
    """Simulate sessions on one attention group for `seconds`. No result includes the first third of that time.

    `loop` holds the engine and the sessions, as `sessions_on` returns it. All sessions begin in the middle of their
    turns, with their caches kept as far as there is room.

    >>> from scalebook.inference import serve, sessions_on
    >>> from scalebook.tables import accelerators, models
    >>> codex = dict(turns=33, prefix=12_000, appended=1891, output=351, pause="5.2 s", pause_spread=1.18)
    >>> loop = sessions_on(serve, models.llama3_70b, accelerators.h200.at("fp8"), tp=8, **codex)
    >>> [round(simulate_sessions(loop, sessions=x).turn_rate, 1) for x in (100, 180)]
    [3.8, 0.5]
    """
    if not isinstance(loop, Loop):
        raise TypeError(f"loop is what sessions_on returns, not {quoted(loop)}")
    for name, value, most in (("sessions", sessions, 10_000), ("seconds", seconds, 100_000), ("seed", seed, 2**32)):
        if not is_number(value) or not int(name != "seed") <= value <= most or (name != "seconds" and value % 1):
            raise ValueError(f"{name} is a number from {int(name != 'seed')} to {most:,}, not {quoted(value)}")
    run = _Sessions(loop, int(sessions), seconds, int(seed))
    run_engine(run, loop.known["chunk_tokens"])
    later, found, tokens, kept = run.counted
    shares = float(found / max(later, 1)), float(kept / max(tokens, 1))
    rate = len(run.whole) / (run.now - run.start) if run.whole else 0.0
    return Simulated(float(rate), *shares, *map(np.array, (run.ttft, run.tpot, run.whole)))
