"""Costs of a block on one device under a strategy, in seconds, messages and bytes: sums over its operations."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial

from sympy import Add, Expr, Mul, S

from scalebook.attention.arithmetic import causal_pairs
from scalebook.block import HEAD, Block, Hybrid, Kernel, Kind, backward, kinds_of, read_and_unread, shard
from scalebook.block.listing import factored
from scalebook.block.work import PHASES, Work, phase_of, share_computed, stream, tensors_of, trained, work
from scalebook.language import Formula, symbol
from scalebook.language.notation import replaced
from scalebook.machine.collectives import collective, near_of, port_times
from scalebook.training.assumptions import attended_picked, attended_windows
from scalebook.training.parts import stage_moe_blocks_whole
from scalebook.training.strategy import Strategy
from scalebook.training.trained_weights import Trained

__all__ = ["block_formulas", "head", "of_kind"]

_MEGATRON = ("narayanan2021 §2", "korthikanti2022 §4")


# Collectives


# How many ranks apart two neighbours of a dimension are. Megatron-LM numbers ranks in the order tp-cp-ep-dp-pp, and
# Llama 3 in the order TP, CP, PP, DP: tp ranks are neighbours, and two cp ranks are tp apart, because a cp group
# gathers keys and values of the heads that one tp rank has. With tp=8 each cp rank is on another node of eight devices.
# If cp ranks were neighbours (1 instead of tp), the mean errors of the sets llama3 and mlperf_training would be lower
# (3.9 instead of 7.0 %, 2.3 instead of 2.5 %), but no such run has its ranks so: it would make up for another error.
_INNER = {"tp": S.One, "etp": S.One, "cp": symbol("tp"), "ep": symbol("etp")}
_OVER = {"tp": ("tp", "etp"), "cp": ("cp",), "ep": ("ep",)}  # experts' widths are split by tensor parallelism too


def _near(way: str) -> Expr:
    """Return how many devices of a group lie in one scale-up domain; ranks fill it tp, then cp (or etp, then ep)."""
    return near_of(symbol(way), _INNER[way])


def _sent(block: Block, way: str, keep) -> list[tuple]:
    """Return the collectives over one way: kind, bytes, devices, and devices per scale-up domain."""
    pairs = zip((op for op in block.ops if op.is_collective), block.collectives, strict=True)
    share = symbol("sent_share") if way == "ep" else S.One
    return [
        (c.kind, share * trained(c.bytes, tensors_of([op])), c.ways, _near(op.over))
        for op, c in pairs
        if op.over in _OVER[way] and keep(op)
    ]


def _messages(block: Block, way: str, keep=lambda op: True) -> Expr:
    return Add(*(collective(*sent) for sent in _sent(block, way, keep)))


def _less_unread(back: Block, cost) -> Expr:
    """Return a cost of a backward pass. Recomputed lines that nothing reads count by the share that is run."""
    read, others = read_and_unread(back)
    if not others.ops:
        return cost(back)
    return cost(read) + symbol("unread_rerun") * cost(others)


def _port_times(blocks: tuple[Block, ...], way: str, keep=lambda op: True) -> tuple[Expr, Expr]:
    """Seconds for which the collectives over one way keep the scale-up and the scale-out ports busy."""
    moved = [port_times(*sent) for block in blocks for sent in _sent(block, way, keep)]
    return Add(*(near for near, _ in moved)), Add(*(far for _, far in moved))


def _is_hidden(op, is_all_again: bool) -> bool:
    """Return True if Megatron overlaps a backward collective with weight gradients, which do not depend on it."""
    if op.name.endswith("_all_again"):
        return not is_all_again
    return op.function in ("all_reduce", "reduce_scatter") and op.outs[0].is_gradient


@cache
def head() -> Block:
    """Return the operations of the head on one device: last norm, logits and loss; `tp` splits the vocabulary."""
    return shard(shard(HEAD, "tp", "vocab"), "cp", "seq")


@cache
def _saved(block: Block, weights: Trained) -> Expr:
    tensors = {t.name: t for t in tensors_of(block.ops)}
    kept = factored(trained(x, [tensors[name]]) for name, x in weights.saved(block).items())
    return replaced(kept, {symbol("activation_bits"): symbol("saved_bits")})


def of_kind(kind: Kind, cost: Expr) -> Expr:
    """Return a block's cost with its kind's numbers. Attention counts the window's or the picked pairs."""
    if kind.slides or kind.reads_picks:
        share = attended_windows.of(window_layers=symbol("layers")) if kind.slides else attended_picked.rhs
        cost = replaced(cost, {symbol("attended_share"): share, symbol("counted_share"): share / _causal_share()})
    if "index_heads" in kind.block.indices:  # of entries for several tokens, an indexer picks as many
        each = symbol("entry_tokens") if "entries" in kind.block.indices else S.One
        picked = attended_picked.of(index_tokens=symbol("index_tokens") * each)
        cost = replaced(cost, {symbol("picked_share"): picked})
    return kind.of(cost)


