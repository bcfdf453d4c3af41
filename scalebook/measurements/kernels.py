"""Matrix products and the kernels between them, as published, against `scalebook.machine.kernels`.

For each device the shares of the peaks that kernels reach and the time of a launch were fitted on products of
TensorRT-LLM (even row numbers of gemm.csv) and stand in the table of accelerators.  Everything else here is a
test of them: the odd rows, another framework, other laboratories, other sizes.
"""

from functools import cache

import numpy as np

from scalebook.machine.kernels import (
    exposed_write,
    inner_half,
    matrix_product,
    one_core,
    split_step,
    split_time,
    stream_time,
    tile_columns,
    tile_rows,
    typical_matmul_efficiency,
    typical_stream_efficiency,
)
from scalebook.machine.tiles import aligned_share
from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .rows import SYSTEMS, is_even, number, numbers

__all__ = [
    "A100_40GB", "CONFRONTATIONS", "NO_SPLIT", "OPERATOR", "PASSES", "SCALED_BLOCKS", "VIDUR_PASSES", "VIDUR_START",
    "at_peaks", "device_letters", "gemm_seconds", "products_seconds", "slowed",
]  # fmt: skip

# A linear layer first turns the activations into the format of the product: this is the time of that kernel without
# its traffic, in seconds on Hopper and on Blackwell, fitted on the even rows.
OPERATOR = {
    ("TRTLLM", "fp8"): (9.7e-6, 12.3e-6), ("TRTLLM", "fp8_block"): (3.0e-6, 4.0e-6), ("TRTLLM", "nvfp4"): (6.1e-6,
    6.1e-6), ("VLLM", "fp8"): (3.5e-6, 4.0e-6), ("VLLM", "nvfp4"): (3.6e-6, 3.6e-6),
}  # fmt: skip
# How often its traffic passes, fitted on the same rows: vLLM looks for a scale of each token first.
PASSES = {("VLLM", "fp8"): 3}
# What products reach of the peak of fp8 when each block of 128 elements has a scale of its own, on the same rows.
SCALED_BLOCKS = {"h100": 0.547, "h200": 0.568, "b200": 0.682, "gb200": 0.655, "b300": 0.81, "gb300": 0.778}

# DeepGEMM, grouped products, and PyTorch of 2023 in EleutherAI's sweeps do not split the inner size: none is worth it.
NO_SPLIT = {"split_time": 1.0}

# Precision, and bits of an activation and of a weight with their scales; results have 16 bits.
FORMATS = {
    "bfloat16": ("bf16", 16, 16), "fp8": ("fp8", 8, 8), "fp8_block": ("fp8", 8, 8), "nvfp4": ("fp4", 4.5, 4.5)
}  # fmt: skip
FRAMEWORKS = {"TRTLLM": "TensorRT-LLM", "VLLM": "vLLM"}


_USUAL = (one_core, typical_matmul_efficiency, typical_stream_efficiency, tile_rows, tile_columns, split_time, split_step)


@cache
def device_letters(device, precision, share=1.0):
    """What the sheet needs to know of a device, or of a part of it (one die of two)."""
    row = accelerators[device].at(precision)
    usual = {f.letter: f() for f in _USUAL}
    letters = {x: row.get(x) or usual[x] for x in usual} | {
        x: row[x] for x in ("peak_flops", "hbm_bandwidth", "kernel_launch")
    }
    return letters | {x: share * letters[x] for x in ("peak_flops", "hbm_bandwidth", "cores")} if share < 1 else letters


def products_seconds(
    devices, rows, columns, inner, copies=1, activation_bits=16, weight_bits=16, sheet=matrix_product, **letters
):  # fmt: skip
    """Seconds of matrix products, one for each of the `devices` (mappings of letters); results have 16 bits."""
    knowns = {x: np.array([d[x] for d in devices]) for x in devices[0]} | letters
    traffic = copies * (rows * inner * activation_bits + inner * columns * weight_bits + rows * columns * 16) / 8
    sizes = dict(rows=rows, columns=columns, inner=inner, copies=copies, traffic=traffic, activation_bits=16)
    return sheet({**knowns, **sizes}).matmul_time


