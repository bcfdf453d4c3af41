"""LLMCompass's kernels on the A100 and the MI210, as PyTorch runs them: products, softmax, layer norm and GELU.

How long PyTorch takes to start each is LLMCompass's own description of both machines; below a million elements it is
nearly all there is.  The rest is a product as in `gemm`, or the bytes that a kernel reads and writes as streams do.
"""

import numpy as np

from scalebook.attention.eager import eager_score_passes
from scalebook.machine.kernels import stream_time

from .confrontation import Confrontation, Priced
from .kernels import at_peaks, device_letters, products_seconds
from .rows import is_even, number, numbers

__all__ = ["CONFRONTATIONS", "MI210_STREAMS", "is_fitted", "stream_seconds"]

# How often an element crosses the memory bus: it is read and written, and a row that is normalized is read twice.
_CROSSINGS = {"gelu": 2, "softmax": eager_score_passes(masked=0, backward=0), "layernorm": 3}
# Seconds until a kernel runs, of PyTorch on LLMCompass's machines: hardware_model/compute_module.py there.
_STARTS = {
    "A100": {"matmul": 21e-6, "softmax": 12e-6, "layernorm": 45e-6, "gelu": 45e-6},
    "MI210": {"matmul": 34e-6, "softmax": 22e-6, "layernorm": 28e-6, "gelu": 21e-6},
}
# An MI210 is one of the two dies of an MI250X with 104 of its 110 compute units; what PyTorch's streams reach there of
# the bandwidth is fitted on the even rows of its GELU, and a test fits it again.
_MI210_CORES = 104
MI210_STREAMS = 0.385


def _known(row):
    start = dict(kernel_launch=_STARTS[row["gpu"]][row["op"]])
    if row["gpu"] == "A100":
        return device_letters("a100", "fp16") | start
    die = device_letters("mi250x", "fp16", 0.5)
    own = dict(cores=_MI210_CORES, peak_flops=die["peak_flops"] * _MI210_CORES / die["cores"])
    return die | own | start | dict(stream_efficiency=MI210_STREAMS)


def _left_out(row):
    is_known = row["gpu"] in _STARTS and row["op"] in _STARTS[row["gpu"]]
    return "" if is_known else "of a device or a kernel that is not described"


# Products


def _products(rows):
    """Milliseconds."""
    devices, sizes = [_known(row) for row in rows], numbers(rows, "m", "n", "k")
    return Priced(*(1e3 * x for x in (products_seconds(devices, *sizes), *at_peaks(devices, *sizes))))


def _no_product(row):
    return _left_out(row) if row["op"] == "matmul" else "of kernels that are no matrix product"


def _product_group(row):
    rows = "1,024 rows or more" if number(row, "m") >= 1024 else "fewer than 1,024 rows"
    return f"{row['gpu']}, {rows}"


# Kernels that only stream


def _elements(row):
    return number(row, "m") * (number(row, "n") if row["n"] else 1)


def stream_seconds(rows, **reached) -> np.ndarray:
    """Seconds of kernels that stream, each element 16 bits wide."""
    known = [_known(row) | reached for row in rows]
    asked = ("hbm_bandwidth", "stream_efficiency", "kernel_launch")
    letters = {x: np.array([each[x] for each in known]) for x in asked}
    crossed = np.array([2 * _elements(row) * _CROSSINGS[row["op"]] for row in rows])
    return stream_time(letters, traffic=crossed)


def _rates(rows):
    """Billions of elements a second."""
    counts = np.array([_elements(row) for row in rows])
    roofline = np.array([_known(row)["hbm_bandwidth"] for row in rows]) / 4
    return Priced(counts / stream_seconds(rows) / 1e9, roofline / 1e9)


def _no_stream(row):
    return _left_out(row) if row["op"] != "matmul" else "of products, which gemm_llmcompass holds"


def is_fitted(row) -> bool:
    """Whether MI210_STREAMS was fitted on a row."""
    return row["gpu"] == "MI210" and row["op"] == "gelu" and is_even(row)


def _stream_group(row):
    size = "8 million elements and more" if _elements(row) >= 2**23 else "fewer than 8 million elements"
    return f"{row['op']}, {row['gpu']}, {size}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "gemm_llmcompass",
            "gemm_llmcompass.csv",
            "Time of matrix products on the A100, as calibrated in gemm, and on the MI210, a die of the MI250X.",
            _products,
            "latency_ms",
            "ms",
            ("zhang2024-llmcompass",),
            _no_product,
            _product_group,
        ),
        Confrontation(
            "vector_kernels",
            "vector_kernels.csv",
            "Billions of elements a second that softmax, layer norm and GELU take in on the A100 and the MI210.",
            _rates,
            "value",
            "Gelement/s",
            ("zhang2024-llmcompass", "pytorch-softmax"),
            _no_stream,
            _stream_group,
            "what streams reach of the MI210's bandwidth, on the even rows of its GELU",
            is_fitted,
            optional=("latency_ms", "tflops", "k"),
        ),
    )
}
