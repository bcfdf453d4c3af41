"""Experts as published: their grouped products alone, and a whole layer of them with its routing.

An expert works on the tokens sent to it, so its products are `scalebook.machine.kernels` with few rows, one copy for
each expert that a token visits.
"""

from functools import cache

import numpy as np

from scalebook.inference.assumptions import assigned_passes, routing_time_least
from scalebook.inference.experts import experts_touched
from scalebook.machine.kernels import stream_time
from scalebook.tables import accelerators

from .attention import NOTHING
from .confrontation import Confrontation, Priced
from .kernels import FORMATS, NO_SPLIT, SCALED_BLOCKS, at_peaks, products_seconds
from .rows import SYSTEMS, is_even, number

__all__ = ["ASSIGNED_PASSES", "CONFRONTATIONS", "H20_FP8", "ROUTING", "UNPACKED", "layer_seconds", "uneven_loads"]

# What fp8 products reach of the H20's peak, fitted on the even rows of 512 tokens an expert or more.
H20_FP8 = 0.83
# What serving assumes of the kernels that sort tokens by expert, and of how often copies pass through memory beyond
# the operands of the products; both were fitted on the even rows here.
ROUTING, ASSIGNED_PASSES = routing_time_least(), assigned_passes()
# Weights of 4 bits on Hopper are unpacked to 16 bits on the way to the matrix units: what TensorRT-LLM's products then
# reach of their peak where experts have a tile's rows each, and the seconds of its small kernels there, launched one by
# one; fitted on its rows of 1,024 tokens and more.  With few rows the weights are read as fast as others.
UNPACKED = {"matmul_efficiency": 0.35, "routing": 95e-6}


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


def _grouped(row):
    """Experts of a device that work, and the rows of each; in a prompt all do, evenly."""
    local, tokens = number(row, "num_local_experts"), number(row, "tokens_per_expert")
    if row["phase"] != "decode":
        return local, tokens
    experts, top_k = number(row, "num_experts"), number(row, "topk")
    assigned = number(row, "batch_size_per_gpu") * number(row, "num_gpus")
    at_work = experts_touched(experts=experts, top_k=top_k, layer_tokens=assigned) * local / experts
    return at_work, assigned * top_k / experts * local / at_work


def _gemm(wide):
    def seconds(row):
        copies, rows = _grouped(row)
        hidden, width = number(row, "hidden_size"), number(row, "intermediate_size")
        columns, inner = (2 * width, hidden) if wide else (hidden, width)
        device, sizes = [_device(row["gpu"].lower(), "fp8")], (rows, columns, inner, copies, 8, 8)
        return [x[0] for x in (products_seconds(device, *sizes, **NO_SPLIT), *at_peaks(device, *sizes))]

    return lambda rows: Priced(*(1e6 * np.array([seconds(row) for row in rows]).T))


def _no_gemm(row):
    if row["gpu"] not in ("H20", "H800"):
        return "of a device that the table of accelerators lacks"
    return "" if row["phase"] != "decode" or row["batch_size_per_gpu"] else "of decoding without its batch"


def _gemm_group(row):
    tokens = number(row, "tokens_per_expert")
    size = "512 or more" if tokens >= 512 else "64 to 511" if tokens >= 64 else "fewer than 64"
    return f"{row['gpu']}, {size} tokens an expert"


def _gemm_fitted(row):
    return row["gpu"] == "H20" and number(row, "tokens_per_expert") >= 512 and is_even(row)


# TensorRT-LLM's layer of experts


@cache
def uneven_loads(experts, top_k, tokens, ways, exponent, draws=32):
    """Tokens of each expert on the fullest of the devices, one row for each draw of loads from a power law.

    Loads are drawn with density x^-exponent, scaled and rounded; what is then missing goes to the fullest that have
    room, of equal ones to the first, and what is too much is taken from the emptiest: as AIConfigurator's benchmark
    does (power_law_logits_v3).  A few tokens so meet in the experts of one device.

    >>> loads = uneven_loads(experts=128, top_k=8, tokens=16384, ways=16, exponent=1.2)
    >>> loads.shape, float(round(loads.sum(axis=1).mean() / (16384 * 8 / 16), 1))
    ((32, 8), 2.9)
    """
    low, high = (1, 0.8 * tokens) if tokens * top_k > experts else (0.01, 2)
    chance, power = np.random.default_rng(0).random((draws, int(experts))), 1 - exponent
    drawn = ((high**power - low**power) * chance + low**power) ** (1 / power)
    loads = np.round(np.minimum(drawn / drawn.sum(axis=1, keepdims=True) * tokens * top_k, tokens))
    for one in loads:
        while left := int(tokens * top_k - one.sum()):
            able = np.flatnonzero(one < tokens if left > 0 else one > 0)
            order = able[np.argsort(-one[able], kind="stable")]
            one[order[:left] if left > 0 else order[left:]] += np.sign(left)
    loads = loads.reshape(draws, int(ways), -1)
    return loads[np.arange(draws), loads.sum(axis=2).argmax(axis=1)]


def _loads(row):
    """Copies of tokens that a device works on, experts that do, and the rows of each, whole tiles counted."""
    tokens, top_k, experts, ep = (number(row, x) for x in ("num_tokens", "topk", "num_experts", "moe_ep_size"))
    if row["distribution"] == "balanced":
        assigned = tokens * top_k / ep
        at_work = min(experts / ep, max(1, assigned))
        return assigned, at_work, max(1, assigned / at_work)
    loads = uneven_loads(experts, top_k, tokens, ep, float(row["distribution"].removeprefix("power_law_")))
    assigned, at_work = loads.sum(axis=1).mean(), max(1, (loads > 0).sum(axis=1).mean())
    whole = 64 * np.ceil(loads / 64).sum(axis=1).mean() / at_work
    return assigned, at_work, max(1, whole if assigned > 8 * at_work else assigned / at_work)


def layer_seconds(row, routing=ROUTING, **reached) -> float:
    """Seconds of a layer for a row of moe_layer.csv, where products reach other shares than the device's own."""
    names = ("num_tokens", "hidden_size", "inter_size", "moe_tp_size")
    tokens, hidden, width, tp = (number(row, x) for x in names)
    name, (precision, activation, weight) = SYSTEMS[row["system"]], (FORMATS | _MXFP4)[row["moe_dtype"]]
    device = _device(name, precision) | reached
    if row["moe_dtype"] == "fp8_block":
        device["matmul_efficiency"] = SCALED_BLOCKS[name]
    (assigned, at_work, rows), width = _loads(row), width / tp
    wide = products_seconds([device], rows, 2 * width, hidden, at_work, activation, weight, **NO_SPLIT)[0]
    back = products_seconds([device], rows, hidden, width, at_work, activation, weight, **NO_SPLIT)[0]
    passed = 2 * (2 * tokens * hidden + ASSIGNED_PASSES * assigned * hidden + 3 * assigned * width)
    return routing + wide + back + stream_time(device, traffic=passed)


def _layer(rows):
    ideal = dict(matmul_efficiency=1.0, stream_efficiency=1.0, kernel_launch=NOTHING)
    return Priced(*(1e3 * np.array([[layer_seconds(row), layer_seconds(row, 0, **ideal)] for row in rows]).T))


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


_EVEN = "the time of routing and the passes of routed tokens, on the even rows"
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
            optional=("model",),
        ),
    )
}
