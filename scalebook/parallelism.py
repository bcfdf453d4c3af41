"""What a block costs one device under a strategy: seconds, messages and bytes, each a sum over its listing.

A strategy's choices in words (what is run again, whether attention is fused) transform the listing; its numbers
(ways, micro-batches) stay letters.

>>> from scalebook.block import LLAMA
>>> Strategy(recompute="full").transformed(LLAMA).saved
activation_bits*batch*hidden*seq/(8*cp*tp)
>>> Strategy(recompute="ful")
Traceback (most recent call last):
    ...
ValueError: recompute is 'none', 'selective' or 'full', not 'ful'
"""

from dataclasses import dataclass, fields, replace
from functools import cache

from sympy import Expr, Max, S

from scalebook import kernels
from scalebook.block import (
    HEAD,
    Block,
    Kernel,
    backward,
    context_exchanged,
    context_parallel,
    expert_parallel,
    flash,
    full,
    recomputation,
    selective,
    sequence_parallel,
    shard,
    tensor_parallel,
)  # fmt: skip
from scalebook.block.operations import Op, Product
from scalebook.collectives import collective, near_of, port_times
from scalebook.language import Formula, symbol

__all__ = ["CHOICES", "Strategy", "Work", "block_formulas", "both_passes", "head", "work"]

CHOICES = {  # the usual one first
    "recompute": ("none", "selective", "full"),
    "sequence_parallel": (True, False),
    "attention": ("flash", "unfused"),
    "context": ("gather", "all_to_all"),
    "sharding": ("zero1", "replicated", "zero2", "zero3", "hybrid"),
    "schedule": ("1f1b", "interleaved", "gpipe", "zb_h1", "zb_h2", "zb_v", "dualpipe"),
    "offload": (False, True),
    "quantized": (False, True),
    "kernels": ("measured", "ideal"),
}
_MEGATRON = ("narayanan2021 §2", "korthikanti2022 §4")


@dataclass(frozen=True)
class Strategy:
    """The choices of a strategy that are words.  Raises ValueError naming the words that would have done."""

    recompute: str = "none"
    sequence_parallel: bool = True
    attention: str = "flash"
    context: str = "gather"
    sharding: str = "zero1"
    schedule: str = "1f1b"
    offload: bool = False
    quantized: bool = False
    kernels: str = "measured"

    def __post_init__(self):
        for field in fields(self):
            value, allowed = getattr(self, field.name), CHOICES[field.name]
            if value not in allowed:
                *most, last = map(repr, allowed)
                raise ValueError(f"{field.name} is {', '.join(most)} or {last}, not {value!r}")

    @property
    def of_block(self) -> "Strategy":
        """The same with what says nothing about a block left at the usual: strategies that share it share their blocks."""
        return replace(self, sharding="zero1", schedule="1f1b", offload=False)

    def transformed(self, block: Block) -> Block:
        """The block's listing on one device, in training: as many tokens are attended to as are new."""
        split = context_exchanged if self.context == "all_to_all" else context_parallel
        steps = [tensor_parallel, *([sequence_parallel] if self.sequence_parallel else []), split]
        if any(op.function == "dispatch" for op in block.ops):
            steps.append(expert_parallel)
        if self.attention == "flash":
            steps.append(flash)  # it runs the attention core again by itself
        elif self.recompute == "selective":
            steps.append(selective)
        return block.then(*steps, *([full] if self.recompute == "full" else []))


@dataclass(frozen=True)
class Work:
    """One kernel as the time model sees it: its phase, and either a matrix product, fused attention or a stream."""

    name: str
    phase: str
    kind: str
    flops: Expr
    traffic: Expr
    time: Expr

    @property
    def ideal(self) -> Expr:
        """Seconds under the roofline: arithmetic at peak or traffic at full bandwidth, whichever takes longer."""
        streamed = self.traffic / symbol("hbm_bandwidth")
        if self.kind == "stream":
            return streamed
        is_fused = self.kind == "attention"
        rate = symbol("attention_peak") / symbol("attended_share") if is_fused else symbol("peak_flops")
        return Max(self.flops / rate, streamed, evaluate=False)


def _phase(kernel: Kernel) -> str:
    made = [t.name for op in kernel.ops for t in op.outs]
    if not any(name.startswith("d_") for name in made):
        return "again"
    return "weight_gradient" if all(name[2:3].isupper() for name in made) else "input_gradient"


def work(block: Block, phase: str = "", quantized: bool = False) -> tuple[Work, ...]:
    """The kernels of a listing and the time of each; products that read the same tensor run as one (q, k and v).

    Without a phase each kernel of a backward pass is said to run something again, or to make the gradient of inputs
    or of weights.

    >>> from scalebook.block import LLAMA
    >>> [w.name for w in work(LLAMA, "forward") if w.kind == "product"]
    ['q k v', 'scores', 'mix', 'attended', 'up gate', 'down']
    """
    joined: dict[tuple, list[Kernel]] = {}
    for kernel in block.kernels:
        if kernel.ops[0].is_collective:
            continue
        op, key = kernel.ops[0], (kernel.name,)
        if len(kernel.ops) == 1 and not op.function and sum(len(t) > 1 for t in op.terms) == 1:
            term = next(t for t in op.terms if len(t) > 1)
            if any(t.is_weight for t in term):  # x W: by x
                key = ("x", next(t.name for t in term if not t.is_weight))
            elif op.name.startswith("d_") and op.name[2].isupper():  # d_y x: by x
                key = ("dW", term[1].name)
        joined.setdefault(key, []).append(kernel)
    return tuple(w for group in joined.values() for w in _works(group, phase or _phase(group[0]), quantized))


