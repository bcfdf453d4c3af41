"""Data sheets: what they print, how much of it a step can use, and the growth of peaks from year to year.

>>> from scalebook.tables import accelerators
>>> row = data_sheet(accelerators.gb200.at("fp4"), sparsity_gain=2, directions=2, printed_devices=72)
>>> row.printed_flops / 1e18, row.printed_links / 1e12, round(row.usable_flops / 1e15, 2), round(row.usable_share, 2)
(1.44, 129.6, 4.55, 0.23)
"""

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import stated

from .collective_rates import FABRIC, group_share
from .kernels import typical_matmul_efficiency, typical_stream_efficiency
from .roofline import ridge_intensity

_DEFAULTS = stated(__name__)  # those of datasheet.toml
globals().update(_DEFAULTS)


@formula("printed_flops", "nvidia-h100-datasheet", "nvidia-gb200")
def printed_flops(peak_flops, sparsity_gain, printed_devices):
    """Headline FLOP/s: a device's dense peak, doubled "with sparsity" (2 of 4 weights zero), times the devices counted.

    >>> printed_flops(peak_flops="494.7 TFLOP/s", sparsity_gain=2, printed_devices=1) / 1e12
    989.4
    """
    return sparsity_gain * printed_devices * peak_flops


@formula("printed_links", "nvidia-h100-whitepaper section 4.7")
def printed_links(scaleup_bandwidth, directions, printed_devices):
    """Headline link bandwidth: both directions added up, and often all devices counted.

    >>> printed_links(scaleup_bandwidth="450 GB/s", directions=2, printed_devices=1) / 1e9
    900.0
    """
    return directions * printed_devices * scaleup_bandwidth


@formula("usable_flops", "aiconfigurator-gemm", given=[typical_matmul_efficiency])
def usable_flops(peak_flops, matmul_efficiency):
    """FLOP/s that large matrix products reach.

    >>> usable_flops(peak_flops="989.4 TFLOP/s", matmul_efficiency=0.837) / 1e12
    828.1278
    """
    return matmul_efficiency * peak_flops


@formula("usable_bandwidth", "aiconfigurator-gemm", given=[typical_stream_efficiency])
def usable_bandwidth(hbm_bandwidth, stream_efficiency):
    """Memory bandwidth that kernels reach if they only read and write.

    >>> usable_bandwidth(hbm_bandwidth="3.35 TB/s", stream_efficiency=0.799) / 1e12
    2.67665
    """
    return stream_efficiency * hbm_bandwidth


@formula("usable_links", "aiconfigurator-nccl")
def usable_links(scaleup_bandwidth, near_efficiency):
    """Bandwidth per direction that large ring collectives reach over the whole scale-up domain.

    >>> usable_links(scaleup_bandwidth="450 GB/s", near_efficiency=0.883) / 1e9
    397.35
    """
    return near_efficiency * scaleup_bandwidth


@formula("pair_bandwidth", "amd-cdna3-whitepaper", given=FABRIC)
def pair_bandwidth(scaleup_bandwidth, mesh_peers, torus_neighbours):
    """Bandwidth between two devices: all links of each behind a switch, one link in a mesh or torus.

    >>> pair_bandwidth(scaleup_bandwidth="448 GB/s", mesh_peers=7) / 1e9
    64.0
    """
    return scaleup_bandwidth * group_share.of(near_ways=2, mesh_peers=mesh_peers, torus_neighbours=torus_neighbours)


@formula("usable_ridge", "williams2009 §3", given=[usable_flops, usable_bandwidth])
def usable_ridge(usable_flops, usable_bandwidth):
    """Operations per byte that keep arithmetic and memory both busy, given the rates that kernels reach.

    >>> round(usable_ridge(usable_flops="828.1 TFLOP/s", usable_bandwidth="2.677 TB/s"))
    309
    """
    return usable_flops / usable_bandwidth


@formula("usable_share", "nvidia-h100-datasheet", given=[usable_flops, printed_flops])
def usable_share(usable_flops, printed_devices, printed_flops):
    """Share of the headline FLOP/s that matrix products reach; above 1 if a device does better than its sheet says.

    >>> round(usable_share(usable_flops="828.1 TFLOP/s", printed_devices=1, printed_flops="1979 TFLOP/s"), 3)
    0.418
    """
    return usable_flops * printed_devices / printed_flops


data_sheet = Sheet(
    "data sheet", *FABRIC, typical_matmul_efficiency, typical_stream_efficiency, printed_flops, printed_links,
    usable_flops, usable_bandwidth, usable_links, pair_bandwidth, ridge_intensity, usable_ridge, usable_share,
    doc="What a device's data sheet prints, and how much of it a step can use.",
)  # fmt: skip


# Growth from year to year


@formula("peak_growth", "epoch2024-growth")
def peak_growth(next_flops, peak_flops, next_launch, launch):
    """Yearly growth factor of the peak from an old device to a new one.

    >>> peak_growth(next_flops="4 PFLOP/s", peak_flops="1 PFLOP/s", next_launch=2024, launch=2022)
    2.0
    """
    return (next_flops / peak_flops) ** (1 / (next_launch - launch))


__all__ = [*formulas_of(__name__), "data_sheet"]
