"""Search for two pools: one layout reads prompts, another decodes, on devices of one kind or of two.

All pairs of layouts are compared, since the cache transfer depends on both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import sympy

from scalebook.block import counts
from scalebook.inference.disaggregation import two_pools
from scalebook.inference.layouts import MOST_DEVICES, TARGETS, first_whole, most_users, part
from scalebook.inference.rules import NETWORK, RULES
from scalebook.inference.step import EXCHANGES
from scalebook.inference.trust import with_ends
from scalebook.language import Row, show
from scalebook.language.arguments import checked
from scalebook.language.notation import either, quoted, unused
from scalebook.language.row import Call, gather, quantity
from scalebook.language.rules import not_whole
from scalebook.language.stanzas import tables_of
from scalebook.search.arguments import at_most, each
from scalebook.search.plan import evaluated
from scalebook.search.space import NothingFits
from scalebook.tables import Device

__all__ = ["Apart", "Pool", "apart"]

_LETTERS, _SENT, _PRICED = tables_of(__package__, "defaults.toml")["pools"].values()


@dataclass(frozen=True)
class Pool:
    """One kind of device with one task, reading prompts or decoding: copies of a layout."""

    device: str
    devices: float
    letters: Mapping[str, float]
    exchange: str

    def __str__(self):
        own = [f"{n}={x:g}" for n, x in self.letters.items()]
        own += [f"exchange={self.exchange}"] if self.exchange else []
        return f"{self.devices:g} device{'s' * (self.devices != 1)}, {self.device}: {', '.join(own)}"


class Apart(Row):
    """The result of `apart`, the cheapest two pools: `prefill` and `decode`, and as a row what users get and pay."""

    row = property(lambda self: self)

    def __init__(self, prefill: Pool, decode: Pool, row: Row):
        super().__init__(row.name, row.cells, missing=row.missing)
        self.prefill, self.decode, self.at_ends = prefill, decode, row.at_ends

    @property
    def said(self) -> list[tuple[str, str]]:
        """Each pool and its layout, as lines of the answer."""
        return [("prefill", str(self.prefill)), ("decode", str(self.decode))]


class _Layouts:
    """All layouts of one kind of device and one way to reach experts, as columns."""

    def __init__(self, serve, knowns, letters, devices: float, exchange: str):
        self.device = next((x.name for x in knowns if isinstance(x, Row) and "hbm_bandwidth" in x), "")
        self.exchange, self.knowns = exchange, knowns
        words = {"exchange": exchange, "overlap": letters.get("overlap")}
        words = {n: x for n, x in words.items() if x is not None and str(x)}
        lacking = [x for x in NETWORK if not any(x in row for row in (*knowns, letters) if isinstance(row, Mapping))]
        if self.device and lacking:
            raise ValueError(
                f"{self.device} has no {either(lacking)}, which two pools need: give "
                f"{', '.join(f'{x}=...' for x in lacking)}"
            )
        sheet, rows, left = serve.plan(knowns, {**letters, **words, **dict.fromkeys([*_LETTERS, "users"], 1.0)})
        used = {x for n in _PRICED for x in part(sheet, n).letters}.union(_LETTERS, _SENT)
        used -= {"encoder_tokens"}
        if stray := [n for n in left if n not in used]:
            raise TypeError(unused("serve.apart", stray[0], used))
        cells = gather(rows, left)
        if symbols := [n for n, c in cells.items() if isinstance(c.value, sympy.Basic)]:
            raise TypeError(f"two pools are priced for numbers, not for symbols ({', '.join(symbols)})")
        self.known = {n: float(c.value) for n, c in cells.items() if np.ndim(c.value) == 0} | {"replicas": 1.0}
        asked = {i for x in ("max_users", "mixed_time", "token_time") for i in part(sheet, x).inputs}.union(left)
        if lacking := sorted(asked - {*self.known, *_LETTERS, "users"}):
            need = f"one value of {either(lacking)}" if self.device else "a device's row, such as accelerators.h100"
            raise TypeError(f"two pools need {need}")
        model = next(x for x in rows if "gating" in x)
        self.known["kv_width"] = counts(Row(model.name, cells, model.words))["kv_width"]  # of the shape that is asked
        lists = list(_lists(letters, self.known, devices))
        tp, ep, groups = (x.ravel() for x in np.meshgrid(*lists, indexing="ij"))
        holds = tp * groups <= devices
        columns = {"tp": tp, "ep": ep, "attention_dp": groups}
        for rule in RULES:
            if "batch" not in rule.needs and (fine := rule.of({**self.known, **columns, **words})) is not None:
                holds &= fine
        self.sheet, self.columns, self._given = sheet, columns, (rows, left)
        self._keep(holds)
        self.least = self.at("held_weights", 1.0).min(initial=np.inf)
        self._keep(self.at("cache_room", 1.0) > 0)
        self.each = 2.0 if letters.get("overlap") == "half_batches" else 1.0  # fewest sequences of a decoding group
        self._keep(self.at("max_users", 1.0) >= self.each * self.columns["attention_dp"])
        self.size, self.group = len(self.columns["tp"]), self.columns["tp"] * self.columns["attention_dp"]
        self.link = letters.get("link_bandwidth") and quantity("link_bandwidth", letters["link_bandwidth"])
        if not self.link:
            with np.errstate(over="ignore"):
                self.link = self.columns["tp"] * self.known["scaleout_bandwidth"] * self.known["far_efficiency"]
        if self.size:
            self.link = np.broadcast_to(quantity("link_bandwidth", self.link), self.size)

    def _keep(self, holds):
        self.columns = {n: x[holds] for n, x in self.columns.items()}

    def at(self, letter, users, places=None, replicas=1.0) -> np.ndarray:
        """Return a quantity at a number of users, for some or all of the layouts."""
        columns = {n: x if places is None else x[places] for n, x in self.columns.items()}
        size = len(columns["tp"])
        columns |= {n: np.broadcast_to(x, size) for n, x in (("users", users), ("replicas", replicas))}
        return evaluated(part(self.sheet, letter).formulas, columns, self.known, size)[letter]

    def row(self, *wanted: str, users: float, place: int, copies: float = 1.0) -> Row:
        """Return quantities of one layout as a row, which says what they rest on."""
        (rows, left), sheet = self._given, self.sheet.only(*wanted)
        letters = left | {n: float(x[place]) for n, x in self.columns.items()} | {"users": users, "replicas": copies}
        return sheet(*rows, **{n: x for n, x in letters.items() if n in sheet.letters})

    def reading(self) -> dict[str, np.ndarray]:
        """Return the time to read one prompt in every attention group of a copy at once, while nothing is decoded."""
        groups = self.columns["attention_dp"]
        return {"time": self.at("chunks_of_prompt", groups) * self.at("mixed_time", groups), "groups": groups}

    def writing(self, rate: float, output: float, tpot: float | None, copies=None) -> dict[str, np.ndarray]:
        """Return the step time of `copies`, or of the fewest copies that meet the `tpot` target, by Little's law."""

        def at(letter, users, places=None):
            return self.at(letter, users, places)

        most = most_users(at, (self.size,), {"token_time": tpot} if tpot else {})
        fits = self.at("token_time", most) <= (tpot or np.inf)
        if copies is None:
            copies = np.minimum(np.ceil(rate * output * self.at("token_time", most) / most), 2.0**53)
        copies = np.broadcast_to(copies, self.size)

        def above(users, places):
            return users - rate * output * self.at("token_time", users, places, copies[places])

        users = np.minimum(first_whole(above, copies * most), copies * most)
        users = np.maximum(users, self.each * self.columns["attention_dp"] * copies)
        time = self.at("token_time", users, None, copies)
        fits &= time <= (tpot or np.inf)
        least = self.at("token_time", 1.0)
        return {"time": time, "copies": copies, "users": users, "fits": fits, "least": least}


