"""When data-parallel collectives hide under arithmetic, and where more devices stop helping.

A block takes 2 FLOPs per parameter and token forward and 4 backward, and its collectives move a fixed number of bits
per parameter, so the parameters cancel. Attention's scores and the factor (n - 1)/n of a group are left out. A mixture
of experts needs its total over its active parameters times as many tokens.
"""

from sympy import Max, Min, sqrt

from scalebook.language import Sheet, formula
from scalebook.machine.collective_rates import FABRIC, group_share
from scalebook.machine.collectives import all_reduce

__all__ = [
    "arithmetic_of_step", "best_buckets", "block_wait", "copies_of_devices", "crossover_tokens", "exchange_share",
    "exposed_buckets", "gradient_buffer", "gradient_sum", "group_rate", "hiding", "hiding_replicated", "hiding_zero1",
    "hiding_zero3", "train_steps", "wall_devices",
]  # fmt: skip

_HERE, _SHARDED = "data-parallelism", "fully-sharded-data-parallelism"


@formula("link_achieved", "interconnects-and-memory-tiers", given=FABRIC)
def group_rate(
    near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency, scaleout_bandwidth, far_efficiency
):
    """Rate of a collective over several domains, in bytes per second. Rings leave a domain through all its devices.

    >>> at = dict(scaleup_bandwidth="450 GB/s", near_efficiency=0.88, scaleout_bandwidth="50 GB/s", far_efficiency=0.9)
    >>> group_rate(at, near_ways=8)
    360000000000.0
    """
    share = group_share.of(near_ways=near_ways, mesh_peers=mesh_peers, torus_neighbours=torus_neighbours)
    near, far = share * scaleup_bandwidth * near_efficiency, near_ways * scaleout_bandwidth * far_efficiency
    return Min(near, far, evaluate=False)


@formula("idle_fraction", "korthikanti2022 §4.2", domain={"one way or more": lambda tp: tp >= 1})
def block_wait(tp, hidden, activation_bits, peak_flops, scaleup_bandwidth):
    """Share of a tensor-parallel block's time that is spent waiting for links, if nothing is hidden.

    Products and links run at their peaks, and the feed-forward layer is four times as wide. Scores are left out.

    >>> at = dict(peak_flops="989.4 TFLOP/s", scaleup_bandwidth="450 GB/s")
    >>> round(block_wait(at, tp=8, hidden=8192, activation_bits=16), 3)
    0.385
    """
    ratio = (tp - 1) * activation_bits * peak_flops / (48 * hidden * scaleup_bandwidth)
    return ratio / (1 + ratio)


@formula("hiding_tokens", _HERE)
def hiding_replicated(gradient_bits, peak_flops, flops_efficiency, link_achieved):
    """Tokens per device that hide an all-reduce of gradients, which sends them twice, under the backward pass.

    >>> hiding_replicated(gradient_bits=32, peak_flops="989.4 TFLOP/s", flops_efficiency=0.6, link_achieved="360 GB/s")
    3298.0
    """
    return 2 * gradient_bits / 8 / 4 * peak_flops * flops_efficiency / link_achieved


@formula("hiding_tokens", _HERE)
def hiding_zero1(gradient_bits, weight_bits, peak_flops, flops_efficiency, link_achieved):
    """Tokens per device that hide ZeRO 1: gradients scattered under the backward pass, weights gathered forward.

    >>> hiding_zero1(gradient_bits=32, weight_bits=16, peak_flops=989.4e12, flops_efficiency=0.6, link_achieved=360e9)
    1649.0
    """
    slower = Max(gradient_bits / 8 / 4, weight_bits / 8 / 2, evaluate=False)
    return slower * peak_flops * flops_efficiency / link_achieved


@formula("hiding_tokens", _SHARDED)
def hiding_zero3(gradient_bits, weight_bits, peak_flops, flops_efficiency, link_achieved):
    """Tokens per device that hide ZeRO 3: weights gathered under each pass, gradients scattered under the backward one.

    >>> hiding_zero3(gradient_bits=32, weight_bits=16, peak_flops=989.4e12, flops_efficiency=0.6, link_achieved=360e9)
    2473.5
    """
    slower = Max(weight_bits / 8 / 2, (weight_bits + gradient_bits) / 8 / 4, evaluate=False)
    return slower * peak_flops * flops_efficiency / link_achieved


