"""The working point of agents' sessions on a service: `serve.sessions`, and the edge of the cliff.

Fix the share of turns that find their cache. A higher turn rate needs more time and more room, so bisection finds
the highest rate whose caches fit. All shares from 1 to 0 give a curve of sessions against turn rate. If the curve
folds back, one number of sessions has several working points: the service keeps its caches, or it loses all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from scalebook.inference import sessions as laws
from scalebook.inference.session_engine import ReadingTimes, engine_of
from scalebook.inference.session_percentiles import percentile_cells
from scalebook.inference.tiers import tier_rows
from scalebook.inference.trust import with_ends
from scalebook.language import Row, code, show
from scalebook.language.arguments import checked
from scalebook.language.latest import Latest
from scalebook.language.notation import quoted
from scalebook.search.arguments import one_number

__all__ = ["Loop", "sessions_on"]

_FOUND = "tpot", "prompt_load", "read_tokens", "queue_time", "ttft", "reserved_sessions", "sessions", "room_tokens"
_LENGTHS = "turns", "prefix", "appended", "output", "prompt_spread", "answer_spread"  # of what an engine reads
_NEAR = 1e-6  # how close to a limit counts as there
_FEW = 12  # sessions of mean length in device memory, below which predictions fail near the edge of the cliff
_SMALLEST = 0.01  # spread of pauses that are called constant


_KEPT = ("found_turns", "pause_kept")


@cache
def _compiled(pauses: str, wanted: tuple[str, ...]) -> tuple:
    """Return the compiled part of the sheet that gives some letters, and the names of its inputs."""
    part = laws.session_sheet(pauses).only(*wanted, given=() if wanted == _KEPT else _KEPT)
    statements = [(n, f.rhs) for n, f in part.formulas.items()]
    return code.vector(part.inputs, statements, wanted), part.inputs


@dataclass
class Loop:
    """Sessions on an attention group: numbers by letter, and tokens and fetch times of its tiers, nearest first."""

    known: dict
    pauses: str
    rooms: tuple[float, ...]
    fetches: tuple[float, ...]  # seconds to fetch a mean session from each tier; 0 from device memory
    reading: tuple[float, ...]  # seconds of reading: per step, per token, and per pair of tokens
    turns_read: ReadingTimes
    context: float  # mean tokens that a decoding turn attends to
    usual: Row  # a step that decodes a fourth of the sessions that have room, alone and with a chunk that is read

    def _at_pace(self, pace: float) -> "Loop":
        """Return the loop with all steps so much slower."""
        if pace == 1:
            return self
        known = self.known | {n: self.known[n] * pace for n in ("base_time", "added_time", "found_time", "lost_time")}
        turns, reading = self.turns_read, tuple(x * pace for x in self.reading)
        turns = replace(turns, found=turns.found * pace, lost=turns.lost * pace)
        return replace(self, known=known, reading=reading, turns_read=turns)

    @cached_property
    def _kept(self) -> tuple[float, float]:
        """Tokens kept after all turns but the last of a session, and after the last."""
        x = self.known
        each = x["appended"] + x["output"]
        return each * x["turns"] * (x["turns"] - 1) / 2, each * x["turns"]

    def _pauses_kept(self, kept_pause: np.ndarray) -> tuple:
        """Return, for longest pauses that a cache outlives, the share of turns found and the mean pause kept."""
        function, names = _compiled(self.pauses, _KEPT)
        return function(*({**self.known, "kept_pause": kept_pause}[n] for n in names))

    def _usual_pauses(self) -> np.ndarray:
        """Return a grid of pauses from one that nearly none outlives to one longer than all."""
        pause, spread = self.known["pause"], self.known.get("pause_spread", 1.0)
        near = pause * np.exp(np.linspace(5, -5, 161) * spread)
        if self.pauses == "exponential":
            near = -self.known["pause_mean"] * np.log1p(-np.linspace(0.99999, 1e-5, 161))
        return np.concatenate([near[0] * np.geomspace(1e5, 1.05, 60), near])

    @cached_property
    def _idle(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of pausing sessions, per session that ends in a second, and the share of turns found: both rise."""
        pauses = self._usual_pauses()
        found, kept = self._pauses_kept(pauses)
        return (self._kept[0] * kept + self._kept[1] * pauses)[::-1], found[::-1]

    def _at(self, rate, found, kept, kept_pause, fetch=0.0) -> dict:
        function, names = _compiled(self.pauses, _FOUND)
        values = self.known | {"turn_rate": rate, "found_turns": found, "pause_kept": kept, "kept_pause": kept_pause}
        values["fetch_time"] = fetch
        with np.errstate(all="ignore"):
            return dict(zip(_FOUND, function(*(values[n] for n in names)), strict=True))

    def _fetch(self, rate, found, row) -> tuple:
        """Return the mean time to fetch a turn's cache and the load of the busiest link."""
        if len(self.rooms) == 1:
            return np.zeros_like(rate), np.zeros_like(rate)
        x, (kept_all, ended), (sizes, shares) = self.known, self._kept, self._idle
        held = x["prefix"] + row["reserved_sessions"] * x["own_tokens"]
        above, time, load, total = np.zeros_like(rate), np.zeros_like(rate), np.zeros_like(rate), 0.0
        for place, (room, each) in enumerate(zip(self.rooms, self.fetches, strict=True)):
            total += room
            idle = np.maximum(total - held, 0) * x["turns"] / rate - (kept_all + ended) * row["queue_time"]
            up_to = found if place == len(self.rooms) - 1 else np.minimum(np.interp(idle, sizes, shares, 0), found)
            share = np.maximum(up_to - above, 0) * (x["turns"] - 1) / x["turns"]
            busy = rate * share * each
            wait = busy * each * 4 / 3 / (2 * np.maximum(1 - busy, _NEAR))  # contexts differ: mean square 4/3
            time, load, above = time + share * (each + wait), np.maximum(load, busy), np.maximum(up_to, above)
        return time, load

    def _branch(self, kept_pause: np.ndarray, pieces: int = 17) -> dict:
        """Return the working points of the loop for longest pauses that a cache outlives, as arrays by letter."""
        x, total = self.known, sum(self.rooms)
        found, kept = self._pauses_kept(kept_pause)
        most = (total - x["prefix"]) * x["turns"] / (self._kept[0] * kept + self._kept[1] * kept_pause)
        high = np.minimum(1 / (x["found_time"] + (x["output"] - 1) * x["added_time"]), most)
        low = np.zeros_like(high)

        def point(rate):
            row = self._at(rate, found, kept, kept_pause)
            fetch, load = self._fetch(rate, found, row)
            row = self._at(rate, found, kept, kept_pause, fetch) if len(self.rooms) > 1 else row
            held = x["prefix"] + row["reserved_sessions"] * x["own_tokens"]
            runs = row["prompt_load"] + rate * (x["output"] - 1) * x["added_time"] < 1
            runs &= rate * row["read_tokens"] * row["tpot"] <= x["chunk_tokens"]
            runs &= (held <= self.rooms[0]) & (load < 0.98) & (row["room_tokens"] <= total)
            return row, fetch, runs

        for _ in range(5 if pieces == 17 else 4):
            width = (high - low) / pieces
            *_, runs = point(low + np.arange(1, pieces)[:, None] * width)
            low = low + np.cumprod(runs, 0).sum(0) * width
            high = low + width
        if not low.all():
            how = f"first_overhead={show(x['first_overhead'], 's')} or the latency of a tier is too long"
            raise ValueError(f"turns take so long that their caches fill device memory at any turn rate: {how}")
        row, fetch, _ = point(low)
        kept_all, ended = self._kept
        spare = np.maximum(total * (1 - _NEAR) - row["room_tokens"], 0) * x["turns"] / low / (kept_all + ended)
        is_full = row["room_tokens"] < total * (1 - 1e-3)  # the engine is full before the room is: turns wait
        wait = np.where(is_full, spare, 0.0)
        groups = x["replicas"] * x["attention_dp"]
        return {
            "kept_pause": kept_pause, "found_turns": found, "pause_kept": kept, "turn_rate": low, "fetch_time": fetch,
            "queue_time": row["queue_time"] + wait, "sessions": row["sessions"] + groups * low * wait,
        }  # fmt: skip

    @cached_property
    def curve(self) -> dict:
        """The working points, from caches that outlive the longest pauses to caches that outlive none, by letter."""
        return self._branch(self._usual_pauses())

    @cached_property
    def lost_from(self) -> float | None:
        """Fewest sessions that halve the highest turn rate, or None if there is no such cliff."""
        rate, number = self.curve["turn_rate"], self.curve["sessions"]
        top = int(np.argmax(rate))
        is_low = rate[top:] < rate[top] / 2
        return float(number[top:][is_low].min()) if is_low.any() else None

    @cached_property
    def most(self) -> float:
        """The edge of the cliff in sessions, or infinity if there is none."""
        return np.inf if self.lost_from is None else laws.edge_of_cliff(self.known, sessions_lost=self.lost_from)

    @property
    def surely(self) -> float:
        """Most sessions that surely keep their caches, or infinity; if few fit, their contexts vary much."""
        few = (self.rooms[0] - self.known["prefix"]) / self.known["own_tokens"] < _FEW and len(self.rooms) == 1
        return self.lost_from * 2 / 3 if few and self.lost_from is not None else np.inf

    def _point(self, number: float, is_lost: bool) -> dict:
        """Return the working point of a number of sessions. If there are several, `is_lost` selects the last."""
        curve, number = self.curve, one_number("sessions", number)
        for again in (True, False):
            here = curve["sessions"] >= number
            if is_lost:
                place = len(here) - int(np.argmax(~here[::-1])) if not here.all() else 0
            else:
                place = int(np.argmax(here)) if here.any() else len(here)
            if place >= len(here) and again:
                return self._overfull(number)
            place = min(place, len(here) - 1)
            ends = [max(place - 1, 0), place]
            if again:
                curve = self._branch(np.geomspace(*curve["kept_pause"][ends], 25), 100)
        near, far = curve["sessions"][ends]
        share = 0.0 if near == far else float(np.clip((number - near) / (far - near), 0, 1))
        return {n: float(y[ends] @ [1 - share, share]) for n, y in curve.items()}

    def _overfull(self, number: float) -> dict:
        """Return the working point of more sessions than find any cache: the engine is full, and the others wait."""
        last = {n: float(y[-1]) for n, y in self.curve.items()}
        groups = self.known["replicas"] * self.known["attention_dp"]
        last["queue_time"] += (number - last["sessions"]) / (groups * last["turn_rate"])
        return last | {"sessions": number}