def _lists(letters: Mapping, known: Mapping, devices: float) -> Iterator:
    """Yield the values of each letter: those given, or powers of two up to the number of devices and experts."""
    powers = 2.0 ** np.arange(int(np.log2(devices)) + 1)
    experts = known.get("experts", 0)
    usual = {"tp": powers, "ep": powers[powers <= max(experts, 1)], "attention_dp": powers if experts else powers[:1]}
    for name in _LETTERS:
        own = np.atleast_1d(quantity(name, letters[name]) if name in letters else usual[name])
        if own.dtype.kind != "f" or own.ndim > 1:
            raise TypeError(f"{name} is a number or a list of numbers, not {quoted(letters[name])}")
        if said := next(filter(None, (not_whole(name, x) for x in own)), None):
            raise ValueError(said)
        yield own


@checked
def apart(serve, *knowns, devices, rate, ttft=None, tpot=None, load=0.8, **letters) -> Apart:
    """Find the cheapest two pools (one reads prompts, one decodes) that serve a rate within targets.

    They have at most `devices` devices. Each device of a list is tried for each pool; without prices the fewest win.
    Each group of prefill devices is a queue (M/D/1), with the highest load that `ttft` allows, or with `load`. Caches
    are sent whole, over `link_bandwidth` if given. For the ranges, the same pools have the same loads with all
    steps as fast, or as slow, as those measured of `serve`. Raises ValueError with the nearest targets that can be met.
    """
    asked = {"devices": devices, "rate": rate, "ttft": ttft, "tpot": tpot, "load": load}
    if "link_bandwidth" in letters:
        asked["link_bandwidth"] = letters["link_bandwidth"]
    asked = {n: x if x is None else (at_most if n in TARGETS else quantity)(n, x) for n, x in asked.items()}
    if stray := [n for n, x in asked.items() if not ((x is None and n in TARGETS) or (isinstance(x, float) and x > 0))]:
        raise TypeError(f"{stray[0]} of two pools is one number above zero, not {quoted(asked[stray[0]])}")
    if found := [n for n in ("users", "batch", "replicas", "context") if n in letters]:
        raise TypeError(f"{found[0]} of two pools follows from the rate and the targets: leave {found[0]} out")
    if np.any(quantity("pp", letters.get("pp", 1)) != 1):
        raise ValueError("two pools have no pipelines: leave pp out, more tp would hold more")
    if ttft is not None and asked["load"] != 0.8:
        raise TypeError("load follows from ttft: give one of both")
    if asked["load"] >= 1:
        raise ValueError(f"load={load} leaves no time to wait for: less than 1 would do, such as load=0.8")
    if asked["devices"] < 1 or asked["devices"] > MOST_DEVICES:
        raise ValueError(f"devices={asked['devices']:g} is no number of devices from 1 to {MOST_DEVICES:,}")
    cases = each(knowns, {})[0]
    exchanges = _exchanges(cases[0][0], letters)
    tried = [_Layouts(serve, rows, letters, asked["devices"], x) for rows, _ in cases for x in exchanges]
    if not (layouts := [x for x in tried if x.size]):
        least = min(tried, key=lambda x: x.least / x.known["hbm_capacity"])
        held = f" ({show(least.least, 'B')} or more of {show(least.known['hbm_capacity'], 'B')} on each)"
        few = f"{devices:g} devices or fewer{held if least.least < np.inf else ''}"
        raise NothingFits(f"the weights fit on no layout of {few}: more devices, or fewer weight_bits, may let them in")
    read = _joined(layouts, [x.reading() for x in layouts])
    write = _joined(layouts, [x.writing(asked["rate"], layouts[0].known["output"], asked["tpot"]) for x in layouts])
    best = _pairs(read, write, asked, layouts[0].known)
    found = _result(layouts, read, write, best, asked)
    pools = [layouts[columns["of"][i]] for columns, i in zip((read, write), best[:2], strict=True)]
    rows = {id(x): x for pool in pools for x in pool.knowns}
    own = {"rate": asked["rate"]} | {n: x for n, x in letters.items() if n not in _LETTERS}
    found.call = Call(_Found(serve, found, pools, asked), (*rows.values(),), own)
    return found


