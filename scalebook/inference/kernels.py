"""The kernels of a serving step, priced part by part from the block's listing, as training's are.

Attention is priced apart: decoded sequences read a cache, prompts attend to themselves and to their earlier chunks.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from sympy import Add, Expr, Integer, Max, Min, S

from scalebook.attention import kernels as fused
from scalebook.block import HEAD, MLA, MLA_ABSORBED, Block, Hybrid, Kernel, Kind, cached, core_kernels, kinds_of, shard
from scalebook.block.operations import COLLECTIVES, Op, Product, Tensor, base
from scalebook.block.operations import size as length
from scalebook.block.transformations import attention_core
from scalebook.block.work import joined, launched
from scalebook.inference.device_part import HELD_HEADS, cost_for, on_device, tokens_of
from scalebook.inference.efficient_attention import hyper_parts, sparse_parts, state_parts
from scalebook.inference.operators import latent_prompt_traffic
from scalebook.inference.part_kernels import STATES, kind_of_attention
from scalebook.language import symbol
from scalebook.language.notation import replaced
from scalebook.machine import kernels
from scalebook.machine.collectives import collective, near_of

__all__ = [
    "PARTS", "Work", "beside_blocks", "counted", "step_parts", "stretches",
]  # fmt: skip

PARTS = (
    "weights_time", "products_time", "cache_time", "reading_time", "experts_time", "routing_time", "streams_time",
    "exchange_time", "launches_time",
)  # fmt: skip
_WIDE = ("Wrouter", "Wk_up", "Wv_up")  # kept in 16 bits: routers, and the projections that latent attention absorbs
_IN_16_BITS = ("attention_peak", "matmul_bf16")
_FUSED = ("rope", "add", "topk", "dispatch", "combine", "pick", "conv", "compress", "repeat")
x = symbol
_SENT = x("pass_tokens") * x("hidden") * x("result_bits") / 8  # bytes of the step's tokens between two blocks


@dataclass(frozen=True)
class Work:
    """A serving step to price: its `phase` ("decode", "prefill" or "mixed"), and the options `exchange` and `overlap`.

    `Step` explains both options. On one device `exchange` is "none"; "gather" is an all-gather of tokens before the
    experts, and a reduce-scatter of results after them.
    """

    phase: str
    exchange: str = "all_reduce"
    overlap: str = "none"
    drafts: bool = False  # each sequence's step checks drafted tokens

    @property
    def passes(self) -> int:
        """Number of batches that pass through the blocks in a step: two with two-batch overlap, otherwise one."""
        return 2 if self.overlap == "half_batches" else 1

    @property
    def decodes(self) -> bool:
        return self.phase != "prefill"

    @property
    def reads(self) -> bool:
        return self.phase != "decode"


@cache
def step_parts(dense: Block | None, moe: Block | None, work: Work) -> dict[str, Expr]:
    """Return the time of a serving step by part ("weights_time", ...), as expressions in seconds.

    It covers one pass through all blocks (pipeline stages take turns) and the head. `dense` and `moe` are the model's
    two kinds of block, or None.
    """
    total = beside_blocks(work)
    for kind, count in counted(dense, moe):
        first, second = stretches(kind.block, work)
        for part in {**first, **second}:
            total[part] += count * kind.of(first.get(part, S.Zero) + second.get(part, S.Zero))
    return {part: total[part] for part in PARTS}


def counted(dense: Block | Hybrid | None, moe: Block | Hybrid | None) -> list[tuple[Kind, Expr]]:
    """Return the kinds of block in a model, each with its number of layers as an expression."""
    share = x("moe_layers") if dense else x("layers")
    both = (dense, x("layers") - share if moe else x("layers")), (moe, share)
    return [(kind, count * kind.share) for block, count in both for kind in kinds_of(block)]


def _inside() -> Expr:
    """Return the devices of a neighbouring pair of pipeline stages within one scale-up domain (1 or 2)."""
    return 1 + Min(1, Max(0, x("scaleup_size") - x("tp") * x("attention_dp"), evaluate=False), evaluate=False)


@cache
def stretches(block: Block, work: Work) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """Return a block's time by part, for two halves: up to the messages after attention, and the rest."""
    first, second = (defaultdict(lambda: S.Zero) for _ in range(2))
    if (kind := kind_of_attention(block)) == "hyper-connections":
        return first, hyper_parts()
    split = on_device(block)
    cores = core_kernels(split)
    core, latent = {x for names in cores.values() for x in names}, "kv_rank" in split.indices and not kind
    attends, feeds = "x2" in split.makers, "y" in split.makers
    names_of_first = {op.name for op in split.ops[: split.ops.index(split["x2"])]} if attends else set()
    for group in launched(split):
        ops = [op for kernel in group for op in kernel.ops]
        names = {op.name for op in ops}
        total = first if names <= names_of_first else second
        if names & core or any(op.function in _FUSED for op in ops):
            continue  # attention, routing, and the sums that norms are fused with are priced below
        if ops[0].function:
            if not (total is first and kind and kind not in STATES):  # else among the attention's small kernels
                _add_stream(total, ops[0])
        elif not (latent and names & {"k_nope", "v"}):
            for each in _by_width(ops):
                _add_parts(total, _product(each, "of a step"))
        elif work.reads:  # only prompts expand the latents
            _add_parts(total, _product(tuple(ops), "of prompts"))
    if kind in STATES:
        _add_parts(first, state_parts(split, kind, work.decodes, work.reads))
    elif kind:
        whole = _prompted(None) if kind == "indexed" else None
        _add_parts(first, sparse_parts(split, kind, work.decodes, work.reads, whole))
    elif cores.keys() == {"flash"} and "kv" not in split.makers:  # a key that is the value has no heads of its own
        _add_attention(first, MLA_ABSORBED if latent else block, latent, work)
    else:
        _add_cores(first, cached(split) if cores.keys() & {"flash", "entries"} else split, work)
    routed = any(op.function == "dispatch" for op in split.ops)
    if routed:
        _add_routing(second, split)
    halves = [half for half, there in ((first, attends), (second, feeds)) if there]
    for half in halves:
        half["launches_time"] += x("scale_kernels") / 2 * x("kernel_launch")
    summed, there, back = _exchanges(split, work)
    first["exchange_time"], second["exchange_time"] = (summed if attends else S.Zero) + there, back if feeds else S.Zero
    if work.exchange != "none" and attends:  # queries and keys that are normed over all heads sum their squares
        first["exchange_time"] += x("norm_sums") * _sum_of(x("pass_tokens") * x("fp32_bits") / 8)
    return first, second


