"""The working point of agents' sessions on a service: `serve.sessions`, and the edge of the cliff.

A point of the loop is found from the share of turns that find their cache. With that share fixed, every time and room
rises with the turn rate, so bisection finds the rate at which the caches just fit. All shares from 1 to 0 give a curve
of sessions against turn rate. If it folds back, one number of sessions has several working points: caches are kept,
or all are lost.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from scalebook.inference import sessions as laws
from scalebook.inference.serving_memory import cached_tokens_windows
from scalebook.inference.tiers import tier_rows
from scalebook.language import Row, Sheet, code, show
from scalebook.language.arguments import checked
from scalebook.language.row import Cell, gather, quantity

__all__ = ["sessions"]

_SESSION = ("turns", "prefix", "appended", "output", "pause", "pause_spread")
_FOUND = (
    "tpot", "prompt_load", "read_tokens", "queue_time", "ttft", "reserved_sessions", "sessions", "room_tokens",
)  # fmt: skip
_NEAR = 1e-6  # how close to a limit counts as there
_SMALLEST = 0.01  # spread of pauses that are called constant


@cache
def _compiled(pauses: str) -> tuple:
    """Return the compiled sheet of a point of the loop, and the names of its inputs."""
    part = laws.session_sheet(pauses).only(*_FOUND, given=("found_turns", "pause_kept"))
    statements = [(n, f.rhs) for n, f in part.formulas.items()]
    return code.vector(part.inputs, statements, _FOUND), part.inputs


@dataclass
class Loop:
    """Sessions on one attention group: numbers by letter, and the tokens and fetch times of its tiers, nearest first."""

    known: dict
    pauses: str
    rooms: tuple[float, ...]
    fetches: tuple[float, ...]  # seconds to fetch a mean session from each tier; 0 from device memory

    @cached_property
    def _kept(self) -> tuple[float, float]:
        """Tokens kept after all turns but the last of a session, and after the last."""
        x = self.known
        each = x["appended"] + x["output"]
        return each * x["turns"] * (x["turns"] - 1) / 2, each * x["turns"]

    def pauses_kept(self, kept_pause: np.ndarray) -> tuple:
        """Return, for longest pauses that a cache outlives, the share of turns found and the mean pause kept."""
        part = laws.session_sheet(self.pauses).only("found_turns", "pause_kept")
        values = {n: kept_pause if n == "kept_pause" else self.known[n] for n in part.inputs}
        row = part(**values)
        return row.found_turns, row.pause_kept

    def usual_pauses(self) -> np.ndarray:
        """Return a grid of pauses from one that nearly none outlives to one longer than all."""
        pause, spread = self.known["pause"], self.known.get("pause_spread", 1.0)
        near = pause * np.exp(np.linspace(5, -5, 161) * spread)
        if self.pauses == "exponential":
            near = -self.known["pause_mean"] * np.log1p(-np.linspace(0.99999, 1e-5, 161))
        return np.concatenate([near[0] * np.geomspace(1e5, 1.05, 60), near])

    def at(self, rate, found, kept, kept_pause, fetch=0.0) -> dict:
        """Return the sheet's values at turn rates."""
        function, names = _compiled(self.pauses)
        values = self.known | {"turn_rate": rate, "found_turns": found, "pause_kept": kept, "kept_pause": kept_pause}
        values["fetch_time"] = fetch
        with np.errstate(all="ignore"):
            return dict(zip(_FOUND, function(*(values[n] for n in names)), strict=True))

    def fetch(self, rate, found, row, kept_pause, kept) -> tuple:
        """Return the mean time to fetch a turn's cache and the load of the busiest link."""
        if len(self.rooms) == 1:
            return np.zeros_like(rate), np.zeros_like(rate)
        x, (kept_all, ended) = self.known, self._kept
        sizes = kept_all * kept + ended * kept_pause
        rising, shares = sizes[::-1], found[::-1]
        held = x["prefix"] + row["reserved_sessions"] * x["own_tokens"]
        above, time, load, total = np.zeros_like(rate), np.zeros_like(rate), np.zeros_like(rate), 0.0
        for place, (room, each) in enumerate(zip(self.rooms, self.fetches, strict=True)):
            total += room
            idle = np.maximum(total - held, 0) * x["turns"] / rate - (kept_all + ended) * row["queue_time"]
            up_to = found if place == len(self.rooms) - 1 else np.minimum(np.interp(idle, rising, shares, 0), found)
            share = np.maximum(up_to - above, 0) * (x["turns"] - 1) / x["turns"]
            busy = rate * share * each
            wait = busy * each * 4 / 3 / (2 * np.maximum(1 - busy, _NEAR))  # contexts differ: mean square 4/3
            time, load, above = time + share * (each + wait), np.maximum(load, busy), np.maximum(up_to, above)
        return time, load

    def branch(self, kept_pause: np.ndarray) -> dict:
        """Return the working points of the loop for longest pauses that a cache outlives, as arrays by letter."""
        x, total = self.known, sum(self.rooms)
        found, kept = self.pauses_kept(kept_pause)
        low, high = np.zeros_like(found), np.full_like(found, 1 / (x["found_time"] + (x["output"] - 1) * x["added_time"]))

        def point(rate):
            row = self.at(rate, found, kept, kept_pause)
            fetch, load = self.fetch(rate, found, row, kept_pause, kept)
            row = self.at(rate, found, kept, kept_pause, fetch) if len(self.rooms) > 1 else row
            held = x["prefix"] + row["reserved_sessions"] * x["own_tokens"]
            runs = (row["tpot"] > 0) & (rate * row["read_tokens"] * row["tpot"] <= x["chunk_tokens"])
            runs &= (held <= self.rooms[0]) & (load < 0.98)
            return row, fetch, runs, row["room_tokens"] <= total

        for _ in range(45):
            rate = (low + high) / 2
            row, fetch, runs, fits = point(rate)
            low, high = np.where(runs & fits, rate, low), np.where(runs & fits, high, rate)
        row, fetch, *_ = point(low)
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
        """The working points from the longest pauses that caches outlive to none, as arrays by letter."""
        return self.branch(self.usual_pauses())

    @cached_property
    def fold(self) -> float | None:
        """Sessions at which the branch of found caches ends, or None if it goes on to where nothing is found."""
        number = self.curve["sessions"]
        top = int(np.argmax(number))
        return None if top >= len(number) - 2 else float(number[top])

    def point(self, number: float, is_lost: bool) -> dict:
        """Return the working point of a number of sessions; of several, that of found caches or of lost ones."""
        curve = self.curve
        for again in (True, False):
            here = curve["sessions"] >= number
            if is_lost:
                place = len(here) - int(np.argmax(~here[::-1])) if not here.all() else 0
            else:
                place = int(np.argmax(here)) if here.any() else len(here)
            if place >= len(here):
                return self._overfull(number)
            ends = curve["kept_pause"][[max(place - 1, 0), place]]
            if again:
                curve = self.branch(np.geomspace(*ends, 25))
        near, far = curve["sessions"][[max(place - 1, 0), place]]
        share = 0.0 if near == far else float(np.clip((number - near) / (far - near), 0, 1))
        return {n: float(y[max(place - 1, 0)] * (1 - share) + y[place] * share) for n, y in curve.items()}

    def _overfull(self, number: float) -> dict:
        """Return the working point of more sessions than find any cache: the engine is full, and the others wait."""
        last = {n: float(y[-1]) for n, y in self.curve.items()}
        groups = self.known["replicas"] * self.known["attention_dp"]
        last["queue_time"] += (number - last["sessions"]) / (groups * last["turn_rate"])
        return last | {"sessions": number}


