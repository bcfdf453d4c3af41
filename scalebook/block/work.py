"""The kernels of a block and of its backward pass, each with its time.

>>> work(LLAMA, "forward")[0]
Work(name='h1', phase='forward', kind='stream', ...
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from sympy import Add, Expr, Max, Mul, S

from scalebook.block import LLAMA, Block, Kernel, Tensor, backward  # noqa: F401  (the first for the examples)
from scalebook.block.operations import Op, Product, base, ways
from scalebook.language import symbol
from scalebook.language.notation import free, replaced
from scalebook.machine import kernels

__all__ = [
    "PHASES", "REACHED", "Work", "both_passes", "joined", "launched", "phase_of", "product_time", "share_computed",
    "stream", "tensors_of", "trained", "work",
]  # fmt: skip


@dataclass(frozen=True)
class Work:
    """One kernel with its `time` in seconds: a matrix product, fused attention or a memory stream (its `kind`).

    `rate` is the peak rate that applies to all of its FLOPs.
    """

    name: str
    phase: str
    kind: str
    flops: Expr
    traffic: Expr
    time: Expr
    rate: Expr = S.One

    @property
    def ideal(self) -> Expr:
        """Seconds under the roofline: arithmetic at peak or traffic at full bandwidth, whichever takes longer."""
        streamed = self.traffic / symbol("hbm_bandwidth")
        return streamed if self.kind == "stream" else Max(self.flops / self.rate, streamed, evaluate=False)


# Efficiencies under the framework, which replace the best efficiencies of kernels.
REACHED = {
    "stream_efficiency": "stream_reached", "sustained_rate": "sustained_reached",
    "attention_efficiency": "attention_reached",
}  # fmt: skip
_COMPUTED = {"state": S.One, "index": S.Half, "entries": S.Half}  # share of the listed arithmetic that kernels do
PHASES = ("forward", "again", "input_gradient", "weight_gradient")


def phase_of(kernel: Kernel) -> str:
    """Return the phase of a backward kernel: recomputation, the gradient of inputs, or the gradient of weights."""
    made = [t for op in kernel.ops for t in op.outs]
    if not any(t.is_gradient for t in made):
        return "again"
    return "weight_gradient" if all(t.kind == "weight gradient" for t in made) else "input_gradient"


def work(block: Block, phase: str = "", quantized: bool = False, is_run: bool = False) -> tuple[Work, ...]:
    """Return the kernels of a block with their times. Products that read the same tensor run as one (q, k and v).

    Weights that are split over different devices cannot be joined, so a router runs apart from shared experts. If
    `phase` is empty, each kernel of a backward pass gets its own phase. `is_run` gives the times under a framework.

    >>> [w.name for w in work(LLAMA, "forward") if w.kind == "product"]
    ['q k v', 'scores', 'mix', 'attended', 'up gate', 'down']
    """
    indices = frozenset(block.indices)
    groups = ((tuple(x), phase or phase_of(x[0])) for x in launched(block))
    return tuple(w for x, own in groups for w in _works(x, own, quantized, indices, is_run))


def launched(block: Block) -> list[list[Kernel]]:
    """Return a block's kernels by launch, without collectives; products that read the same tensor share one launch."""
    joined: dict[tuple, list[Kernel]] = {}
    for kernel in block.kernels:
        if kernel.ops[0].is_collective:
            continue
        op, key = kernel.ops[0], (kernel.name,)
        if len(kernel.ops) == 1 and not op.function and sum(len(t) > 1 for t in op.terms) == 1:
            term = next(t for t in op.terms if len(t) > 1)
            if any(t.is_weight for t in term):  # x W: by x
                key = ("x", next(t.name for t in term if not t.is_weight), *_ways(next(t for t in term if t.is_weight)))
            elif op.outs[0].kind == "weight gradient":  # d_y x: by x
                key = ("dW", term[1].name, *_ways(op.outs[0]))
        joined.setdefault(key, []).append(kernel)
    return list(joined.values())


def _ways(weight: Tensor) -> list[str]:
    return sorted({w for i in weight.indices for w in ways(i)})


def share_computed(kernel: str, indices: frozenset[str]) -> Expr:
    """Return the share of a kernel's listed pairs that it computes. An indexer scores all earlier keys, and picks."""
    picks = "entries" if "entries" in indices else "flash"
    if "index_heads" in indices and kernel == picks:
        return symbol("picked_share")
    return _COMPUTED.get(kernel, symbol("attended_share"))


