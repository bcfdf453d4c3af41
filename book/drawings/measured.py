"""Draw a measured machine: its roofline with a dot for each product, and its streams by size."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from scalebook.book.drawings.figures import COLOURS, scale_axis

from scalebook.language import NOTATION
from scalebook.machine.roofline import attainable_flops
from scalebook.measure import Measured

__all__ = ["measured_roofline", "measured_streams"]


def measured_roofline(run: Measured, precision: str = "fp32", ax: Axes | None = None) -> Axes:
    """Draw the rooflines of the best rates seen and of the rates that kernels reach, with every timed product.

    >>> from scalebook.measure import stored
    >>> measured_roofline(stored()).get_title(loc="left")
    'The roof of one machine, in fp32'
    """
    ax, device = ax or plt.gca(), run.device.at(precision)
    products = [x for x in run.rows if (x.kind, x.precision) == ("product", precision)]
    at = np.geomspace(min(x.intensity for x in products) / 2, max(x.intensity for x in products) * 2, 200)
    reached = attainable_flops(
        intensity=at,
        peak_flops=device.peak_flops * device.matmul_efficiency,
        hbm_bandwidth=device.hbm_bandwidth * device.stream_efficiency,
    )
    ax.plot(at, attainable_flops(device, intensity=at), color="#888888", label="the best that was seen")
    ax.plot(at, reached, color="#888888", linestyle="--", label="what kernels reach")
    kinds = {
        "as wide as high": ([x for x in products if x.rows == x.columns == x.inner], COLOURS["arithmetic"][0], "o"),
        "of few rows": ([x for x in products if x.rows < x.columns == x.inner], COLOURS["memory"][0], "s"),
    }
    for label, (shown, colour, mark) in kinds.items():
        rates = [[x.rate(t) for t in (x.sample.high, x.sample.median, x.sample.low)] for x in shown]
        low, middle, high = np.array(rates).T
        where = [x.intensity for x in shown]
        ax.vlines(where, low, high, color=colour, linewidth=1)
        ax.plot(where, middle, mark, color=colour, markersize=4.5, linestyle="none", label=f"products {label}")
    scale_axis(ax.xaxis, "intensity", at)
    scale_axis(ax.yaxis, "attainable_flops", [1, 1e3])
    ax.set_ylabel(f"rate ({NOTATION['attainable_flops'].unit})")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_title(f"The roof of one machine, in {precision}")
    ax.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.2), ncols=2, borderaxespad=0)
    return ax


def measured_streams(run: Measured, ax: Axes | None = None) -> Axes:
    """Draw the rates of reading, copying and adding tensors against the size of a tensor.

    >>> from scalebook.measure import stored
    >>> [line.get_label() for line in measured_streams(stored()).get_lines()]
    ['read', 'copied', 'added']
    """
    ax, tensors = ax or plt.gca(), {"read": 1, "copy": 2, "add": 3}
    said = {"read": "read", "copy": "copied", "add": "added"}
    for kind, count in tensors.items():
        shown = [x for x in run.rows if x.kind == kind]
        sizes = [x.traffic / count for x in shown]
        ax.plot(sizes, [x.rate(x.sample.median) for x in shown], marker="o", markersize=4, label=said[kind])
    scale_axis(ax.xaxis, "traffic", sizes)
    ax.set_xlabel("size of a tensor (B)")
    scale_axis(ax.yaxis, "hbm_bandwidth", [1, 2])
    ax.set_ylabel("rate (B/s)")
    ax.set_ylim(bottom=0)
    ax.set_title("Streams by size")
    ax.legend()
    return ax
