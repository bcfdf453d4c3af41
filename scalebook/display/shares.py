"""What matrix products reach of the peak, measured and by formula."""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from scalebook.display import figures  # noqa: F401  (sets the house style)
from scalebook.language import show
from scalebook.machine.kernels import matrix_product
from scalebook.measurements import confront
from scalebook.measurements.kernels import DEVICES
from scalebook.tables import accelerators

__all__ = ["product_shares"]


def product_shares(names: Iterable[str] = ("a100", "h100", "b200"), ax: Axes | None = None) -> Axes:
    """Arithmetic of a product against the share of the peak it reaches, in bf16 on each of these devices.

    Dots are TensorRT-LLM's products of 1,024 rows or more in all shapes, the lines square products by formula.
    Raises LookupError for a device that was not measured.

    >>> product_shares(["h100"]).get_ylabel()
    'share of the peak'
    """
    ax = ax or plt.gca()
    result = confront("gemm")
    systems = {name: system for system, name in DEVICES.items()}
    side = np.geomspace(512, 30_000, 60).round(-1)
    for name in names:
        if name not in systems:
            raise LookupError(f"no products were measured on {name!r}; there are: {', '.join(systems)}")
        device = accelerators[name].at("bf16")
        rows = [
            (2 * float(x["m"]) * float(x["n"]) * float(x["k"]), measured / 1e3)
            for x, measured in zip(result.rows, result.measured, strict=True)
            if (x["system"], x["framework"], x["gemm_dtype"]) == (systems[name], "TRTLLM", "bfloat16")
            and float(x["m"]) >= 1024
        ]
        flops, seconds = np.array(rows).T
        square = dict(rows=side, columns=side, inner=side, copies=1, activation_bits=16, weight_bits=16)
        (line,) = ax.plot(2 * side**3, matrix_product(device, square).matmul_share, label=device.name)
        ax.scatter(flops, flops / seconds / device.peak_flops, s=9, alpha=0.5, color=line.get_color(), linewidths=0)
    ax.set_xscale("log")
    ax.set_ylim(0, 1)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: show(x, "FLOP")))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: show(x, "%")))
    ax.set_xlabel("arithmetic of the product (FLOP)")
    ax.set_ylabel("share of the peak")
    ax.legend(loc="lower right")
    return ax
