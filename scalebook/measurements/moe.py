"""Experts as published: their grouped products alone, and a whole layer of them with its routing.

An expert works on the tokens sent to it, so its products are `scalebook.machine.kernels` with few rows, one copy for
each expert that a token visits.
"""

from functools import cache

import numpy as np

from scalebook.inference.assumptions import routing_time_least
from scalebook.machine.kernels import matrix_product, stream_time, tile_rows
from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .kernels import FORMATS, NO_SPLIT, SCALED_BLOCKS, at_peaks
from .rows import SYSTEMS, is_even, number

__all__ = [
    "CONFRONTATIONS", "COPY_PASSES", "GROUPED_PRODUCTS", "H20_FP8", "ROUTING", "SCALING", "UNPACKED", "layer_seconds",
    "uneven_loads",
]  # fmt: skip

# What fp8 products reach of the H20's peak, fitted on the even rows of 512 tokens an expert or more: 0.85 to 0.89 do
# equally.
H20_FP8 = 0.86
# The kernels that sort tokens by expert, in seconds, and how often copies of tokens pass through memory beyond the
# operands of the products; fitted on the even rows of even loads.
ROUTING, COPY_PASSES = routing_time_least(), 4
# With a scale for each 128 inputs, a kernel before each product turns copies of tokens into 8 bits.  TensorRT-LLM runs
# that of grouped products in one block of 8 warps a core (fp8_blockscale_gemm_kernel.cuh), each of which waits for its
# 128 numbers: a core's seconds for one of them, 0.66 us for a turn of all warps, about what memory takes to answer,
# whatever its bandwidth.  Fitted on the same rows.
SCALING = 0.66e-6 / (8 * 128)
# What grouped products reach: the weights of many experts are one long stream, fitted on the even rows of even loads;
# and the A100's kernels are not those of its dense products, fitted on its even rows of uneven loads from 1,024 tokens.
_LONG = {"stream_efficiency": 0.86}
GROUPED_PRODUCTS = {"h100": _LONG, "h200": _LONG, "a100": {"matmul_efficiency": 0.53}}
# Measured with TensorRT-LLM 1.0 and the benchmark's script of that time; the others with 1.3 and its later one.
OLD_SCRIPT = ("a100_sxm",)
# Weights of 4 bits on Hopper are unpacked to 16 bits on the way to the matrix units: what TensorRT-LLM's products then
# reach of their peak where experts have a tile's rows each, and the seconds of its small kernels there, launched one by
# one; fitted on its rows of 1,024 tokens and more.  With few rows the weights are read as fast as others.
UNPACKED = {"matmul_efficiency": 0.31, "routing": 95e-6}


_MXFP4 = {"w4a16_mxfp4": ("bf16", 16, 4.25)}


@cache
def _device(name, precision):
    """What `matrix_product` needs to know; the H800's chip is the H100's, and nothing was fitted for the H20 before."""
    row = accelerators[name].at(precision)
    known = accelerators["h100" if name in ("h800", "h20") else name].at(precision)
    letters = {x: row[x] for x in ("peak_flops", "hbm_bandwidth", "cores")}
    letters |= {x: known[x] for x in ("matmul_efficiency", "stream_efficiency", "kernel_launch")}
    return letters | ({"matmul_efficiency": H20_FP8} if name == "h20" else {})


# DeepGEMM's grouped products


def _block_rows(expected):
    """The height of DeepGEMM's blocks, by the rows that an expert is expected to have: where loads are uneven, experts
    with more have another.  (For prompts blocks always have 128 rows, of which a half without any is left out.)
    """
    return 64 if expected <= 64 else 128


def _benchmarked(row):
    """Rows of each expert, by draw: InferSim's scripts (kernel_benchmark) give each 0.7 to 1.3 times as many tokens as
    the row says, by chance.
    """
    local, tokens = int(number(row, "num_local_experts")), number(row, "tokens_per_expert")
    return np.floor(tokens * np.random.default_rng(0).uniform(0.7, 1.3, (32, local)))


def _gemm(wide):
    def seconds(row):
        hidden, width = number(row, "hidden_size"), number(row, "intermediate_size")
        columns, inner = (2 * width, hidden) if wide else (hidden, width)
        device, tokens = _device(row["gpu"].lower(), "fp8"), number(row, "tokens_per_expert")
        said = tokens, columns, inner, number(row, "num_local_experts"), 8, 8
        found = _grouped_seconds(device, _benchmarked(row), columns, inner, 8, 8, _block_rows(tokens)).mean()
        return [found, *(x[0] for x in at_peaks([device], *said))]

    return lambda rows: Priced(*(1e6 * np.array([seconds(row) for row in rows]).T))


