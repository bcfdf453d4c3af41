"""Muon's update: every matrix of a block is orthogonalized by a few Newton-Schulz iterations, in 16-bit products.

An iteration turns a matrix X of m rows and n columns, m <= n, into a X + (b A + c A A) X, where A = X X^T. Embeddings,
the head, norms and biases are left to Adam. With replicated state every device does all matrices of its stage. Under
ZeRO 1 and 2 each device owns whole matrices, as in Megatron-LM's layer-wise optimizer. If sharding or tensor
parallelism splits a matrix, the optimizer's `mode` says what its devices do. None of these times is hidden.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from sympy import Add, Expr, Le, Max, Min, Piecewise, S

from scalebook.block import Block, Hybrid, Kind, kinds_of
from scalebook.block.operations import Product, base, size, ways
from scalebook.block.work import Work, product_time, stream, trained
from scalebook.language import Formula, formula, symbol
from scalebook.machine.collectives import collective, near_of
from scalebook.training.memory import bytes_of, sharing
from scalebook.training.strategy import Strategy

__all__ = ["Matrix", "matrices", "muon_formulas", "newton_schulz_flops", "updated"]

_SOURCES = ("jordan2024-muon", "liu2025-muon §2.3", "megatron-6676")


@formula("orthogonal_flops", "jordan2024-muon", "essential2025-muon")
def newton_schulz_flops(rows, columns, newton_steps):
    """FLOPs to orthogonalize one matrix: in each iteration 4 m^2 n + 2 m^3, where m is its shorter side.

    >>> newton_schulz_flops(rows=4096, columns=4096, newton_steps=5) / (30 * 4096**3)
    1.0
    """
    short, long = Min(rows, columns, evaluate=False), Max(rows, columns, evaluate=False)
    return newton_steps * (4 * short**2 * long + 2 * short**3)


class Matrix(NamedTuple):
    """A weight matrix of a block, as one device holds it."""

    name: str
    kept: Expr  # its two whole sides
    split: Expr
    copies: Expr  # one for each expert
    way: str  # the parallelism that splits the side `split`, "tp" or "etp", or "" for a whole matrix
    is_routed: bool
    params: Expr  # parameters of all copies on one device


@cache
def matrices(block: Block, strategy: Strategy) -> tuple[Matrix, ...]:
    """Return the weight matrices of a block (queries, keys, values and so on), whose updates Muon orthogonalizes.

    >>> from scalebook.block import LLAMA
    >>> [m.name for m in matrices(LLAMA, Strategy())]
    ['Wq', 'Wk', 'Wv', 'Wo', 'Wup', 'Wgate', 'Wdown']
    """
    held = {t.name: t for t in replace(strategy, blocks="fused", recompute="none").transformed(block).weights}
    terms = [(op, term) for op in block.ops if not op.function for term in op.terms if len(term) > 1]
    found = {}
    for op, term in terms:
        for weight in (t for t in term if t.is_weight):
            made, read = ({base(i) for t in x for i in t.indices} for x in (op.outs, set(term) - {weight}))
            sides, split, copies = {"inner": S.One, "columns": S.One}, {}, S.One
            for whole, own in zip(weight.indices, held[weight.name].indices, strict=True):
                if base(whole) in made & read:
                    copies *= size(own)
                    continue
                side = "columns" if base(whole) in made else "inner"
                sides[side] *= size(whole)
                split |= dict.fromkeys(ways(own), side)
            way, side = next(iter(split.items()), ("", "columns"))
            kept = sides["inner" if side == "columns" else "columns"]
            params = trained(held[weight.name].elements, [held[weight.name]])
            found[weight.name] = Matrix(weight.name, kept, sides[side], copies, way, weight.is_routed, params)
    return tuple(found.values())


def _matrices_of(kind: Kind, strategy: Strategy) -> list[Matrix]:
    return [Matrix(*(kind.of(x) if isinstance(x, Expr) else x for x in m)) for m in matrices(kind.block, strategy)]


def _iteration(short: Expr, long: Expr, copies: Expr) -> list[Work]:
    """Return the three products of an iteration: X X^T, A A and B X. The last two add another matrix."""
    x, square, made = short * long, short**2, []
    sizes = (  # rows, columns and inner size, and what is read and written
        (short, short, long, x + square),
        (short, short, short, 2 * square),
        (short, long, short, square + 2 * x),
    )
    for rows, columns, inner, moved in sizes:
        product, traffic = Product(rows, columns, inner, copies), copies * moved * symbol("activation_bits") / 8
        flops = 2 * copies * rows * columns * inner
        time = product_time(product, traffic, "", True, False)
        made.append(Work("newton_schulz", "", "product", flops, traffic, time, symbol("attention_peak")))
    return made


def _cost(matrix: Matrix, domain: Expr, strategy: Strategy, copies: Expr) -> dict[str, Expr]:
    """Return what orthogonalizing `copies` of a matrix costs one of the devices that hold it."""
    kept, split = matrix.kept, matrix.split
    mode = strategy.optimizer.mode
    if mode in ("distributed", "blockwise"):
        split = split / domain
    sides = Min(kept, split, evaluate=False), Max(kept, split, evaluate=False)
    if mode == "distributed" and domain != 1:  # X X^T is summed over parts, so X is split along its columns
        is_alone = Le(domain, 1, evaluate=False)
        sides = (Piecewise((x, is_alone), (y, True)) for x, y in zip(sides, (kept, split), strict=True))
    steps, works = symbol("newton_steps"), _iteration(*sides, copies)
    scaled = 3 * copies * kept * split * symbol("activation_bits") / 8  # read for its norm, read and written by it
    is_ideal = strategy.kernels == "ideal"
    seconds = Add(*(w.ideal if is_ideal else w.time for w in works))
    scaling = scaled / symbol("hbm_bandwidth") if is_ideal else stream(scaled)
    return {"flops": steps * Add(*(w.flops for w in works)), "time": steps * seconds + scaling}


class _Shared(NamedTuple):
    """`owners` devices each have whole matrices; `domain` devices hold parts of one, `near` of them in one domain."""

    owners: Expr
    domain: Expr
    near: Expr


def _shared(matrix: Matrix, strategy: Strategy) -> _Shared:
    sharding = strategy.sharding
    every = sharing("routed_shards" if matrix.is_routed else "shards", sharding.parts("optimizer")[0])
    way = symbol(matrix.way) if matrix.way else S.One
    if not sharding.is_gathered:
        return _Shared(every, way, near_of(way, S.One))
    inner = symbol("ep") if matrix.is_routed else S.One if matrix.way else symbol("tp")
    return _Shared(S.One, way * every, near_of(way * every, inner))


def _exchange(matrix: Matrix, strategy: Strategy) -> Expr:
    """Return the seconds in which devices that hold a matrix gather it, or sum X X^T in every iteration."""
    x, (owners, domain, near), mode = symbol, _shared(matrix, strategy), strategy.optimizer.mode
    if domain == 1 or mode == "blockwise":
        return S.Zero
    if mode == "duplicated":
        each = collective("all_gather", matrix.kept * matrix.split * x("moment_bits") / 8, domain, near)
    else:
        each = x("newton_steps") * collective("all_reduce", matrix.kept**2 * x("activation_bits") / 8, domain, near)
    return matrix.copies * each / owners


@dataclass(frozen=True)
class _Stage:
    """The blocks of one stage. Their matrices are the ones that an update orthogonalizes."""

    dense: Block | Hybrid | None
    moe: Block | Hybrid | None
    strategy: Strategy

    def of_block(self, cost: Callable[[Matrix], Expr]) -> Expr:
        """Return the sum of a cost over the matrices of one block, on average over the stage."""
        total, held = S.Zero, symbol("stage_moe_blocks") / symbol("stage_blocks") if self.dense else S.One
        for block, share in ((self.dense, 1 - held if self.moe else S.One), (self.moe, held)):
            for kind in kinds_of(block):
                total += share * kind.share * Add(*map(cost, _matrices_of(kind, self.strategy)))
        return total

    def all(self, cost: Callable[[Matrix], Expr]) -> Expr:
        return symbol("stage_blocks") * self.strategy.schedule.copies * self.of_block(cost)

    @property
    def kinds(self) -> dict[Matrix, _Shared]:
        kinds = (*kinds_of(self.dense), *kinds_of(self.moe))
        return {m: _shared(m, self.strategy) for kind in kinds for m in _matrices_of(kind, self.strategy)}

    def busiest(self, which: str) -> Expr:
        """Return the work of the device that has most of it: its part of all matrices, or the largest matrix."""
        kinds, is_dealt = self.kinds, self.strategy.optimizer.mode == "layer_sharded"

        def owners(matrix):
            return kinds[matrix].owners * (kinds[matrix].domain if is_dealt else 1)

        def work(matrix, copies):
            return _cost(matrix, kinds[matrix].domain, self.strategy, copies)[which]

        total = self.all(lambda m: work(m, m.copies) / owners(m))
        largest = [work(m, S.One) for m in kinds if owners(m) != 1]
        return Max(total, *largest, evaluate=False) if largest else total

    def exchange(self) -> Expr:
        """Return the seconds of exchanges. If devices get whole matrices, all of these move at once, and then back."""
        if self.strategy.optimizer.mode != "layer_sharded":
            return self.all(lambda m: _exchange(m, self.strategy))
        total, kinds = S.Zero, self.kinds
        for owners, domain, near in dict.fromkeys(x for x in kinds.values() if x.domain != 1):
            among = {m for m, x in kinds.items() if x == (owners, domain, near)}
            params = self.all(lambda m, among=among: m.copies * m.kept * m.split if m in among else S.Zero)
            sent = params / (owners * domain) * symbol("moment_bits") / 8
            total += 2 * collective("all_to_all", sent, domain, near)
        return total


@cache
def muon_formulas(dense: Block | None, moe: Block | None, strategy: Strategy) -> tuple[Formula, ...]:
    """Return the formulas of Muon's update on one device in one step: parameters, FLOPs, time and exchange time.

    >>> from scalebook.block import LLAMA
    >>> muon_formulas(LLAMA, None, Strategy(optimizer="muon"))[0].letter
    'block_matrices'
    """
    stage = _Stage(dense, moe, strategy)
    made = {
        "block_matrices": stage.of_block(lambda m: S.Zero if m.is_routed else m.params),
        "block_routed_matrices": stage.of_block(lambda m: m.params if m.is_routed else S.Zero),
        "orthogonal_flops": stage.busiest("flops"),
        "orthogonal_time": stage.busiest("time"),
        "orthogonal_exchange": stage.exchange(),
    }
    name = strategy.optimizer.name
    return tuple(Formula(f"{x}_{name}", x, expr, _SOURCES) for x, expr in made.items())


def updated(f: Formula, strategy: Strategy) -> Formula:
    """Return the formula for `optimizer_time` rewritten from Adam to the strategy's optimizer; others are unchanged.

    >>> from scalebook.training.data_parallel import optimizer_time_sharded as adam
    >>> "orthogonal_time" in updated(adam, Strategy(optimizer="muon")).inputs
    True
    """
    optimizer, x = strategy.optimizer, symbol
    if f.letter != "optimizer_time" or optimizer.moments == 2:
        return f
    rhs = optimizer.state(f.rhs)
    if optimizer.mode:
        blocks = x("stage_blocks") * strategy.schedule.copies
        held = (blocks * x(letter) for letter in ("block_matrices", "block_routed_matrices"))
        second = bytes_of("optimizer", strategy.sharding, *held) * x("moment_bits") / x("optimizer_bits")
        rhs += x("orthogonal_time") + x("orthogonal_exchange")
        rhs -= 2 * second / (x("hbm_bandwidth") * x("stream_efficiency"))  # the second moment, read and written
    return Formula(f"{f.name}_{optimizer}", f.letter, rhs, (*f.sources, optimizer.source), f.__doc__, domain=f.domain)