# A service


@checked
def sessions(
    serve, *knowns, turns, appended, output, pause, sessions, prefix=0, pause_spread=0, pauses="lognormal", tiers=(),
    prompt_spread=0, answer_spread=0, **letters,
) -> Row:  # fmt: skip
    """Predict what sessions of agents get: `serve.sessions(model, device, tp=8, turns=33, prefix=12000, ...)`.

    Each of `sessions` sessions has `turns` turns. A turn sends all earlier tokens and `appended` new ones, and gets
    `output` tokens; then the session pauses. `pause` is the median of the pauses, which are "lognormal" with a
    `pause_spread` (constant if it is 0) or "exponential". All sessions share a `prefix`. Caches are kept in device
    memory and in `tiers`, names or rows of `tables.tiers` from near to far, and evicted least recently used first. A
    cache that is evicted from one tier moves to the next.

    Returns a row with `found_turns`, `hit_share`, `kept_time`, `turn_rate`, `tpot`, `ttft`, `session_cost` and the edge
    of the cliff `sessions_most`, or a sentence if there is none. If device memory holds fewer than a dozen sessions,
    caches are kept only now and then above two thirds of `sessions_lost` (see `caches`), and first tokens may come
    twice as late as predicted. For more sessions than the edge, the row says what users get once the caches are lost.
    Raises ValueError if weights or one session do not fit, and whatever `serve` raises. For the ranges, the
    same sessions are served with all steps as fast, or as slow, as those measured of `serve`. A decode step is taken as
    linear in its sequences, as it is between an eighth and a half of the room. For a model with experts and few
    sessions it comes out several times too long; `serve` with as many users is then nearer.

    `appended` and `output` are means. With a `prompt_spread` and an `answer_spread`, the standard deviations of their
    logarithms, they are lognormal. The row has the 50th, 95th and 99th percentiles of `ttft`, `tpot` and `end_to_end`,
    which differ from simulated ones by 1 to 6 % in the median. Each states a range with eight in ten simulated ones
    (`row.cells["ttft_p95"].low`). The range is wider if more than 1 % of the turns lose their caches, if turns wait for
    a place, or if pauses are equal but answers are not. With spread prompts the 50th percentile of `ttft` is up to a
    fourth too short.

    >>> from scalebook.inference import serve
    >>> from scalebook.tables import accelerators, models
    >>> codex = dict(turns=33, prefix=12_000, appended=1891, output=351, pause="5.2 s", pause_spread=1.18)
    >>> known = models.llama3_70b, accelerators.h200.at("fp8")
    >>> [round(serve.sessions(*known, tp=8, engine="vllm", sessions=x, **codex).hit_share, 2) for x in (120, 200)]
    [0.96, 0.24]
    """
    if one_number("sessions", sessions) < 1:
        raise ValueError(f"sessions are 1 or more, not {quoted(sessions)}")
    session = dict(turns=turns, prefix=prefix, appended=appended, output=output, pause=pause, pause_spread=pause_spread)
    session |= dict(pauses=pauses, tiers=tiers, prompt_spread=prompt_spread, answer_spread=answer_spread)
    loop = _remembered(_LOOPS, sessions_on, serve, knowns, session | letters)
    row = with_ends(partial(_of_loop, loop, one_number("sessions", sessions)), pace=1.0)
    row.made_of = {n: (loop.usual, n) for n in ("pass_time", "mixed_time")}
    return row


