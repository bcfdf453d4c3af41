"""Attention of vision encoders: no mask, no cache, narrow heads, and often more tiles than cores for a short time."""

from sympy import Max, ceiling

from scalebook.language import formula

__all__ = ["encoder_kernel_time", "encoder_traffic", "encoder_waves", "padded_dim"]

_HERE = "dao2022 §3.1"


@formula("padded_dim", "shah2024 §3")
def padded_dim(head_dim):
    """Width of a head that matrix units multiply: the next multiple of 16. Encoders have heads of 64, 72 or 80.

    >>> padded_dim(head_dim=72)
    80.0
    """
    return 16 * ceiling(head_dim / 16)


@formula("traffic", _HERE)
def encoder_traffic(batch, heads, head_dim, seq, activation_bits):
    """Bytes moved by attention without a mask: queries, keys, values and results once each.

    >>> encoder_traffic(batch=1, heads=16, head_dim=72, seq=4096, activation_bits=16) / 1e6
    37.748736
    """
    return 4 * batch * heads * head_dim * seq * activation_bits / 8


@formula("waves", "dao2022 §3.2")
def encoder_waves(batch, heads, seq, query_tile, cores):
    """Rounds in which every core computes one tile of queries; at least one, however short the sequences.

    >>> encoder_waves(batch=4, heads=16, seq=4096, query_tile=128, cores=132)
    16.0
    """
    return ceiling(batch * heads * ceiling(seq / query_tile) / cores, evaluate=False)


@formula("kernel_time", "shah2024 §3", "aiconfigurator-2026")
def encoder_kernel_time(
    launch_time, waves, query_tile, seq, padded_dim, cores, kernel_efficiency, peak_flops, core_time, traffic,
    bandwidth_efficiency, hbm_bandwidth,
):  # fmt: skip
    """Time of an encoder's attention: launch, then waves of tiles, each with a start-up, or the traffic if longer.

    >>> rates = dict(peak_flops="989.4 TFLOP/s", kernel_efficiency=0.55, core_time="3.5 us", hbm_bandwidth="3.35 TB/s")
    >>> sizes = dict(launch_time="10 us", waves=16, query_tile=128, seq=4096, padded_dim=80, cores=132)
    >>> 1e6 * encoder_kernel_time(rates, sizes, traffic="150 MB", bandwidth_efficiency=0.7)
    717.147255...
    """
    tile = 4 * query_tile * seq * padded_dim * cores / (kernel_efficiency * peak_flops)
    worked = waves * (core_time + tile)
    return launch_time + Max(worked, traffic / (bandwidth_efficiency * hbm_bandwidth), evaluate=False)
