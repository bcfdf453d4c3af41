"""Totals of a step: batches and devices, arithmetic, rates, energy and money."""

import numpy as np

from scalebook.language import Row, formula, formulas_of
from scalebook.language.arguments import checked
from scalebook.language.defaults import equations
from scalebook.machine.kernels import attention_peak_bf16, attention_peak_same, wide_efficiency
from scalebook.training.assumptions import host_efficiency

_OWN = equations(__name__)  # those of totals.toml


@formula("model_flops", "chowdhery2022 appendix B", "narayanan2021 §5.1")
def model_flops(global_batch, batch, tp, cp, layers, block_flops, head_flops):
    """Model FLOPs of a step: three times a forward pass's matrix FLOPs, without recomputation.

    Pairs of tokens that a causal mask hides are counted, and pairs outside a window or an indexer's picks are not.

    >>> at = dict(global_batch=8, batch=1, tp=8, cp=1, layers=96)
    >>> model_flops(at, block_flops="1 TFLOP", head_flops="0.3 TFLOP") / 1e12
    18489.6
    """
    return 3 * global_batch / batch * tp * cp * (layers * block_flops + head_flops)


@formula("hardware_flops", "narayanan2021 §5.1")
def hardware_flops(model_flops, global_batch, batch, tp, cp, layers, again_flops):
    """FLOPs of a step with recomputation: model FLOPs, plus `again_flops` per block, micro-batch and device of a stage.

    >>> hardware_flops(model_flops=3e15, global_batch=8, batch=1, tp=8, cp=1, layers=1, again_flops="1 TFLOP") / 1e12
    3064.0
    """
    return model_flops + global_batch / batch * tp * cp * layers * again_flops


@formula("step_cost", "narayanan2021 §5.1")
def step_cost(devices, price_hour, step_time):
    """Price of a step: every device at its hourly price.

    >>> round(step_cost(devices=1024, price_hour="2 $/h", step_time=9), 2)
    5.12
    """
    return devices * price_hour / 3600 * step_time


@formula("train_time", "narayanan2021 §5.1")
def train_time(train_tokens, train_rate):
    """Time to train on all tokens at this rate. Stops and restarts come on top.

    >>> train_time(train_tokens="15e12 token", train_rate="1.5e6 token/s") / 86400
    115.74074074074075
    """
    return train_tokens / train_rate


TOTALS = (
    model_flops, hardware_flops, _OWN.mfu, _OWN.hfu, _OWN.train_rate, _OWN.step_energy, step_cost, train_time,
    _OWN.train_cost,
)  # fmt: skip


@formula("link_bandwidth", "rajbhandari2021 §3", given=[host_efficiency])
def link_of_host(host_bandwidth, host_efficiency):
    """Rate of the link to the second tier, if that is host memory: the rate that copies reach.

    >>> link_of_host(host_bandwidth="64 GB/s")
    55040000000.0
    """
    return host_bandwidth * host_efficiency


@formula("link_achieved", "azure-ai-benchmarking", "bekman-network", given=[host_efficiency])
def pcie_achieved(link_bandwidth, host_efficiency):
    """Rate of copies over a PCIe link, at the same share of its raw rate as copies to and from a host.

    >>> pcie_achieved(link_bandwidth="32 GB/s")
    27520000000.0
    """
    return link_bandwidth * host_efficiency


@checked
def useful_times(run: Row) -> tuple:
    """Return two lower bounds of a step's time in seconds, with all devices at their peak.

    The first counts FLOPs as MFU does; the second leaves out attention to masked pairs of tokens.
    """
    rate = run.devices * run.peak_flops
    width = 2 * run.head_dim if "head_dim" in run else run.nope_dim + run.rope_dim + run.v_dim
    masked = 3 * run.layers * run.heads * width * run.seq**2 * run.global_batch * run.get("counted_share", 1)
    return run.model_flops / rate, np.maximum(0, run.model_flops - masked) / rate


__all__ = [
    *formulas_of(__name__), "TOTALS", "attention_peak_bf16", "attention_peak_same", "useful_times", "wide_efficiency",
]  # fmt: skip