# A service


@cache
def _part(sheet: Sheet, *letters: str) -> Sheet:
    return sheet.only(*letters)


def _engine(serve, knowns: tuple, letters: dict, session: dict) -> dict:
    """Return the letters of a session's engine: a decode step linear in its batch, and the times to read turns."""
    turns, appended, output = (session[n] for n in ("turns", "appended", "output"))
    turn = np.arange(1, turns + 1)
    inputs = session["prefix"] + appended * turn + output * (turn - 1)
    mean = float(inputs.mean())
    given = {"replicas": 1.0, "attention_dp": 1.0} | letters
    groups = float(quantity("replicas", given["replicas"]) * quantity("attention_dp", given["attention_dp"]))
    sheet, rows, left, known = serve.checked(knowns, given | {"users": groups, "prompt": mean, "output": output})
    serve.refuse(sheet, known)
    if several := [n for n, x in known.items() if np.ndim(x)]:
        raise TypeError(f"sessions are of one way to serve: give {several[0]} one value, and ask for each in turn")
    if known.get("pp", 1) != 1:
        raise ValueError("sessions have no pipelines: leave pp out, more tp would hold more")
    memory = _part(sheet, "cache_room", "token_cache", "cached_tokens", "devices")
    row = memory(*rows, **{n: x for n, x in left.items() if n in memory.letters})
    context = mean + output / 2
    token = row.token_cache * row.cached_tokens / context
    chunk, room = known["chunk_tokens"], row.cache_room / token
    most = max(2.0, room / context)
    new = np.array([chunk, chunk, min(appended, chunk), min(appended, chunk), chunk])
    past = np.array([0, 0, 0, context, context])
    batch = np.array([most / 8, most / 2, most / 4, most / 4, most / 4])
    more = dict(batch=batch, context=context, prompt=new + 2 * past, chunks_of_prompt=(new + 2 * past) / new)
    more |= dict(prompts_together=1.0, prompts_beside=1e12, prompts_ahead=0.0, prompts_met=0.0)
    part = _part(sheet, "pass_time", "mixed_time")
    step = part(*rows, **{n: x for n, x in (left | more).items() if n in part.letters})
    added = max(0.0, float(np.diff(step.pass_time[:2])[0] / np.diff(batch[:2])[0]))
    reading = np.maximum(step.mixed_time - step.pass_time, 0)[[0, 2, 3, 4]]
    each, tokens, old = _linear(reading, new[[0, 2, 3, 4]], past[[0, 2, 3, 4]])

    def seconds(tokens_new, tokens_past):
        steps = np.ceil(tokens_new / chunk)
        return steps * each + tokens_new * (tokens + old * (tokens_past + tokens_new / 2))

    own = inputs - session["prefix"]
    found, lost = seconds(appended, inputs - appended), seconds(own[1:], session["prefix"])
    lost = lost if len(lost) else found
    return known | {n: row[n] for n in ("devices",)} | {
        "base_time": float(step.pass_time[0] - batch[0] * added), "added_time": added, "found_time": float(found.mean()),
        "lost_time": float(lost.mean()), "lost_spread": float((lost**2).mean() / lost.mean() ** 2),
        "token_bytes": token, "room": room, "context": context,
    }  # fmt: skip


