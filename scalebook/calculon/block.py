"""Calculon's formulas for a transformer block: sums over its operations.

They give arithmetic, traffic and times of each pass, tensor-parallel exchanges and their overlap, and the bytes that a
block holds. They depend on the options of a strategy and on a machine's efficiencies.
"""

from dataclasses import replace
from functools import cache, lru_cache

from sympy import Add, Expr, Gt, Max, Min, Piecewise, S

from scalebook.language import Formula
from scalebook.language.notation import NOTATION, symbol

from .cases import plain
from .documents import Choices
from .operations import TP, Cost, operations
from .systems import Steps, Tables, reached

__all__ = ["block_formulas", "of_block"]

PASSES = ("forward", "again", "input", "weight", "update")  # over a block
KINDS = ("base", "edge")  # of blocks: inside a chunk, and at its end


@cache
def _at_rate(work: Expr, rate: str, steps: Steps) -> Expr:
    """Seconds for some work at the rate that work of its size reaches; cached, since choices share most of it."""
    return work / (symbol(rate) * reached(steps, work)) if work != 0 else S.Zero


@lru_cache(1 << 14)
def _sum(*terms: Expr) -> Expr:
    """Add terms. Cached, because most choices change few of the sums over operations."""
    return Add(*terms)


class _Sums:
    """The expressions of a block for one set of choices and tables. `mended` names the quirks to leave out."""

    def __init__(self, choices: Choices, tables: Tables, mended: frozenset[str] = frozenset()):
        self.choices, self.tables, self.mended = choices, tables, mended
        self.costs = operations(choices, mended)
        self.link = tables.networks[0]
        self.tiled = cache(self._tiled)

    # One operation

    def flops(self, cost: Cost, name: str) -> Expr:
        """FLOPs of an operation in a pass. Updating a weight takes 11 operations, shared by the optimizer's shards."""
        if name == "update":
            return 11 * cost.weights / symbol("optimizer_shards")
        return cost.flops.get(name, S.Zero)

    def traffic(self, cost: Cost, name: str) -> Expr:
        if name == "update":
            return cost.weights * symbol("optimizer_bits") / 8 / symbol("optimizer_shards")
        return cost.traffic.get(name, S.Zero)

    def compute(self, flops: Expr, engine: str) -> Expr:
        if engine == "matrix":
            return _at_rate(flops, "peak_flops", self.tables.matrix)
        return _at_rate(flops, "peak_vector", self.tables.vector)

    def memory(self, traffic: Expr) -> Expr:
        return _at_rate(traffic, "hbm_bandwidth", self.tables.near)

    def arithmetic(self, cost: Cost, name: str) -> Expr:
        return self.compute(self.flops(cost, name), "vector" if name == "update" else cost.engine)

    def joined(self, compute: Expr, memory: Expr) -> Expr:
        """Arithmetic and memory time together: their sum, or the larger of the two, as the machine's document says."""
        if self.tables.mode == "no_overlap" or compute == 0 or memory == 0:
            return compute + memory
        return Max(compute, memory, evaluate=False)

    def processing(self, cost: Cost, name: str) -> Expr:
        if cost.exchange and cost.engine == "matrix" and name != "update":
            return self.tiled(self.costs.index(cost), name)[0]
        return self.joined(self.arithmetic(cost, name), self.memory(self.traffic(cost, name)))

    # Exchanges

    def scattered(self, kind: str) -> bool:
        exchange = self.choices.exchange
        return exchange == "rs_ag" or (exchange == "p2p_rs_ag" and kind == "edge")

    def sent(self, cost: Cost, name: str, kind: str) -> Expr:
        there = cost.exchange.kind(name, self.scattered(kind)) and (name != "again" or cost.exchange.again)
        return cost.exchange.sent if there else S.Zero

    def linked(self, cost: Cost, name: str, kind: str) -> Expr:
        """Time of an exchange: the network, plus memory traffic or vector arithmetic unless it is repeated."""
        exchange, sort = cost.exchange, cost.exchange.kind(name, self.scattered(kind))
        if name == "again":
            return self.link.time(sort, exchange.sent) if sort and exchange.again else S.Zero
        network = self.link.time(sort, exchange.sent) if sort else S.Zero
        if cost.is_exchange:
            return network + self.processing(cost, name)
        adds = sort in ("all_reduce", "reduce_scatter")
        elements = exchange.sent * 8 / symbol("activation_bits")
        return network + (self.compute(elements * (TP - 1) / TP, "vector") if adds else S.Zero)

    def _tiled(self, number: int, name: str) -> tuple[Expr, Expr]:
        """Time and exposed exchange time of a product in tp tiles; a running exchange takes some arithmetic units."""
        cost = self.costs[number]
        compute, memory = self.arithmetic(cost, name), self.memory(self.traffic(cost, name))
        network, usage = self.linked(cost, "again" if name == "weight" else name, "base"), symbol("tp_usage")
        alone = self.joined(compute, memory)
        if network == 0:
            return alone, S.Zero
        slowed, beside = compute / (1 - usage), (TP - 1) / TP
        exposed = beside * Max(0, network - slowed, evaluate=False)
        if self.tables.mode == "no_overlap":
            time = alone + beside * usage * Min(network, slowed, evaluate=False)
        else:
            late = Gt(network, slowed, evaluate=False)
            time = alone + beside * Piecewise((self.joined(slowed, memory) - alone, late), (network * usage, S.true))
        if self.choices.overlap == "pipe":
            time = time if "pipe_tile" in self.mended else time + network / TP
            exposed += network / TP
        return time, exposed

    def exposed(self, cost: Cost, name: str, kind: str) -> Expr:
        if cost.is_exchange:
            return self.linked(cost, name, kind)
        if name == "again":
            if not cost.exchange.again:
                return S.Zero
            if "again_exposed" in self.mended:  # the exchange overlaps with the gradient of the weights
                return self.tiled(self.costs.index(cost), "weight")[1]
            name = "forward"
        return self.tiled(self.costs.index(cost), name)[1]

    def needed(self) -> Expr:
        """Bandwidth that lets the exchange of a tile finish together with the arithmetic it overlaps."""
        rates = [
            self.sent(cost, name, kind) * (1 - symbol("tp_usage")) / self.arithmetic(cost, name)
            for cost in self.costs
            if cost.exchange and cost.engine == "matrix"
            for name in ("forward", "input")[: 2 if self.choices.training else 1]
            for kind in KINDS
        ]
        rates = [x for x in dict.fromkeys(rates) if x != 0]
        return Max(*rates, evaluate=False) if len(rates) > 1 else sum(rates, S.Zero)

    # Sums

    def of_pass(self, name: str) -> dict[str, Expr]:
        if name == "again":
            name, ran = "forward", self.run_again()
            time = _sum(*(self.processing(c, name) for c in self.costs if c.again and self.choices.training))
        else:
            ran = [(1, c) for c in self.costs if name == "forward" or self.choices.training]
            time = _sum(*(self.processing(c, name) for _, c in ran if not c.is_exchange))
            if ran and self.tables.mode == "no_overlap" and self.choices.overlap == "none":
                both = symbol(f"block_{name}_compute") + symbol(f"block_{name}_memory")
                time = both - _sum(*(self.processing(c, name) for _, c in ran if c.is_exchange))
        return {
            "flops": _sum(*(x * self.flops(c, name) for x, c in ran)),
            "compute": _sum(*(x * self.arithmetic(c, name) for x, c in ran)),
            "traffic": _sum(*(x * self.traffic(c, name) for x, c in ran)),
            "memory": _sum(*(x * self.memory(self.traffic(c, name)) for x, c in ran)),
            "time": time,
        }

    def run_again(self) -> list[tuple[int, Cost]]:
        """Return the operations that recomputation is charged for, and how often: each with all before it (a quirk)."""
        again = [n for n, cost in enumerate(self.costs) if cost.again and self.choices.training]
        if "running_totals" in self.mended:
            return [(1, self.costs[n]) for n in again]
        times = [(sum(later >= n for later in again), cost) for n, cost in enumerate(self.costs)]
        return [(x, cost) for x, cost in times if x]

    def holds(self) -> dict[str, Expr]:
        choices, costs = self.choices, self.costs
        weights = sum(c.weights for c in costs)
        whole = symbol("activation_bits") * symbol("batch") * symbol("seq") * symbol("hidden") / 8
        if "whole_checkpoint" in self.mended and choices.split and choices.sequence_parallel:
            whole = whole / TP
        kept = S.Zero if choices.recompute == "full" else sum(c.stored if choices.training else c.held for c in costs)
        found = {
            "block_weights": weights * symbol("weight_bits") / 8,
            "block_working": sum(c.held for c in costs if not c.shared),
            "block_stored": kept,
            "block_checkpoint": whole if choices.training and choices.recompute == "full" else S.Zero,
        }
        shards = symbol("optimizer_shards")
        states = {
            "block_gradients": weights * symbol("gradient_bits") / 8 / shards,
            "block_whole_gradients": 4 * weights,
            "block_activation_gradients": sum(c.gradient for c in costs),
            "block_optimizer": weights * symbol("optimizer_bits") / 8 / shards,
        }
        return found | (states if choices.training else dict.fromkeys(states, S.Zero))


