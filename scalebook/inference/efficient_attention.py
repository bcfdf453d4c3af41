"""Attention that does not read the whole cache, and hyper-connections, in a serving step.

Such attention is sparse, or has a state. Each function returns times of a block by part of the step, such as
"cache_time", as expressions. The letters of their kernels have the values of `tables/parts.toml`.

>>> sorted(state_parts("delta", decodes=True, reads=False))
['cache_time', 'launches_time']
"""

from functools import cache

from sympy import Expr, Max, Piecewise, S

from scalebook.attention import assumptions, hyper_connections, sparse, states
from scalebook.attention.arithmetic import attention_flops, causal_pairs, pair_width_absorbed, pair_width_grouped
from scalebook.language import symbol

__all__ = ["hyper_parts", "sparse_parts", "state_parts"]

x = symbol
_DECODED = dict(batch=x("device_batch"), seq=S.One, context=x("context"))


@cache  # SymPy's first sum loads its tensors, which no import needs
def _read() -> dict[str, Expr]:
    return dict(batch=x("prompts"), seq=x("read_chunk"), context=x("past") + x("read_chunk"))


def sparse_parts(kind: str, decodes: bool, reads: bool, whole: Expr | None = None) -> dict[str, Expr]:
    """Return the time of a layer of sparse attention, its indexer and small kernels by part of the step.

    `kind` is a key of `parts.toml`. Prompts up to `dense_tokens` take the time `whole`, if it is given.
    """
    total: dict[str, Expr] = {}
    if decodes:
        total["cache_time"] = _index(kind, "_steps", _DECODED) + _picked_steps(kind)
        total["launches_time"] = _launches(kind, "_steps")
        total["streams_time"] = _small(kind, x("device_batch"), "_steps")
    if reads:
        picked = _index(kind, "", _read()) + _picked_prompts(kind)
        is_short = _read()["context"] <= x("dense_tokens")
        total["reading_time"] = picked if whole is None else Piecewise((whole, is_short), (picked, True))
        total["launches_time"] = Max(total.get("launches_time", S.Zero), _launches(kind, "_prompts"), evaluate=False)
        small = _small(kind, x("prompts") * x("read_chunk"), "_prompts")
        total["streams_time"] = total.get("streams_time", S.Zero) + small
    return total


def _has_index(kind: str) -> bool:
    return kind != "compressed"


def _launches(kind: str, phase: str) -> Expr:
    index = x("index_launch_steps" if phase == "_steps" else "index_launch") if _has_index(kind) else S.Zero
    return x(f"small_launch{phase}") + index


def _small(kind: str, tokens: Expr, phase: str) -> Expr:
    """Return the time of norms, rotation, quantization and the cache: passes over a token's activations."""
    heads = x("heads") / x("tp")
    width = {
        "indexed": 2 * (x("kv_rank") + x("rope_dim") + x("q_rank"))
        + 2 * heads * (x("nope_dim") + x("rope_dim") + x("kv_rank") + x("v_dim")),
        "blocks": x("head_dim") * 4 * (heads + _kv_heads()),
    }.get(kind, 2 * (x("head_dim") + x("q_rank") + heads * x("head_dim")))
    moved = tokens * (x("hidden") + width) * x("result_bits") / 8
    return x(f"small_passes{phase}") * moved / (x("stream_efficiency") * x("hbm_bandwidth"))


def _kv_heads() -> Expr:
    return Max(1, x("kv_heads") / x("tp"), evaluate=False)


def _index(kind: str, phase: str, shape: dict[str, Expr]) -> Expr:
    """Return the time in which the indexer scores all keys, or all entries of a compressed cache."""
    if not _has_index(kind):
        return S.Zero
    fewer = x("entry_tokens") if kind == "compressed, indexed" else S.One
    decodes, pairs = phase == "_steps", causal_pairs.of(seq=shape["seq"], context=shape["context"]) / fewer
    known = dict(batch=shape["batch"], pairs=pairs, context=shape["context"] / fewer)
    rates = dict(index_efficiency=x(f"index_efficiency{phase}"))
    if kind == "blocks":  # one head for each key-value head, in 16 bits; of 128 keys the best score is kept
        rates |= dict(index_heads=S.One, index_peak=x("attention_peak"))
        known |= dict(index_bits=x("result_bits"), fp32_bits=x("fp32_bits") * _kv_heads() / 128)
        busy = shape["batch"] * pairs * _kv_heads()
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


