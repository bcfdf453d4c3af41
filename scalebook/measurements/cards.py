"""Kernels on cards without a scale-up network: L40S and RTX PRO 6000, whose cells of the table rest on these rows.

Their second-level caches hold the weights of a small product, so only products and caches that are larger are here.
"""

import numpy as np

from scalebook.tables import accelerators

from .attention import BITS, DECODE, DECODE_AT_PEAKS, DEVICES, decode_seconds
from .confrontation import Confrontation, Priced
from .kernels import FORMATS, at_peaks, products_seconds
from .rows import SYSTEMS, is_even, numbers

__all__ = ["CONFRONTATIONS", "gemm_seconds", "read_seconds"]

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


def read_seconds(rows, share=None) -> np.ndarray:
    """Seconds of attention to caches for rows of attention_cards.csv."""
    rows = [{**row, "system": CARDS[row["system"]]} for row in rows]
    reached = np.array([share or accelerators[row["system"]].read_efficiency for row in rows])
    return decode_seconds(rows, **(DECODE | dict(bandwidth_efficiency=reached)))


def _products(rows):
    bits = [np.array([FORMATS[row["gemm_dtype"]][i] for row in rows]) for i in (1, 2)]
    devices = [accelerators[CARDS[row["system"]]].at(FORMATS[row["gemm_dtype"]][0]) for row in rows]
    roofline, peak = at_peaks(devices, *numbers(rows, *"mnk"), 1, *bits)
    return Priced(1e3 * gemm_seconds(rows), 1e3 * roofline, 1e3 * peak)


def _reads(rows):
    named = [{**row, "system": CARDS[row["system"]]} for row in rows]
    return Priced(1e3 * read_seconds(rows), 1e3 * decode_seconds(named, **DECODE_AT_PEAKS))


def _no_read(row):
    if row["system"] not in CARDS:
        return "of a device that is described elsewhere" if row["system"] in DEVICES else "of a device not known"
    if row["window_size"] not in ("0", "0.0"):
        return "with a sliding window"
    return "" if row["kv_cache_dtype"] in BITS and row["attn_dtype"] in BITS else "in a precision not described here"


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
            "attention_cards",
            "attention_cards.csv",
            "Time of attention for one new token a sequence on cards, of more than their second-level caches hold.",
            _reads,
            "latency_ms",
            "ms",
            ("aiconfigurator",),
            _no_read,
            _card("kv_cache_dtype"),
            "the share of the bandwidth at which caches are read, on even rows",
            is_even,
        ),
    )
}
