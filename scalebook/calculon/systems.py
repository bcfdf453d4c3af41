"""Read Calculon's description of a machine (a system document), whose tables and networks become formulas."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sympy import Expr, Float, Ge, Integer, Piecewise, S

from scalebook.language import Row
from scalebook.language.arguments import checked
from scalebook.language.notation import quoted, symbol
from scalebook.language.row import Cell

from .cases import by_tier
from .documents import BITS, SOURCE, WAYS, Execution, fields

__all__ = ["Engine", "Links", "Memory", "Network", "System", "Tables", "exact", "reached", "system"]

Steps = tuple[tuple[float, float], ...]
Ops = tuple[tuple[str, float, float], ...]
MOST, MOST_DEVICES = 10**30, 10**6
_OPS = ("p2p", "reduce_scatter", "all_gather", "all_reduce")


class Engine(NamedTuple):
    """A matrix or vector unit at one data type: peak FLOP/s, and the share of it reached, by size of an operation."""

    peak: float
    steps: Steps


class Memory(NamedTuple):
    """A memory of a device: capacity (bytes), bandwidth (bytes/s), and the share of it reached by size of transfer."""

    capacity: float
    bandwidth: float
    steps: Steps


@dataclass(frozen=True)
class Network:
    """A network. In a collective over n devices, each sends `scale · (1 + offset/n)` times the bytes; `ops` has both.

    `bandwidth` (bytes/s) is what the network reaches, and `printed` what its document states before the efficiency.
    """

    bandwidth: float  # that the network reaches, in bytes/s
    latency: float
    size: int
    whole: bool
    usage: float
    ops: Ops
    printed: float = 0.0  # the bandwidth in its document, before the efficiency


@dataclass(frozen=True)
class Links:
    """The network of a parallel dimension `way` (tp, pp or dp), or several networks to select from."""

    way: str
    networks: tuple[Ops, ...]

    def scale(self, kind: str) -> Expr:
        return by_tier(self.way, [_op(ops, kind)[0] for ops in self.networks])

    def time(self, kind: str, sent: Expr) -> Expr:
        """Seconds of a collective of this kind on `sent` bytes: one latency, and the bytes over the bandwidth."""
        scales = [_op(ops, kind) for ops in self.networks]
        factors = [scale * (1 + offset / symbol(self.way)) for scale, offset in scales]
        return symbol(f"{self.way}_latency") + sent * by_tier(self.way, factors) / symbol(f"{self.way}_bandwidth")


def _op(ops: Ops, kind: str) -> tuple[Expr, Expr]:
    return next((exact(scale), exact(offset)) for name, scale, offset in ops if name == kind)


@dataclass(frozen=True)
class Tables:
    """What formulas use of a machine: whether times add or overlap, efficiency by operation size, network factors."""

    mode: str
    matrix: Steps
    vector: Steps
    near: Steps
    far: Steps
    networks: tuple[Links, Links, Links]


@dataclass(frozen=True)
class System:
    """A machine of Calculon. In `mode` "roofline" compute and memory time overlap; in "no_overlap" they add up."""

    name: str
    matrix: dict[str, Engine]
    vector: dict[str, Engine]
    near: Memory
    far: Memory
    mode: str
    networks: tuple[Network, ...]

    def tables(self, given: Execution) -> Tables:
        """Return the efficiencies and network factors for a strategy. Raises ValueError for what the machine lacks."""
        last, ops = len(self.networks) - 1, [(x.ops,) for x in self.networks]
        for field, tier in zip(WAYS, given.choices.tiers, strict=True):
            if tier > last:
                raise ValueError(
                    f"{field} is {quoted(tier)}, and {self.name} has networks 0 to {last}: one of these would do"
                )
        return self._tables(given.datatype, [ops[tier] for tier in given.choices.tiers])

    def all_tables(self, datatype: str) -> Tables:
        """Return efficiencies by operation size and all networks' factors; symbols like `tp_tier` pick one."""
        return self._tables(datatype, [tuple(x.ops for x in self.networks)] * 3)

    def _tables(self, datatype, networks):
        for tables, what in ((self.matrix, "matrix"), (self.vector, "vector")):
            if datatype not in tables:
                raise ValueError(
                    f"datatype is {datatype!r}, for which {self.name} has no {what} rate: "
                    f"{' or '.join(map(repr, tables))} would do"
                )
        engines = self.matrix[datatype].steps, self.vector[datatype].steps
        links = tuple(map(Links, WAYS.values(), networks))
        return Tables(self.mode, *engines, self.near.steps, self.far.steps, links)

    def letters(self, datatype: str) -> dict[str, float]:
        """Return the machine's peaks for a data type (FLOP/s), memory sizes (bytes) and bandwidths (bytes/s)."""
        return {
            "peak_flops": self.matrix[datatype].peak,
            "peak_vector": self.vector[datatype].peak,
            "hbm_capacity": self.near.capacity,
            "hbm_bandwidth": self.near.bandwidth,
            "host_capacity": self.far.capacity,
            "host_bandwidth": self.far.bandwidth,
        }

    def row(self, given: Execution) -> Row:
        """Return the machine's figures as a row for one strategy, with bandwidth and latency for tp, pp and dp."""
        values = self.letters(given.datatype)
        for way, tier in zip(WAYS.values(), given.choices.tiers, strict=True):
            network = self.networks[tier]
            values |= {
                f"{way}_bandwidth": network.bandwidth,
                f"{way}_latency": network.latency,
                f"{way}_usage": network.usage,
            }
        # Leave out the letters of a missing second tier, instead of setting them to zero.
        return Row(
            self.name,
            {n: Cell(x, self.name, SOURCE) for n, x in values.items() if x or n.endswith(("latency", "usage"))},
        )