class _Found:
    """The two pools that `apart` found, which can be called at other values, such as other efficiencies."""

    name, billed = "serve.apart", frozenset()

    def __init__(self, serve, found: Apart, pools: list[_Layouts], asked: Mapping):
        self.owner, self.pools, self.asked = serve, (found.prefill, found.decode), asked
        self.devices = [next((x for x in pool.knowns if isinstance(x, Device)), None) for pool in pools]

    def __call__(self, *knowns, rate, **letters) -> Apart:
        layouts, asked = [], self.asked | {"rate": quantity("rate", rate)}
        for pool, device in zip(self.pools, self.devices, strict=True):
            own = {n: pool.letters[n] for n in _LETTERS}
            rows = [x for x in knowns if not isinstance(x, Device) or x is device]
            layouts.append(_Layouts(self.owner, rows, letters | own, MOST_DEVICES, pool.exchange))
        if not all(x.size for x in layouts):
            raise NothingFits("the weights or caches do not fit on these pools")
        (first, second), copies = layouts, [x.letters["replicas"] for x in self.pools]
        output, read = second.known["output"], _joined([first], [first.reading()])
        for target in (asked["tpot"], None):  # of two loads that a rate may settle at, the lower meets the target
            write = _joined([second], [second.writing(asked["rate"], output, target, copies[1])])
            if asked["rate"] * output * write["time"][0] <= write["users"][0] * (1 + 1e-9):
                break
        else:
            raise ValueError("the pool that decodes does not keep up with the rate")
        write["of"] += 1
        return _result(layouts, read, write, (0, 0, copies[0]), asked)


def _exchanges(rows, letters: dict) -> tuple:
    """Return the ways that tokens may reach experts: the given one, or all; `("",)` without experts."""
    if "exchange" in letters:
        return (letters.pop("exchange"),)
    known = gather(rows, {})
    return EXCHANGES if "experts" in known and known["experts"].value > 0 else ("",)