def _time(kernels: Iterable[Work], rates: str) -> Expr:
    return Add(*(w.ideal if rates == "ideal" else w.time for w in kernels))


def _causal_share() -> Expr:
    seq = symbol("seq")
    return causal_pairs.of(seq=seq, context=seq) / seq**2


def _model_flops(kernels: Iterable[Kernel], block: Block) -> Expr:
    """Return what model FLOPs count of a block's kernels: masked pairs too, but none outside a window or a pick."""
    picked = symbol("picked_share")
    counted = {symbol("attended_share"): symbol("counted_share"), picked: picked / _causal_share()}
    indices, flops = frozenset(block.indices), []
    for k in kernels:
        share = share_computed(k.name.removesuffix("_backward"), indices) if len(k.ops) > 1 else S.One
        flops.append(factored([k.flops]) * counted.get(share, S.One))
    return factored(flops)


def _again_flops(back: Block) -> Expr:
    return _model_flops([k for k in back.kernels if phase_of(k) == "again"], back)


def _phases(forward: Block, back: Block, strategy: Strategy) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """Return the seconds of a block's kernels by phase, and the parameters and FLOPs that adapters bring in."""

    @cache
    def time(block, phase=""):
        kernels = work(block, phase, strategy.quantized, is_run=True)
        return {p: _time((w for w in kernels if w.phase == p), strategy.kernels) for p in PHASES}

    times = time(back) | {
        "forward": time(forward, "forward")["forward"],
        "again": _less_unread(back, lambda part: time(part)["again"]),
    }
    frozen = {}
    if strategy.trained.is_frozen:  # only adapters have weight gradients
        adapters = strategy.trained.adapters(forward)
        times["forward"] += adapters["forward"]
        times["again"] += adapters["forward"] if strategy.recompute == "full" else S.Zero
        times["input_gradient"] += adapters["input_gradient"]
        times["weight_gradient"] = adapters["weight_gradient"]
        multiplied = (op.flops for op in forward.ops if any(t.is_weight for t in op.args))
        frozen = {
            "adapter_params": trained(adapters["params"], tensors_of(forward.ops)),
            "block_matrix_flops": trained(Add(*multiplied)),
        }
    return {f"{phase}_compute": time for phase, time in times.items()}, frozen


@cache
def _exchanges(forward: Block, back: Block, is_all_again: bool) -> dict[str, Expr]:
    """Return the seconds of a block's collectives, exposed and overlapped, and how long they keep ports busy."""
    is_hidden = partial(_is_hidden, is_all_again=is_all_again)
    costs = {}
    for way in ("tp", "cp", "ep"):
        costs[f"{way}_forward"] = _messages(forward, way)
        waited = partial(_messages, way=way, keep=lambda op, way=way: way != "tp" or not is_hidden(op))
        costs[f"{way}_backward"] = _less_unread(back, waited)
        costs[f"{way}_scaleup_time"], costs[f"{way}_scaleout_time"] = _port_times((forward, back), way)
    costs["tp_async"] = _messages(back, "tp", is_hidden)
    costs["tp_scaleup_beside"], costs["tp_scaleout_beside"] = _port_times((back,), "tp", is_hidden)
    return costs


@cache
def _passes(block: Block, strategy: Strategy) -> tuple[Block, Block]:
    forward = strategy.transformed(block)
    return forward, backward(forward)


