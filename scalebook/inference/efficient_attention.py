"""Attention that does not read the whole cache, and hyper-connections, in a serving step.

Such attention is sparse, or has a state. Each function returns times of a block by part of the step, such as
"cache_time", as expressions. The letters of their kernels have the values of `tables/parts.toml`.

What a pair of a query and a key costs, what a state moves and how wide its convolution is come from the block's
listing. The listing does not know an indexer's tiles, a prompt's chunks and the small kernels: these are stated here.

>>> from scalebook.block import block
>>> sorted(state_parts(block("linear", "gated"), "delta", decodes=True, reads=False))
['cache_time', 'launches_time']
"""

from sympy import Add, Expr, Max, Piecewise, S

from scalebook.attention import assumptions, hyper_connections, sparse, states
from scalebook.attention.arithmetic import causal_pairs
from scalebook.block import Block, core_kernels
from scalebook.block.operations import base, derived
from scalebook.inference.device_part import HELD_HEADS, tokens_of
from scalebook.language import symbol
from scalebook.language.notation import replaced

__all__ = ["hyper_parts", "sparse_parts", "state_parts"]

x = symbol


def _shape(which: str) -> dict[str, Expr]:
    """Return the letters of a step's tokens, which `tokens_of` names, for a kernel's formula."""
    return {"context": x("context")} | {letter.name: value for letter, value in tokens_of(which).items()}


def sparse_parts(block: Block, kind: str, decodes: bool, reads: bool, whole: Expr | None = None) -> dict[str, Expr]:
    """Return the time of a layer of sparse attention, its indexer and small kernels by part of the step.

    `block` is a device's part and `kind` a key of `parts.toml`. Prompts up to `dense_tokens` take the time `whole`, if
    it is given. A block without an indexer reads what an earlier block has picked.
    """
    total: dict[str, Expr] = {}
    has_index = "index" in core_kernels(block)
    index = _index if has_index else lambda *_: S.Zero
    if decodes:
        total["cache_time"] = _picked_steps(block, kind) + index(kind, "_steps", _shape("decoded"))
        total["launches_time"] = _launches(has_index, "_steps")
        total["streams_time"] = _small(kind, x("device_batch"), "_steps")
    if reads:
        picked = _picked_prompts(block, kind) + index(kind, "", _shape("of prompts"))
        is_short = _shape("of prompts")["context"] <= x("dense_tokens")
        total["reading_time"] = picked if whole is None else Piecewise((whole, is_short), (picked, True))
        started = _launches(has_index, "_prompts")
        total["launches_time"] = Max(total.get("launches_time", S.Zero), started, evaluate=False)
        small = _small(kind, x("prompts") * x("read_chunk"), "_prompts")
        total["streams_time"] = total.get("streams_time", S.Zero) + small
    return total


def _launches(has_index: bool, phase: str) -> Expr:
    index = x("index_launch_steps" if phase == "_steps" else "index_launch") if has_index else S.Zero
    return x(f"small_launch{phase}") + index


def _small(kind: str, tokens: Expr, phase: str) -> Expr:
    """Return the time of norms, rotation, quantization and the cache: passes over a token's activations."""
    heads = x("heads") / x("tp")
    width = {
        "indexed": 2 * (x("kv_rank") + x("rope_dim") + x("q_rank"))
        + 2 * heads * (x("nope_dim") + x("rope_dim") + x("kv_rank") + x("v_dim")),
        "blocks": x("head_dim") * 4 * (heads + HELD_HEADS),
    }.get(kind, 2 * (x("head_dim") + x("q_rank") + heads * x("head_dim")))
    moved = tokens * (x("hidden") + width) * x("result_bits") / 8
    return x(f"small_passes{phase}") * moved / (x("stream_efficiency") * x("hbm_bandwidth"))


