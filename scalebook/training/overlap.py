"""When data-parallel collectives hide under arithmetic, and where more devices stop helping.

A block takes 2 FLOPs per parameter and token forward and 4 backward, and its collectives move a fixed number of bits
per parameter, so the parameters cancel. Attention's scores and the factor (n - 1)/n of a group are left out. A mixture
of experts needs its total over its active parameters times as many tokens.
"""

from sympy import Max, Min, sqrt

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.machine.collective_rates import FABRIC, group_share
from scalebook.machine.collectives import all_reduce

_OWN = equations(__name__)  # those of overlap.toml


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


hiding = Sheet(
    "hiding", _OWN.wall_devices, _OWN.hiding_zero1, group_rate, *FABRIC,
    doc="The communication wall of ZeRO-1, from a device's network bandwidths.",
)  # fmt: skip

# A step's arithmetic and the sum of its gradients, which do not overlap here.
gradient_sum = Sheet(
    "gradient sum", all_reduce, _OWN.gradient_buffer, _OWN.copies_of_devices, _OWN.arithmetic_of_step,
    _OWN.exchange_share, *FABRIC,
    doc="The gradient sum over all copies of a model, compared with the arithmetic of a step.",
)  # fmt: skip


@formula("bucket_count", "data-parallelism")
def best_buckets(dp_reduce, dp_window, collective_launch):
    """Number of equal buckets with the least exposed time: more would queue, and fewer leave more to the end.

    >>> best_buckets(dp_reduce="60 ms", dp_window="100 ms", collective_launch="0.1 ms")
    400.0
    """
    gap, queue = (dp_window - dp_reduce) / collective_launch, sqrt(dp_window / collective_launch)
    return Max(1, gap, queue, evaluate=False)


__all__ = [*formulas_of(__name__), "gradient_sum", "hiding"]