@cache
def _costs(block: Block, strategy: Strategy) -> dict[str, Expr]:
    lines = replace(strategy, quantized=False, kernels="measured", trained="all")  # the options that change a line
    forward, back = _passes(block, lines)
    times, frozen = _phases(forward, back, strategy)
    params, routed = (
        Add(*(trained(t.elements, [t]) for t in forward.weights if t.is_routed is x)) for x in (False, True)
    )
    whole, _ = _passes(block, replace(lines, recompute="none"))  # what runs again keeps what a first run keeps
    return times | _exchanges(forward, back, strategy.recompute == "full") | frozen | {
        "block_params": params, "block_routed_params": routed,
        "saved_activations": _saved(forward, strategy.trained), "working_activations": _saved(whole, strategy.trained),
        # for the whole model: what several devices hold is counted once
        "block_flops": trained(_model_flops(forward.kernels, forward)),
        "again_flops": trained(_less_unread(back, _again_flops)),
    }  # fmt: skip


@cache
def _head_costs(rates: str, quantized: bool, is_frozen: bool) -> dict[str, Expr]:
    forward, back = head(), backward(head())
    there, again = work(forward, "forward", quantized, is_run=True), work(back, "", quantized, is_run=True)
    again = [w for w in again if not (is_frozen and w.phase == "weight_gradient")]
    return {
        "head_forward": _time(there, rates) + _messages(forward, "tp"),
        "head_backward": _time(again, rates) + _messages(back, "tp"),
        "head_flops": forward.flops,
    }


def _embedding_time(strategy: Strategy) -> Expr:
    """Time to look embeddings up, sum them over the devices that share the vocabulary, and add their gradients."""
    x = symbol
    values = x("batch") * x("seq") / x("cp") * x("hidden")
    whole, found = values * x("activation_bits") / 8, values / x("tp")
    moved = whole + found * x("weight_bits") / 8, whole + found * 2 * x("gradient_bits") / 8
    kinds = ("reduce_scatter", "all_gather") if strategy.sequence_parallel else ("all_reduce",)
    is_ideal = strategy.kernels == "ideal"
    streams = sum(bytes_ / x("hbm_bandwidth") if is_ideal else stream(bytes_, is_run=True) for bytes_ in moved)
    return streams + sum(collective(kind, whole, x("tp"), _near("tp")) for kind in kinds)


# These letters are means over the model's blocks. All others are means over the stage with the most experts.
_OF_MODEL = ("block_flops", "again_flops", "block_matrix_flops")


def block_formulas(dense: Block | Hybrid | None, moe: Block | Hybrid | None, strategy: Strategy) -> tuple[Formula, ...]:
    """Return formulas for the costs of a model's blocks and of its head on one device, such as `forward_compute`.

    `dense` and `moe` are the model's two kinds of block, or None. Each cost is per block: the mean over the blocks of
    the stage that has the most blocks with experts.
    """
    return _block_formulas(dense, moe, strategy.of_block)


@cache
def _block_formulas(dense, moe, strategy):
    x, total = symbol, {}
    times = [f"{phase}_compute" for phase in PHASES] if strategy.kernels == "measured" else []
    held, whole = x("stage_moe_blocks") / x("stage_blocks"), x("moe_layers") / x("layers")
    for block, is_moe in ((dense, False), (moe, True)):
        for kind in kinds_of(block):
            for letter, cost in _costs(kind.block, strategy).items():
                share = whole if letter in _OF_MODEL else held
                part = (share if is_moe else 1 - share) if dense and moe else S.One
                whole_share, cost = part * kind.share, of_kind(kind, cost)
                if whole_share != 1 and cost != 0:
                    # SymPy would multiply a number into each term of the cost, which takes seconds
                    cost = Mul(whole_share, cost, evaluate=letter in times and not whole_share.is_Number)
                total[letter] = total.get(letter, S.Zero) + cost
    total |= _head_costs(strategy.kernels, strategy.quantized, strategy.trained.is_frozen)
    total["embedding_time"] = _embedding_time(strategy)
    made = (Formula(f"{letter}_of_block", letter, cost, _MEGATRON) for letter, cost in total.items())
    return *made, *([stage_moe_blocks_whole] if dense and moe else [])
