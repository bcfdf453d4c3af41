"""The kernels of a step of serving: what a block's listing says, priced part by part.

Products, norms and activations work on all tokens of a step alike.  Attention does not: sequences that are decoded
read a cache, prompts attend to themselves and to what was read of them before.  What a kernel takes is told apart: its
launch, the weights that it reads, and the rest.

>>> from scalebook.block import LLAMA
>>> sorted(step_parts(LLAMA, None, Work("decode"))) == sorted(PARTS)
True
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sympy import Expr, Integer, Max, Min, S, ceiling

from scalebook.attention.arithmetic import attention_flops, full_pairs, pair_width_absorbed, pair_width_latent
from scalebook.attention.kernels import (
    absorbed_traffic,
    append_traffic,
    decode_kernel_time,
    latent_append_traffic,
    least_traffic,
    prefill_kernel_time,
    tiled_pairs,
)
from scalebook.block import HEAD, Block, Hybrid, kinds_of, shard, state_core
from scalebook.block.operations import base
from scalebook.block.transformations import attention_core
from scalebook.block.work import launched
from scalebook.inference.picked import indexed_parts, linear_parts
from scalebook.language import symbol
from scalebook.machine import kernels
from scalebook.machine.collectives import collective, near_of

__all__ = ["PARTS", "Work", "beside_blocks", "counted", "held", "on_device", "put", "step_parts", "stretches"]

PARTS = (
    "weights_time", "products_time", "cache_time", "reading_time", "experts_time", "routing_time", "streams_time",
    "exchange_time", "launches_time",
)  # fmt: skip
_WIDE = ("Wrouter", "Wk_up", "Wv_up")  # kept in 16 bits: routers, and what latent attention absorbs
_FUSED = ("rope", "add", "topk", "dispatch", "combine", "pick", "conv")
x = symbol


@dataclass(frozen=True)
class Work:
    """What a step does: "decode", "prefill" or "mixed"; how tokens reach their experts; and what hides messages.

    `exchange` is "all_reduce" (every device of a group has all tokens), "all_to_all" (tokens are sent to their
    experts) or "gather" (all tokens are gathered, and sums scattered); "none" on one device.  `overlap` is "none", or
    "half_batches": two halves of the tokens pass the blocks in turn, one computing while the other exchanges.
    """

    phase: str
    exchange: str = "all_reduce"
    overlap: str = "none"

    @property
    def passes(self) -> int:
        """Batches that pass the blocks in a step, each with its part of the tokens."""
        return 2 if self.overlap == "half_batches" else 1

    @property
    def decodes(self) -> bool:
        return self.phase != "prefill"

    @property
    def reads(self) -> bool:
        return self.phase != "decode"


@cache
def step_parts(dense: Block | None, moe: Block | None, work: Work) -> dict[str, Expr]:
    """The parts of a step's time: those of its dense and of its mixture-of-experts blocks, and of its head.

    A pipeline's stages pass a step on one after another, so all blocks count.  These are of one pass: what half
    batches make of them says `scalebook.inference.halves`.
    """
    total = beside_blocks(work)
    for block, count in counted(dense, moe):
        first, second = stretches(block, work)
        for part in {**first, **second}:
            total[part] += count * (first.get(part, S.Zero) + second.get(part, S.Zero))
    return {part: total[part] for part in PARTS}


def beside_blocks(work: Work) -> dict[str, Expr]:
    """The parts of a step's time that are of its head, and of what a pipeline's stages send."""
    total = _head(work)
    total["exchange_time"] += (x("pp") - 1) * collective("send", _bytes("hidden"), Integer(2), _inside())
    if work.exchange == "none":
        total["exchange_time"] = S.Zero
    return total


def put(expr: Expr, places: Mapping, made: dict) -> Expr:
    """An expression with others in the place of letters; SymPy would compare again what each Max and Min holds."""
    if expr in places or not expr.args:
        return places.get(expr, expr)
    if expr not in made:
        args = [put(x, places, made) for x in expr.args]
        kept = {"evaluate": False} if isinstance(expr, Max | Min | ceiling) else {}
        made[expr] = expr.func(*args, **kept)
    return made[expr]


def counted(dense: Block | Hybrid | None, moe: Block | Hybrid | None) -> list[tuple[Block, Expr]]:
    """Each kind of block, and how many layers are of it."""
    share = x("moe_layers") if dense else x("layers")
    both = (dense, x("layers") - share if moe else x("layers")), (moe, share)
    return [(kind, count * part) for block, count in both for kind, part in kinds_of(block)]


def _inside() -> Expr:
    """Devices of a pipeline's pair within one scale-up domain."""
    return 1 + Min(1, Max(0, x("scaleup_size") - x("tp") * x("attention_dp"), evaluate=False), evaluate=False)