def _linear(seconds, new, past) -> np.ndarray:
    """Return the terms of reading: per step, per token, and per pair of tokens, none of them negative."""
    terms = np.stack([np.ones_like(new), new, new * (past + new / 2)], 1)
    found = np.linalg.lstsq(terms / seconds[:, None], np.ones_like(seconds), rcond=None)[0]
    return np.maximum(found, 0)


@checked
def sessions(
    serve, *knowns, turns, appended, output, pause, sessions, prefix=0, pause_spread=0, pauses="lognormal", tiers=(),
    **letters,
) -> Row:  # fmt: skip
    """Predict what sessions of agents get: `serve.sessions(model, device, tp=8, turns=33, prefix=12000, ...)`.

    Each of `sessions` sessions has `turns` turns. A turn sends all earlier tokens and `appended` new ones, and gets
    `output` tokens; then the session pauses. `pause` is the median of the pauses, which are "lognormal" with a
    `pause_spread` (constant if it is 0) or "exponential". All sessions share a `prefix`. Caches are kept in device
    memory and in `tiers`, names or rows of `tables.tiers` from near to far, and evicted least recently used first. A
    cache that is evicted from one tier moves to the next.

    Returns a row with `found_turns`, `hit_share`, `kept_time`, `turn_rate`, `tpot`, `ttft`, `session_cost` and, if
    there is a cliff, its edge `sessions_most`. Beyond the edge the row is that of lost caches. Raises ValueError if
    weights or one session do not fit, and whatever `serve` raises.

    >>> from scalebook.inference import serve
    >>> from scalebook.tables import accelerators, models
    >>> codex = dict(turns=33, prefix=12_000, appended=1891, output=351, pause="5.2 s", pause_spread=1.18)
    >>> known = models.llama3_70b, accelerators.h200.at("fp8")
    >>> [round(serve.sessions(*known, tp=8, engine="vllm", sessions=x, **codex).hit_share, 2) for x in (120, 200)]
    [0.96, 0.24]
    """
    given = dict(turns=turns, prefix=prefix, appended=appended, output=output, pause=pause, pause_spread=pause_spread)
    given = {n: quantity(n, x) for n, x in given.items()} | {"sessions": quantity("sessions", sessions)}
    if several := [n for n, x in given.items() if not isinstance(x, float)]:
        raise TypeError(f"sessions are of one kind: give {several[0]} one number, and ask for each in turn")
    sheet = laws.session_sheet(pauses)
    loop = looped(serve, knowns, letters, given, pauses, tiers)
    fold = {} if loop.fold is None else {"sessions_fold": loop.fold}
    most = sheet.only("sessions_most")(**fold, **_of(loop, "replicas", "attention_dp")).get("sessions_most", np.inf)
    point = loop.point(given["sessions"], given["sessions"] > most)
    row = sheet(**{n: x for n, x in (loop.known | point | fold).items() if n in sheet.letters})
    row.words = {"pauses": pauses, "caches": "lost" if given["sessions"] > most else "kept"}
    row.name = f"sessions on {row.words['caches']} caches"
    return row


