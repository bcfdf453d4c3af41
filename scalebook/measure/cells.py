"""Turn measurements into a stanza for the table of accelerators.

A peak is the best rate seen, and an efficiency the median rate over it, with ends that hold eight in ten of the times.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scalebook.language import NOTATION
from scalebook.machine.kernels import exposed_write, inner_half, matmul_time
from scalebook.measure.backends import BITS
from scalebook.measure.probes import Measurement

__all__ = ["Found", "cells_of", "stanza"]

_LARGE = 256  # smallest side of a product that counts for the efficiency
_TILES = (64, 1, 2, 4, 8, 16, 32, 128, 256)  # the default first: another must be better to replace it
_BETTER = 0.95
_TENSORS = {"read": 1, "copy": 2, "wide copy": 2, "add": 3}  # tensors that a stream reads and writes


class Found(NamedTuple):
    """A cell: its value, its note and, if it was repeated, the range of eight in ten repeats and their number."""

    value: float
    note: str
    low: float | None = None
    high: float | None = None
    repeats: int = 0


def cells_of(rows: Sequence[Measurement], memory: float, cores: int, devices: int = 1) -> dict[str, Found]:
    """Return a device's cells; `memory` is in bytes. Raises ValueError if no products or no streams were measured."""
    products, streams = ([x for x in rows if x.kind in kinds] for kinds in (("product",), _TENSORS))
    if not products or not streams:
        raise ValueError("a device's row needs products and streams: measure both")
    cells = {"hbm_capacity": Found(memory, "all of the memory that the system reports")}
    cells |= _streams(streams)
    cells["kernel_launch"] = _spread(_seconds(x for x in rows if x.kind == "launch"), "a product of 8 x 8, a sum of 8")
    cells["cores"] = Found(cores, "cores that a large product keeps busy")
    for precision in dict.fromkeys(x.precision for x in products):
        cells |= _products([x for x in rows if x.precision == precision], precision)
    cells |= _tile(products, cells) | _attention(rows, cells)
    return cells | _links(rows, cells, devices)


def _rates(row: Measurement) -> np.ndarray:
    counted = 0.5 if row.kind == "attention" else 1  # causal attention uses half of the pairs
    return counted * row.rate(np.array(row.sample.seconds))


def _seconds(rows: Iterable[Measurement]) -> np.ndarray:
    return np.concatenate([row.sample.seconds for row in rows])


def _spread(values, note) -> Found:
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    return Found(float(middle), note, float(low), float(high), len(values))


def _streams(streams):
    """Return memory cells from the two largest sizes, whose tensors evict each other from the caches."""
    largest = sorted({x.traffic / _TENSORS[x.kind] for x in streams})[-2:]
    beyond = [x for x in streams if x.traffic / _TENSORS[x.kind] in largest]
    best = max(_rates(x).max() for x in beyond)
    own = np.concatenate([_rates(x) for x in beyond if x.kind != "wide copy"])
    added = max(_rates(x).max() for x in streams if x.kind == "add")
    bytes_of = f"of tensors of {largest[0] / 2**20:.4g} and {largest[-1] / 2**20:.4g} MiB"
    wide = "; a copy on all cores is among them" if any(x.kind == "wide copy" for x in beyond) else ""
    return {
        "hbm_bandwidth": Found(best, f"the best reading, copy or sum {bytes_of}{wide}"),
        "stream_efficiency": _spread(own / best, f"readings, copies and sums {bytes_of} over the best"),
        "peak_vector": Found(added / 12, "the best rate of additions of tensors, which caches hold"),
    }


def _products(rows, precision):
    """Return the peak and efficiency of products; attention gives the peak if products were slowed down by others."""
    products = [x for x in rows if x.kind == "product"]
    best = max(_rates(x).max() for x in rows if x.kind in ("product", "attention"))
    least = min(_LARGE, max(min(x.rows, x.columns, x.inner) for x in products))
    large = [x for x in products if min(x.rows, x.columns, x.inner) >= least]
    shares = np.concatenate([_rates(x) for x in large]) / best
    sides = f"{least:,} to {max(max(x.rows, x.columns, x.inner) for x in large):,}"
    return {
        f"peak_{precision}": Found(best, "the best product that was seen, and no data sheet's figure"),
        f"matmul_{precision}": _spread(shares, f"products of sides from {sides} over the best"),
    }