def _add_parts(total, parts: Mapping[str, Expr]) -> None:
    for part, time in parts.items():
        total[part] += time * (x("fullest_group") if part == "cache_time" else 1)


def _sum_of(size: Expr) -> Expr:
    """Return the time of an all-reduce over tensor-parallel devices by the engine's own kernel."""
    own = {x("collective_launch"): x("sum_launch"), x("near_latency"): x("sum_latency")}
    return replaced(collective("all_reduce", size, x("tp"), near_of(x("tp"), S.One)), own)


def _by_width(ops: list[Op]) -> list[tuple[Op, ...]]:
    """Separate the products that stay in 16 bits from others that read the same tensor."""
    wide = {op.name for op in ops for t in op.args if t.name in _WIDE}
    both = (tuple(op for op in ops if (op.name in wide) is is_wide) for is_wide in (True, False))
    return [x for x in both if x]


def _add_stream(total, op: Op) -> None:
    """Add the time of a memory-bound operator; a norm of the residual stream is fused with the sum before it."""
    entering = op.args[0]
    if base(entering.indices[0]) == "experts":
        return  # its memory passes are counted under routing
    is_norm, is_residual = op.function.endswith("norm"), base(entering.indices[-1]) == "hidden"
    read = (3 if is_residual else 1) if is_norm else len(op.args)
    written = x("result_bits" if is_norm and not is_residual else "activation_bits")
    moved = cost_for(tokens_of("of a step"), entering.elements) * (read * x("result_bits") + written) / 8
    total["streams_time"] += moved / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += x("kernel_launch")