def at_peaks(devices, rows, columns, inner, copies=1, activation_bits=16, weight_bits=16):
    """Seconds of the same products at the peaks of arithmetic and of memory, and at that of arithmetic alone."""
    peak, bandwidth = (np.array([d[x] for d in devices]) for x in ("peak_flops", "hbm_bandwidth"))
    traffic = copies * (rows * inner * activation_bits + inner * columns * weight_bits + rows * columns * 16) / 8
    arithmetic = 2 * copies * rows * columns * inner / peak
    return np.maximum(arithmetic, traffic / bandwidth), arithmetic


# TensorRT-LLM and vLLM, as NVIDIA's AIConfigurator measured them


def gemm_seconds(rows) -> np.ndarray:
    """Seconds of a framework's linear layer for rows of gemm.csv:
    the product, and turning its input into its format.
    """
    m, n, k = numbers(rows, "m", "n", "k")
    names = [SYSTEMS[row["system"]] for row in rows]
    formats = [FORMATS[row["gemm_dtype"]] for row in rows]
    devices = [
        device_letters(name, f[0])
        | ({"matmul_efficiency": SCALED_BLOCKS[name]} if row["gemm_dtype"] == "fp8_block" else {})
        for name, f, row in zip(names, formats, rows, strict=True)
    ]
    activation, weight = (np.array([f[i] for f in formats]) for i in (1, 2))
    tile = np.where(activation < 8, 128, 64)  # the kernels of nvfp4 come in large tiles only
    time = products_seconds(devices, m, n, k, 1, activation, weight, tile_rows=tile, tile_columns=tile)
    launch = np.array(
        [
            OPERATOR.get((row["framework"], row["gemm_dtype"]), (0, 0))[name not in ("h100", "h200")]
            for name, row in zip(names, rows, strict=True)
        ]
    )
    bandwidth, stream = (np.array([d[x] for d in devices]) for x in ("hbm_bandwidth", "stream_efficiency"))
    passes = np.array([PASSES.get((row["framework"], row["gemm_dtype"]), 1) for row in rows])
    turned = np.where(activation < 16, passes * m * k * (16 + activation) / 8, 0)
    return time + launch + turned / (stream * bandwidth)


def _gemm(rows):
    devices = [device_letters(SYSTEMS[row["system"]], FORMATS[row["gemm_dtype"]][0]) for row in rows]
    bits = [np.array([FORMATS[row["gemm_dtype"]][i] for row in rows]) for i in (1, 2)]
    roofline, peak = at_peaks(devices, *numbers(rows, "m", "n", "k"), 1, *bits)
    return Priced(1e3 * gemm_seconds(rows), 1e3 * roofline, 1e3 * peak)


def _no_gemm(row):
    if row["gemm_dtype"] not in FORMATS:
        return "with integers for weights or activations: kernels of their own"
    if row["system"] not in SYSTEMS:
        return "of a device that the table of accelerators lacks"
    if (row["framework"], row["gemm_dtype"]) == ("VLLM", "fp8_block"):
        return "of vLLM with scaled blocks, which never takes less than 55 to 154 µs: the host sets the time"
    return ""


def _gemm_group(row):
    framework = "" if row["framework"] == "TRTLLM" else f", {FRAMEWORKS[row['framework']]}"
    if number(row, "m") < 1024:
        return f"fewer than 1,024 rows, {row['gemm_dtype']}{framework}"
    return f"{SYSTEMS[row['system']]}, {row['gemm_dtype']}{framework}"


def _calibrates(row):
    is_fitted = row["framework"] == "TRTLLM" or (row["framework"], row["gemm_dtype"]) in OPERATOR
    return is_fitted and is_even(row)


# EleutherAI's sweeps of sizes

_ELEUTHER = {"A100-40GB-SXM": ("a100", 1.0), "V100": ("v100", 1.0), "MI250X (1 GCD)": ("mi250x", 0.5)}
A100_40GB = {"hbm_bandwidth": 1.555e12}  # NVIDIA A100 data sheet; everything else is as in the 80 GB version


def slowed(device, shares):
    """A device for each share of its rate, results being written as much slower as products are multiplied."""
    half = inner_half(device, exposed_write=exposed_write(), activation_bits=16)
    return [device | dict(peak_flops=x, inner_half=half) for x in device["peak_flops"] * shares]