def _tile(products, cells):
    first = [x for x in products if x.precision == products[0].precision]
    letters = {x: np.array([getattr(row, x) for row in first], float) for x in ("rows", "columns", "inner", "copies")}
    letters["traffic"] = np.array([row.traffic for row in first])
    measured = np.array([row.sample.median for row in first])
    known = {x: cells[x].value for x in ("cores", "hbm_bandwidth", "stream_efficiency", "kernel_launch")}
    known |= {"peak_flops": cells[f"peak_{first[0].precision}"].value, "tile_columns": 64}
    known |= {"matmul_efficiency": cells[f"matmul_{first[0].precision}"].value}
    known["inner_half"] = inner_half(
        {x: known[x] for x in ("peak_flops", "hbm_bandwidth")}, exposed_write=exposed_write(),
        activation_bits=BITS[first[0].precision],
    )  # fmt: skip
    errors = {}
    for rows in _TILES:
        predicted = matmul_time(known, letters, tile_rows=rows)
        errors[rows] = float(np.mean(np.abs(np.log(predicted / measured))))
    best = min(errors, key=errors.get)
    if best == _TILES[0] or errors[best] > _BETTER * errors[_TILES[0]]:
        return {}
    said = f"of {min(_TILES)} to {max(_TILES)}, with which times of {len(first)} products are predicted best"
    return {"tile_rows": Found(best, f"{said}: {np.expm1(errors[best]):.0%} off on the mean")}


def _attention(rows, cells):
    found = [x for x in rows if x.kind == "attention"]
    if not found:
        return {}
    peak = cells[f"peak_{found[0].precision}"].value
    shares = np.concatenate([_rates(x) for x in found]) / peak
    said = f"causal attention to {found[0].rows:,} tokens, {found[0].copies} heads of {found[0].inner // 2}"
    return {"attention_efficiency": _spread(shares, f"{said}, over the best product")}


def _links(rows, cells, devices):
    found = {}
    if host := [x for x in rows if x.kind == "host"]:
        best = max(_rates(x).max() for x in host)
        found["host_bandwidth"] = Found(best, "the best copy from or to pinned memory of the host")
        found["host_efficiency"] = _spread(np.concatenate([_rates(x) for x in host]) / best, "all copies over the best")
    if gathers := sorted((x for x in rows if x.kind == "all_gather"), key=lambda x: x.traffic):
        best = _rates(gathers[-1]).max()
        found["scaleup_size"] = Found(devices, "devices that were seen")
        found["scaleup_bandwidth"] = Found(best, "what a device received in the best all-gather")
        found["near_efficiency"] = _spread(_rates(gathers[-1]) / best, "the largest all-gathers over the best")
        found["collective_launch"] = _spread(gathers[0].sample.seconds, "an all-gather of 1 KiB, hops included")
        found["near_latency"] = Found(0.0, "within the time of the smallest all-gather")
    else:
        note = "one device was seen: what it would send itself is a copy within its memory"
        found["scaleup_size"] = Found(1, "one device was seen")
        found["scaleup_bandwidth"] = Found(cells["hbm_bandwidth"].value / 2, note)
    if writes := [x for x in rows if x.kind == "write"]:
        rates = np.concatenate([_rates(x) for x in writes])
        found["storage_bandwidth"] = _spread(rates, "a file where temporary files lie, until it is on the disk")
    return found


def stanza(key: str, name: str, cells: dict[str, Found], source: str, vendor: str = "") -> str:
    """Return a row of the table of accelerators as TOML.

    >>> print(stanza("mine", "Mine", {"cores": Found(2, "seen")}, "scalebook-measure on this at 2026-11-23"))
    [mine]
    name = "Mine"
    source = "scalebook-measure on this at 2026-11-23"
    cores = {value = 2, note = "seen"}
    """
    texts = {"name": name, "vendor": vendor, "source": source}
    lines = [f"[{key}]", *(f"{x} = {_quoted(text)}" for x, text in texts.items() if text)]
    return "\n".join([*lines, *(f"{letter} = {_cell(letter, x, source)}" for letter, x in cells.items())])


def _cell(letter, found, source):
    said = {"value": _text(letter, found.value)}
    if found.low is not None:
        said |= {"low": _text(letter, found.low), "high": _text(letter, found.high)}
        said["source"] = _quoted(f"{source}, median of {found.repeats}")
    return "{" + ", ".join(f"{name} = {x}" for name, x in (said | {"note": _quoted(found.note)}).items()) + "}"


def _text(letter, value):
    unit = NOTATION[letter].unit
    if not unit:
        return f"{value:.5g}" if value % 1 else str(int(value))
    if unit == "%":
        return f'"{100 * value:.4g} %"'
    if unit == "s":
        return f'"{1e6 * value:.4g} us"'
    power, prefix = next((x for x in ((12, "T"), (9, "G"), (6, "M"), (3, "k")) if value >= 10 ** x[0]), (0, ""))
    return f'"{value / 10**power:.5g} {prefix}{unit}"'


def _quoted(text):
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