def _of(loop, *names) -> dict:
    return {n: loop.known[n] for n in names}


def looped(serve, knowns, letters, given, pauses, tiers) -> Loop:
    """Return the loop of sessions on a service."""
    engine = _engine(serve, knowns, letters, given)
    known = {n: x for n, x in {**engine, **given}.items() if n != "sessions"}
    known["pause_spread"] = max(known["pause_spread"], _SMALLEST)
    sheet = laws.session_sheet(pauses)
    known |= sheet.only("own_tokens", "pause_mean")({n: x for n, x in known.items() if n in sheet.letters})
    rows = tier_rows(tiers, knowns)
    own = engine["token_bytes"] * (given["appended"] + given["output"]) * given["turns"] / 2
    fetches = [own / row.tier_bandwidth + row.tier_latency for row in rows]
    rooms = (engine["room"], *(row.tier_capacity / engine["token_bytes"] for row in rows))
    if known["prefix"] + known["own_tokens"] > rooms[0]:
        raise ValueError(
            f"one session does not fit: {show(known['prefix'] + known['own_tokens'], '')} tokens, and device memory "
            f"has room for {show(rooms[0], '')}; more devices or fewer kv_bits would let it in"
        )
    if rows:
        known["tier_cost"] = sum(row.tier_cost for row in rows)
        known["tier_life"] = rows[0].tier_life
    else:
        known |= {"tier_cost": 0.0, "tier_life": 1.0}
    return Loop(known, pauses, rooms, (0.0, *fetches))
