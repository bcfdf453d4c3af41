"""Simulation of agents' sessions on one attention group, step by step: what judges the closed forms of `sessions`.

The engine reads turns in the order in which they come. A step reads at most `chunk_tokens` tokens, while other turns
decode. The whole cache of a turn that is read or decoded is in device memory; a turn that finds no room waits. All
other caches form one stack over the tiers. The least recently used tokens are evicted first.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from numbers import Real

import numpy as np

from scalebook.inference.session_loop import Loop
from scalebook.language.arguments import checked
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


class _Run:
    """One simulated engine and its sessions."""

    def __init__(self, loop: Loop, sessions: int, seed: int):
        self.loop, self.x, self.random = loop, loop.known, np.random.default_rng(seed)
        x = self.x
        self.each, self.output, self.chunk = x["appended"] + x["output"], int(x["output"]), x["chunk_tokens"]
        self.turn = self.random.integers(0, int(x["turns"]), sessions).tolist()
        self.tiers, self.reserved = _Tiers(loop.rooms), x["prefix"]
        self.now = self.context = self.steps = 0.0
        self.asleep = [(t, i) for i, t in enumerate(self.random.random(sessions) * 2 * x["pause_mean"])]
        heapify(self.asleep)
        self.waiting, self.fetching, self.ready, self.reading, self.running = deque(), [], deque(), None, []
        self.asked, self.first, self.links = [0.0] * sessions, [0.0] * sessions, [0.0] * len(loop.rooms)
        self.counted, self.ttft, self.tpot, self.whole = (
            np.zeros(5),
            [],
            [],
            [],
        )  # turns, later turns, found, tokens, tokens found
        for i, turn in enumerate(self.turn):
            if turn:
                self.tiers.put(i, turn * self.each)
        self.tiers.trim(self.reserved)

    def pause(self) -> float:
        x = self.x
        if self.loop.pauses == "exponential":
            return self.random.exponential(x["pause_mean"])
        return x["pause"] * np.exp(x["pause_spread"] * self.random.standard_normal())

    def admit(self):
        """Return the next turn to read, or None. Fetched caches go first, then the turn that has waited longest."""
        if self.ready:
            return self.ready.popleft()
        while self.waiting:
            i = self.waiting[0]
            need, whole = self.turn[i] * self.each, (self.turn[i] + 1) * self.each
            if self.reserved + whole > self.loop.rooms[0] and self.reserved > self.x["prefix"]:
                return None
            self.waiting.popleft()
            found = self.tiers.take(i)
            have, self.reserved = sum(found), self.reserved + whole
            self.counted += [0, need > 0, need > 0 and have >= need - 1, self.x["prefix"] + need + self.x["appended"],
                             self.x["prefix"] + have]  # fmt: skip
            turn = [i, self.x["prefix"] + have, need - have + self.x["appended"]]
            if (at := self.fetched(found)) <= self.now:
                return turn
            heappush(self.fetching, (at, turn))
        return None

    def fetched(self, found) -> float:
        """Return the time at which a cache has been fetched from lower tiers. Each tier sends one cache at a time."""
        mean, at = self.each * self.x["turns"] / 2, self.now
        for place in range(1, len(found)):
            if found[place]:
                busy = self.loop.fetches[place] * found[place] / mean
                self.links[place] = max(self.links[place], self.now) + busy
                at = max(at, self.links[place])
        return at

    def read(self) -> tuple[float, list]:
        """Read up to a chunk of tokens: return the seconds that this adds to a step, and the turns read to the end."""
        (step, token, pair), left, seconds, done = self.loop.reading, self.chunk, 0.0, []
        while left > 0 and (self.reading or (turn := self.admit())):
            i, past, new = self.reading or turn
            part = min(left, new)
            seconds += part * (token + pair * (past + part / 2))
            left, self.reading = left - part, [i, past + part, new - part]
            if new - part <= 1e-9:
                done.append((i, past + part))
                self.reading = None
        return seconds + (step if seconds else 0), done

    def step(self):
        """Advance by one step, or to the next event if there is nothing to do."""
        while self.asleep and self.asleep[0][0] <= self.now:
            at, i = heappop(self.asleep)
            self.asked[i] = at
            self.waiting.append(i)
        while self.fetching and self.fetching[0][0] <= self.now:
            self.ready.append(heappop(self.fetching)[1])
        seconds, done = self.read()
        batch = len(self.running)
        if not batch and not seconds:
            self.now = max(self.now, min(x[0][0] for x in (self.asleep, self.fetching) if x))
            return
        added = self.x["added_time"] / self.loop.context
        self.now += self.x["base_time"] + added * self.context + seconds
        self.steps, self.context = self.steps + 1, self.context + batch
        for i, context in done:
            self.first[i] = self.now
            self.ttft.append(self.now - self.asked[i])
            heappush(self.running, (self.steps + self.output - 1, i, context))
            self.context += context + 1
        while self.running and self.running[0][0] <= self.steps:
            self.end(*heappop(self.running)[1:])
        self.tiers.trim(self.reserved)

    def end(self, i: int, context: float):
        """End a turn: its cache may now be evicted, and its session pauses; after the last turn a new one begins."""
        self.context -= context + self.output
        self.turn[i] += 1
        tokens = self.turn[i] * self.each
        self.reserved -= tokens
        self.counted[0] += 1
        self.tpot.append((self.now - self.first[i]) / (self.output - 1))
        self.whole.append(self.now - self.asked[i])
        if self.turn[i] == self.x["turns"]:
            self.turn[i] = 0
            self.tiers.put((i, self.now), tokens)
        else:
            self.tiers.put(i, tokens)
        heappush(self.asleep, (self.now + self.pause(), i))


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
        is_number = isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)
        if not is_number or not int(name != "seed") <= value <= most or (name != "seconds" and value % 1):
            raise ValueError(f"{name} is a number from {int(name != 'seed')} to {most:,}, not {quoted(value)}")
    run = _Run(loop, int(sessions), int(seed))
    while run.now < seconds / 3:
        run.step()
    run.counted[:], run.ttft, run.tpot, run.whole, start = 0, [], [], [], run.now
    while run.now < seconds:
        run.step()
    turns, later, found, tokens, kept = run.counted
    shares = float(found / max(later, 1)), float(kept / max(tokens, 1))
    return Simulated(float(turns / (run.now - start)), *shares, *map(np.array, (run.ttft, run.tpot, run.whole)))