def _index(kind: str, phase: str, shape: dict[str, Expr]) -> Expr:
    """Return the time in which the indexer scores all keys, or all entries of a compressed cache."""
    fewer = x("entry_tokens") if kind == "compressed, indexed" else S.One
    decodes, pairs = phase == "_steps", causal_pairs.of(seq=shape["seq"], context=shape["context"]) / fewer
    known = dict(batch=shape["batch"], pairs=pairs, context=shape["context"] / fewer)
    rates = dict(index_efficiency=x(f"index_efficiency{phase}"))
    if kind == "blocks":  # one head for each key-value head, in 16 bits; of 128 keys the best score is kept
        rates |= dict(index_heads=S.One, index_peak=x("attention_peak"))
        known |= dict(index_bits=x("result_bits"), fp32_bits=x("fp32_bits") * HELD_HEADS / 128)
        busy = shape["batch"] * pairs * HELD_HEADS
    elif decodes:
        busy = shape["batch"] * pairs
    else:
        known_tile = dict(index_rows=128 / x("index_heads"), index_columns=assumptions.index_columns_deepgemm.rhs)
        busy = sparse.index_busy_pairs.of(batch=shape["batch"], seq=shape["seq"], pairs=pairs, **known_tile)
    return sparse.index_tile_time.of(
        index_launch=S.Zero, busy_pairs=busy, traffic=sparse.index_traffic.of(**known), **rates
    )


def _pairs(kind: str, shape: dict[str, Expr]) -> Expr:
    sizes = dict(seq=shape["seq"], context=shape["context"])
    if kind == "compressed":
        return sparse.compressed_pairs.of(**sizes)
    return (sparse.compressed_picked_pairs if kind == "compressed, indexed" else sparse.picked_pairs).of(**sizes)


def _of_a_pair(block: Block, kind: str) -> tuple[Expr, Expr]:
    """Return what one query and one key cost by the block's listing: FLOPs, and cached numbers that are read."""
    core = [block[name] for name in core_kernels(block)["flash"]]
    one = dict.fromkeys((x("batch"), x("seq"), x("context"), derived("picked")), S.One)
    if kind == "blocks":
        held = {x("kv_heads"): x("tp") * HELD_HEADS}
    else:  # whole tiles of heads
        one, held = one | {x("heads"): x("tp") * x("tiled_heads")}, {}
    keys = {t.name: t.elements for op in core for t in op.args if block.is_attended(t)}
    return replaced(Add(*(op.flops for op in core)), one), replaced(Add(*keys.values()), one | held)


def _picked_steps(block: Block, kind: str) -> Expr:
    """Return the time in which each decoding sequence attends to its picked keys."""
    pairs, (flops, numbers) = x("device_batch") * _pairs(kind, _shape("decoded")), _of_a_pair(block, kind)
    tiles = S.One if kind == "blocks" else x("tiled_heads") / x("head_tile")
    return sparse.sparse_kernel_time.of(
        flops=pairs * flops,
        peak_flops=x("attention_peak"),
        traffic=pairs * numbers * x("kv_bits") / 8 * tiles,
        bandwidth_efficiency=x("picked_efficiency"),
    )


def _picked_prompts(block: Block, kind: str) -> Expr:
    """Return the time in which prompts attend to picked keys; queries of neighbours share what caches hold."""
    flops = x("prompts") * _pairs(kind, _shape("of prompts")) * _of_a_pair(block, kind)[0]
    return flops / (x("sparse_efficiency_prompts") * x("attention_peak"))


def state_parts(block: Block, kind: str, decodes: bool, reads: bool) -> dict[str, Expr]:
    """Return the time of a layer with a state by part of the step: its short convolution, and the state's kernel."""
    total: dict[str, Expr] = {}
    if decodes:
        shape = dict(batch=x("device_batch"), seq=S.One)
        state = _moved(block, shape) / (x("state_efficiency_steps") * x("hbm_bandwidth"))
        total["cache_time"] = _convolution(block, shape, "_steps") + state
        total["launches_time"] = x("conv_launch_steps") + x("state_launch_steps") + x("kernel_launch")
    if reads:
        shape = dict(batch=x("prompts"), seq=x("read_chunk"))
        total["reading_time"] = _convolution(block, shape, "_prompts") + _chunks(block, kind, shape)
        launches = x("conv_launch_prompts") + x("state_launch_prompts") + x("kernel_launch")
        total["launches_time"] = total.get("launches_time", S.Zero) + launches
    return total