def _grouped_seconds(device, loads, columns, inner, activation, weight, height):
    """Seconds of one product for each expert, all in one kernel: of each whole blocks, and the weights of those that
    have tokens.
    """
    rows, at_work, tile = loads.sum(axis=1), (loads > 0).sum(axis=1), tile_rows()
    traffic = (rows * (inner * activation + columns * 16) + at_work * inner * columns * weight) / 8
    tiles = (height / tile * np.ceil(loads / height)).sum(axis=1)
    sizes = dict(rows=tile, columns=columns, inner=inner, copies=tiles, traffic=traffic, activation_bits=16)
    return matrix_product({**device, **NO_SPLIT, **sizes}).matmul_time


def _no_gemm(row):
    return "" if row["gpu"] in ("H20", "H800") else "of a device that the table of accelerators lacks"


def _gemm_group(row):
    tokens = number(row, "tokens_per_expert")
    size = "512 or more" if tokens >= 512 else "64 to 511" if tokens >= 64 else "fewer than 64"
    return f"{row['gpu']}, {size} tokens an expert"


def _gemm_fitted(row):
    return row["gpu"] == "H20" and number(row, "tokens_per_expert") >= 512 and is_even(row)


# TensorRT-LLM's layer of experts


def _raised(counts, most, left):
    """So many more, given out one at a time along the last axis: each to the least that may have more, of equal ones to
    the first.

    >>> _raised(np.array([0, 4, 1]), np.array([9, 9, 2]), np.array(4)).tolist()
    [3, 4, 2]
    """
    low, high = counts.min(-1), most.max(-1)
    while (low < high).any():
        level = (low + high + 1) // 2
        fits = (np.clip(level[..., None], counts, most) - counts).sum(-1) <= left
        low, high = np.where(fits, level, low), np.where(fits, high, level - 1)
    raised = np.clip(low[..., None], counts, most)
    able = (raised == low[..., None]) & (raised < most)
    return raised + (able & (able.cumsum(-1) <= (left - (raised - counts).sum(-1))[..., None]))


def _level(loads, left, tokens):
    """What rounding leaves goes to the devices in turn, and there to the emptiest expert that has room; what is too
    much is taken from the fullest.
    """
    way = np.where(left < 0, -1, 1)[:, None, None]
    counts, most = way * loads, np.where(way < 0, 0, tokens + 0 * loads)
    room = (most - counts).sum(-1)
    return way * _raised(counts, most, _raised(0 * room, room, np.abs(left)))


def _steepen(loads, left, tokens):
    """What rounding leaves goes to the fullest experts that have room; what is too much is taken from the emptiest."""
    for one, more in zip(loads.reshape(len(loads), -1), left, strict=True):
        while more:
            able = np.flatnonzero(one < tokens if more > 0 else one > 0)
            order = able[np.argsort(-one[able], kind="stable")]
            picked = order[:more] if more > 0 else order[more:]
            one[picked] += np.sign(more)
            more -= np.sign(more) * len(picked)
    return loads


@cache
def uneven_loads(experts, top_k, tokens, ways, exponent, deal=_level, draws=32):
    """Tokens of each expert on the fullest of the devices, one row for each draw of loads from a power law.

    Loads are drawn with density x^-exponent, scaled, rounded and cut at all tokens for one expert, as AIConfigurator's
    benchmark does (power_law_logits_v3).  What is then missing its script deals out to the devices in turn, and there
    to the emptiest expert; an earlier one, to the fullest, so that a few tokens met in a few experts of one device.

    >>> loads = uneven_loads(experts=128, top_k=8, tokens=16384, ways=16, exponent=1.2)
    >>> loads.shape, float(round(loads.sum(axis=1).mean() / (16384 * 8 / 16), 1))
    ((32, 8), 2.9)
    """
    low, high = (1, 0.8 * tokens) if tokens * top_k > experts else (0.01, 2)
    chance, power = np.random.default_rng(0).random((draws, int(experts))), 1 - exponent
    drawn = ((high**power - low**power) * chance + low**power) ** (1 / power)
    loads = np.round(np.minimum(drawn / drawn.sum(axis=1, keepdims=True) * tokens * top_k, tokens)).astype(int)
    left = int(tokens * top_k) - loads.sum(axis=1)
    loads = deal(loads.reshape(draws, int(ways), -1), left, int(tokens))
    return loads[np.arange(draws), loads.sum(axis=2).argmax(axis=1)]


def _loads(row):
    """Tokens of each expert on the device that is timed; where they are drawn, a line for each draw."""
    tokens, top_k, experts, ep = (number(row, x) for x in ("num_tokens", "topk", "num_experts", "moe_ep_size"))
    if row["distribution"] != "balanced":
        deal = _steepen if row["system"] in OLD_SCRIPT else _level
        return uneven_loads(experts, top_k, tokens, ep, float(row["distribution"].removeprefix("power_law_")), deal)
    copies = max(1, tokens * top_k / ep)
    at_work = max(1, int(min(experts / ep, copies)))
    return np.full((1, at_work), copies / at_work)