def _bytes(*widths: str) -> Expr:
    """Bytes of the step's tokens at these widths."""
    size = x("pass_tokens") * x("result_bits") / 8
    for width in widths:
        size *= x(width)
    return size


def on_device(block: Block) -> Block:
    """Heads and widths split over the devices that attend together; an expert's width over those that share it."""
    dealt = ("heads", "kv_heads", "ffn", "shared_ffn", "vocab", "linear_key_heads")
    widths = [n for n in dealt if n in block.indices]
    split = shard(block, "tp", *widths)
    return shard(split, "etp", "expert_ffn") if "expert_ffn" in block.indices else split


def held(cost: Expr) -> Expr:
    """A cost where of fewer key-value heads than devices each device has one whole."""
    return cost.xreplace({x("kv_heads"): Max(x("kv_heads"), x("tp"), evaluate=False)})


def _tokenwise(cost: Expr) -> Expr:
    """The tokens of a step in the place of sequences and their lengths."""
    return held(cost.xreplace({x("batch"): x("pass_tokens"), x("seq"): S.One}))


@cache
def stretches(block: Block, work: Work) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """The parts of a block's time up to the sum after attention, and after it; messages are those at the end of each.

    >>> from scalebook.block import LLAMA
    >>> first, second = stretches(LLAMA, Work("decode"))
    >>> "cache_time" in first, "cache_time" in second
    (True, False)
    """
    first, second = (defaultdict(lambda: S.Zero) for _ in range(2))
    split = on_device(block)
    indexed, linear = "index_heads" in split.indices, "linear_key_heads" in split.indices
    core, latent = _core(split), "kv_rank" in split.indices and not indexed
    names_of_first = {op.name for op in split.ops[: split.ops.index(split["x2"])]}
    for group in launched(split):
        ops = [op for kernel in group for op in kernel.ops]
        names = {op.name for op in ops}
        weights = [t for op in ops for t in op.args if t.is_weight]
        total = first if names <= names_of_first else second
        if names & core or any(op.function in _FUSED for op in ops):
            continue  # attention, routing and what norms are fused with: below
        if ops[0].function:
            _add_stream(total, ops[0])
        elif any(t.is_routed for t in weights):
            _add_experts(total, ops)
        elif names & {"k_nope", "v"} and latent:  # latents are expanded for prompts only
            if work.reads:
                _add_product(total, ops, weights, x("prompts") * x("read_chunk"))
        else:
            _add_product(total, ops, weights, x("pass_tokens"))
    if indexed or linear:
        whole = [_latent_prompt(None) - x("prompt_launch")] if indexed else []
        parts = (indexed_parts if indexed else linear_parts)(work.decodes, work.reads, *whole)
        for part, time in parts.items():
            first[part] += time * (x("fullest_group") if part == "cache_time" else 1)
    else:
        _add_attention(first, split, latent, work)
    routed = any(op.function == "dispatch" for op in split.ops)
    if routed:
        _add_routing(second)
    for half in (first, second):
        half["launches_time"] += x("scale_kernels") / 2 * x("kernel_launch")
    first["exchange_time"], second["exchange_time"] = _exchanges(routed, work)
    if work.exchange != "none":
        first["exchange_time"] += x("norm_sums") * _norm_sum()
    return first, second


def _core(block: Block) -> set[str]:
    """The lines that are attention: from scores to weighted values, an indexer's scores, a state."""
    if state := state_core(block):
        return set(state)
    scores = {op.name for op in block.ops if any(base(i) == "context" for i in op.outs[0].indices)}
    return scores | set(attention_core(block))


def _norm_sum() -> Expr:
    """Queries and keys that are normed over all heads: their sums of squares are added over the devices."""
    return _sum_of(x("pass_tokens") * x("fp32_bits") / 8)


def _sum_of(size: Expr) -> Expr:
    """A sum over the devices that attend together, by the kernel that the engine brings along for it."""
    own = {x("collective_launch"): x("sum_launch"), x("near_latency"): x("sum_latency")}
    return put(collective("all_reduce", size, x("tp"), near_of(x("tp"), S.One)), own, {})


def _add_stream(total, op) -> None:
    """A norm of the residual is fused with the sum before it; norms within attention and activations stand alone."""
    elements = _tokenwise(op.args[0].elements)
    results = x("result_bits") / 8
    if base(op.args[0].indices[-1]) == "hidden" and op.function.endswith("norm"):
        moved = elements * (3 * results + x("activation_bits") / 8)
    elif op.function.endswith("norm"):
        moved = elements * 2 * results
    elif base(op.args[0].indices[0]) == "experts":
        return  # its passes are counted with routing
    else:
        moved = elements * (sum(1 for _ in op.args) * results + x("activation_bits") / 8)
    total["streams_time"] += moved / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += x("kernel_launch")