@cache
def _works(group: tuple[Kernel, ...], phase: str, quantized: bool, indices: frozenset[str], is_run: bool) -> list[Work]:
    name = " ".join(k.name for k in group)
    ops = [op for k in group for op in k.ops]
    tensors = tensors_of(ops)
    flops, traffic = (trained(Add(*(getattr(k, x) for k in group)), tensors) for x in ("flops", "traffic"))
    if not flops:
        return [Work(name, phase, "stream", flops, traffic, stream(traffic, is_run))]
    if len(ops) > len(group):
        kernel = group[0].name.removesuffix("_backward")
        rate = symbol("attention_peak") / share_computed(kernel, indices)
        efficiency = _rate("attention_efficiency", is_run) * (
            symbol("attention_backward") if any(t.is_gradient for t in tensors) else 1
        )
        if kernel == "state":
            efficiency = symbol("training_bf16")
        arithmetic = flops / (rate * efficiency * _rate("sustained_rate", is_run))
        time = Max(arithmetic, stream(traffic, is_run), evaluate=False)
        return [Work(name, phase, "attention", flops, traffic, time, rate)]
    size, wide = Product(*(trained(x, tensors) for x in joined(ops, phase))), quantized and _is_wide(tensors)
    rate = symbol("attention_peak" if wide else "peak_flops")
    grouped = any(base(i) == "expert_tokens" for t in tensors for i in t.indices)
    time = product_time(size, traffic, phase, wide, grouped, is_run)
    made = [Work(name, phase, "product", flops, traffic, time, rate)]
    if quantized and not wide and phase != "weight_gradient":
        moved = size.rows * size.inner * size.copies * (symbol("activation_bits") + 2 * symbol("quantized_bits")) / 8
        made.insert(0, Work(f"{name} cast", phase, "stream", S.Zero, moved, stream(moved, is_run)))
    return made


def tensors_of(ops: Iterable[Op]) -> list[Tensor]:
    return [t for op in ops for t in (*op.outs, *op.args)]


def _is_wide(tensors: list[Tensor]) -> bool:
    """Return True if a product stays in 16 bits when others are quantized: no weights (attention), or fp32 logits."""
    return any(t.is_fp32 for t in tensors) or not any(t.kind in ("weight", "weight gradient") for t in tensors)


def trained(cost: Expr, tensors: Iterable[Tensor] = ()) -> Expr:
    """Rewrite a cost for training, where the context is the sequence itself.

    `tensors` are what the cost is computed from. If their key-value heads are split over more devices than there are
    heads, several devices hold the same head.
    """
    split = max((ways(i) for t in tensors for i in t.indices if base(i) == "kv_heads"), key=len, default=frozenset())
    return _trained(cost, split)


@cache
def _trained(cost: Expr, split: frozenset[str]) -> Expr:
    context, heads = symbol("context"), symbol("kv_heads")
    if free(cost).isdisjoint((context, heads)):
        return cost
    held = Max(heads, Mul(*map(symbol, split)), evaluate=False) if split else heads
    return replaced(cost, {context: symbol("seq"), heads: held})


def _rate(letter: str, is_run: bool) -> Expr:
    return symbol(REACHED[letter] if is_run else letter)


@cache
def stream(traffic: Expr, is_run: bool = False) -> Expr:
    return kernels.stream_time.of(traffic=traffic, stream_efficiency=_rate("stream_efficiency", is_run))


def joined(ops: list[Op], phase: str = "forward") -> Product:
    """Return the size of several products run as one: weights join by columns, weight gradients by rows."""
    each = []
    for op in ops:
        rows, columns, _, copies = op.products[0]
        each.append(Product(rows, columns, Add(*(p.inner for p in op.products)), copies))
    first, grown = each[0], "rows" if phase == "weight_gradient" else "columns"
    return first._replace(**{grown: Add(*(getattr(p, grown) for p in each))})


@cache
def product_time(size: Product, traffic: Expr, phase: str, wide: bool, grouped: bool, is_run: bool = False) -> Expr:
    """Seconds of a matrix product, as an expression. A weight gradient reads and writes the sum over micro-batches.

    A `wide` product stays in 16 bits if others are quantized; a `grouped` one multiplies by experts' weights.
    """
    sustained = _rate("sustained_rate", is_run)
    given = dict(size._asdict(), stream_efficiency=_rate("stream_efficiency", is_run))
    if grouped:
        if phase == "weight_gradient":
            traffic += size.rows * size.columns * size.copies * symbol("gradient_bits") / 8
        reached = symbol("grouped_efficiency") * sustained
        return kernels.matmul_time_grouped.of(**given, traffic=traffic, matmul_efficiency=reached)
    peak, reached, half = (symbol(x) for x in ("peak_flops", "training_efficiency", "inner_half"))
    if wide:  # writing the result takes as long as before, but there are fewer multiplications
        peak, reached, half = symbol("attention_peak"), symbol("training_bf16"), half * symbol("attention_peak") / peak
    if phase == "weight_gradient":
        half *= 2 * symbol("gradient_bits") / symbol("activation_bits")
    given |= dict(traffic=traffic, peak_flops=peak, inner_half=half)
    return kernels.matmul_time.of(**given, matmul_efficiency=reached * sustained)


def both_passes(forward: Block, quantized: bool = False) -> tuple[Work, ...]:
    """Return the kernels of a block and of its backward pass, each with its time."""
    return *work(forward, "forward", quantized), *work(backward(forward), quantized=quantized)
