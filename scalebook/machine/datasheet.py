"""Data sheets: what they print, and what of that a step may count on.

A headline counts operations that are skipped, both directions of a link, or all devices of a rack.  What is left is the
dense peak of one device, of which products reach a share; and how that grew from year to year.

>>> from scalebook.tables import accelerators
>>> row = data_sheet(accelerators.gb200.at("fp4"), sparsity_gain=2, directions=2, printed_devices=72)
>>> row.printed_flops / 1e18, row.printed_links / 1e12, round(row.usable_flops / 1e15, 2), round(row.usable_share, 2)
(1.44, 129.6, 4.55, 0.23)
"""

from sympy import Rational

from scalebook.language import Sheet, formula

from .collective_rates import FABRIC, group_share
from .kernels import typical_matmul_efficiency, typical_stream_efficiency
from .roofline import ridge_intensity

__all__ = [
    "bargain_growth", "best_bandwidth", "best_found", "bytes_per_dollar", "compute_growth", "cost_growth",
    "data_sheet", "fleet_growth", "flops_per_dollar", "flops_per_joule", "pair_bandwidth", "peak_growth",
    "printed_flops", "printed_links", "streamed_link", "striped_drives", "usable_bandwidth", "usable_flops",
    "usable_links", "usable_ridge", "usable_share",
]  # fmt: skip


@formula("printed_flops", "nvidia-h100-datasheet", "nvidia-gb200")
def printed_flops(peak_flops, sparsity_gain, printed_devices):
    """The headline: the dense peak of one device, doubled where a footnote says "with sparsity", times the devices.

    2:4 sparsity skips two of each four weights, which have to be zero; what is skipped is counted as if done.

    >>> printed_flops(peak_flops="494.7 TFLOP/s", sparsity_gain=2, printed_devices=1) / 1e12
    989.4
    """
    return sparsity_gain * printed_devices * peak_flops


@formula("printed_links", "nvidia-h100-whitepaper section 4.7")
def printed_links(scaleup_bandwidth, directions, printed_devices):
    """The headline of links: what leaves a device and what comes in are added up, and often all devices too.

    >>> printed_links(scaleup_bandwidth="450 GB/s", directions=2, printed_devices=1) / 1e9
    900.0
    """
    return directions * printed_devices * scaleup_bandwidth


@formula("usable_flops", "aiconfigurator-gemm", given=[typical_matmul_efficiency])
def usable_flops(peak_flops, matmul_efficiency):
    """What large products reach: clocks fall under load, and instructions are no multiplications.

    >>> usable_flops(peak_flops="989.4 TFLOP/s", matmul_efficiency=0.837) / 1e12
    828.1278
    """
    return matmul_efficiency * peak_flops


@formula("usable_bandwidth", "aiconfigurator-gemm", given=[typical_stream_efficiency])
def usable_bandwidth(hbm_bandwidth, stream_efficiency):
    """What kernels that only read and write reach.

    >>> usable_bandwidth(hbm_bandwidth="3.35 TB/s", stream_efficiency=0.799) / 1e12
    2.67665
    """
    return stream_efficiency * hbm_bandwidth


@formula("best_found", "azure-ai-benchmarking")
def best_found():
    """Share that kernels of a model reach of the best kernel that a search or a benchmark found.

    As BabelStream has it on the A100; the other devices of which both were measured agree.  A row of a device of which
    only the best is known stands in the table at this share of it.

    >>> best_found()
    0.9
    """
    return Rational(9, 10)


@formula("best_bandwidth", "azure-ai-benchmarking", given=[typical_stream_efficiency, best_found])
def best_bandwidth(hbm_bandwidth, stream_efficiency, best_found):
    """Rate of a benchmark that does nothing but read and write, as BabelStream.

    >>> best_bandwidth(hbm_bandwidth="2 TB/s", stream_efficiency=0.72) / 1e12
    1.6
    """
    return stream_efficiency * hbm_bandwidth / best_found


@formula("link_achieved", "aiconfigurator-gemm", given=[typical_stream_efficiency])
def streamed_link(link_bandwidth, stream_efficiency):
    """Rate at which kernels stream a memory of the table of links, such as a host's.

    >>> streamed_link(link_bandwidth="512 GB/s") / 1e9
    384.0
    """
    return stream_efficiency * link_bandwidth


@formula("storage_bandwidth", "azure-nd-sizes")
def striped_drives(drives, link_achieved):
    """All drives of a machine read or write large pieces at once.

    >>> striped_drives(drives=8, link_achieved="6.9 GB/s") / 1e9
    55.2
    """
    return drives * link_achieved