@cache  # a step that decodes and one that reads prompts have the same products
def _product(ops: tuple[Op, ...], which: str) -> dict[str, Expr]:
    """Return the time by part of products of tokens and weights, as one; experts' products are grouped."""
    tokens = tokens_of(which)
    weights = [t for op in ops for t in op.args if t.is_weight]
    size = Product(*(cost_for(tokens, cost) for cost in joined(ops)))
    if weights[0].is_routed:  # the visited experts, with the rows that they have on the fullest device
        size = size._replace(rows=x("fullest_share") * x("expert_rows"), copies=x("local_experts"))
        read = size.copies * size.columns * size.inner * x("expert_bits") / 8
        return _price(size, read, ("expert_peak", "expert_efficiency"), "experts_time")
    wide = any(t.name in _WIDE for t in weights)
    read = sum(cost_for(tokens, t.elements) for t in weights) * x("result_bits" if wide else "weight_bits") / 8
    return _price(size, read, _IN_16_BITS if wide else ("peak_flops", "matmul_efficiency"))


def _price(size: Product, read: Expr, rates: tuple[str, str], part: str = "products_time") -> dict[str, Expr]:
    """Return a product's time: launch, reading weights at stream speed, and the rest under `part`."""
    peak, reached = map(x, rates)
    operands = size.inner * x("activation_bits") + size.columns * x("result_bits")
    # grouped products do not share an inner size between cores
    kernel = kernels.matmul_time if part == "experts_time" else kernels.matmul_time_split
    half = kernels.inner_half.of(activation_bits=x("result_bits"), peak_flops=peak)
    known = dict(size._asdict(), traffic=size.copies * size.rows * operands / 8 + read, kernel_launch=S.Zero)
    time = kernel.of(**known, peak_flops=peak, matmul_efficiency=reached, inner_half=half)
    streamed = read / (x("stream_efficiency") * x("hbm_bandwidth")) if part != "experts_time" else S.Zero
    return {part: time - streamed, "launches_time": x("kernel_launch"), "weights_time": streamed}


def _sent(block: Block) -> Tensor:
    """Return the tokens that a block sends to its experts: some models narrow them first."""
    return next(op.args[0] for op in block.ops if op.function == "dispatch")


def _add_routing(total, block: Block) -> None:
    """Add sorting tokens by expert, and the memory passes that copy, quantize, weight and sum them."""
    sent, activated = _sent(block), []
    for op in block.ops:
        if op.function not in ("", "combine", *COLLECTIVES) and base(op.args[0].indices[0]) == "experts":
            activated += [*op.args, *op.outs]
    copied = x("assigned_passes") * length(sent.indices[-1]) + sum(length(t.indices[-1]) for t in activated)
    worked = x("fullest_share") * x("assigned_tokens") * copied
    moved = (2 * cost_for(tokens_of("of a step"), sent.elements) + worked) * x("result_bits") / 8
    total["routing_time"] += x("routing_time_least") + moved / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += x("kernel_launch")


