"""The roofline: arithmetic and memory traffic overlap, and the slower of the two sets the time."""

from sympy import Max, Min

from scalebook.language import Sheet, formula, formulas_of


@formula("ridge_intensity", "williams2009 §3")
def ridge_intensity(peak_flops, hbm_bandwidth):
    """Ridge point: operations per byte of a kernel that keeps both the arithmetic units and the memory busy.

    >>> ridge_intensity(peak_flops="989.4 TFLOP/s", hbm_bandwidth="3.35 TB/s")
    295.34328358208955
    """
    return peak_flops / hbm_bandwidth


@formula("intensity", "williams2009 §3")
def intensity(flops, traffic):
    """Operations per byte moved between memory and chip.

    >>> intensity(flops="2 TFLOP", traffic="4 GB")
    500.0
    """
    return flops / traffic


@formula("attainable_flops", "williams2009 §3")
def attainable_flops(intensity, peak_flops, hbm_bandwidth):
    """FLOP/s that the roofline allows at an intensity: limited by memory until the arithmetic units are busy.

    >>> attainable_flops(intensity=1, peak_flops="989.4 TFLOP/s", hbm_bandwidth="3.35 TB/s")
    3350000000000.0
    """
    return Min(peak_flops, intensity * hbm_bandwidth, evaluate=False)


@formula("compute_time", "williams2009 §3")
def compute_time(flops, peak_flops):
    """Time of the arithmetic at the peak rate.

    >>> compute_time(flops="1 TFLOP", peak_flops="1 PFLOP/s")
    0.001
    """
    return flops / peak_flops


@formula("memory_time", "williams2009 §3")
def memory_time(traffic, hbm_bandwidth):
    """Time of the traffic at full bandwidth.

    >>> memory_time(traffic="1 GB", hbm_bandwidth="2 TB/s")
    0.0005
    """
    return traffic / hbm_bandwidth


@formula("roofline_time", "williams2009 §3", given=[compute_time, memory_time])
def roofline_time(compute_time, memory_time):
    """Lower bound of a kernel's time: the larger of arithmetic and memory, which overlap.

    >>> roofline_time(flops="1 TFLOP", peak_flops="1 PFLOP/s", traffic="1 GB", hbm_bandwidth="2 TB/s")
    0.001
    """
    return Max(compute_time, memory_time, evaluate=False)


@formula("idle_fraction", "memory-bottlenecks", given=[compute_time, memory_time])
def idle_fraction(compute_time, memory_time):
    """Share of the time in which the arithmetic units wait for memory.

    >>> idle_fraction(compute_time=1, memory_time=4)
    0.75
    """
    return 1 - compute_time / Max(compute_time, memory_time, evaluate=False)


roofline = Sheet(
    "roofline", ridge_intensity, intensity, attainable_flops, compute_time, memory_time, roofline_time, idle_fraction,
    doc="A kernel with given operations and bytes on a device.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "roofline"]