def _priced(row, routing=ROUTING, passes=COPY_PASSES, **reached):
    """Seconds of a layer for a row of moe_layer.csv, where products reach other shares than the device's own, and at
    the peaks: the mean over the draws of its loads.
    """
    tokens, hidden, width, tp = (number(row, x) for x in ("num_tokens", "hidden_size", "inter_size", "moe_tp_size"))
    name, (precision, activation, weight) = SYSTEMS[row["system"]], (FORMATS | _MXFP4)[row["moe_dtype"]]
    device, is_scaled = _device(name, precision), row["moe_dtype"] == "fp8_block"
    blocks = {"matmul_efficiency": SCALED_BLOCKS[name]} if is_scaled else {}
    grouped = {**device, **GROUPED_PRODUCTS.get(name, {}), **blocks, **reached}
    loads, width = _loads(row), width / tp
    copies, at_work = loads.sum(axis=1), (loads > 0).sum(axis=1)
    sizes = (2 * width, hidden), (hidden, width)
    # tokens are gathered and, last, written; and between the products an activation reads two numbers and writes one
    bits = 16 if is_scaled else activation
    gathered, activated = tokens * hidden * (bits + 16) / 8, copies * width * (2 * 16 + bits) / 8
    passed = gathered + passes * copies * hidden * 2 + activated
    turned = tokens * hidden * (16 + bits) / 8 if bits < 16 else 0  # by a kernel of its own, before all
    height = _block_rows(tokens * number(row, "topk") / number(row, "num_experts")) if is_scaled else tile_rows()
    times = [routing, *(_grouped_seconds(grouped, loads, *x, activation, weight, height) for x in sizes)]
    times += [stream_time(device, traffic=x) for x in (turned, passed) if np.any(x)]
    times += [SCALING * copies * (hidden + width) / device["cores"]] if is_scaled else []
    least = [at_peaks([device], copies / at_work, *x, at_work, activation, weight)[0] for x in sizes]
    least += [(turned + passed) / device["hbm_bandwidth"]]
    return tuple(float(np.mean(sum(x))) for x in (times, least))


def layer_seconds(row, **reached) -> float:
    """Seconds of a layer for a row of moe_layer.csv, where something else was reached than is taken here: letters of
    the device, or `routing` and `passes`.
    """
    seconds, _ = _priced(row, **reached)
    return seconds


def _layer(rows):
    return Priced(*(1e3 * np.array([_priced(row) for row in rows]).T))


def _no_layer(loads):
    def reason(row):
        if row["framework"] != "TRTLLM":
            return "of SGLang, whose ranks pass over the tokens of all of them: not modelled"
        if row["distribution"].startswith("power_law_") != (loads == "uneven"):
            return f"whose loads are not {loads}"
        return "" if row["moe_dtype"] in FORMATS and row["system"] in SYSTEMS else "of weights in integers or mxfp4"

    return reason


def _layer_group(row):
    held = "all experts" if row["moe_ep_size"] == "1" else "a share of the experts"
    return f"{row['moe_dtype']}, {'fewer than' if number(row, 'num_tokens') < 1024 else 'from'} 1,024 tokens, {held}"


def _fitted_uneven(row):
    return row["system"] in OLD_SCRIPT and number(row, "num_tokens") >= 1024 and is_even(row)


_EVEN = (
    "the time of routing, of passes of routed tokens and of scaling, and how fast weights are read, on the even rows"
)
_UNEVEN = "what grouped products reach of the A100's peak, on its even rows of 1,024 tokens and more"
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "moe_gemm",
            "moe_gemm.csv",
            "Time of experts' first product, gate and up together, in DeepGEMM's fp8.",
            _gemm(True),
            "up_proj_us",
            "µs",
            ("infersim",),
            _no_gemm,
            _gemm_group,
            "what the H20's fp8 products reach, on its even rows of 512 tokens an expert or more",
            _gemm_fitted,
        ),
        Confrontation(
            "moe_gemm_down",
            "moe_gemm.csv",
            "Time of experts' second product, with what moe_gemm fits.",
            _gemm(False),
            "down_proj_us",
            "µs",
            ("infersim",),
            _no_gemm,
            _gemm_group,
            "",
            lambda row: False,
        ),
        Confrontation(
            "moe_layer",
            "moe_layer.csv",
            "Time of a layer of experts in TensorRT-LLM, even loads: products, and passes of tokens.",
            _layer,
            "latency_ms",
            "ms",
            ("aiconfigurator-moe",),
            _no_layer("even"),
            _layer_group,
            _EVEN,
            is_even,
            ("model",),
        ),
        Confrontation(
            "moe_uneven",
            "moe_layer.csv",
            "The same with loads drawn from power laws: the fullest device's, with what moe_layer fits.",
            _layer,
            "latency_ms",
            "ms",
            ("aiconfigurator-moe",),
            _no_layer("uneven"),
            _layer_group,
            _UNEVEN,
            _fitted_uneven,
            optional=("model",),
        ),
    )
}