@formula("wall_devices", _HERE, given=[hiding_zero1])
def wall_devices(batch_tokens, hiding_tokens):
    """Most devices that can share a step's tokens if each needs enough tokens to hide its collectives.

    >>> wall_devices(batch_tokens="16e6 token", hiding_tokens="2000 token")
    8000.0
    """
    return batch_tokens / hiding_tokens


hiding = Sheet(
    "hiding", wall_devices, hiding_zero1, group_rate, *FABRIC,
    doc="The communication wall of ZeRO-1, from a device's network bandwidths.",
)  # fmt: skip


# A step's arithmetic and the sum of its gradients, which do not overlap here.


@formula("ways", _HERE)
def copies_of_devices(devices, tp, pp):
    """Number of copies of a model, each on `tp` devices in each of `pp` stages. The copies sum their gradients.

    >>> copies_of_devices(devices=16384, tp=8, pp=16)
    128.0
    """
    return devices / (tp * pp)


@formula("collective_bytes", _HERE)
def gradient_buffer(params, gradient_bits, tp, pp):
    """Bytes of the gradients of one device's part of the weights.

    >>> gradient_buffer(params=64e9, gradient_bits=16, tp=8, pp=16)
    1000000000.0
    """
    return params * gradient_bits / 8 / (tp * pp)


@formula("step_compute", "kaplan2020 §2.1")
def arithmetic_of_step(params, batch_tokens, devices, peak_flops, flops_efficiency):
    """Time of a step's arithmetic on all devices: six FLOPs per parameter and token. Attention's scores are left out.

    >>> arithmetic_of_step(params=4e11, batch_tokens=16e6, devices=16000, peak_flops=1e15, flops_efficiency=0.4)
    6.0
    """
    return 6 * params * batch_tokens / (devices * peak_flops * flops_efficiency)


@formula("exchange_share", _HERE)
def exchange_share(collective_time, step_compute):
    """Time of the gradient sum over the time of arithmetic. Well below 1 the sum can hide; at 1 and above it cannot.

    >>> exchange_share(collective_time=0.3, step_compute=6)
    0.05
    """
    return collective_time / step_compute


gradient_sum = Sheet(
    "gradient sum", all_reduce, gradient_buffer, copies_of_devices, arithmetic_of_step, exchange_share, *FABRIC,
    doc="The gradient sum over all copies of a model, compared with the arithmetic of a step.",
)  # fmt: skip


@formula("train_steps", "mccandlish2018")
def train_steps(min_steps, critical_batch, batch_tokens):
    """Steps to a given loss. A small batch makes noisy gradients, and noise takes more steps.

    >>> train_steps(min_steps=100000, critical_batch="4e6 token", batch_tokens="4e6 token")
    200000.0
    """
    return min_steps * (1 + critical_batch / batch_tokens)


@formula("dp_exposed", "li2020-ddp §3.2")
def exposed_buckets(dp_reduce, dp_window, bucket_count, collective_launch):
    """Exposed time of a gradient sum in equal buckets: the last bucket's time, or more if buckets queue for the link.

    >>> exposed_buckets(dp_reduce="60 ms", dp_window="100 ms", bucket_count=10, collective_launch="0.1 ms")
    0.0061
    """
    last = collective_launch + dp_reduce / bucket_count
    queue = dp_window / bucket_count + bucket_count * collective_launch + dp_reduce - dp_window
    return Max(last, queue, evaluate=False)


@formula("bucket_count", _HERE)
def best_buckets(dp_reduce, dp_window, collective_launch):
    """Number of equal buckets with the least exposed time: more would queue, and fewer leave more to the end.

    >>> best_buckets(dp_reduce="60 ms", dp_window="100 ms", collective_launch="0.1 ms")
    400.0
    """
    gap, queue = (dp_window - dp_reduce) / collective_launch, sqrt(dp_window / collective_launch)
    return Max(1, gap, queue, evaluate=False)


@formula("crossover_tokens", _SHARDED)
def crossover_tokens(block_params, hidden, weight_bits, gradient_bits, activation_bits):
    """Tokens that make sharded data parallelism and tensor parallelism move the same bytes.

    >>> crossover_tokens(block_params=12 * 8192**2, hidden=8192, weight_bits=16, gradient_bits=16, activation_bits=16)
    36864.0
    """
    return block_params * (2 * weight_bits + gradient_bits) / (8 * hidden * activation_bits)
