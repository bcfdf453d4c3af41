"""The operations of a transformer block, with the FLOPs and bytes that Calculon counts for each.

The block is GPT without biases, sharded as in `scalebook.block`. Two kinds of operations are added: forks, where
several operations read a tensor and its gradients are summed, and exchanges before and after tensor-parallel parts.
"""

from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from math import prod

from sympy import Expr, S

from scalebook.block import GPT, Block, Op, Tensor, recompute, sequence_parallel, shard, unbiased
from scalebook.block.operations import size
from scalebook.language.notation import symbol

from .documents import Choices

__all__ = ["Cost", "Exchange", "listing", "operations"]

# FLOPs per element: forward, for the gradient of the inputs, for the gradient of the weights.
VECTOR = {"layernorm": (9, 14, 7), "softmax": (5, 8, 0), "drop": (1, 1, 0), "gelu": (8, 13, 0), "add": (1, 2, 0)}
# Calculon assumes as many key heads as query heads, and full (not causal) attention.
_OURS = {symbol("kv_heads"): symbol("heads"), symbol("context"): symbol("seq")}
TP = symbol("tp")


@dataclass(frozen=True)
class Exchange:
    """Bytes that tensor-parallel devices exchange before or after a split operation."""

    sent: Expr
    after: bool  # behind the operation
    again: bool  # repeated in the backward pass

    def kind(self, name: str, scattered: bool) -> str:
        """Return the collective in pass `name` ("" for none): an all-reduce or, with `scattered`, one of its halves."""
        if self.after == (name != "input"):
            return "reduce_scatter" if scattered else "all_reduce"
        return "all_gather" if scattered else ""


@dataclass(frozen=True)
class Cost:
    """One operation of a block, as Calculon counts it: FLOPs and bytes by pass, weights, and bytes it holds."""

    name: str
    engine: str = "vector"
    flops: dict[str, Expr] = field(default_factory=dict)
    traffic: dict[str, Expr] = field(default_factory=dict)
    weights: Expr = S.Zero
    held: Expr = S.Zero  # its activations while the block works
    shared: bool = False  # another operation holds them
    stored: Expr = S.Zero  # its activations that are kept for the backward pass
    gradient: Expr = S.Zero  # the gradients of its results
    again: bool = False  # recomputed in the backward pass
    exchange: Exchange | None = None

    @property
    def is_exchange(self) -> bool:
        """True for a pure exchange. An overlapped matrix product also exchanges, but computes too."""
        return self.exchange is not None and self.engine == "vector"


def listing(choices: Choices) -> Block:
    """Return a device's part of a GPT block under a strategy's options, as a listing of tensor operations.

    >>> print(listing(Choices(attention="multiquery"))["k"])
    k[batch seq head_dim] = h1[batch seq hidden] Wk[hidden head_dim]
    """
    block = unbiased(GPT)
    if choices.split:
        block = shard(block, "tp", "kv_heads", "ffn")
        block = sequence_parallel(block) if choices.sequence_parallel else block
    if choices.attention == "multiquery":
        block = Block(tuple(_one_key_head(op) for op in block.ops))
    if choices.recompute == "attn_only":
        block = recompute(block, "scores", "probs", "dropped")
    elif choices.recompute == "full":
        block = recompute(block, *(op.name for op in block.ops))
    return block


def _one_key_head(op: Op) -> Op:
    def one(t: Tensor) -> Tensor:
        return replace(t, indices=tuple(i for i in t.indices if not i.startswith("kv_heads"))) if t.name in _KEYS else t

    return op.mapped(one)


_KEYS = ("k", "v", "Wk", "Wv")


def operations(choices: Choices, mended: frozenset[str] = frozenset()) -> tuple[Cost, ...]:
    """Return a block's operations in Calculon's order, each with its counts, without the quirks in `mended`."""
    exchange = "rs_ag" if choices.sequence_parallel else "ar"
    overlap = "none" if choices.overlap == "none" else "ring"  # the charges do not depend on the kind of overlap
    return _operations(replace(choices, exchange=exchange, overlap=overlap), mended)