def _eleuther(rows):
    m, n, k, batch = numbers(rows, "m", "n", "k", "batch")
    devices = [
        device_letters(_ELEUTHER[row["gpu"]][0], "fp16", _ELEUTHER[row["gpu"]][1])
        | (A100_40GB if row["gpu"].startswith("A100") else {})
        for row in rows
    ]
    shares = np.where([row["gpu"].startswith("A100") for row in rows], aligned_share(columns=n, inner=k), 1)
    own = [slowed(device, x[None])[0] for device, x in zip(devices, shares, strict=True)]
    times = products_seconds(own, m, n, k, batch, **NO_SPLIT), *at_peaks(devices, m, n, k, batch)
    return Priced(*(2 * batch * m * n * k / time / 1e12 for time in times))


def _eleuther_flops(row):
    return 2 * number(row, "batch") * number(row, "m") * number(row, "n") * number(row, "k")


def _no_eleuther(row):
    if row["gpu"] not in _ELEUTHER:
        return "of a device that is not described here"
    if _is_odd(row) and not row["gpu"].startswith("A100"):
        return "with a size that is no multiple of 8, on devices of which aligned_share does not speak"
    return "" if _eleuther_flops(row) / number(row, "tflops") >= 1e8 else "below 100 µs, of which the host takes a part"


def _is_odd(row):
    """Whether rows of its matrices begin elsewhere than at multiples of 16 bytes."""
    return any(number(row, x) % 8 for x in ("n", "k"))


def _eleuther_group(row):
    if _is_odd(row):
        return f"{row['gpu']}, {'odd sizes' if any(number(row, x) % 2 for x in ('n', 'k')) else 'even sizes'}"
    kind = (
        "batches of products" if row["op"] == "bmm" else "vocabularies" if "vocab" in row["op"] else "single products"
    )
    return f"{row['gpu']}, {kind}"


def _eleuther_fitted(row):
    """Even rows of single products on the V100 and the MI250X, of which nothing else is known, and of sizes on the A100
    that are no multiples of 8.
    """
    return is_even(row) and (_is_odd(row) if row["gpu"].startswith("A100") else row["op"] == "mm")


# The feed-forward layer of EleutherAI's blocks: up to four times the width and back


def _feed_forward(rows):
    hidden, tp, batch, seq = numbers(rows, "hidden", "tp", "mbs", "seq_len")
    known = device_letters("a100", "fp16") | A100_40GB
    devices = [known for _ in rows]
    sizes = (batch * seq, 4 * hidden / tp, hidden), (batch * seq, hidden, 4 * hidden / tp)
    times = ((products_seconds(devices, *x), *at_peaks(devices, *x)) for x in sizes)
    moved = 2 * batch * seq * (8 * hidden / tp)  # a fused bias and GELU between them reads and writes once
    between = stream_time(known, traffic=moved)
    found, *least = map(sum, zip(*times, strict=True))
    return Priced(found + between, *least)


def _no_feed_forward(row):
    return "" if number(row, "mlp_s") >= 5e-3 else "below 5 ms, which are published in tenths of them"


def _feed_forward_group(row):
    kind = ", FlashAttention's sweep" if row["sweep"].startswith("flash") else ""
    return f"tensor-parallel {number(row, 'tp'):.0f}{kind}"


# DeepGEMM, with a scale for each block, on the H800, whose chip is that of the H100


def _scaled(rows, m, n, k, copies=1):
    devices = [device_letters("h100", "fp8") for _ in rows]
    sizes = m, n, k, copies, 8, 8
    return products_seconds(devices, *sizes, **NO_SPLIT), *at_peaks(devices, *sizes)


def _infersim(rows):
    return Priced(*(1e6 * x for x in _scaled(rows, *numbers(rows, "m", "n", "k"))))


def _no_infersim(row):
    return "" if row["gpu"] == "H800" else "of a device that the table of accelerators lacks"


def _infersim_group(row):
    return "1,024 rows or more" if number(row, "m") >= 1024 else "fewer than 1,024 rows"


# LLMCompass


# Vidur: the operators of a layer in vLLM

