"""Manifold hyper-connections: several copies of the residual stream, mixed before and after each part of a block.

Before a part, one product of all streams gives a token's mixing numbers, which Sinkhorn's iterations make doubly
stochastic. The part sees a weighted sum of the streams, and its result is added to all of them. Both kernels are bound
by memory traffic.
"""

from sympy import Max

from scalebook.language import formula

__all__ = ["hyper_flops", "hyper_time", "hyper_traffic"]

_HERE = "xie2025 §4"


@formula("flops", _HERE)
def hyper_flops(pass_tokens, streams, hidden, sinkhorn_steps):
    """FLOPs before one part of a block: the product for n*(n + 2) mixing numbers, Sinkhorn's steps, the weighted sum.

    >>> hyper_flops(pass_tokens=1, streams=4, hidden=7168, sinkhorn_steps=20)
    1434880.0
    """
    mixing = streams * (streams + 2)
    return pass_tokens * (2 * streams * hidden * (mixing + 1) + 4 * sinkhorn_steps * streams**2)


@formula("traffic", _HERE)
def hyper_traffic(pass_tokens, streams, hidden, activation_bits):
    """Bytes moved before one part of a block (streams read twice, their sum written), and as many after it.

    >>> hyper_traffic(pass_tokens=1, streams=4, hidden=7168, activation_bits=16)
    129024.0
    """
    return pass_tokens * (2 * streams + 1) * hidden * activation_bits / 8


@formula("kernel_time", _HERE, "aiconfigurator-2026")
def hyper_time(
    hyper_sites, launch_time, flops, kernel_efficiency, peak_flops, traffic, resident_share, l2_bandwidth,
    bandwidth_efficiency, hbm_bandwidth,
):  # fmt: skip
    """Time per block of hyper-connections before (or after) its parts: per part a launch, and arithmetic or traffic.

    >>> rates = dict(peak_flops="989.4 TFLOP/s", kernel_efficiency=0.5, hbm_bandwidth="3.35 TB/s", l2_bandwidth=8e12)
    >>> known = dict(rates, hyper_sites=2, launch_time="3 us", bandwidth_efficiency=0.87, resident_share=0)
    >>> 1e6 * hyper_time(known, flops="11 GFLOP", traffic="1 GB")
    692.224052...
    """
    read = (1 - resident_share) * traffic / (bandwidth_efficiency * hbm_bandwidth)
    moved = read + resident_share * traffic / l2_bandwidth
    return hyper_sites * (launch_time + Max(flops / (kernel_efficiency * peak_flops), moved, evaluate=False))