@cache
def _operations(choices, mended):
    return tuple(_Account(choices, mended).run())


@lru_cache
def _bytes(tensor: Tensor) -> Expr:
    return tensor.bytes.subs(_OURS)


@lru_cache
def _elements(tensor: Tensor) -> Expr:
    return tensor.elements.subs(_OURS)


class _Account:
    def __init__(self, choices: Choices, mended: frozenset[str]):
        self.choices, self.mended, self.block = choices, mended, listing(choices)
        self.tiled = choices.overlap != "none"
        self.costs, self.seen = [], set()

    def run(self) -> list[Cost]:
        for op in self.block.ops:
            if op.is_collective:
                if not self.tiled:
                    self.exchange(op.outs[0], after=op.function != "all_gather")
                continue
            self.enter(op)
            if op.function:
                self.function(op)
            elif not any(t.is_weight for t in op.args):
                self.attention(op)
            elif self.tiled and (self.enters(op) or self.leaves(op)):
                self.overlapped(op)
            else:
                self.product(op)
        return self.costs

    def add(self, *given, **more):
        self.costs.append(Cost(*given, **more))

    def enters(self, op: Op) -> bool:
        return not op.function and "/tp" in str(op.outs[0]) and "/tp" not in str(op.args[0])

    def leaves(self, op: Op) -> bool:
        return op.name.endswith("_partial")

    def gathers_again(self, tensor: Tensor) -> bool:
        again = ("full", "attn_only") if tensor.name.startswith("h1") else ("full",)
        return self.choices.recompute in again or self.choices.gather_again

    def keeps(self, tensor: Tensor) -> bool:
        shard = self.choices.split and self.choices.sequence_parallel
        return not self.gathers_again(tensor) or ("dropped_input" in self.mended and not shard)

    def enter(self, op: Op):
        """Add the forks before an operation, and an exchange if only the backward pass has an all-reduce there."""
        passing = not self.tiled and not self.choices.sequence_parallel and self.enters(op)
        if passing and f"{op.args[0].name} passed" not in self.seen:
            self.seen.add(f"{op.args[0].name} passed")
            self.exchange(op.args[0], after=False)
        for tensor in op.args:
            users = [u for u in self.block.users.get(tensor.name, ()) if not (self.tiled and self.enters(u))]
            if len(users) < 2 or tensor.is_weight or op is not users[0] or tensor.name in self.seen:
                continue
            self.seen.add(tensor.name)
            moved, gathered = _bytes(tensor), tensor.name.startswith("h1")
            self.add(
                f"{tensor.name}_fork",
                flops={"input": len(users) * _elements(tensor)},
                traffic={"input": moved * (len(users) + 1)},
                held=moved,
                stored=S.Zero if gathered and not self.keeps(tensor) else moved,
                again=(gathered and self.gathers_again(tensor)) or self.choices.recompute == "full",
            )

    def exchange(self, tensor: Tensor, after: bool):
        """Add a separate exchange, which reads and writes its buffer and adds up values."""
        scattered = self.choices.sequence_parallel
        elements = prod(size(i.split("/")[0]) for i in tensor.indices)
        moved = elements * tensor.width
        again = self.choices.recompute == "full" if after else self.gathers_again(tensor)
        passes = ("forward", "input") if scattered else ("forward",) if after else ("input",)
        held = moved / TP if scattered else moved if after else S.Zero
        self.add(
            tensor.name if after or scattered else f"{tensor.name}_all",
            flops={"forward" if after else "input": elements * (TP - 1) / TP},
            traffic=dict.fromkeys(passes, 2 * moved),
            held=held,
            stored=S.Zero if after else held,
            gradient=moved / TP if scattered else S.Zero if after else moved,
            exchange=Exchange(moved, after, again),
        )

    def function(self, op: Op):
        first, out = op.args[0], op.outs[0]
        n, moved = _elements(first), _bytes(out) + sum(_bytes(t) for t in op.args if not t.is_weight)
        weights = sum((_elements(t) for t in op.args if t.is_weight), S.Zero)
        flops = {k: x * n for k, x in zip(("forward", "input", "weight"), VECTOR[op.function], strict=True)}
        held, gradient, shared = _bytes(first), _bytes(out), False
        stored = S.Zero if self.repeated(first) else held
        if op.function == "drop":
            mask = _bytes(op.outs[1])
            gradient = gradient if "dropout_gradient" in self.mended else mask
            moved, held, stored = moved + mask, mask, S.Zero if op.again else mask
        elif op.function == "gelu" and self.choices.fused:
            held = gradient = stored = S.Zero
            moved = S.Zero if "fused_traffic" in self.mended else moved
        elif op.function in ("layernorm", "add"):
            held, shared, stored = sum(_bytes(t) for t in op.args if not t.is_weight), True, S.Zero
        moved += weights * symbol("weight_bits") / 8
        traffic = {"forward": moved, "input": moved, **({"weight": moved} if weights else {})}
        self.add(op.name, "vector", flops, traffic, weights, held, shared, stored, gradient, bool(op.again))

    def repeated(self, tensor: Tensor) -> bool:
        maker = self.block.makers.get(tensor.name)
        return maker is not None and bool(maker.again)

    def attention(self, op: Op):
        """Add scores and weighted values. The keys of a head are read once for each head of queries."""
        out, flops = op.outs[0], op.flops.subs(_OURS)
        copies = [i for i in out.indices if i in ("batch", "group_size") or i.startswith("kv_heads")]
        read = {t: _bytes(t) * prod(size(i).subs(_OURS) for i in copies if i not in t.indices) for t in op.args}
        moved = sum(read.values()) + _bytes(out)
        stored = sum((x for t, x in read.items() if not self.repeated(t)), S.Zero)
        flops, traffic = {"forward": flops, "input": 2 * flops}, {"forward": moved, "input": moved}
        held, gradient = sum(read.values()), _bytes(out)
        self.add(op.name, "matrix", flops, traffic, S.Zero, held, False, stored, gradient, bool(op.again))

    def product(self, op: Op):
        (first, weight), out, flops = op.args, op.outs[0], op.flops.subs(_OURS)
        moved = _bytes(first) + _bytes(out) + _bytes(weight)
        forked = first.name in self.seen
        keeps = not forked and not (first.name.startswith("h2") and not self.keeps(first))
        name, stored = op.name.removesuffix("_partial"), _bytes(first) if keeps else S.Zero
        flops, traffic = (dict.fromkeys(("forward", "input", "weight"), x) for x in (flops, moved))
        held, gradient = _bytes(first), _bytes(out)
        self.add(name, "matrix", flops, traffic, _elements(weight), held, forked, stored, gradient, bool(op.again))

    def overlapped(self, op: Op):
        """Add a product cut into tp tiles, each exchanged while the next is computed; q, k and v are one product."""
        (first, weight), out, begins = op.args, op.outs[0], self.enters(op)
        if begins and f"{first.name} passed" in self.seen:
            return
        self.seen.add(f"{first.name} passed")
        fused = 3 if op.name == "q" and self.choices.attention == "multihead" else 1
        flops, elements = fused * op.flops.subs(_OURS), fused * _elements(weight)
        read, written, held_weights = _bytes(first), fused * _bytes(out), fused * _bytes(weight)
        scattered = self.choices.sequence_parallel
        if begins:
            held, gradient = (read / TP, written) if scattered else (read, S.Zero)
        else:
            held, gradient = (read, 2 * written / TP) if scattered else (S.Zero, 2 * written)
        going = held_weights + held + gradient
        again = self.gathers_again(first) if begins else self.choices.recompute == "full"
        flops = dict.fromkeys(("forward", "input", "weight"), flops)
        traffic = {"forward": read + written + held_weights, "input": going, "weight": going}
        exchange, name = Exchange(read if begins else written, not begins, again), op.name.removesuffix("_partial")
        self.add(name, "matrix", flops, traffic, elements, held, False, held, gradient, bool(op.again), exchange)