def _add_product(total, ops, weights, rows) -> None:
    """Products of tokens and dense weights, those that read the same tokens as one."""
    first = ops[0].products[0]
    columns = sum((_tokenwise(op.products[0].columns) for op in ops), S.Zero)
    copies, inner = _tokenwise(first.copies), _tokenwise(first.inner)
    wide = any(t.name in _WIDE for t in weights)
    bits = x("result_bits") if wide else x("weight_bits")
    read = sum((_tokenwise(t.elements) for t in weights), S.Zero) * bits / 8
    rates = (x("attention_peak"), x("matmul_bf16")) if wide else (x("peak_flops"), x("matmul_efficiency"))
    _price(total, (rows, columns, inner, copies), read, rates, "products_time")


def _price(total, size, read, rates, part) -> None:
    """Launch apart; weights at the rate of streams; and what the product takes beyond."""
    rows, columns, inner, copies = size
    peak, reached = rates
    moved = copies * rows * (inner * x("activation_bits") + columns * x("result_bits")) / 8 + read
    half = kernels.inner_half.of(activation_bits=x("result_bits"), peak_flops=peak)
    # grouped products do not share an inner size between cores
    kernel = kernels.matmul_time if part == "experts_time" else kernels.matmul_time_split
    whole = kernel.of(
        rows=rows,
        columns=columns,
        inner=inner,
        copies=copies,
        traffic=moved,
        peak_flops=peak,
        matmul_efficiency=reached,
        inner_half=half,
        kernel_launch=S.Zero,
    )
    streamed = read / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += x("kernel_launch")
    if part == "experts_time":
        total[part] += whole
    else:
        total["weights_time"] += streamed
        total[part] += whole - streamed


def _add_experts(total, ops) -> None:
    """Grouped products: of each expert that a step visits, as many rows as it has tokens on the fullest device."""
    columns = sum((op.products[0].columns for op in ops), S.Zero)
    inner, copies = ops[0].products[0].inner, x("local_experts")
    read = copies * columns * inner * x("expert_bits") / 8
    rates = x("expert_peak"), x("expert_efficiency")
    rows = x("fullest_share") * x("expert_rows")
    _price(total, (rows, columns, inner, copies), read, rates, "experts_time")


def _add_routing(total) -> None:
    """Tokens sorted by expert, and copied, quantized, weighted and summed around the products."""
    copied = x("assigned_passes") * x("hidden") + 3 * x("expert_ffn") / x("etp")
    worked = x("fullest_share") * x("assigned_tokens") * copied
    moved = (2 * x("pass_tokens") * x("hidden") + worked) * x("result_bits") / 8
    total["routing_time"] += x("routing_time_least") + moved / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += x("kernel_launch")


def _exchanges(routed: bool, work: Work) -> tuple[Expr, Expr]:
    """Sums over the devices that attend together after each half of a block, or tokens sent to their experts."""
    if work.exchange == "none":
        return S.Zero, S.Zero
    whole = _bytes("hidden")
    half = _sum_of(whole)
    if not routed or work.exchange == "all_reduce":
        return half, half
    ways = x("tp") * x("attention_dp")
    if work.exchange == "gather":
        everywhere = whole * x("attention_dp")
        kinds = ("all_gather", "reduce_scatter")
        there, back = (collective(kind, everywhere, ways, near_of(ways, S.One)) for kind in kinds)
    else:
        sent, near = x("fullest_share") * whole / x("tp") * x("visited_devices"), near_of(x("ep"), S.One)
        sizes = sent * x("activation_bits") / x("result_bits"), sent
        there, back = (collective("all_to_all", size, x("ep"), near) for size in sizes)
    return half + there, back


# Attention


def _add_attention(total, block: Block, latent: bool, work: Work) -> None:
    """Blocks that slide attend to their window, the others to the whole context: the mean over them."""
    windows = x("window_layers") / x("layers")
    for share, within in ((1 - windows, None), (windows, x("window"))):
        if work.decodes:
            time = (_latent_read if latent else _grouped_read)(within)
            total["cache_time"] += share * x("fullest_group") * (time - x("read_launch"))
            total["launches_time"] += share * x("read_launch")
        if work.reads:
            time = (_latent_prompt if latent else _grouped_prompt)(within)
            total["reading_time"] += share * (time - x("prompt_launch"))
            total["launches_time"] += share * x("prompt_launch")
    if latent and work.decodes:  # queries turned into latents' width and results out of it, in 16 bits
        heads, rows = x("heads") / x("tp"), x("device_batch")
        for inner, columns in ((x("nope_dim"), x("kv_rank")), (x("kv_rank"), x("v_dim"))):
            read = heads * inner * columns * x("result_bits") / 8
            rates = x("attention_peak"), x("matmul_bf16")
            _price(total, (rows, columns, inner, heads), read, rates, "products_time")


