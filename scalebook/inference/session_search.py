"""A search of services for agents: which devices, engine, tensor parallelism and tiers make a session cheapest."""

from itertools import product
from math import ceil

from scalebook.language import Row, show
from scalebook.language.notation import quoted
from scalebook.search.arguments import one_number
from scalebook.search.frames import Frame
from scalebook.search.space import NothingFits
from scalebook.tables import Engine

__all__ = []

TARGETS = ("tpot", "ttft", "ttft_p95")  # letters whose value in a search is the most that may be
_SHOWN = ("session_cost", "tp", "replicas", "devices", "tpot", "ttft", "hit_share", "sessions_most")
STACKS = ([], ["host_memory"], ["nvme_gen4"], ["pool"])  # tiers that a search tries if a call names none
_MOST = 1000  # services that a search tries


class SessionSearch(Frame):
    """Services that keep the caches of all sessions: `best` has their rows, cheapest first; `rejected` counts others.

    `choices` holds the device, engine, tensor parallelism and tiers of each row.
    """

    def __init__(self, found: list[tuple], rejected: dict[str, int]):
        self.best, self.choices = [row for *_, row in found], [x for _, _, x, _ in found]
        self.rejected = rejected

    def first(self, number: int) -> "SessionSearch":
        """Return the result with this number of services at most."""
        self.best, self.choices = self.best[:number], self.choices[:number]
        return self

    def records(self) -> list[dict]:
        rows = zip(self.choices, self.best, strict=True)
        return [x | {n: row.get(n) for n in _SHOWN if n not in x} for x, row in rows]

    def __repr__(self):
        lines = [", ".join(f"{n} {_said(n, x)}" for n, x in y.items() if x is not None) for y in self.records()]
        return "\n".join([f"{len(self.best)} services keep all caches; {sum(self.rejected.values())} do not", *lines])


def _said(name, value) -> str:
    return show(value, {"session_cost": "$", "tpot": "s", "ttft": "s"}.get(name, "")) if name in _SHOWN else str(value)


def _lists(serve, cases, letters: dict) -> list[tuple]:
    """Return the devices, engines, ways, and tiers to try: what the call lists, or the defaults."""
    engines = letters.pop("engine", serve.engine)
    ways, tiers = letters.pop("tp", [1, 2, 4, 8]), letters.pop("tiers", STACKS)
    tiers = list(tiers)
    stacks = tiers if tiers and all(isinstance(x, list | tuple) for x in tiers) else [tiers]
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
    >>> found.choices[0]["tiers"]
    'host_memory'
    """
    letters = dict(letters)
    limits = {n: one_number(n, letters.pop(n)) for n in TARGETS if n in letters}
    most, number = one_number("devices", letters.pop("devices", 1e4)), one_number("sessions", letters.pop("sessions"))
    found, rejected = [], {}
    for rows, engine, tp, tiers in _lists(serve, cases, letters):
        chosen = letters | dict(tp=tp, tiers=tiers, **({"engine": engine} if engine else {}))
        try:
            row = _fewest(serve, rows, chosen, number, limits, most / one_number("tp", tp))
        except ValueError as error:
            rejected[str(error)] = rejected.get(str(error), 0) + 1
            continue
        bought = row.devices * row.tier_cost / row.tier_life * row.turns / row.request_rate
        names = [x.name for x in rows if isinstance(x, Row) and "hbm_bandwidth" in x]
        own = {"device": names[0]} if names and len(cases) > 1 else {}
        own |= {"engine": str(engine)} if engine else {}
        own["tiers"] = ", ".join(x if isinstance(x, str) else getattr(x, "name", "tier") for x in tiers) or "none"
        found.append((row.session_cost + bought, len(found), own, row))
    if not found:
        raise NothingFits("no service keeps the caches of all sessions: " + "; ".join(rejected))
    return SessionSearch(sorted(found, key=lambda x: x[:2]), rejected), {}


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
    over = f"more than {most:g} copies of tp={quoted(letters['tp'])}"
    raise NothingFits(f"{over} are needed to keep all caches within the limits")