def _exchanges(block: Block, work: Work) -> tuple[Expr, Expr, Expr]:
    """Return the communication times after attention, before the feed-forward layer and after it."""
    if work.exchange == "none":
        return S.Zero, S.Zero, S.Zero
    half = _sum_of(_SENT)
    if work.exchange == "all_reduce" or not any(op.function == "dispatch" for op in block.ops):
        return half, S.Zero, half
    ways = x("tp") * x("attention_dp")
    tokens = cost_for(tokens_of("of a step"), _sent(block).elements) * x("result_bits") / 8
    if work.exchange == "gather":
        everywhere = tokens * x("attention_dp")
        kinds = ("all_gather", "reduce_scatter")
        there, back = (collective(kind, everywhere, ways, near_of(ways, S.One)) for kind in kinds)
    else:
        sent, near = x("fullest_share") * tokens / x("tp") * x("visited_devices"), near_of(x("ep"), S.One)
        sizes = sent * x("activation_bits") / x("result_bits"), sent
        there, back = (collective("all_to_all", size, x("ep"), near) for size in sizes)
    return half, there, back


# Attention


def _add_attention(total, block: Block, latent: bool, work: Work) -> None:
    """Add attention, averaged over layers with a sliding window and layers with the whole context."""
    split, windows = on_device(cached(block)), x("window_layers") / x("layers")
    core = [split[name] for name in attention_core(split)]
    for share, within in ((1 - windows, None), (windows, x("window"))):
        if work.decodes:
            total["cache_time"] += share * x("fullest_group") * _decoded(core, latent, within)
            total["launches_time"] += share * x("read_launch")
        if work.reads:
            total["reading_time"] += share * _prompted(None if latent else split, within)
            total["launches_time"] += share * x("prompt_launch")
    if latent and work.decodes:  # queries are projected to the latent width, and results out of it
        for name in ("q_absorbed", "mix"):
            _add_parts(total, _product((split[name],), "decoded"))


def _add_cores(total, block: Block, work: Work) -> None:
    """Add kernels that have no formula of their own: each takes its arithmetic or its traffic, whichever is longer."""
    cores, read = core_kernels(block), x("past") + x("read_chunk")
    stages = [("cache_time", tokens_of("decoded"), x("context"), x("context"))] if work.decodes else []
    if work.reads:  # half of the chunk's pairs are masked
        stages.append(("reading_time", tokens_of("of prompts"), read, read - x("read_chunk") / 2))
    first = any(op.function in ("conv", "append", "compress") for op in block.ops)  # a kernel before those
    for part, tokens, cached_keys, keys in stages:
        total["launches_time"] += (len(cores) + first) * x("kernel_launch")
        reached = x("read_efficiency" if part == "cache_time" else "prompt_efficiency")
        for kernel, names in cores.items():
            ops, most = [block[name] for name in names], _most_keys(kernel, cores)
            flops = cost_for({**tokens, x("context"): most(keys)}, Add(*(op.flops for op in ops)))
            rate = x("stream_efficiency") if kernel == "state" else reached
            streamed = _moved(ops, {**tokens, x("context"): most(cached_keys)}) / (rate * x("hbm_bandwidth"))
            time = Max(flops / (x("attention_peak") * x("matmul_bf16")), streamed, evaluate=False)
            total[part] += time * (x("fullest_group") if part == "cache_time" else 1)


def _most_keys(kernel: str, cores: Mapping) -> Callable[[Expr], Expr]:
    """Return the limit on the keys that a query reads: its window, or the keys that an indexer picks."""
    limit = None
    if kernel == "flash" and (len(cores) == 1 or {"entries", "index"} & cores.keys()):
        limit = x("index_tokens") if "index" in cores and "entries" not in cores else x("window")
    if kernel == "entries" and "index" in cores:
        limit = x("index_tokens") * x("entry_tokens")
    return lambda keys: keys if limit is None else Min(keys, limit, evaluate=False)


def _moved(ops: list[Op], tokens: Mapping) -> Expr:
    """Return the bytes that lines of the listing move as one kernel, with activations in the width of results."""
    inner = frozenset(t.name for op in ops[:-1] for t in op.outs if t.kind != "fp32")  # a state is written
    return cost_for({**tokens, x("activation_bits"): x("result_bits")}, Kernel("", tuple(ops), inner).traffic)


