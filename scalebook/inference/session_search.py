"""A search of services for agents: which devices, engine, tensor parallelism and tiers make a session cheapest."""

from collections import Counter
from itertools import product
from math import ceil
from numbers import Integral

from scalebook.language import Row, show
from scalebook.language.arguments import as_list, checked
from scalebook.search.arguments import one_number
from scalebook.search.frames import Frame
from scalebook.search.space import NothingFits
from scalebook.tables import Engine

__all__ = []

TARGETS = ("tpot", "ttft", "ttft_p95")  # letters whose value in a search is the most that may be
_SHOWN = ("replicas", "devices", "session_cost", "tpot", "ttft", "hit_share", "sessions_most")
_UNITS = {"cost": "$", "session_cost": "$", "tpot": "s", "ttft": "s"}
STACKS = ([], ["host_memory"], ["nvme_gen4"], ["pool"])  # tiers that a search tries if a call names none
_MOST = 1000  # services that a search tries


class SessionSearch(Frame):
    """Services that keep the caches of all sessions: `best` has their rows, cheapest first; `rejected` counts others.

    `choices` holds the device, engine, tensor parallelism and tiers of each row, and the `cost` of a session with its
    share of the tiers' price. `count` counts all services that keep all caches, and `without` says why a device has
    none.
    """

    def __init__(self, found: list[tuple[dict, Row]], rejected: dict[str, int], without: dict[str, str]):
        self.count, self.rejected, self.without = len(found), rejected, without
        self.choices, self.best = (list(x) for x in zip(*found, strict=True))
        self._each: dict = {}  # the cheapest of each device
        for x in self.records():
            self._each.setdefault(x.get("device"), x)

    @checked
    def first(self, number: Integral) -> "SessionSearch":
        """Return the result with this number of services at most."""
        self.choices, self.best = self.choices[:number], self.best[:number]
        return self

    @checked
    def records(self) -> list[dict]:
        return [x | {n: row.get(n) for n in _SHOWN} for x, row in zip(self.choices, self.best, strict=True)]

    @property
    def _summary(self):
        keep = "services keep" if self.count > 1 else "service keeps"
        return f"{self.count} {keep} all caches; {sum(self.rejected.values())} do not"

    def _tables(self):
        yield *_table(self.records()), "best"
        each = [*self._each.values(), *({"device": n, "without": x} for n, x in self.without.items())]
        if len(each) > 1:
            yield *_table(each), "the best of each device"


def _table(records: list[dict]) -> tuple[list[str], list[list[str]]]:
    heads = dict.fromkeys(n for x in records for n in x)
    return [*heads], [["" if x.get(n) is None else _said(n, x[n]) for n in heads] for x in records]


def _said(name, value) -> str:
    return value if isinstance(value, str) else show(value, _UNITS.get(name, ""))


def _lists(serve, cases, letters: dict) -> list[tuple]:
    """Return the devices, engines, ways, and tiers to try: what the call lists, or the defaults."""
    engines = letters.pop("engine", serve.engine)
    ways, tiers = letters.pop("tp", [1, 2, 4, 8]), letters.pop("tiers", STACKS)
    is_several = isinstance(tiers, list | tuple) and tiers and all(isinstance(x, list | tuple) for x in tiers)
    stacks = tiers if is_several else [tiers]
    named = any(isinstance(x, Engine) for rows in cases for x in rows)
    engines = [None] if named else engines if isinstance(engines, list | tuple) else [engines]
    ways = ways if isinstance(ways, list | tuple | range) else [ways]
    found = list(product(cases, engines, ways, stacks))
    if len(found) > _MOST:
        raise ValueError(f"this search would try {len(found):,} services, and {_MOST:,} are the most: list fewer")
    return found