def exact(value: float) -> Expr:
    """Return a number as a SymPy number: an Integer if it is whole, otherwise a Float."""
    return Integer(int(value)) if float(value).is_integer() else Float(value)


@lru_cache(4096)
def reached(steps: Steps, size: Expr) -> Expr:
    """Return the share of a peak that work of a given size (FLOPs or bytes) reaches, as a Piecewise expression.

    `steps` are pairs of a minimum size and a share. The pair with the largest minimum that the work reaches applies.
    """
    pieces = [(exact(share), Ge(size, exact(least), evaluate=False)) for least, share in steps[:-1]]
    return Piecewise(*pieces, (exact(steps[-1][1]), S.true), evaluate=False)


@checked
def system(document, name: str = "system") -> System:
    """Read a machine from Calculon's system document: the path of a JSON file, or a dict.

    Raises ValueError, naming the field, for a bad document.
    """
    given = fields(document, "a system", ("matrix", "vector", "mem1", "mem2", "processing_mode", "networks"))
    mode = given["processing_mode"]
    if not isinstance(mode, str) or mode not in ("roofline", "no_overlap"):
        said = quoted(mode)
        raise ValueError(f"a system: processing_mode is {said}, neither 'roofline' nor 'no_overlap'")
    rates = []
    for engine in ("matrix", "vector"):
        rates.append({})
        for datatype, entry in _object(given[engine], engine).items():
            if datatype not in BITS:
                raise ValueError(f"a system: {engine} has the datatype {quoted(datatype)}; known are {', '.join(BITS)}")
            entry = fields(entry, f"{engine} {datatype} of a system", ("tflops", "gflops_efficiency"))
            rates[-1][datatype] = Engine(_number(entry, "tflops") * 1e12, _steps(entry, "gflops_efficiency", 1e9))
    tiers = []
    for tier in ("mem1", "mem2"):
        entry = fields(given[tier], f"{tier} of a system", ("GiB", "GBps", "MB_efficiency"))
        capacity, bandwidth = _number(entry, "GiB", least=0) * 2**30, _number(entry, "GBps") * 1e9
        tiers.append(Memory(capacity, bandwidth, _steps(entry, "MB_efficiency", 1e6)))
    if not isinstance(given["networks"], (list, tuple)) or not given["networks"]:
        raise ValueError("a system: networks is not a list of at least one network")
    return System(name, *rates, *tiers, mode, tuple(map(_network, given["networks"])))


def _network(document) -> Network:
    kind, known = "a network", "bandwidth efficiency size latency ops must_be_filled processor_usage"
    given = fields(document, kind, known.split())
    ops = fields(given["ops"], "ops of a network", _OPS)
    for op, pair in ops.items():
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not _is_number(pair[0]) or not (pair[1] is None or _is_number(pair[1])):
            said = f"{op} is {quoted(pair)}, not [scale, offset] such as [2.0, -1] or [1.0, null]"
            raise ValueError(f"ops of a network: {said}")
    if not isinstance(given["must_be_filled"], bool):
        raise ValueError(f"{kind}: must_be_filled is {quoted(given['must_be_filled'])}, neither true nor false")
    if _number(given, "size") > MOST_DEVICES or given["size"] % 1:
        said = f"size is {quoted(given['size'])}, not a whole number of devices up to {MOST_DEVICES:,}"
        raise ValueError(f"{kind}: {said}")
    printed = _number(given, "bandwidth") * 1e9
    return Network(
        printed * _number(given, "efficiency"), _number(given, "latency", least=0), int(_number(given, "size")),
        given["must_be_filled"], _number(given, "processor_usage", least=0),
        tuple((op, float(scale), float(offset or 0)) for op, (scale, offset) in ops.items()), printed,
    )  # fmt: skip


def _object(value, name):
    if not isinstance(value, dict) or not value:
        raise ValueError(f"a system: {name} is {quoted(value)}, not an object of data types")
    return value


def _number(entry, name, least=None) -> float:
    value, what = entry[name], "positive number" if least is None else "number of zero or more"
    if not _is_number(value) or not (value > 0 if least is None else value >= least):
        raise ValueError(f"a system: {name} is {quoted(value)}, not a {what}")
    return float(value)


def _is_number(value) -> bool:
    """Return True for a plausible rate, size or share: a number below a bound that no machine reaches."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST


def _steps(entry, name, unit) -> Steps:
    """Read pairs [least size, efficiency], whose sizes fall to zero."""
    pairs = entry[name]
    try:
        sizes, shares = zip(*((least, share) for least, share in pairs), strict=True)
        is_fine = all(map(_is_number, (*sizes, *shares))) and all(0 < x <= 1 for x in shares)
        is_fine = is_fine and list(sizes) == sorted(sizes, reverse=True) and sizes[-1] == 0
    except (TypeError, ValueError):
        is_fine = False
    if not is_fine:
        raise ValueError(
            f"a system: {name} is {quoted(pairs)}, not pairs [size, efficiency] whose sizes fall to 0 "
            "and whose efficiencies lie between 0 and 1"
        )
    return tuple((float(least) * unit, float(share)) for least, share in zip(sizes, shares, strict=True))
