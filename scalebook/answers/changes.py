"""What to change next: single changes to a call and the gain of each. Changes without other hardware come first."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from scalebook.language import NOTATION, Row
from scalebook.language.arguments import checked
from scalebook.language.interval import SPREADS
from scalebook.language.row import with_unit
from scalebook.tables import Device, frameworks, vendor_of
from scalebook.training.strategy import WORDS

from .assumptions import TRIED, Lines, answer_letter, cells_of, entry_of

__all__ = ["Change", "all_changes", "fits", "nearest_fit"]

LEAST = 0.01  # a smaller gain is not worth a change
_LIMITS = (("memory", "hbm_capacity"), ("offload_memory", "host_capacity"))
Candidate = tuple[tuple[Row, ...], dict[str, Any], str]  # rows, letters, and words for them, or "" for the letters'


class Change(NamedTuple):
    """One change to a call: a text such as "dp=4, pp=2", the inputs for `run.call.again`, the new result, and the gain.

    The gain says by what share the tokens per second of each device rise.  `is_free` changes need no other hardware.
    """

    said: str
    rows: tuple[Row, ...]
    letters: Mapping[str, Any]
    run: Row
    gain: float
    is_free: bool

    @property
    def has_room(self) -> bool:
        """True if the upper end of the memory's interval fits, as a search asks by default."""
        run = self.run
        return "memory" not in run or run.memory * SPREADS["memory"].high <= run.get("hbm_capacity", inf)

    def __str__(self):
        letter, share = answer_letter(self.run), f"{100 * abs(self.gain):.0f} %"
        speed = "as many" if abs(self.gain) < LEAST / 2 else f"{share} {'more' if self.gain > 0 else 'fewer'}"
        return f"{self.said}: {speed} tokens a second and device, {letter} {with_unit(self.run[letter], 's')}"


@checked
def fits(run: Row) -> bool | None:
    """Return whether a run fits in device memory, or None if its memory or the device's capacity is unknown."""
    known = [(held, most) for held, most in _LIMITS if held in run and most in run]
    if known:
        return all(run[held] <= run[most] for held, most in known)
    if "memory" in run or "memory" in run.missing:
        return None
    if run.get("users", 0) > run.get("max_users", inf):  # of several services, of which one alone would be refused
        return False
    return run.words.get("caches", "kept") == "kept"  # of sessions


def _rate(run: Row) -> float:
    whole = next(x for x in ("train_rate", "update_rate", "device_rate", "request_rate", "rate") if x in run)
    return run[whole] / (1 if whole == "device_rate" else run.devices)


def _tried(run: Row, candidates: Iterable[Candidate], is_free: bool = True) -> Iterator[Change]:
    """Repeat the call with each candidate, and yield the changes that can run and fit."""
    call = getattr(run, entry_of(run).get("again", "call"))
    for rows, letters, said in candidates:
        try:
            new = call.again(*rows, **letters)
            gain = _rate(new) / _rate(run) - 1
        except (LookupError, TypeError, ValueError, AttributeError):  # this change does not go with this call
            continue
        if fits(new) is not False and answer_letter(run) in new and not any(x.breach(new) for x in run.within):
            more = f" on {new.devices:,.0f} devices" if new.devices != run.devices else ""
            yield Change(f"{said or _letters_said(run, letters, new)}{more}", rows, letters, new, gain, is_free)


def _letters_said(run: Row, letters: Mapping, new: Row) -> str:
    said = {**letters, "dp": new.dp} if letters.get("dp", 0) is None else letters  # copies follow from the devices
    return _as_keywords({n: x for n, x in said.items() if x is not None and (n not in run or run[n] != x)})


def _as_keywords(letters: Mapping) -> str:
    return ", ".join(f"{n}={x:g}" if isinstance(x, float) else f"{n}={x!r}" for n, x in letters.items())


def _each(dicts: Iterable[dict]) -> Iterator[Candidate]:
    yield from (((), x, "") for x in dicts)


def _numbers(run: Row) -> Iterator[Candidate]:
    """Yield changes of letters, which are quick to price because they need no new sheet: batch, overlap, layout."""
    given, factors, now = run.call.letters, TRIED["factors"], {n: x.value for n, x in cells_of(run).items()}
    keep = {"microbatches": None, "global_batch": run.global_batch} if "microbatches" in given else {}
    is_step = answer_letter(run) == "step_time"
    if not is_step:
        load = entry_of(run).get("doubled")
        yield from _each({load: run[load] * x} for x in factors["users"] if load and "rate" not in given)
        yield from _each([TRIED["cache"]])
        if "again" in entry_of(run):  # a search, which has tried all layouts
            return
        if now.get("experts", 0):  # on all devices of a layer, which may also share its attention in groups
            tp, groups = now["tp"], now["attention_dp"]
            layer, ways = {"ep": tp * groups}, (x for x in TRIED["groups"] if tp % x == 0)
            yield from _each(layer | {"tp": tp / x, "attention_dp": groups * x} for x in ways)
    else:
        yield from _each(keep | {"batch": run.batch * x} for x in factors["batch"])
        several = [n for n in TRIED["overlaps"] if n in run and run.get(n.partition("_")[0], 2) > 1]
        yield from _each({n: 1.0} for n in several if run[n] < 1)
        yield from _each({n: 0.0} for n in TRIED["contended"] if n in several and run[n] > 0)
        yield from _each(keep | {"ep": run.ep * x} for x in factors["ep"] if run.get("ep", 1) > 1)
    for down, up in itertools.permutations(TRIED["ways"]["step_time" if is_step else "tpot"], 2):
        if down in now and up in now and now[down] % 2 == 0:
            changed = {down: now[down] / 2, up: now[up] * 2}
            yield (), keep | {n: x for n, x in changed.items() if not (n == "dp" and "devices" in given)}, ""