def _of_loop(loop: Loop, sessions: float, pace: float) -> Row:
    """Return what sessions on a loop get if all of its steps take `pace` times as long."""
    loop, sheet = loop._at_pace(pace), laws.session_sheet(loop.pauses)
    edge = {} if loop.lost_from is None else {"sessions_lost": loop.lost_from}
    most = loop.most
    point = loop._point(sessions, sessions > most)
    found = {n: point[n] for n in ("kept_pause", "turn_rate", "fetch_time", "queue_time")}
    row = sheet(**{n: x for n, x in {**loop.known, **found, **edge}.items() if n in sheet.letters})
    is_lost = row.found_turns < 0.5 and row.turns > 1
    kept = "lost" if is_lost else "kept" if sessions <= min(most, loop.surely) else "kept now and then"
    row = Row("sessions", row.cells | percentile_cells(loop, row), missing=row.missing)
    row.words = {"pauses": loop.pauses, "caches": kept}
    if not edge:
        row.words["sessions_most"] = "no sharp one: caches are lost little by little"
    row.name = f"sessions on {row.words['caches']} caches"
    return row


# Of the last services: another number of sessions changes no loop, and other pauses or tiers no engine.
_LOOPS, _ENGINES = Latest(32), Latest(32)


def _remembered(found: Latest, make: Callable, serve, knowns: tuple, letters: dict):
    values = [(n, type(x), tuple(x) if isinstance(x, list) else x) for n, x in sorted(letters.items())]
    key = id(serve), *map(id, knowns), *values
    return found.get(key, lambda: make(serve, *knowns, **letters), knowns)


