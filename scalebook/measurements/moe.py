"""Experts as published: their grouped products alone, and a whole layer of them with its routing.

An expert works on the tokens sent to it, so its products are `scalebook.kernels` with few rows, one copy for each expert
that a token visits.
"""

from functools import cache

import numpy as np

from scalebook.kernels import stream_time
from scalebook.tables import accelerators

from .confrontation import Confrontation, number
from .kernels import DEVICES, FORMATS, SCALED_BLOCKS, products_seconds

__all__ = ["ASSIGNED_PASSES", "CONFRONTATIONS", "H20_FP8", "ROUTING", "visited"]

# What fp8 products reach of the H20's peak, fitted on the even rows of 512 tokens an expert or more.
H20_FP8 = 0.83
# Seconds of the small kernels that sort tokens by expert, and how often the copies of tokens pass through memory beyond
# the operands of the products (gathered, quantized, weighted, summed), both fitted on the even rows.
ROUTING, ASSIGNED_PASSES = 15e-6, 6.5


def visited(experts, top_k, tokens):
    """Experts that tokens visit, each token `top_k` of them with equal chance.

    >>> round(visited(experts=256, top_k=8, tokens=32), 1)
    163.3
    """
    return experts * (1 - (1 - top_k / experts) ** tokens)


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
    at_work = visited(experts, top_k, assigned) * local / experts
    return at_work, assigned * top_k / experts * local / at_work


def _gemm(wide):
    def seconds(row):
        copies, rows = _grouped(row)
        hidden, width = number(row, "hidden_size"), number(row, "intermediate_size")
        columns, inner = (2 * width, hidden) if wide else (hidden, width)
        return products_seconds([_device(row["gpu"].lower(), "fp8")], rows, columns, inner, copies, 8, 8)[0]

    return lambda rows: np.array([1e6 * seconds(row) for row in rows])


def _no_gemm(row):
    if row["gpu"] not in ("H20", "H800"):
        return "of a device that the table of accelerators lacks"
    return "" if row["phase"] != "decode" or row["batch_size_per_gpu"] else "of decoding without its batch"


def _gemm_group(row):
    tokens = number(row, "tokens_per_expert")
    size = "512 or more" if tokens >= 512 else "64 to 511" if tokens >= 64 else "fewer than 64"
    return f"{row['gpu']}, {size} tokens an expert"


def _is_even(row):
    return int(row["row_id"].rpartition("-")[2]) % 2 == 0


def _gemm_fitted(row):
    return not _no_gemm(row) and row["gpu"] == "H20" and number(row, "tokens_per_expert") >= 512 and _is_even(row)


# TensorRT-LLM's layer of experts


def _layer_seconds(row):
    names = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    tokens, hidden, width, top_k, experts, tp, ep = (number(row, x) for x in names)
    name, (precision, activation, weight) = DEVICES[row["system"]], FORMATS[row["moe_dtype"]]
    device = dict(_device(name, precision))
    if row["moe_dtype"] == "fp8_block":
        device["matmul_efficiency"] = SCALED_BLOCKS[name]
    assigned, local, width = tokens * top_k / ep, experts / ep, width / tp
    copies = min(local, max(1, assigned))
    rows = max(1, assigned / copies)
    wide = products_seconds([device], rows, 2 * width, hidden, copies, activation, weight)[0]
    back = products_seconds([device], rows, hidden, width, copies, activation, weight)[0]
    passed = 2 * (2 * tokens * hidden + ASSIGNED_PASSES * assigned * hidden + 3 * assigned * width)
    return ROUTING + wide + back + stream_time(device, traffic=passed)


def _layer(rows):
    return np.array([1e3 * _layer_seconds(row) for row in rows])


def _no_layer(row):
    if row["framework"] != "TRTLLM":
        return "of SGLang, whose ranks pass over the tokens of all of them: not modelled"
    if row["distribution"] != "balanced":
        return "with random loads, of which only the law is published"
    return "" if row["moe_dtype"] in FORMATS and row["system"] in DEVICES else "of weights in integers or mxfp4"


def _layer_group(row):
    held = "all experts" if row["moe_ep_size"] == "1" else "a share of the experts"
    return f"{row['moe_dtype']}, {'fewer than' if number(row, 'num_tokens') < 1024 else 'from'} 1,024 tokens, {held}"


def _layer_fitted(row):
    return not _no_layer(row) and _is_even(row)


_EVEN = "the time of routing and the passes of routed tokens, on the even rows"
CONFRONTATIONS = {c.name: c for c in (
    Confrontation(
        "moe_gemm", "moe_gemm.csv", "Time of experts' first product, gate and up together, in DeepGEMM's fp8.",
        _gemm(True), "up_proj_us", "µs", ("infersim",), _no_gemm, _gemm_group,
        "what the H20's fp8 products reach, on its even rows of 512 tokens an expert or more", _gemm_fitted,
    ),
    Confrontation(
        "moe_gemm_down", "moe_gemm.csv", "Time of experts' second product, with what moe_gemm fits.",
        _gemm(False), "down_proj_us", "µs", ("infersim",), _no_gemm, _gemm_group, "", lambda row: False,
    ),
    Confrontation(
        "moe_layer", "moe_layer.csv", "Time of a layer of experts in TensorRT-LLM, even loads: products, and passes of tokens.",
        _layer, "latency_ms", "ms", ("aiconfigurator-moe",), _no_layer, _layer_group, _EVEN, _layer_fitted,
        ("version", "kernel_source", "model"),
    ),
)}  # fmt: skip