def _works(group: list[Kernel], phase: str, quantized: bool) -> list[Work]:
    name = " ".join(k.name for k in group)
    flops, traffic = (_trained(sum((getattr(k, x) for k in group), S.Zero)) for x in ("flops", "traffic"))
    ops = [op for k in group for op in k.ops]
    if not flops:
        return [Work(name, phase, "stream", flops, traffic, _stream(traffic))]
    if len(ops) > len(group):
        efficiency = symbol("attention_efficiency") * (symbol("attention_backward") if "backward" in name else 1)
        arithmetic = (
            flops * symbol("attended_share") / (symbol("attention_peak") * efficiency * symbol("sustained_rate"))
        )
        return [Work(name, phase, "attention", flops, traffic, Max(arithmetic, _stream(traffic), evaluate=False))]
    size = _joined(ops, phase)
    made = [Work(name, phase, "product", flops, traffic, _product(size, traffic, phase))]
    if quantized and phase != "weight_gradient" and any(t.is_weight for op in ops for t in op.args):
        moved = size.rows * size.inner * size.copies * (symbol("activation_bits") + 2 * symbol("quantized_bits")) / 8
        made.insert(0, Work(f"{name} cast", phase, "stream", S.Zero, moved, _stream(moved)))
    return made


def _trained(cost: Expr) -> Expr:
    """In training as many tokens are attended to as are new."""
    return cost.xreplace({symbol("context"): symbol("seq")})


def _stream(traffic: Expr) -> Expr:
    return kernels.stream_time.of(traffic=traffic)


def _joined(ops: list[Op], phase: str) -> Product:
    """Products as one: terms of a sum follow each other inside, weights lie side by side, their gradients one below another."""
    each = []
    for op in ops:
        rows, columns, _, copies = op.products[0]
        each.append(Product(rows, columns, sum(p.inner for p in op.products), copies))
    first, grown = each[0], "rows" if phase == "weight_gradient" else "columns"
    joined = first._replace(**{grown: sum(getattr(p, grown) for p in each)})
    return Product(*map(_trained, joined))


def _product(size: Product, traffic: Expr, phase: str) -> Expr:
    """Seconds of a product.  Gradients of weights are added to those of earlier micro-batches: read, and written."""
    given = dict(
        size._asdict(), traffic=traffic, matmul_efficiency=symbol("matmul_efficiency") * symbol("sustained_rate")
    )
    if phase == "weight_gradient":
        given["inner_half"] = symbol("inner_half") * 2 * symbol("gradient_bits") / symbol("activation_bits")
    return kernels.matmul_time.of(**given)


# Collectives


def _near(way: str) -> Expr:
    """Devices of a group within one scale-up domain: ranks go to tp first, then cp, then ep."""
    inner = {"tp": S.One, "cp": symbol("tp"), "ep": symbol("tp")}[way]
    return near_of(symbol(way), inner)


def _messages(block: Block, way: str, keep=lambda op: True) -> Expr:
    """Seconds of the collectives over one way."""
    pairs = zip((op for op in block.ops if op.is_collective), block.collectives, strict=True)
    return sum(
        (collective(c.kind, _trained(c.bytes), c.ways, _near(way)) for op, c in pairs if op.over == way and keep(op)),
        S.Zero,
    )


def _port_times(blocks: tuple[Block, ...], way: str) -> tuple[Expr, Expr]:
    """Seconds that all collectives over one way keep the scale-up and the scale-out ports busy."""
    moved = [port_times(c.kind, _trained(c.bytes), c.ways, _near(way)) for block in blocks
             for op, c in zip((op for op in block.ops if op.is_collective), block.collectives, strict=True) if op.over == way]  # fmt: skip
    return sum((near for near, _ in moved), S.Zero), sum((far for _, far in moved), S.Zero)


def _is_hidden(op) -> bool:
    """Whether Megatron runs a collective of the backward pass beside products that do not wait for it.

    The sum of an input's gradient runs beside the gradient of the weights, and so does gathering the input again.
    """
    return (op.function in ("all_reduce", "reduce_scatter") and op.name.startswith("d_")) or op.name.endswith(
        "_all_again"
    )


def both_passes(forward: Block, quantized: bool = False) -> tuple[Work, ...]:
    """The kernels of a listing and of its backward pass."""
    return *work(forward, "forward", quantized), *work(backward(forward), quantized=quantized)