@formula("usable_links", "aiconfigurator-nccl")
def usable_links(scaleup_bandwidth, near_efficiency):
    """What large collectives of the whole domain send: ring after ring, one direction.

    >>> usable_links(scaleup_bandwidth="450 GB/s", near_efficiency=0.883) / 1e9
    397.35
    """
    return near_efficiency * scaleup_bandwidth


@formula("pair_bandwidth", "amd-cdna3-whitepaper", given=FABRIC)
def pair_bandwidth(scaleup_bandwidth, mesh_peers, torus_neighbours):
    """What two devices have between them: all links of each behind a switch, one link's worth in a mesh or torus.

    >>> pair_bandwidth(scaleup_bandwidth="448 GB/s", mesh_peers=7) / 1e9
    64.0
    """
    return scaleup_bandwidth * group_share.of(near_ways=2, mesh_peers=mesh_peers, torus_neighbours=torus_neighbours)


@formula("usable_ridge", "williams2009 §3", given=[usable_flops, usable_bandwidth])
def usable_ridge(usable_flops, usable_bandwidth):
    """The ridge of what is reached: operations a byte at which arithmetic and memory are both busy.

    >>> round(usable_ridge(usable_flops="828.1 TFLOP/s", usable_bandwidth="2.677 TB/s"))
    309
    """
    return usable_flops / usable_bandwidth


@formula("usable_share", "nvidia-h100-datasheet", given=[usable_flops, printed_flops])
def usable_share(usable_flops, printed_devices, printed_flops):
    """What is left of the headline.  More than all where a device does better than a sheet says.

    >>> round(usable_share(usable_flops="828.1 TFLOP/s", printed_devices=1, printed_flops="1979 TFLOP/s"), 3)
    0.418
    """
    return usable_flops * printed_devices / printed_flops


data_sheet = Sheet(
    "data sheet", *FABRIC, typical_matmul_efficiency, typical_stream_efficiency, printed_flops, printed_links,
    usable_flops, usable_bandwidth, usable_links, pair_bandwidth, ridge_intensity, usable_ridge, usable_share,
    doc="What a data sheet prints of a device, and what of it a step may count on.",
)  # fmt: skip


# What a watt and a dollar buy


@formula("flops_per_joule", "patterson2021")
def flops_per_joule(peak_flops, tdp):
    """Peak over design power: of the chip or module alone, without host, network and cooling.

    >>> flops_per_joule(peak_flops="989.4 TFLOP/s", tdp="700 W") / 1e12
    1.4134285714285715
    """
    return peak_flops / tdp


@formula("flops_per_dollar", "epoch2024-growth")
def flops_per_dollar(peak_flops, price_hour):
    """An hour at the peak, over the price of that hour.

    >>> flops_per_dollar(peak_flops="1 PFLOP/s", price_hour="3.6 $/h") / 1e18
    1.0
    """
    return 3600 * peak_flops / price_hour


@formula("bytes_per_dollar", "pope2022")
def bytes_per_dollar(hbm_bandwidth, price_hour):
    """An hour of reading at the full bandwidth, over the price of that hour: what decoding buys.

    >>> bytes_per_dollar(hbm_bandwidth="3.6 TB/s", price_hour="3.6 $/h") / 1e15
    3.6
    """
    return 3600 * hbm_bandwidth / price_hour


# From year to year


@formula("peak_growth", "epoch2024-growth")
def peak_growth(next_flops, peak_flops, next_launch, launch):
    """Of two devices: the yearly factor that leads from the old peak to the new.

    >>> peak_growth(next_flops="4 PFLOP/s", peak_flops="1 PFLOP/s", next_launch=2024, launch=2022)
    2.0
    """
    return (next_flops / peak_flops) ** (1 / (next_launch - launch))


@formula("compute_growth", "epoch2024-growth")
def compute_growth():
    """The middle of the four to five times a year that were found for the largest training runs from 2010 to 2024.

    >>> compute_growth()
    4.5
    """
    return Rational(9, 2)


@formula("cost_growth", "cottier2024")
def cost_growth():
    """What the largest training runs cost, hardware written off and energy paid: since 2016.

    >>> cost_growth()
    2.4
    """
    return Rational(12, 5)


@formula("fleet_growth", "epoch2024-growth", given=[compute_growth])
def fleet_growth(compute_growth, peak_growth):
    """What faster devices leave to be done by more devices, longer runs and better use of both.

    >>> fleet_growth(compute_growth=4.5, peak_growth=1.5)
    3.0
    """
    return compute_growth / peak_growth


@formula("bargain_growth", "cottier2024", given=[compute_growth, cost_growth])
def bargain_growth(compute_growth, cost_growth):
    """Arithmetic that grows faster than its cost gets cheaper.

    >>> bargain_growth()
    1.875
    """
    return compute_growth / cost_growth
