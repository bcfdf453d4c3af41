"""Kernels on cards without a scale-up network: L40S and RTX PRO 6000, whose cells of the table rest on these rows.

Their second-level caches hold the weights of a small product, so only products that are larger are here.
"""

import numpy as np

from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .kernels import FORMATS, at_peaks, products_seconds
from .rows import SYSTEMS, is_even, numbers

__all__ = ["CONFRONTATIONS", "gemm_seconds"]

CARDS = {"l40s": "l40s", "rtx_pro_6000_server": "rtx_pro_6000"}
_LETTERS = ("peak_flops", "hbm_bandwidth", "cores", "kernel_launch", "matmul_efficiency", "stream_efficiency")


def gemm_seconds(rows, **reached) -> np.ndarray:
    """Seconds of linear layers for rows of gemm_cards.csv, their inputs turned into the format of the product."""
    m, n, k = numbers(rows, *"mnk")
    formats = [FORMATS[row["gemm_dtype"]] for row in rows]
    devices = [accelerators[CARDS[row["system"]]].at(f[0]) for row, f in zip(rows, formats, strict=True)]
    letters = [{x: d[x] for x in _LETTERS} | reached for d in devices]
    activation, weight = (np.array([f[i] for f in formats]) for i in (1, 2))
    tile = np.where(activation < 8, 128, 64)
    time = products_seconds(letters, m, n, k, 1, activation, weight, tile_rows=tile, tile_columns=tile)
    turned = np.where(activation < 16, m * k * (16 + activation) / 8, 0)
    return time + turned / np.array([x["stream_efficiency"] * x["hbm_bandwidth"] for x in letters])


def _products(rows):
    bits = [np.array([FORMATS[row["gemm_dtype"]][i] for row in rows]) for i in (1, 2)]
    devices = [accelerators[CARDS[row["system"]]].at(FORMATS[row["gemm_dtype"]][0]) for row in rows]
    roofline, peak = at_peaks(devices, *numbers(rows, *"mnk"), 1, *bits)
    return Priced(1e3 * gemm_seconds(rows), 1e3 * roofline, 1e3 * peak)


def _no_product(row):
    if row["system"] not in CARDS:
        return "of a device that is described elsewhere" if row["system"] in SYSTEMS else "of a device not known"
    return "" if row["gemm_dtype"] in FORMATS else "in a format that is not described here"


def _card(column):
    return lambda row: f"{accelerators[CARDS[row['system']]].name}, {row[column]}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "gemm_cards",
            "gemm_cards.csv",
            "Time of a linear layer on cards, of more than their second-level caches hold.",
            _products,
            "latency_ms",
            "ms",
            ("aiconfigurator-gemm",),
            _no_product,
            _card("gemm_dtype"),
            "what products reach of each peak and streams of the bandwidth, on even rows",
            is_even,
        ),
    )
}
