"""Tokens sent to their experts and back: DeepEP on one node, with few cores and with many.

A token is sent once to each device that holds one of its experts.  Some cores of the device do it: they read every
token, write every copy to another device's memory and do something for each copy, whatever its size.  The links were
not the limit in most rows.
"""

from fractions import Fraction
from math import comb
from typing import NamedTuple

import numpy as np

from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .rows import SYSTEMS, is_even, number

__all__ = ["COMBINE", "CONFRONTATIONS", "DISPATCH", "devices_visited"]


class Core(NamedTuple):
    """What one core takes: seconds a byte of a copy, a byte of a token, a copy; and seconds before any of it."""

    copied: float
    read: float
    copy: float
    start: float


# Fitted on the even rows, of sending and of bringing back: Hopper, Blackwell with nodes of 8, and with nodes of 4.
DISPATCH = {
    "hopper": Core(30.2e-12, 74.3e-12, 111e-9, 26.8e-6), "blackwell": Core(21.4e-12, 84.4e-12, 158e-9, 35.2e-6),
    "grace": Core(4.4e-12, 76.6e-12, 289e-9, 34.0e-6),
}  # fmt: skip
COMBINE = {
    "hopper": Core(71.4e-12, 214.9e-12, 0, 37.0e-6), "blackwell": Core(45.2e-12, 213.6e-12, 104e-9, 46.1e-6),
    "grace": Core(37.4e-12, 151.5e-12, 241e-9, 39.7e-6),
}  # fmt: skip
_KINDS = {
    "h100": ("hopper", 8), "h200": ("hopper", 8), "b200": ("blackwell", 8), "b300": ("blackwell", 8),
    "gb200": ("grace", 4), "gb300": ("grace", 4),
}  # fmt: skip
# A collective's share of the link's rate, about what NCCL reaches (near_efficiency in the table of accelerators).
_LINK = 0.8


def devices_visited(experts, top_k, devices):
    """Devices, or nodes, that hold one of a token's experts at least: the mean over all choices, equally likely.

    >>> round(devices_visited(experts=256, top_k=8, devices=8), 2)
    5.29
    """
    experts, top_k, devices = int(experts), int(top_k), int(devices)
    elsewhere = comb(experts - experts // devices, top_k)
    return float(devices * (1 - Fraction(elsewhere, comb(experts, top_k))))


def _seconds(row, cores, rates, width):
    tokens, hidden = number(row, "num_token"), number(row, "hidden_size")
    kind, devices = _KINDS[SYSTEMS[row["system"]]]
    copies = tokens * devices_visited(number(row, "num_experts"), number(row, "num_topk"), devices)
    core = rates[kind]
    work = (core.copied * copies * hidden + core.read * tokens * hidden + core.copy * copies) / number(row, cores)
    leaving = copies * (devices - 1) / devices * hidden * width
    links = leaving / (_LINK * accelerators[SYSTEMS[row["system"]]]["scaleup_bandwidth"])
    return core.start + max(work, links)


def _predict(cores, rates, width):
    def predict(rows):
        return Priced(*(1e6 * np.array([[f(row) for f in (said, at_peak)] for row in rows]).T))

    def said(row):
        return _seconds(row, cores, rates, width)

    def at_peak(row):
        """Every copy that leaves crosses the links at their whole rate."""
        devices = _KINDS[SYSTEMS[row["system"]]][1]
        copies = devices_visited(number(row, "num_experts"), number(row, "num_topk"), devices) * (1 - 1 / devices)
        sent = copies * number(row, "num_token") * number(row, "hidden_size") * width
        return sent / accelerators[SYSTEMS[row["system"]]]["scaleup_bandwidth"]

    return predict


def _left_out(row):
    if row["op_name"] != "normal":
        return "of other kernels than DeepEP's for many tokens"
    if float(row["node_num"] or 0) != 1:
        return "between nodes, whose network is not stated"
    return "" if SYSTEMS.get(row["system"]) in _KINDS else "of a device that was not calibrated"


def _group(row):
    size = "from" if number(row, "num_token") >= 1024 else "fewer than"
    return f"{accelerators[SYSTEMS[row['system']]].name.partition(' (')[0]}, {size} 1,024 tokens"


_CALIBRATED = "four constants for each of Hopper, Blackwell and Grace Blackwell, on the even rows"
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "moe_dispatch",
            "moe_exchange.csv",
            "Time to send tokens to their experts with DeepEP in one node, by cores.",
            _predict("dispatch_sms", DISPATCH, 1),
            "dispatch_transmit_us",
            "µs",
            ("aiconfigurator-moe",),
            _left_out,
            _group,
            _CALIBRATED,
            is_even,
            ("combine_sms", "combine_transmit_us"),
        ),
        Confrontation(
            "moe_combine",
            "moe_exchange.csv",
            "Time to bring results of experts back with DeepEP in one node, by cores.",
            _predict("combine_sms", COMBINE, 2),
            "combine_transmit_us",
            "µs",
            ("aiconfigurator-moe",),
            _left_out,
            _group,
            _CALIBRATED,
            is_even,
            ("dispatch_sms", "dispatch_transmit_us"),
        ),
    )
}