def _seen(within: Expr | None) -> Expr:
    return Min(x("context"), within, evaluate=False) if within is not None else x("context")


def _grouped_read(within) -> Expr:
    heads, kv_heads = x("heads") / x("tp"), Max(1, x("kv_heads") / x("tp"), evaluate=False)
    shape = dict(batch=x("device_batch"), heads=heads, seq=S.One, context=_seen(within))
    bits = dict(query_bits=x("result_bits"), activation_bits=x("result_bits"))
    flops = 4 * x("device_batch") * _seen(within) * heads * x("head_dim")
    return _read(kv_heads, least_traffic.of(**shape, **bits, kv_heads=kv_heads), flops)


def _latent_read(within) -> Expr:
    shape = dict(batch=x("device_batch"), seq=S.One, context=_seen(within))
    bits = dict(query_bits=x("result_bits"), activation_bits=x("result_bits"))
    width = pair_width_absorbed.of(heads=x("heads") / x("tp"))
    pairs = full_pairs.of(seq=S.One, context=_seen(within))
    flops = attention_flops.of(batch=x("device_batch"), pairs=pairs, pair_width=width)
    return _read(S.One, absorbed_traffic.of(**shape, **bits, heads=x("heads") / x("tp")), flops)


def _read(kv_heads, traffic, flops) -> Expr:
    return decode_kernel_time.of(
        launch_time=x("read_launch"),
        batch=x("device_batch"),
        kv_heads=kv_heads,
        traffic=traffic,
        bandwidth_efficiency=x("read_efficiency"),
        flops=flops,
        peak_flops=x("attention_peak"),
    )


def _pairs(within) -> Expr:
    """Queries of a chunk and what they meet: all that was read before, and the triangle among themselves."""
    if within is None:
        return tiled_pairs.of(seq=x("read_chunk"), context=x("past") + x("read_chunk"))
    return x("read_chunk") * Min(within, x("past") + x("read_chunk") / 2, evaluate=False)


def _prompt(heads, head_dim, append, traffic, within) -> Expr:
    return prefill_kernel_time.of(
        launch_time=x("prompt_launch"),
        append_traffic=append,
        traffic=traffic,
        bandwidth_efficiency=x("prompt_efficiency"),
        busy_pairs=x("prompts") * heads * _pairs(within),
        head_dim=head_dim,
        peak_flops=x("attention_peak"),
    )


def _grouped_prompt(within) -> Expr:
    heads, kv_heads = x("heads") / x("tp"), Max(1, x("kv_heads") / x("tp"), evaluate=False)
    shape = dict(batch=x("prompts"), heads=heads, kv_heads=kv_heads, seq=x("read_chunk"))
    bits = dict(query_bits=x("result_bits"), activation_bits=x("result_bits"))
    attended = x("past") + x("read_chunk")
    moved = least_traffic.of(**shape, **bits, context=attended)
    return _prompt(heads, x("head_dim"), append_traffic.of(**shape, **bits), moved, within)


def _latent_prompt(within) -> Expr:
    heads = x("heads") / x("tp")
    shape = dict(batch=x("prompts"), heads=heads, seq=x("read_chunk"))
    width = pair_width_latent.of(heads=S.One)
    appended = latent_append_traffic.of(**shape, activation_bits=x("result_bits"))
    keys = x("nope_dim") + x("rope_dim") + x("v_dim")
    moved = x("prompts") * heads * (x("past") + 2 * x("read_chunk")) * keys * x("result_bits") / 8
    return _prompt(heads, width / 2, appended, moved, within)


# The head


def _head(work: Work) -> dict[str, Expr]:
    """Words looked up, the last norm, and logits of one token a sequence; their maxima are found over all devices."""
    total: dict[str, Expr] = defaultdict(lambda: S.Zero)
    split = shard(HEAD, "tp", "vocab")
    drawn = (x("device_batch") if work.decodes else S.Zero) + (x("prompts") if work.reads else S.Zero)
    logits = split["fp32_logits"]
    size = logits.products[0]
    weight = next(t for t in logits.args if t.is_weight)
    read = weight.elements * x("result_bits") / 8
    rates = x("attention_peak"), x("matmul_bf16")
    _price(total, (drawn, size.columns, size.inner, S.One), read, rates, "products_time")
    vocabulary = drawn * x("vocab") / x("tp")
    moved = 2 * _bytes("hidden") + drawn * x("hidden") * x("result_bits") / 4 + 2 * vocabulary * x("fp32_bits") / 8
    total["streams_time"] += moved / (x("stream_efficiency") * x("hbm_bandwidth"))
    total["launches_time"] += 3 * x("kernel_launch")
    gathered = drawn * x("vocab") * x("result_bits") / 8
    total["exchange_time"] += collective("all_gather", gathered, x("tp"), near_of(x("tp"), S.One))
    return total