_PRODUCTS = ("attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj")
_STREAMS = {
    "input_layernorm": "norms", "post_attention_layernorm": "norms", "mlp_act": "activations", "add": "additions",
    "attn_rope": "turning",
}  # fmt: skip
_VIDUR = {"H100": "h100", "A100": "a100"}
# How much longer than one pass of their traffic the kernels of vLLM in 2023 took, and the least time of an activation,
# which PyTorch starts; on the rows of the A100.  Norms read their row twice; a residual is added where a cache has it.
VIDUR_PASSES = {"norms": 2, "activations": 1.45, "turning": 1.5, "additions": 0.75}
VIDUR_START = {"activations": 12e-6}


def _vidur_seconds(row):
    tokens, hidden, ffn, heads, kv_heads, tp = (
        number(row, x) for x in ("num_tokens", "hidden", "ffn", "n_head", "n_kv_head", "tp")
    )
    known, width, op = device_letters(_VIDUR[row["gpu"]], "fp16"), hidden / heads, row["op"]
    kv_heads = max(kv_heads, tp)  # each device holds one at least
    if op in _PRODUCTS:
        columns, inner = {
            "attn_pre_proj": ((heads + 2 * kv_heads) * width / tp, hidden),
            "attn_post_proj": (hidden, hidden / tp),
            "mlp_up_proj": (2 * ffn / tp, hidden),
            "mlp_down_proj": (hidden, ffn / tp),
        }[op]
        found = products_seconds([known], tokens, columns, inner), *at_peaks([known], tokens, columns, inner)
        return tuple(x[0] for x in found)
    per_token = {
        "mlp_act": 3 * ffn / tp,
        "add": 3 * hidden,
        "attn_rope": 2 * (heads + kv_heads) * width / tp,
    }.get(op, 2 * hidden)
    kind, traffic = _STREAMS[op], 2 * tokens * per_token
    time = max(stream_time(known, traffic=VIDUR_PASSES[kind] * traffic), VIDUR_START.get(kind, 0))
    return time, traffic / known["hbm_bandwidth"], 0


def _vidur(rows):
    return Priced(*(1e3 * np.array([_vidur_seconds(row) for row in rows]).T))


def _no_vidur(row):
    if row["gpu"] not in _VIDUR:
        return "of a device that the table of accelerators lacks"
    if row["op"] not in _PRODUCTS and row["op"] not in _STREAMS:
        return "of the embedding, which looks rows up"
    return "" if number(row, "time_ms_median") >= 0.01 else "below 10 µs, which are published in whole µs"


def _vidur_group(row):
    return f"{row['gpu']}, {_STREAMS.get(row['op'], 'matrix products')}"


_FITTED = (
    "efficiencies and launch of each device on TensorRT-LLM's even rows; the time that quantizing takes on even rows "
    "of each framework"
)
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "gemm_eleuther",
            "gemm_eleuther.csv",
            "Rate of matrix products over sweeps of their sizes, the A100 as calibrated in gemm.",
            _eleuther,
            "tflops",
            "TFLOP/s",
            ("anthony2024",),
            _no_eleuther,
            _eleuther_group,
            "on even rows, the matmul efficiencies of the V100 and the MI250X, of their single products, and the two "
            "shares of aligned_share, of the A100's products that are not aligned",
            _eleuther_fitted,
        ),
        Confrontation(
            "layer_eleuther",
            "layer_eleuther.csv",
            "Time of the feed-forward layer of a block: two products on the A100, as in gemm, and an activation.",
            _feed_forward,
            "mlp_s",
            "s",
            ("anthony2024",),
            _no_feed_forward,
            _feed_forward_group,
        ),
        Confrontation(
            "gemm_infersim",
            "gemm_infersim.csv",
            "Time of DeepGEMM's products on the H800, as gemm has the H100 in fp8.",
            _infersim,
            "latency_us",
            "µs",
            ("infersim",),
            _no_infersim,
            _infersim_group,
        ),
        Confrontation(
            "layer_vidur",
            "layer_vidur.csv",
            "Time of a layer's operators in vLLM, as calibrated in gemm; "
            "what is no product streams, in as many passes as its kind takes.",
            _vidur,
            "time_ms_median",
            "ms",
            ("vidur",),
            _no_vidur,
            _vidur_group,
            "how often the traffic of what is no product passes, and an activation's least time, on the A100's rows",
            lambda row: _VIDUR.get(row["gpu"]) == "a100" and row["op"] in _STREAMS,
        ),
    )
}