def _flops(kind: str, batch: Expr, pairs: Expr) -> Expr:
    heads = x("tiled_heads") if kind != "blocks" else x("heads") / x("tp")
    width = (pair_width_absorbed if kind == "indexed" else pair_width_grouped).of(heads=heads)
    return attention_flops.of(batch=batch, pairs=pairs, pair_width=width)


def _picked_steps(kind: str) -> Expr:
    """Return the time in which each decoding sequence attends to its picked keys."""
    pairs = _pairs(kind, _DECODED)
    bits = {"indexed": sparse.pair_bits_latent.of(), "blocks": sparse.pair_bits_grouped.of(kv_heads=_kv_heads())}
    tiles = S.One if kind == "blocks" else x("tiled_heads") / x("head_tile")
    return sparse.sparse_kernel_time.of(
        flops=_flops(kind, x("device_batch"), pairs),
        peak_flops=x("attention_peak"),
        traffic=x("device_batch") * pairs * bits.get(kind, sparse.pair_bits_shared.of()) / 8 * tiles,
        bandwidth_efficiency=x("picked_efficiency"),
    )


def _picked_prompts(kind: str) -> Expr:
    """Return the time in which prompts attend to picked keys; queries of neighbours share what caches hold."""
    flops = _flops(kind, x("prompts"), _pairs(kind, _read()))
    return flops / (x("sparse_efficiency_prompts") * x("attention_peak"))


def state_parts(kind: str, decodes: bool, reads: bool) -> dict[str, Expr]:
    """Return the time of a layer with a state by part of the step: its short convolution, and the state's kernel."""
    heads = {n: x(n) / x("tp") for n in ("linear_key_heads", "linear_value_heads")}
    wide = dict(heads, activation_bits=x("result_bits"))
    total: dict[str, Expr] = {}
    if decodes:
        shape = dict(batch=x("device_batch"), seq=S.One)
        moved = states.recurrent_traffic.of(**shape, **wide, key_gates=S(int(kind == "kimi delta")))
        state = moved / (x("state_efficiency_steps") * x("hbm_bandwidth"))
        total["cache_time"] = _convolution(shape, wide, "_steps") + state
        total["launches_time"] = x("conv_launch_steps") + x("state_launch_steps") + x("kernel_launch")
    if reads:
        shape = dict(batch=x("prompts"), seq=x("read_chunk"))
        total["reading_time"] = _convolution(shape, wide, "_prompts") + _chunks(kind, shape, wide, heads)
        launches = x("conv_launch_prompts") + x("state_launch_prompts") + x("kernel_launch")
        total["launches_time"] = total.get("launches_time", S.Zero) + launches
    return total


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


def _convolution(shape, wide, phase: str) -> Expr:
    width = states.conv_width.of(**{n: y for n, y in wide.items() if n != "activation_bits"})
    tile = dict(conv_tokens=S.One if phase == "_steps" else assumptions.conv_tokens_triton.rhs)
    items = states.conv_items.of(**shape, **tile, conv_width=width, conv_channels=assumptions.conv_channels_triton.rhs)
    moved = states.conv_traffic.of(**shape, conv_width=width, activation_bits=wide["activation_bits"])
    rates = dict(core_time=x(f"conv_core{phase}"), bandwidth_efficiency=x(f"conv_efficiency{phase}"))
    return _state_time(items, S.Zero, moved, chunk_step=S.Zero, **rates)


def _chunks(kind: str, shape, wide, heads) -> Expr:
    if kind == "mamba":  # no row holds Mamba-2's scan: a share of the rates of its products and traffic
        flops = states.ssd_flops.of(**shape, **heads)
        moved = states.ssd_traffic.of(**shape, **wide) / (x("stream_efficiency") * x("hbm_bandwidth"))
        return (flops / (x("attention_peak") * x("matmul_bf16")) + moved) / x("scan_efficiency")
    items = states.chunk_items.of(**shape, linear_value_heads=heads["linear_value_heads"])
    moved = states.state_prompt_traffic.of(**shape, **wide, key_gates=S(int(kind == "kimi delta")))
    rates = dict(core_time=x("state_core_prompts"), chunk_step=x("state_step_prompts"))
    steps = states.chunk_steps.of(seq=shape["seq"])
    return _state_time(items, steps, moved, **rates, bandwidth_efficiency=x("state_efficiency_prompts"))