def _decoded(core: list[Op], latent: bool, within: Expr | None) -> Expr:
    """Return the time in which decoding sequences attend to their caches, without the launch."""
    context = x("context") if within is None else Min(x("context"), within, evaluate=False)
    tokens = tokens_of("decoded") | {x("context"): context}
    return fused.decode_kernel_time.of(
        launch_time=S.Zero, batch=x("device_batch"), kv_heads=S.One if latent else HELD_HEADS,
        traffic=_moved(core, tokens), bandwidth_efficiency=x("read_efficiency"),
        flops=cost_for(tokens, Add(*(op.flops for op in core))), peak_flops=x("attention_peak"),
    )  # fmt: skip


def _prompted(block: Block | None, within: Expr | None = None) -> Expr:
    """Return the time in which prompts are cached and attended to, without the launch.

    `block` is a device's part with its cache, or None for latents, which are expanded first, as TensorRT-LLM does.
    Queries pass the kernel that fills the cache, rotated or not.
    """
    chunk, heads, bits = x("read_chunk"), x("heads") / x("tp"), x("result_bits")
    shape, context = dict(batch=x("prompts"), seq=chunk, heads=heads, activation_bits=bits), x("past") + chunk
    if block:
        core = [block[name] for name in attention_core(block)]
        moved, appended = _moved(core, tokens_of("of prompts")), _appended(block, core)
    else:
        core = [on_device(MLA)[name] for name in attention_core(MLA)]
        moved = latent_prompt_traffic.of(**shape, context=context, kv_bits=bits)
        appended = fused.latent_append_traffic.of(**shape)
    one = dict.fromkeys(map(x, ("batch", "seq", "context")), S.One)
    width = cost_for(one, Add(*(op.flops for op in core))) / (4 * heads)  # half of a pair's width
    if within is None:
        pairs = fused.tiled_pairs.of(seq=chunk, context=context)
    else:  # all earlier tokens, and the causal triangle within the chunk
        pairs = chunk * Min(within, x("past") + chunk / 2, evaluate=False)
    known = dict(append_traffic=appended, traffic=moved, head_dim=width, peak_flops=x("attention_peak"))
    return fused.prefill_kernel_time.of(**known, busy_pairs=x("prompts") * heads * pairs) - x("prompt_launch")


def _appended(block: Block, core: list[Op]) -> Expr:
    """Return the bytes that the kernel before attention moves: it reads all projections, and fills the cache."""
    queries = sum(t.elements for t in core[0].args if t.kind != "cache")
    new = sum(op.args[0].elements for op in block.ops if op.function == "append")
    bits = queries * 2 * x("result_bits") + new * (x("result_bits") + x("kv_bits"))
    return cost_for(tokens_of("of prompts"), bits) / 8


# Outside the blocks


def beside_blocks(work: Work) -> dict[str, Expr]:
    """Return the time of a step outside the blocks, by part: what pipeline stages send, and the head."""
    total: dict[str, Expr] = defaultdict(lambda: S.Zero)
    split = shard(HEAD, "tp", "vocab")
    drawn = (x("device_batch") if work.decodes else S.Zero) + (x("prompts") if work.reads else S.Zero)
    logits = split["fp32_logits"]
    weight = next(t for t in logits.args if t.is_weight)
    read = weight.elements * x("result_bits") / 8
    _add_parts(total, _price(logits.products[0]._replace(rows=drawn), read, _IN_16_BITS))
    vocabulary = drawn * x("vocab") / x("tp")
    moved = 2 * _SENT + drawn * x("hidden") * x("result_bits") / 4 + 2 * vocabulary * x("fp32_bits") / 8
    total["streams_time"] += moved / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += 3 * x("kernel_launch")
    if work.exchange != "none":
        gathered = drawn * x("vocab") * x("result_bits") / 8
        sent = (x("pp") - 1) * collective("send", _SENT, Integer(2), _inside())
        total["exchange_time"] += collective("all_gather", gathered, x("tp"), near_of(x("tp"), S.One)) + sent
    return total