def _engine(serve, *knowns, **letters) -> dict:
    lengths = {n: letters.pop(n) for n in _LENGTHS}
    return engine_of(serve, knowns, letters, lengths)


@checked
def sessions_on(
    serve, *knowns, turns, appended, output, pause, prefix=0, pause_spread=0, pauses="lognormal", tiers=(),
    prompt_spread=0, answer_spread=0, **letters,
) -> Loop:  # fmt: skip
    """Return the loop of sessions on a service; its `curve` has the working points of all numbers of them.

    It takes the arguments of `serve.sessions` and refuses the same ones.

    >>> from scalebook.inference import serve
    >>> from scalebook.tables import accelerators, models
    >>> codex = dict(turns=33, prefix=12_000, appended=1891, output=351, pause="5.2 s", pause_spread=1.18)
    >>> loop = sessions_on(serve, models.llama3_70b, accelerators.h200.at("fp8"), tp=8, **codex)
    >>> round(loop.rooms[0] / 1e6, 1)  # million tokens
    6.4
    """
    if not hasattr(serve, "checked"):
        raise TypeError(f"the first argument is serve, not {quoted(serve)}")
    given = dict(turns=turns, prefix=prefix, appended=appended, output=output, pause=pause, pause_spread=pause_spread)
    given |= dict(prompt_spread=prompt_spread, answer_spread=answer_spread)
    given = {n: one_number(n, x) for n, x in given.items()}
    if given["turns"] % 1 or not 1 <= given["turns"] <= 10_000:
        raise ValueError(f"turns must be a whole number from 1 to 10,000, not {quoted(turns)}")
    if not 1e-3 <= given["pause"] <= 1e7:
        raise ValueError(f"pause={quoted(pause)} is no pause of a session: from a millisecond to 100 days would do")
    if given["output"] < 2:
        raise ValueError(f"output={quoted(output)} leaves no token after the first: 2 or more would do")
    for name, most in (("pause_spread", 5), ("prompt_spread", 2), ("answer_spread", 2)):
        if given[name] > most:
            raise ValueError(f"{name}={given[name]:g} is more than such a spread is: up to {most} would do")
    sheet, rows = laws.session_sheet(pauses), tier_rows(tiers)
    engine = _remembered(_ENGINES, _engine, serve, knowns, letters | {n: given[n] for n in _LENGTHS})
    known = {n: x for n, x in {**engine, **given}.items() if n in sheet.letters}
    known["pause_spread"] = max(given["pause_spread"], _SMALLEST)
    known["prompt_spread"] = given["prompt_spread"]
    known |= sheet.only("own_tokens", "pause_mean", "pause_deviation")(known)
    token = engine["token_cache"]
    own = token * (given["appended"] + given["output"]) * given["turns"] / 2
    rooms = (engine["cache_room"] / token, *(row.tier_capacity / token for row in rows))
    if known["prefix"] + known["own_tokens"] > rooms[0]:
        raise ValueError(
            f"one session does not fit: {show(known['prefix'] + known['own_tokens'], '')} tokens, and device memory "
            f"has room for {show(rooms[0], '')}; more devices or fewer kv_bits would let it in"
        )
    known |= {"tier_cost": sum(row.tier_cost for row in rows), "tier_life": rows[0].tier_life if rows else 1.0}
    fetches = (0.0, *(own / row.tier_bandwidth + row.tier_latency for row in rows))
    return Loop(known, pauses, rooms, fetches, *(engine[n] for n in ("reading", "turns_read", "context", "usual")))