def _words(run: Row, is_quick: bool) -> Iterator[Candidate]:
    """Yield changes of words and rows.  Each needs a new sheet, which takes time: only some if `is_quick`."""
    device = next((x for x in run.call.knowns if isinstance(x, Device)), None)
    vendor = vendor_of(run.call.knowns)
    if device:
        now = device.get(f"peak_{device.words.get('precision', 'bf16')}", device.get("peak_flops", 0))
        narrower = [x for x in TRIED["narrower"] if device.get(f"peak_{x}", 0) > now]
        yield from (((device.at(x),), {}, f"precision {x}") for x in narrower[:1])
    if answer_letter(run) != "step_time":
        is_slow = "again" in entry_of(run)  # a search for each
        yield from _each({"engine": x} for x in (() if is_quick and is_slow else TRIED["engines"].get(vendor, ())))
        now = cells_of(run)
        if any(now[n].value > 1 for n in ("ep", "attention_dp") if n in now):  # engines hide no other exchanges so
            yield (), {"overlap": "half_batches"}, ""
        return
    yield from () if is_quick and "recompute" not in run.call.letters else _recomputed(run)
    yield from () if is_quick else _by_module(run)
    yield from _each({"chunks": x} for x in (2.0, 4.0) if run.pp > 1 and "schedule" not in run.call.letters)
    names = TRIED["frameworks"].get(vendor, ())[: 1 if is_quick else None]
    yield from (((frameworks[x],), {"framework": None}, f"framework {x}") for x in names)


def _recomputed(run: Row) -> Iterator[Candidate]:
    own = run.call.letters.get("recompute", "none"), "selective"  # fused attention recomputes its core in any case
    is_fused = run.call.letters.get("attention", "flash") == "flash"
    yield from _each({"recompute": x} for x in WORDS["recompute"].values if x not in own[: 1 + is_fused])


def _by_module(run: Row) -> Iterator[Candidate]:
    own = run.call.letters.get("recompute")
    yield from _each({"recompute": x} for x, of in TRIED["modules"].items() if x != own and all(map(run.get, of)))


def _laid_out(run: Row) -> Iterator[Iterator[Candidate]]:
    """Yield sets of other layouts of the same devices, with the call's own words and with less to hold.

    What lets a device hold less is tried without another layout first.
    """
    ways = TRIED["laid_out"] | ({} if run.get("experts", 0) else {"ep": [1]})
    layouts = (dict(zip(ways, x, strict=True)) for x in itertools.product(*ways.values()))
    layouts = [x for x in layouts if x["pp"] * max(x["tp"], x["ep"]) <= run.devices]
    now, same = {**run.call.letters, **run}, {}
    if "devices" not in run.call.letters or not {"dp", "microbatches"}.isdisjoint(run.call.letters):
        same = {"dp": None, "microbatches": None, "devices": run.devices, "global_batch": run.global_batch}
    for more in TRIED["beside"]:
        yield _each([more])
        yield _each([same | {n: y for n, y in (x | more).items() if now.get(n) != y} for x in layouts])


def _of_learners(run: Row) -> Iterator[Candidate]:
    """Yield the `training` of an update whose learners fit, if there is one."""
    step = run.call.thing.learner(run)
    step = step.call.again(dp=None, devices=step.devices)
    if x := next((x for x in _fitting(step) if x.has_room and _BATCHES.isdisjoint(x.letters)), None):
        yield _training(step, _needed_parts(step, x).letters)


_BATCHES = {"devices", "dp", "batch", "seq", "global_batch"}  # which follow from an update's answers


def _training(step: Row, changed: Mapping) -> Candidate:
    left = {n: x for n, x in (step.call.letters | changed).items() if n not in _BATCHES and x is not None}
    left = {n: x for n, x in left.items() if (n, x) != ("recompute", "full")}  # which learners do by default
    return (), {"training": left}, f"training=dict({_as_keywords(left)})"