@cache
def head() -> Block:
    """The last norm, the logits and the loss on one device, the vocabulary split over tensor-parallel devices."""
    return shard(shard(HEAD, "tp", "vocab"), "cp", "seq")


@cache
def _costs(block: Block, strategy: Strategy) -> dict[str, Expr]:
    """Letters to costs of one block, for one micro-batch on one device."""
    forward = strategy.transformed(block)
    back, passes = backward(forward), both_passes(forward, strategy.quantized)
    again = {op.name for op in recomputation(forward)}
    times = {"forward": S.Zero, "again": S.Zero, "input_gradient": S.Zero, "weight_gradient": S.Zero}
    for w in passes:
        times[w.phase] += w.ideal if strategy.kernels == "ideal" else w.time
    routed = sum((t.elements for t in forward.weights if t.is_routed), S.Zero)
    whole = replace(strategy, recompute="none").transformed(block)
    is_hidden = _is_hidden if strategy.recompute != "full" else (lambda op: _is_hidden(op) and op.name not in again)
    costs = {f"{phase}_compute": time for phase, time in times.items()}
    for way in ("tp", "cp", "ep"):
        costs[f"{way}_forward"] = _messages(forward, way)
        costs[f"{way}_backward"] = _messages(back, way, lambda op, way=way: way != "tp" or not is_hidden(op))
        costs[f"{way}_scaleup_time"], costs[f"{way}_scaleout_time"] = _port_times((forward, back), way)
    costs["tp_async"] = _messages(back, "tp", is_hidden)
    return costs | {
        "block_params": forward.params - routed,
        "block_routed_params": routed,
        "saved_activations": _trained(forward.saved),
        "working_activations": _trained(whole.saved),
        "block_flops": _trained(forward.flops),
        "again_flops": sum((w.flops for w in passes if w.phase == "again"), S.Zero),
    }


@cache
def _head_costs(rates: str) -> dict[str, Expr]:
    """The same of the last norm, the logits and the loss."""
    time = "ideal" if rates == "ideal" else "time"
    forward, back = head(), backward(head())
    return {
        "head_forward": sum((getattr(w, time) for w in work(forward, "forward")), S.Zero) + _messages(forward, "tp"),
        "head_backward": sum((getattr(w, time) for w in work(back)), S.Zero) + _messages(back, "tp"),
        "head_flops": forward.flops,
    }


_MEANINGS = {
    "forward_compute": "Kernels of one block's forward pass.",
    "again_compute": "Kernels of one block that the backward pass runs again.",
    "input_gradient_compute": "Kernels of one block's backward pass on the way to the gradient of its input.",
    "weight_gradient_compute": "Kernels of one block that make the gradients of its weights.",
    **{f"{way}_forward": f"Collectives over {way} in one block's forward pass." for way in ("tp", "cp", "ep")},
    **{
        f"{way}_backward": f"Collectives over {way} that one block's backward pass waits for."
        for way in ("tp", "cp", "ep")
    },
    **{
        f"{way}_{tier}_time": f"Collectives over {way} in one block, both passes, as its {tier} ports see them."
        for way in ("tp", "cp", "ep") for tier in ("scaleup", "scaleout")
    },
    "tp_async": "Collectives over tp in one block's backward pass that run beside the gradients of the weights.",
    "block_params": "Parameters of one block on one device, without routed experts.",
    "block_routed_params": "Parameters of the routed experts of one block on one device.",
    "saved_activations": "What one block keeps for its backward pass.",
    "working_activations": "What one block holds while it goes backward, with all that was run again.",
    "block_flops": "Matrix arithmetic of one block's forward pass on one device.",
    "again_flops": "Matrix arithmetic of one block that the backward pass runs again.",
    "head_forward": "Last norm, logits and loss of one micro-batch.",
    "head_backward": "Last norm, logits and loss of one micro-batch, going back.",
    "head_flops": "Matrix arithmetic of the logits on one device, forward.",
}


def block_formulas(dense: Block | None, moe: Block | None, strategy: Strategy) -> tuple[Formula, ...]:
    """The costs of a model's blocks as formulas, the mean over its dense and its mixture-of-experts blocks, and of its head.

    >>> from scalebook.block import GPT
    >>> from scalebook.tables import models
    >>> {f.letter: f for f in block_formulas(GPT, None, Strategy())}["block_params"](models.gpt3_175b, tp=8)
    226576896.0
    """
    return _block_formulas(dense, moe, strategy.of_block)


@cache
def _block_formulas(dense, moe, strategy):
    share = symbol("moe_layers") / symbol("layers")
    kinds = [(dense, 1 - share if moe else S.One), (moe, share if dense else S.One)]
    total: dict[str, Expr] = {}
    for block, part in kinds:
        for letter, cost in _costs(block, strategy).items() if block else ():
            total[letter] = total.get(letter, S.Zero) + part * cost
    total |= _head_costs(strategy.kernels)
    return tuple(
        Formula(f"{letter}_of_block", letter, cost, _MEGATRON, _MEANINGS[letter]) for letter, cost in total.items()
    )