def cheapest_sessions(serve, cases: list[tuple], letters: dict, *asked) -> tuple[SessionSearch, dict]:
    """Return the services for `sessions` sessions, the cheapest session first, for `search(serve.sessions, ...)`.

    Lists of devices, engines, `tp` and `tiers` (a list of lists) are searched; `devices` is the most that may be used,
    and `tpot`, `ttft` and `ttft_p95` are upper limits. Each service has the fewest copies that keep all caches. The
    tiers' price counts. Raises ValueError if no service will do.

    >>> from scalebook.inference import serve
    >>> from scalebook.search import search
    >>> from scalebook.tables import accelerators, models
    >>> codex = dict(turns=33, prefix=12_000, appended=1891, output=351, pause="5.2 s", pause_spread=1.18, sessions=400)
    >>> found = search(serve.sessions, models.llama3_70b, accelerators.h200.at("fp8"), tp=[4, 8], tpot="60 ms", **codex)
    >>> found.choices[0]["tiers"], found.best[0].tp
    ('host_memory', 4.0)
    """
    letters = dict(letters)
    if "sessions" not in letters:
        raise TypeError("a search of serve.sessions needs sessions: give sessions=..., how many there are at a time")
    if "replicas" in letters:
        raise TypeError("a search of serve.sessions finds replicas: leave it out, and give devices, the most to use")
    limits = {n: one_number(n, letters.pop(n)) for n in TARGETS if n in letters}
    most, number = one_number("devices", letters.pop("devices", 1e4)), one_number("sessions", letters.pop("sessions"))
    found, rejected, lost, lacking = [], Counter(), {}, {}
    for rows, engine, tp, tiers in _lists(serve, cases, letters):
        chosen = letters | dict(tp=tp, tiers=tiers, **({"engine": engine} if engine is not None else {}))
        own = _choice(rows if len(cases) > 1 else (), engine, tp, tiers)
        try:
            row = _fewest(serve, rows, chosen, number, limits, most / own["tp"])
        except ValueError as error:
            rejected[str(error)] += 1
            lost[own.get("device")] = str(error)  # the last, of the most devices
            continue
        except TypeError as error:  # a device may lack a cell
            lacking[own.get("device")] = error
            continue
        row.words |= own
        bought = row.devices * row.tier_cost / row.tier_life * row.turns / row.request_rate
        found.append(({"cost": row.session_cost + bought} | own, row))
    able = {x.get("device") for x, _ in found}
    if lacking and (able & lacking.keys() or not (able or lost)):
        raise next(iter(lacking.values()))
    if not found:
        why = [f"{n}: {x}" for n, x in lost.items()] if len(lost) > 1 else [*rejected][:3]
        raise NothingFits(f"no service keeps the caches of all sessions: {'; '.join(why)}")
    without = {n: str(x) for n, x in (lost | lacking).items() if n not in able}
    return SessionSearch(sorted(found, key=lambda x: x[0]["cost"]), dict(rejected), without), {}


def _choice(rows, engine, tp, tiers) -> dict:
    devices = [x.name for x in rows if isinstance(x, Row) and "hbm_bandwidth" in x]
    own = {"device": devices[0]} if devices else {}
    own |= ({"engine": str(engine)} if engine is not None else {}) | {"tp": one_number("tp", tp)}
    names = (x if isinstance(x, str) else getattr(x, "name", "tier") for x in as_list(tiers) or ())
    return own | {"tiers": ", ".join(names) or "none"}


def _fewest(serve, rows, letters, number, limits, most) -> Row:
    """Return the service with the fewest copies that keeps all caches within the limits, or raise ValueError."""
    copies = 1
    while copies <= most:
        row = serve.sessions(*rows, **letters, sessions=number, replicas=copies)
        over = [n for n, x in limits.items() if row[n] > x]
        if row.caches == "kept" and not over:
            return row
        share = number / row.sessions_most if "sessions_most" in row else 1.0
        copies = max(copies + ceil(copies / 4), ceil(copies * min(share, 8.0)))
    tp = one_number("tp", letters["tp"])
    over = f"more devices than {most * tp:g} are needed at tp={tp:g}"
    raise NothingFits(f"{over} to keep all caches within the limits")
