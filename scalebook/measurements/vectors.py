"""Kernels that only stream, as PyTorch runs them: softmax, layer norm and GELU of every size on the A100 and the MI210.

How long PyTorch takes to start each is LLMCompass's own description of both machines; below a million elements it is
all there is.  The rest is the bytes that a kernel reads and writes at the rate of streams.
"""

import numpy as np

from scalebook.machine.kernels import stream_time

from .attention import SOFTMAX_PASSES
from .confrontation import Confrontation, Priced
from .kernels import device_letters
from .rows import is_even, number

__all__ = ["CONFRONTATIONS", "MI210_STREAMS"]

# How often an element crosses the memory bus: it is read and written, and a row that is normalized is read twice.
_CROSSINGS = {"gelu": 2, "softmax": SOFTMAX_PASSES, "layernorm": 3}
# Seconds until a kernel runs, of PyTorch on LLMCompass's machines: hardware_model/compute_module.py there.
_STARTS = {
    "A100": {"softmax": 12e-6, "layernorm": 45e-6, "gelu": 45e-6},
    "MI210": {"softmax": 22e-6, "layernorm": 28e-6, "gelu": 21e-6},
}
# What PyTorch's kernels reach there of the bandwidth of an MI210, which is one of the two dies of an MI250X: fitted on
# the even rows of its GELU; a test fits it again.
MI210_STREAMS = 0.38


def _elements(row):
    return number(row, "m") * (number(row, "n") if row["n"] else 1)


def _known(row):
    if row["gpu"] == "A100":
        return device_letters("a100", "fp16")
    return device_letters("mi250x", "fp16", 0.5) | dict(stream_efficiency=MI210_STREAMS)


def seconds(rows, **reached) -> np.ndarray:
    """Seconds of kernels, each element 16 bits wide."""
    known = [_known(row) | dict(kernel_launch=_STARTS[row["gpu"]][row["op"]]) | reached for row in rows]
    letters = {x: np.array([each[x] for each in known]) for x in ("hbm_bandwidth", "stream_efficiency", "kernel_launch")}
    crossed = np.array([2 * _elements(row) * _CROSSINGS[row["op"]] for row in rows])
    return stream_time(letters, traffic=crossed)


def _rates(rows):
    """Billions of elements a second."""
    counts = np.array([_elements(row) for row in rows])
    roofline = np.array([_known(row)["hbm_bandwidth"] for row in rows]) / 4
    return Priced(counts / seconds(rows) / 1e9, roofline / 1e9)


def _left_out(row):
    if row["op"] == "matmul":
        return "of products, which gemm_llmcompass holds"
    return "" if row["op"] in _CROSSINGS and row["gpu"] in _STARTS else "of a device or a kernel that is not described"


def is_fitted(row) -> bool:
    """Whether MI210_STREAMS was fitted on a row."""
    return row["gpu"] == "MI210" and row["op"] == "gelu" and is_even(row)


def _group(row):
    size = "8 million elements and more" if _elements(row) >= 2**23 else "fewer than 8 million elements"
    return f"{row['op']}, {row['gpu']}, {size}"


CONFRONTATIONS = {
    "vector_kernels": Confrontation(
        "vector_kernels",
        "vector_kernels.csv",
        "Billions of elements a second that softmax, layer norm and GELU take in on the A100 and the MI210.",
        _rates,
        "value",
        "Gelement/s",
        ("zhang2024-llmcompass", "pytorch-softmax"),
        _left_out,
        _group,
        "what streams reach of the MI210's bandwidth, on the even rows of its GELU",
        is_fitted,
        optional=("latency_ms", "tflops", "k"),
    )
}
