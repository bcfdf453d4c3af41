"""Totals of a step: batches and devices, arithmetic, rates, energy and money."""

import numpy as np

from scalebook.language import Row, formula
from scalebook.language.arguments import checked
from scalebook.machine.kernels import attention_peak_bf16, attention_peak_same, wide_efficiency
from scalebook.training.assumptions import host_efficiency

__all__ = [
    "TOTALS", "attention_peak_bf16", "attention_peak_same", "batch_of_microbatches", "devices_of_ways",
    "hardware_flops", "hfu", "link_of_host", "mfu", "microbatches_of_batch", "model_flops",
    "pcie_achieved", "step_cost", "step_energy", "train_cost", "train_rate", "train_time",
    "useful_times", "ways_left", "wide_efficiency",
]  # fmt: skip


@formula("microbatches", "narayanan2021 §2.2")
def microbatches_of_batch(global_batch, dp, batch):
    """Micro-batches per pipeline in a step.

    >>> microbatches_of_batch(global_batch=1536, dp=8, batch=2)
    96.0
    """
    return global_batch / (dp * batch)


@formula("global_batch", "narayanan2021 §2.2")
def batch_of_microbatches(microbatches, dp, batch):
    """Sequences in a step, over all pipelines.

    >>> batch_of_microbatches(microbatches=96, dp=8, batch=2)
    1536.0
    """
    return microbatches * dp * batch


@formula("dp", "narayanan2021 §2.1")
def ways_left(devices, tp, cp, pp):
    """Data-parallel ways: devices divided by the other dimensions.

    >>> ways_left(devices=4096, tp=8, cp=1, pp=64)
    8.0
    """
    return devices / (tp * cp * pp)


@formula("devices", "narayanan2021 §2.1")
def devices_of_ways(dp, tp, cp, pp):
    """Devices: the product of the dimensions. Experts are spread over data-parallel devices and add none.

    >>> devices_of_ways(dp=8, tp=8, cp=1, pp=64)
    4096.0
    """
    return dp * tp * cp * pp


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


@formula("mfu", "chowdhery2022 appendix B")
def mfu(model_flops, step_time, devices, peak_flops):
    """Model FLOPs utilisation: model FLOPs over the devices' peak. Pairs outside a window or a pick are not counted.

    >>> mfu(model_flops=1e18, step_time=10, devices=512, peak_flops="312 TFLOP/s")
    0.6260016025641025
    """
    return model_flops / (step_time * devices * peak_flops)


@formula("hfu", "korthikanti2022 §6.3")
def hfu(hardware_flops, step_time, devices, peak_flops):
    """Hardware FLOPs utilisation: executed FLOPs, including recomputation, over the devices' peak.

    >>> hfu(hardware_flops=1e18, step_time=10, devices=512, peak_flops="312 TFLOP/s")
    0.6260016025641025
    """
    return hardware_flops / (step_time * devices * peak_flops)


@formula("train_rate", "narayanan2021 §5.1")
def train_rate(global_batch, seq, step_time):
    """Tokens per second: a step's tokens over its time.

    >>> train_rate(global_batch=1536, seq=2048, step_time=16)
    196608.0
    """
    return global_batch * seq / step_time


@formula("step_energy", "patterson2021 §2.1")
def step_energy(devices, tdp, step_time):
    """Energy of a step with every device at its thermal design power. Hosts, network and cooling come on top.

    >>> step_energy(devices=1024, tdp="700 W", step_time=10)
    7168000.0
    """
    return devices * tdp * step_time


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


@formula("train_cost", "narayanan2021 §5.1")
def train_cost(devices, price_hour, train_time):
    """Price of the training time: every device at its hourly price.

    >>> train_cost(devices=1024, price_hour="2 $/h", train_time=3600)
    2048.0
    """
    return devices * price_hour / 3600 * train_time


TOTALS = (
    model_flops, hardware_flops, mfu, hfu, train_rate, step_energy, step_cost, train_time, train_cost,
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