def _moved(block: Block, shape: dict[str, Expr]) -> Expr:
    """Return the bytes that the state's kernel moves by the listing, without weights and the few numbers of a head."""
    lines = [block[name] for name in core_kernels(block)["state"]]
    made = {t.name for op in lines for t in op.outs}
    moved = {t.name: t for op in lines for t in op.args if not (t.is_weight or t.name in made)}
    moved |= {t.name: t for op in lines for t in op.outs if t.is_fp32 or op is lines[-1]}
    wide = (t for t in moved.values() if any(base(i).endswith("_dim") for i in t.indices))
    bits = {x("activation_bits"): x("result_bits"), x("fp32_bits"): x("linear_bits")}
    return replaced(Add(*(t.bytes for t in wide)), bits | {x(n): y for n, y in shape.items()})


def hyper_parts() -> dict[str, Expr]:
    """Return the time of a block's hyper-connections by part: before and after each of its two parts."""
    sites = assumptions.hyper_sites.rhs
    tokens = dict(pass_tokens=x("pass_tokens"), streams=x("streams"), hidden=x("hidden"))
    traffic = hyper_connections.hyper_traffic.of(**tokens, activation_bits=x("result_bits"))
    before = hyper_connections.hyper_time.of(
        hyper_sites=sites, launch_time=S.Zero, kernel_efficiency=x("hyper_efficiency"), peak_flops=x("attention_peak"),
        flops=hyper_connections.hyper_flops.of(**tokens, sinkhorn_steps=assumptions.sinkhorn_twenty.rhs),
        traffic=traffic, resident_share=S.Zero, l2_bandwidth=S.One, bandwidth_efficiency=x("hyper_bandwidth"),
    )  # fmt: skip
    after = sites * traffic / (x("hyper_bandwidth_after") * x("hbm_bandwidth"))
    return {"streams_time": before + after, "launches_time": sites * (x("hyper_launch") + x("hyper_launch_after"))}


def _state_time(items: Expr, steps: Expr, traffic: Expr, **rates: Expr) -> Expr:
    return states.state_kernel_time.of(
        launch_time=S.Zero, kernel_items=items, kernel_steps=steps, traffic=traffic, resident_share=S.Zero, **rates
    )


def _convolution(block: Block, shape: dict[str, Expr], phase: str) -> Expr:
    entering = Add(*(op.args[0].elements for op in block.ops if op.function == "conv"))
    width = replaced(entering, dict.fromkeys(map(x, ("batch", "seq")), S.One))
    tile = dict(conv_tokens=S.One if phase == "_steps" else assumptions.conv_tokens_triton.rhs)
    items = states.conv_items.of(**shape, **tile, conv_width=width, conv_channels=assumptions.conv_channels_triton.rhs)
    moved = states.conv_traffic.of(**shape, conv_width=width, activation_bits=x("result_bits"))
    rates = dict(core_time=x(f"conv_core{phase}"), bandwidth_efficiency=x(f"conv_efficiency{phase}"))
    return _state_time(items, S.Zero, moved, chunk_step=S.Zero, **rates)


def _chunks(block: Block, kind: str, shape: dict[str, Expr]) -> Expr:
    heads = {n: x(n) / x("tp") for n in ("linear_key_heads", "linear_value_heads")}
    if kind == "mamba":  # no row holds Mamba-2's scan: a share of the rates of its products and traffic
        flops = states.ssd_flops.of(**shape, **heads)
        moved = states.ssd_traffic.of(**shape, **heads, activation_bits=x("result_bits"))
        streamed = moved / (x("stream_efficiency") * x("hbm_bandwidth"))
        return (flops / (x("attention_peak") * x("matmul_bf16")) + streamed) / x("scan_efficiency")
    items = states.chunk_items.of(**shape, linear_value_heads=heads["linear_value_heads"])
    rates = dict(core_time=x("state_core_prompts"), chunk_step=x("state_step_prompts"))
    steps, moved = states.chunk_steps.of(seq=shape["seq"]), _moved(block, shape)
    return _state_time(items, steps, moved, **rates, bandwidth_efficiency=x("state_efficiency_prompts"))