def block_formulas(choices: Choices, tables: Tables, mended: frozenset[str] = frozenset()) -> list[Formula]:
    """Return Calculon's formulas for a transformer block: times, FLOPs, traffic and bytes held, one quantity each.

    `choices` are a strategy's options, `tables` the machine's efficiencies, `mended` the `calculon.QUIRKS` to leave
    out.
    """
    return list(_formulas(*of_block(choices, tables), mended))


def of_block(choices: Choices, tables: Tables) -> tuple[Choices, Tables]:
    """Return both arguments with all that does not affect a block set to defaults, so that blocks share a cache."""
    return replace(choices, **_ELSEWHERE), replace(tables, far=(), networks=tables.networks[:1])


_ELSEWHERE = {"sharded": False, "dp_overlap": False, "weight_offload": False, "activation_offload": False,
              "optimizer_offload": False, "master": True, "tiers": (0, 1, 1), "piped": True, "replicated": True,
              "interleaved": False}  # fmt: skip


@cache
def _formulas(choices, tables, mended) -> tuple[Formula, ...]:
    sums = _Sums(choices, tables, mended)
    rhs = {f"block_{name}_{what}": x for name in PASSES for what, x in sums.of_pass(name).items()}
    exchanges = [cost for cost in sums.costs if cost.exchange]
    for kind in KINDS:
        for name in ("forward", "input", "again"):
            there = exchanges if choices.training or name == "forward" else ()
            rhs[f"{kind}_{name}_bytes"] = _sum(*(sums.sent(c, name, kind) for c in there))
            rhs[f"{kind}_{name}_link"] = _sum(*(sums.linked(c, name, kind) for c in there))
            rhs[f"{kind}_{name}_exposed"] = _sum(*(sums.exposed(c, name, kind) for c in there))
    rhs |= sums.holds() | {"tp_bandwidth_needed": sums.needed()}
    said = {n: NOTATION[n].meaning for n in rhs}
    return tuple(plain(n, x, f"{said[n][0].upper()}{said[n][1:]}.") for n, x in rhs.items())