def _of_update(run: Row) -> Iterator[Candidate]:
    """Yield what may speed an update up: answers of earlier weights, and learners that recompute less."""
    if near := nearest_fit(run):
        yield (), near.letters, near.said
    if "age" not in run:
        yield ((), {**near.letters, "age": 1.0}, f"{near.said}, age=1") if near else ((), {"age": 1.0}, "")
    step = run.call.thing.learner(run)
    yield from (_training(step, x) for _, x, _ in _recomputed(step))


def _hardware(run: Row) -> Iterator[Candidate]:
    now = cells_of(run)
    yield (), {n: 2 * x.value for n, x in now.items() if n.startswith("peak_") and not x.formula}, "twice the peaks"
    twice = ((n, f"twice the {NOTATION[n].meaning}") for n in TRIED["hardware"] if n in now)
    yield from (((), {n: 2 * now[n].value}, said) for n, said in twice)


def _single(run: Row) -> list[Change]:
    """Return single changes that make a run fit, with the first set of modules to recompute that does."""
    found = [*_tried(run, [*_numbers(run), *_recomputed(run), *_each(TRIED["to_fit"])])]
    may_fit = any(x.letters == {"recompute": "full"} for x in found)
    by_module = (x for x in _tried(run, _by_module(run)) if x.has_room)
    return found + ([*itertools.islice(by_module, 1)] if may_fit else [])


def _fitting(run: Row) -> Iterator[Change]:
    """Yield changes that make a step fit: single letters first, then several together, each group by its gain."""
    yield from sorted(_single(run), key=lambda x: -x.gain)
    given = run.call.letters
    ways, words = [n for n in ("tp", "pp", "dp") if n in run], (given.get("recompute"), "full")
    more = _each({n: run[n] * x} for n in ways for x in (2, 4, 8) if "devices" not in given)
    shorter = _each({"seq": x, "recompute": y} for x in (8192.0, 4096.0) for y in words if "seq" not in given)
    for candidates in (*_laid_out(run), more, shorter):
        yield from sorted(_tried(run, candidates), key=lambda x: -x.gain)


def _needed_parts(run: Row, change: Change) -> Change:
    """Drop letters of a change, one after another, if the run fits as well and is as fast without them."""
    for name in [n for n, x in change.letters.items() if x is not None]:
        fewer = {n: x for n, x in change.letters.items() if n != name}
        for x in _tried(run, [(change.rows, fewer, "")]):
            is_same = x.gain > change.gain - 1e-9 and x.run.devices == change.run.devices
            change = x if x.said and is_same and x.has_room >= change.has_room else change
    return change


@checked
def nearest_fit(run: Row) -> Change | None:
    """Return the fastest change that makes a run fit in memory, or None if the run already fits or none was found.

    The same devices are tried first: recomputation, sharding and small changes of the layout, then several letters
    together, and offload. Then come more devices, and last a shorter sequence, if the call gave no `seq`. A change that
    fits without room for the upper end of the memory's interval is named only if no other fits.
    """
    if fits(run) is not False:
        return None
    if answer_letter(run) == "update_time":
        return next(_tried(run, _of_learners(run)), None)
    if "memory" not in run:
        return next(_tried(run, _each({"replicas": run.replicas * x} for x in TRIED["copies"])), None)
    least = None
    for x in _fitting(run):
        if x.has_room:
            return _needed_parts(run, x)
        least = least or x
    return least


def _gaining(run: Row, found: Iterable[Change]) -> tuple[Change, ...]:
    """Sort changes by gain.  Drop those with too little room.  If the run fits already, drop those without gain too."""
    kept = (x for x in found if x.has_room or x.run.memory <= run.memory)
    return tuple(x for x in sorted(kept, key=lambda x: -x.gain) if x.gain > LEAST or fits(run) is False)


@checked
def all_changes(run: Row, is_quick: bool = False) -> tuple[Change, ...]:
    """Return single changes that let a run fit and make it faster: free ones first, then doubled device figures.

    If the run does not fit now, changes that make it fit are listed even if they cost time. If the call gives a `rate`,
    the number of users stays as it is now. `is_quick` leaves out hardware, and frameworks and modules to
    recompute whose sheets take long to build. An update of reinforcement learning is tried with another age and with
    other recomputation of its learners; `search(rl_step, ...)` tries layouts.
    """
    if (letter := answer_letter(run)) not in run:
        return Lines()
    keep: dict[str, Any] = {}
    if "rate" in run.call.letters and "users" in run:  # a device's tokens follow from it
        keep = {"rate": None, "users": run.users, "generations": run.generations}
        run, within = run.call.again(**keep), run.within
        run.within = within
    is_update = letter == "update_time"
    found = _of_update(run) if is_update else (*_numbers(run), *_words(run, is_quick))
    free = _gaining(run, _tried(run, [x for x in found if not keep or "users" not in x[1]]))
    bought = () if is_quick or is_update else _gaining(run, _tried(run, _hardware(run), is_free=False))
    return Lines(x._replace(letters=keep | x.letters) for x in free + bought)
