"""Search for layouts of a service: devices of a copy of the model, how they split it, and the number of copies.

The number of users follows from the request rate by Little's law. If no rate is given, it is the most that the targets
allow.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from scalebook.inference.capacity import LONG, valued
from scalebook.inference.lengths import PERCENTILES
from scalebook.inference.rules import COUNTS
from scalebook.language import Row, Sheet, show
from scalebook.language.arguments import as_list
from scalebook.language.notation import quoted
from scalebook.language.row import quantity
from scalebook.language.rules import not_whole
from scalebook.search import search
from scalebook.search.arguments import limit
from scalebook.search.space import Space

__all__ = [
    "MOST_DEVICES", "TARGETS", "Layouts", "first_whole", "most_users", "part", "posed", "refuse_no_rate",
    "users_at_rate", "users_for",
]  # fmt: skip

TARGETS = ("tpot", "ttft")
_LARGEST = 1024.0  # devices of one copy
MOST_DEVICES = 100_000  # each number of copies is a layout; a larger number is a typing mistake


def first_whole(f: Callable, most: np.ndarray) -> np.ndarray:
    """Return the smallest whole number from 1 to `most` that brings a rising function to 0 or above, else `most` + 1.

    All are arrays: `f(numbers, rows)` returns values for the elements `rows` of `most`. If f falls somewhere, the
    result is a crossing, but not always the first.

    >>> first_whole(lambda x, rows: x - np.array([2.5, 700.0, 1e6])[rows], np.array([1000.0, 1000.0, 1000.0]))
    array([   3.,  700., 1001.])
    """
    rows = np.arange(len(most))
    low = np.ones_like(most)
    below, above = f(low, rows), f(most, rows)
    high = np.where(below >= 0, 1.0, np.where(above >= 0, most, most + 1))
    low = np.where((below >= 0) | ~(above >= 0), high - 1, low)
    found, side, turn = high.copy(), np.zeros_like(most), 0
    while (is_open := (high - low > 1) & (high < 2.0**53)).any():  # beyond 2^53 floats do not distinguish whole numbers
        left = is_open.reshape(len(rows), -1).any(1)
        if left.mean() < 0.7:
            found[rows] = high
            rows, low, high, below, above, side = (x[left] for x in (rows, low, high, below, above, side))
            is_open = is_open[left]
        with np.errstate(all="ignore"):
            line = np.ceil(low + (high - low) * below / (below - above))
        by_turns = (line, line, np.where(side > 0, high - 1, low + 1), line, line, np.floor((low + high) / 2))
        tried = by_turns[turn % len(by_turns)]
        tried = np.where(np.isfinite(tried), np.clip(tried, low + 1, np.maximum(high - 1, low + 1)), low + 1)
        tried = np.where(is_open, tried, np.minimum(high, most[rows]))
        value = f(tried, rows)
        is_high = value >= 0
        below = np.where(is_high & (side > 0), below / 2, below)
        above = np.where(~is_high & (side < 0), above / 2, above)
        high, above = np.where(is_open & is_high, tried, high), np.where(is_open & is_high, value, above)
        low, below = np.where(is_open & ~is_high, tried, low), np.where(is_open & ~is_high, value, below)
        side, turn = np.where(is_high, 1.0, -1.0), turn + 1
    found[rows] = high
    return found


def _room(at, shape) -> np.ndarray:
    """Return the number of users whose caches fit, at least one."""
    return np.maximum(np.broadcast_to(np.nan_to_num(at("max_users", 1.0), posinf=2.0**53), shape), 1.0)


def users_at_rate(at: Callable, shape: tuple) -> np.ndarray:
    """Return the fewest users that produce the request rate, or as many as fit in memory if that is fewer.

    `at(name, users)` returns a quantity of the service, such as "max_users". The result is an array of shape `shape`.
    """
    most = _room(at, shape)

    def above(users, rows):  # users minus those who would wait at this rate: nearly straight
        return users - at("rate", users, rows) * users / at("request_rate", users, rows)

    return np.minimum(first_whole(above, most), most)


def most_users(at: Callable, shape: tuple, targets: Mapping[str, float]) -> np.ndarray:
    """Return the most users that fit in memory and meet the targets (seconds by name), at least 1."""
    most = _room(at, shape)

    def beyond(users, rows):
        with np.errstate(over="ignore"):  # a target may be next to nothing
            shares = [at(n, users, rows) / x for n, x in targets.items()]
        over = np.maximum.reduce([np.broadcast_to(x - 1, users.shape) for x in shares])
        return np.where(over > 0, over, np.minimum(over, -1e-300))  # exactly at a target counts as within it

    return np.maximum(first_whole(beyond, most) - 1, 1.0) if targets else most


@dataclass(frozen=True)
class Layouts:
    """The layouts that a search of `serve` tries if a request rate, targets or a limit on devices are given.

    By default it tries tensor parallelism and copies, and for experts also expert parallelism and attention data
    parallelism. The number of users follows unless it is given.
    """

    serve: Any
    devices: float | None
    targets: tuple[tuple[str, float], ...]
    has_rate: bool
    has_users: bool
    is_priced: bool
    name: str = "serve"
    is_open: bool = False  # each device has its own limit, the fewest that serve
    limits: tuple[str, ...] = ()  # those of the call that are no targets, such as "end_to_end <= 15 s"

    finds = property(lambda self: self.serve.finds)

    @property
    def chosen(self) -> str:
        most = f"the most that have room{' within the targets' if self.targets else ''}"
        return "" if self.has_users or self.has_rate else f"neither users nor rate is given: users are {most}"

    def __reduce__(self):
        return type(self), tuple(getattr(self, x.name) for x in fields(self))

    @cached_property
    def space(self) -> Space:
        limits = [f"{n} <= {x!r} s" for n, x in self.targets] + ["request_rate >= rate"] * self.has_rate
        own = self.serve.space
        return replace(
            own, axes=("million_cost" if self.is_priced else "devices", "tpot"), usual=self._usual,
            letters=own.letters | {"replicas": 1}, limits=tuple(limits),
            within=lambda problem: () if self.devices is None else (self._is_within,),
            idle={"exchange": lambda tp, attention_dp: tp * attention_dp > 1},
            solve=None if self.has_users else ("users", ("max_users", "request_rate"), self._users),
            is_front=not self.has_users, shown=("devices", "users", "ttft"),
        )  # fmt: skip

    @property
    def _is_within(self):
        most = self.devices
        return lambda tp, pp, attention_dp, replicas: tp * pp * attention_dp * replicas <= most

    def _usual(self, known: Mapping) -> dict[str, tuple]:
        """Return the default values of each letter: powers of two, and any number of copies, up to the device limit."""
        if self.devices is None:
            return self.serve.space.usual(known)
        powers = tuple(2.0**x for x in range(int(np.log2(self.devices)) + 1))
        is_asked = self.has_rate or self.has_users
        found = {"tp": powers} | ({"replicas": tuple(range(1, int(self.devices) + 1))} if is_asked else {})
        if known.get("experts"):
            found |= {"ep": tuple(x for x in powers if x <= known["experts"]), "attention_dp": powers}
        return found | self.serve.space.usual(known)

    def _users(self, at, shape):
        return users_at_rate(at, shape) if self.has_rate else most_users(at, shape, dict(self.targets))

    def sheet(self, knowns: tuple, letters: Mapping):
        return self.serve.sheet(knowns, {"users": 1.0, **letters})

    def __call__(self, *knowns, **letters) -> Row:
        if not self.has_users and not self.has_rate and "users" not in letters:
            letters["users"] = _users_of(self.serve, knowns, letters, partial(most_users, targets=dict(self.targets)))
        return self.serve(*knowns, **letters)


class ExplainedLayouts(Layouts):
    """Layouts for a search that also says why no layout meets the request, and which comes nearest."""

    def sized(self, case: tuple, letters: Mapping) -> "Layouts":
        """Return the layouts of one device, with its limit: enough to serve within all targets and limits."""
        if not self.is_open:
            return self
        own = replace(self, devices=_enough(self.serve, case, letters, self.targets))
        aim = dict(minimize="devices", against="tpot")  # which has a value only if users have room
        fewest = partial(_best, cases=[case], letters=letters, has_rate=self.has_rate, **aim)
        more = self.limits or "replicas" in letters or (self.has_users and self.targets)  # who may all begin together
        if not more or own.devices == _LARGEST or fewest(own):
            return own
        wide = replace(own, devices=max(_LARGEST, min(4 * own.devices, MOST_DEVICES)))
        best = fewest(wide)
        return replace(wide, devices=best.values["devices"]) if best else wide

    def unmet(self, cases: list[tuple], letters: Mapping, rejected: set[str]) -> str:
        """Return a sentence on why no layout meets the request and which comes nearest, or "" if no reason is known."""
        given = {x: np.min(quantity(x, letters[x])) for x in ("tp", "pp", "attention_dp", "replicas") if x in letters}
        if self.devices is not None and (least := np.prod(list(given.values()))) > self.devices:
            said = " and ".join(f"{n}={x:g}" for n, x in given.items() if x > 1)
            return f"{said} take more than the {self.devices:g} devices: devices={least:g} would do"
        if self.devices is None or isinstance(letters.get("rate"), list | tuple):
            return ""
        said, others = f"{self.devices:g} devices", {n: x for n, x in letters.items() if n != "rate"}
        copies = {"replicas": list(range(1, int(self.devices) + 1)), **others}
        if self.has_rate and (most := _best(self, cases, copies, has_rate=False, maximize="request_rate")):
            rate = show(quantity("rate", letters["rate"]), "request/s")
            within = " and ".join(f"{n}={show(x, 's')}" for n, x in self.targets)
            return f"rate={rate} is more than {said} serve{within and ' within '}{within}: the most is {most}"
        one = others | {"users": 1, "replicas": [1]}
        for i, (name, target) in enumerate(self.targets):
            near = _best(self, cases, one, targets=self.targets[:i], has_rate=False, minimize=name)
            if near and near.values[name] > target:
                beside = "".join(f" with {n}={show(x, 's')}" for n, x in self.targets[:i])
                return (
                    f"{name}={show(target, 's')} is met by no layout of {said} or fewer{beside}: the fastest is {near}"
                )
        fits = self.space.worded["cache_room"]
        if fits not in rejected or _best(self, cases, one, False, targets=(), minimize="tpot"):
            return ""
        return f"the weights fit on no layout of {said} or fewer: more devices, or fewer weight_bits, may let them in"


def _best(layouts: Layouts, cases: list[tuple], letters: Mapping, has_rate: bool, targets=None, **aim):
    """Return the best layout over all devices for another aim, one service at a time, or None if there is none."""
    aim = {"against": next(iter(aim.values())), "subject_to": layouts.limits if targets is None else ()} | aim
    targets, has_users = layouts.targets if targets is None else targets, "users" in letters
    own, found = Layouts(layouts.serve, layouts.devices, targets, has_rate, has_users, layouts.is_priced), []
    for case in cases:
        if len(cases) > 1:  # so that the message names the device
            case = [[x] if isinstance(x, Row) and "hbm_bandwidth" in x else x for x in case]
        try:
            found.append(search(own, *case, **aim, **letters, progress=False).best[0])
        except (TypeError, ValueError):  # no layout on this device, or the search itself says what is lacking
            continue
    rising = -1 if "maximize" in aim else 1
    return min(found, key=lambda x: rising * next(iter(x.values.values())), default=None)


# A single service


@cache
def part(sheet: Sheet, letter: str) -> Sheet:
    """Return the part of a sheet that is needed to compute one quantity."""
    return sheet.only(letter)


def _users_of(serve, knowns: tuple, letters: Mapping, find: Callable) -> float:
    """Return the number of users of one service, found by the same search as for columns of layouts."""
    sheet, rows, left, known = serve.checked(knowns, {**letters, "users": 1})
    if several := [n for n, x in known.items() if np.ndim(x)]:
        raise TypeError(f"users are found for one way to serve: give {several[0]} one value, and ask for each in turn")
    serve.refuse(sheet, known)

    def at(letter, users, _=None):
        if letter in known:
            return np.float64(known[letter])
        own = part(sheet, letter)
        used = {*own.inputs, *own.formulas}
        return valued(own(*rows, **{n: x for n, x in (left | {"users": users}).items() if n in used}), letter)

    return float(find(at, (1,))[0])


def users_for(serve, knowns: tuple, letters: Mapping) -> float:
    """Return the number of users that produce the request rate `rate`. Raises ValueError if the service is too slow."""
    users = _users_of(serve, knowns, letters, users_at_rate)
    row = serve.priced(*knowns, **letters, users=users)
    if row.request_rate < row.rate:
        copies = np.ceil(row.replicas * row.rate / row.request_rate)
        more = {"replicas": copies, "devices": copies * row.devices / row.replicas}
        would = " and ".join(f"{n}={more[n]:g}" for n in more.keys() & letters.keys() or ["replicas"])
        asked, most = (show(x, "request/s") for x in (row.rate, row.request_rate))
        most = f"{most} by {users:,.0f} users, all that have room"
        raise ValueError(f"rate={asked} is more than {row.devices:g} devices serve: {most}; {would} would do")
    return users


def _enough(serve, case: tuple, letters: Mapping, targets: tuple) -> float:
    """Return a number of devices that serves the request: copies of the fastest of the smallest layouts."""
    others = {n: x for n, x in letters.items() if n not in ("rate", "users", "replicas")}
    wanted = "rate" if "rate" in letters else "users"
    own = others | {"replicas": [1]} | ({} if "generations" in letters else {"generations": LONG})
    layouts = Layouts(serve, _LARGEST, targets, False, False, False)
    try:
        front = search(layouts, *case, maximize="request_rate", against="devices", **own, progress=False).pareto
    except TypeError:  # the search itself says which cell is lacking
        return 1.0
    except ValueError:  # nothing holds the model within the targets
        return _LARGEST
    most = 2.0 ** np.ceil(np.log2(min(x.devices for x in front)))
    row = max((x for x in front if x.devices <= most), key=lambda x: x.request_rate).row
    most = np.max(quantity(wanted, letters[wanted]))
    copies = np.ceil(most / row["request_rate" if wanted == "rate" else "users"])
    return min(float(row.devices * copies), MOST_DEVICES)


# The request of a search


def refuse_no_rate(rate) -> None:
    """Raise ValueError if the request rate is not positive."""
    if not np.all(quantity("rate", rate) > 0):
        raise ValueError(f"rate={rate} asks for nothing: give the requests that arrive in a second")


def posed(serve, cases: list[tuple], letters: Mapping, aim: str | None = None, subject_to: Iterable[str] = ()) -> tuple:
    """Return what to search for a call of `serve`, and the remaining inputs.

    It is a `Layouts` if the call gives users, a rate, targets or a limit on devices.  It is `serve` itself if there are
    none of these, if the call lists numbers of users, or if it lists the ways of a layout and has an aim.
    """
    letters, listed = dict(letters), {n for n, x in letters.items() if as_list(x) is not None}
    has_users, asks = "users" in letters, letters.keys() & {"rate", "devices", "pools", *TARGETS, *PERCENTILES}
    if {*PERCENTILES} & {*asks, aim, *(limit(x).letter for x in subject_to)}:
        letters.setdefault("prompt_spread", 0.0)
    if not asks and (not has_users or "users" in listed or (aim and listed & {*COUNTS})):
        return serve, letters
    _refuse_other_searches(letters)
    limits = {n: letters.pop(n, None) for n in ("devices", *TARGETS, *PERCENTILES)}
    limits = {n: quantity(n, x) for n, x in limits.items() if x is not None}
    if stray := [n for n, x in limits.items() if not isinstance(x, float)]:
        raise TypeError(f"{stray[0]} is the most that may be, and so one number, not {quoted(limits[stray[0]])}")
    devices, targets = limits.pop("devices", None), tuple(limits.items())
    if devices is None and not has_users and "rate" not in letters:
        needs = "a rate or users, from which the fewest devices follow, or the most devices that may be used"
        raise TypeError(f"a search of layouts needs {needs}: give rate=..., users=... or devices=...")
    if said := devices is not None and not_whole("devices", devices):
        raise ValueError(said)
    if devices and devices > MOST_DEVICES:
        raise ValueError(f"devices={devices:g} is more than a search of layouts takes: {MOST_DEVICES:,} at most")
    if not has_users:
        letters.setdefault("generations", LONG)
    priced = (any(isinstance(x, Row) and "price_hour" in x for x in case) for case in cases)
    is_priced = "price_hour" in letters or all(priced)
    is_open, has_rate = devices is None and "users" not in listed, "rate" in letters
    found = serve, devices, targets, has_rate, has_users, is_priced
    return ExplainedLayouts(*found, is_open=is_open, limits=tuple(subject_to)), letters


def _refuse_other_searches(letters: Mapping) -> None:
    """Raise an error for letters that a search of layouts does not take, or for a rate of nothing."""
    if {"users", "rate"} <= letters.keys():
        raise TypeError("a service has as many users as send its rate: give users or rate")
    if "pools" in letters:
        of_two = "serve.apart(model, [devices], rate=...) searches those of two"
        raise TypeError(f"pools have layouts of their own: {of_two}")
    if isinstance(letters.get("rate"), int | float | str):
        refuse_no_rate(letters["rate"])