def _joined(layouts: list[_Layouts], found: list[dict]) -> dict[str, np.ndarray]:
    """Return the columns of all layouts concatenated, with the place of each."""
    own = {n: np.concatenate([x[n] for x in found]) for n in found[0]}
    own["of"] = np.concatenate([np.full(x.size, i) for i, x in enumerate(layouts)])
    own["at"] = np.concatenate([np.arange(x.size) for x in layouts])
    own |= {n: np.concatenate([getattr(x, n) for x in layouts]) for n in ("group", "link")}
    for name in ("price_hour", "kv_bits", "first_overhead", "first_tokens"):
        own[name] = np.concatenate([np.full(x.size, x.known.get(name, np.nan)) for x in layouts])
    return own


def _pairs(read: Mapping, write: Mapping, asked: Mapping, known: Mapping) -> tuple[int, int, float]:
    """Return the best prefill and decode layouts and the prefill copies. Raises ValueError if there are none."""
    r, w = ({n: x[:, None] for n, x in read.items()}, {n: x[None, :] for n, x in write.items()})
    rate, ttft, most = asked["rate"], asked["ttft"], asked["devices"]
    if not (np.isfinite(r["time"]).any() and np.isfinite(w["time"]).any()):
        raise ValueError("no pool ever ends a step: give efficiencies and bandwidths above zero")
    if not write["fits"].any():
        target, least = show(asked["tpot"], "s"), show(write["least"].min(), "s")
        raise ValueError(f"tpot={target} is met by no pool that writes: the fastest step has {least}")
    sent = known["prompt"] * known["layers"] * known["kv_width"] * r["kv_bits"] / 8 / np.minimum(r["link"], w["link"])
    fixed = r["first_overhead"] + r["time"] + sent + (r["first_tokens"] - 1) * w["time"]
    fits = w["fits"] & (sent <= r["time"]) & (r["kv_bits"] == w["kv_bits"])
    if not fits.any():
        raise ValueError("no link carries caches as fast as prompts are read: give a link_bandwidth that does")
    wait = np.broadcast_to(np.inf, fits.shape) if ttft is None else ttft - fixed
    if not (wait > 0)[fits].any():
        near = show(fixed[fits].min(), "s")
        raise ValueError(f"ttft={show(ttft, 's')} is met by no two pools: without a wait the fastest have {near}")
    load = asked["load"] if ttft is None else 2 * wait / (r["time"] + 2 * wait)  # M/D/1, solved for its load
    with np.errstate(all="ignore"):
        copies = np.ceil(rate * r["time"] / (r["groups"] * np.where(wait > 0, load, np.nan)))
    used = copies * r["group"] + w["copies"] * w["group"]
    fits &= wait > 0
    if not (fits & (used <= most)).any():
        said, least = show(rate, "request/s"), show(used[fits].min(), "")
        raise ValueError(f"rate={said} takes two pools of {least} devices or more, and devices={most:g} allows fewer")
    cost = copies * r["group"] * r["price_hour"] + w["copies"] * w["group"] * w["price_hour"]
    cost = used if np.isnan(cost[fits]).any() else cost
    where = np.flatnonzero(fits & (used <= most))
    times = np.broadcast_to(w["time"], fits.shape).flat[where]
    best = where[np.lexsort((fixed.flat[where], times, cost.flat[where]))[0]]
    i, j = np.unravel_index(best, fits.shape)
    return int(i), int(j), float(copies[i, j])


def _result(layouts, read, write, best, asked) -> Apart:
    i, j, copies = best
    prefill, decode = _pool(layouts, read, i, copies), _pool(layouts, write, j, write["copies"][j])
    first, second = layouts[read["of"][i]], layouts[write["of"][j]]
    one, two = first.known, second.known
    letters = dict(
        load=asked["rate"] * read["time"][i] / (copies * read["groups"][i]),
        link_bandwidth=min(read["link"][i], write["link"][j]),
        rate=asked["rate"], prefill_devices=prefill.devices, decode_devices=decode.devices,
    )  # fmt: skip
    shared = ("prompt", "output", "layers", "kv_width", "kv_bits", "first_overhead", "first_tokens")
    letters |= {n: one[n] for n in shared}
    if "price_hour" in one and "price_hour" in two:
        letters |= {"prefill_price": one["price_hour"], "decode_price": two["price_hour"]}
    row = with_ends(partial(two_pools, **letters), prompt_time=read["time"][i], token_time=write["time"][j])
    reads = first.row("mixed_time", users=read["groups"][i], place=read["at"][i])
    own = dict(users=write["users"][j], place=write["at"][j], copies=write["copies"][j])
    writes = second.row("token_time", "filled", "max_users", **own)
    found = Apart(prefill, decode, row)
    found.made_of = {"prompt_time": (reads, "mixed_time"), "token_time": (writes, "token_time")}
    return found


def _pool(layouts, columns, place, copies) -> Pool:
    own, at = layouts[columns["of"][place]], columns["at"][place]
    letters = {n: float(x[at]) for n, x in own.columns.items()} | {"replicas": float(copies)}
    return Pool(own.device, float(copies * columns["group"][place]), letters, own.exchange)
