"""Time of matrix products and memory streams, and the share of the peak they reach.

A device computes a product tile by tile, one tile per core. Partial tiles and idle cores in the last wave are wasted.
Writing a finished tile is hidden only in part. One measured share per device and precision covers clocks and
instruction overhead.
"""

from sympy import Max, Min, Pow, Rational, ceiling, floor

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import stated
from scalebook.language.notation import root
from scalebook.language.renamed import renamed

_DEFAULTS = stated(__name__)  # those of kernels.toml
globals().update(_DEFAULTS)

__getattr__ = renamed(__name__)

_TILES = "nvidia-matmul-guide §3.1"


@formula("attention_peak", "deepseek2024-v3 §3.3.1")
def attention_peak_bf16(peak_bf16, peak_flops):
    """Peak FLOP/s of attention with 8-bit products: the bf16 peak, since attention and logits stay in bf16.

    >>> attention_peak_bf16(peak_bf16="989.4 TFLOP/s", peak_flops="1978.9 TFLOP/s")
    989400000000000.0
    """
    return Min(peak_bf16, peak_flops, evaluate=False)


@formula("tiles", _TILES)
def tiles(rows, columns, copies, tile_rows, tile_columns):
    """Tiles that cover the results of a product.

    >>> tiles(rows=129, columns=128, copies=1, tile_rows=128, tile_columns=128)
    2.0
    """
    return copies * ceiling(rows / tile_rows, evaluate=False) * ceiling(columns / tile_columns, evaluate=False)


@formula("waves", "nvidia-matmul-guide §3.2", given=[tiles])
def waves(tiles, cores):
    """Rounds in which every core computes one tile; the last may leave cores idle.

    >>> waves(tiles=109, cores=108)
    2.0
    """
    return ceiling(tiles / cores, evaluate=False)


@formula("inner_half", "aiconfigurator-gemm")
def inner_half(exposed_write, activation_bits, peak_flops, hbm_bandwidth):
    """Inner size for which computing a result takes as long as the exposed part of writing it.

    A product of inner size k runs at k/(k + inner_half) of its highest rate.

    >>> inner_half(exposed_write=0.5, activation_bits=16, peak_flops="1 PFLOP/s", hbm_bandwidth="2 TB/s")
    250.0
    """
    return exposed_write * activation_bits / 8 * peak_flops / (2 * hbm_bandwidth)


@formula("traffic", "williams2009 §3")
def product_traffic(rows, columns, inner, copies, activation_bits, weight_bits):
    """Bytes moved by a product: each operand read once, the result written once.

    >>> product_traffic(rows=2, columns=3, inner=5, copies=1, activation_bits=16, weight_bits=8)
    47.0
    """
    return copies * (rows * (inner + columns) * activation_bits + inner * columns * weight_bits) / 8


def _both(arithmetic, streamed):
    """Return a smooth maximum of two times, since cores wait for loads, and loads for cores, if they are nearly equal.

    The exponent 4 has the least mean error on the even rows of `gemm`. SymPy would expand the powers if evaluated.
    """
    both = Pow(arithmetic, 4, evaluate=False) + Pow(streamed, 4, evaluate=False)
    return Pow(both, Rational(1, 4), evaluate=False)


@formula("matmul_time", _TILES)
def matmul_time(
    rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half,
    traffic, hbm_bandwidth, stream_efficiency, kernel_launch,
):  # fmt: skip
    """Time of a matrix product: launch, then the longer of waves of tiles and memory traffic (a fifth more if equal).

    >>> shape = dict(rows=1024, columns=1024, inner=1024, copies=1, traffic="6 MB")
    >>> device = dict(tile_rows=128, tile_columns=128, cores=64, peak_flops=1e15, matmul_efficiency=0.8, inner_half=256)
    >>> round(matmul_time(shape, device, hbm_bandwidth=2e12, stream_efficiency=0.8, kernel_launch="2 us"), 9)
    6.244e-06
    """
    pace = 2 * cores * tile_rows * tile_columns / (matmul_efficiency * peak_flops)
    high, wide = (ceiling(x, evaluate=False) for x in (rows / tile_rows, columns / tile_columns))
    rounds = ceiling(copies * high * wide / cores, evaluate=False)
    streamed = traffic / (stream_efficiency * hbm_bandwidth)
    return kernel_launch + _both(rounds * (inner + inner_half) * pace, streamed)


@formula("matmul_time", _TILES, "nvidia-cutlass-splitk")
def matmul_time_split(
    rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half,
    traffic, hbm_bandwidth, stream_efficiency, kernel_launch, split_time, split_step,
):  # fmt: skip
    """Time of a product whose inner size is split over idle cores if tiles are fewer than cores; else `matmul_time`.

    >>> shape = dict(rows=2, columns=256, inner=12288, copies=1, traffic=6.4e6, split_time=2e-6, split_step=50e-9)
    >>> device = dict(cores=108, peak_flops=312e12, matmul_efficiency=0.837, inner_half=38, kernel_launch=3.8e-6)
    >>> tiled = dict(tile_rows=64, tile_columns=64, hbm_bandwidth=2.04e12, stream_efficiency=0.737)
    >>> round(matmul_time_split(shape, device, tiled), 8)
    9.3e-06
    """
    worked = _shared_waves(
        rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half,
        split_time, split_step,
    )  # fmt: skip
    return kernel_launch + _both(worked, traffic / (stream_efficiency * hbm_bandwidth))


def _shared_waves(
    rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half, split_time,
    split_step, inner_wait=0,
):  # fmt: skip
    """Return the time of waves of tiles whose inner size is shared by idle cores, and of summing the splits."""
    pace = 2 * cores * tile_rows * tile_columns / (matmul_efficiency * peak_flops)
    high, wide = (ceiling(x, evaluate=False) for x in (rows / tile_rows, columns / tile_columns))
    waves = ceiling(copies * high * wide / cores, evaluate=False)
    shared = copies * Max(1, high, evaluate=False) * wide  # a step without decoding has no rows
    whole = (pace + inner_wait) * inner
    worth = Min(floor(cores / shared, evaluate=False), root(whole / split_step), evaluate=False)
    splits = Max(1, worth, evaluate=False)
    apart = whole / splits + split_time + split_step * Max(0, splits - 2, evaluate=False)
    return pace * ((waves - 1) * inner + waves * inner_half) + Min(whole, apart, evaluate=False)


@formula("matmul_time", _TILES, "rocm-aiter")
def matmul_time_waited(
    rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half,
    traffic, hbm_bandwidth, stream_efficiency, kernel_launch, split_time, split_step, inner_wait,
):  # fmt: skip
    """Time of a product as `matmul_time_split`, if cores of the first wave wait a memory latency for each load.

    >>> from scalebook.tables import accelerators
    >>> known = dict(rows=16, inner=7168, copies=1, tile_rows=16, activation_bits=8, weight_bits=8, split_time=1)
    >>> device = {**accelerators.mi355x.at("fp8"), "kernel_launch": 3.1e-6, "inner_wait": 0.95e-9}
    >>> [round(1e6 * waiting_product(device, known, columns=n).matmul_time, 1) for n in (256, 2048, 8192)]
    [11.4, 11.4, 14.0]
    """
    worked = _shared_waves(
        rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half,
        split_time, split_step, inner_wait,
    )  # fmt: skip
    return kernel_launch + _both(worked, traffic / (stream_efficiency * hbm_bandwidth))


@formula("matmul_time", "simumax-b200")
def matmul_time_grouped(
    rows, columns, inner, copies, tile_rows, tile_columns, peak_flops, matmul_efficiency, traffic, hbm_bandwidth,
    stream_efficiency, grouped_hidden, kernel_launch,
):  # fmt: skip
    """Time of expert products that run one after another, so most reads and writes of an expert are exposed.

    A share (`grouped_hidden`) of the shorter of arithmetic and traffic is hidden under the longer.

    >>> shape = dict(rows=1024, columns=1024, inner=1024, copies=1, traffic="6 MB", tile_rows=64, tile_columns=64)
    >>> rates = dict(peak_flops=1e15, matmul_efficiency=0.8, hbm_bandwidth=2e12, stream_efficiency=0.8)
    >>> round(matmul_time_grouped(shape, rates, grouped_hidden=0.5, kernel_launch="2 us"), 8)
    7.09e-06
    """
    high, wide = (tile * ceiling(x / tile, evaluate=False) for x, tile in ((rows, tile_rows), (columns, tile_columns)))
    arithmetic = 2 * copies * high * wide * inner / (matmul_efficiency * peak_flops)
    streamed = traffic / (stream_efficiency * hbm_bandwidth)
    return kernel_launch + arithmetic + streamed - grouped_hidden * Min(arithmetic, streamed, evaluate=False)


@formula("matmul_time", "williams2009 §3")
def matmul_time_ideal(rows, columns, inner, copies, peak_flops, traffic, hbm_bandwidth):
    """Roofline time of a product: the longer of arithmetic at the peak and traffic at full bandwidth.

    >>> shape, rates = dict(rows=1024, columns=1024, inner=1024, copies=1), dict(peak_flops=1e15, hbm_bandwidth=2e12)
    >>> matmul_time_ideal(shape, rates, traffic="6 MB")
    3e-06
    """
    arithmetic = 2 * copies * rows * columns * inner / peak_flops
    return Max(arithmetic, traffic / hbm_bandwidth, evaluate=False)


@formula("matmul_share", "williams2009 §3")
def matmul_share(rows, columns, inner, copies, peak_flops, matmul_time):
    """Share of the peak FLOP/s that a product reaches: its FLOPs over its time, divided by the peak.

    >>> matmul_share(rows=1000, columns=1000, inner=1000, copies=1, peak_flops="1 PFLOP/s", matmul_time="4 us")
    0.5
    """
    return 2 * copies * rows * columns * inner / (peak_flops * matmul_time)


@formula("stream_time", "williams2009 §3")
def stream_time(traffic, hbm_bandwidth, stream_efficiency, kernel_launch):
    """Time of a memory-bound kernel: launch, then the traffic at the rate that kernels reach.

    >>> stream_time(traffic="1.6 GB", hbm_bandwidth="2 TB/s", stream_efficiency=0.8, kernel_launch="0 us")
    0.001
    """
    return kernel_launch + traffic / (stream_efficiency * hbm_bandwidth)


# Defaults that a sheet with these kernels needs; a device's own cells take precedence.
DEFAULT_FORMULAS = (
    *(_DEFAULTS[x] for x in ("tile_rows", "tile_columns", "one_core", "exposed_write")), inner_half,
    *(_DEFAULTS[x] for x in ("split_time", "split_step", "typical_matmul_efficiency", "typical_stream_efficiency")),
)  # fmt: skip

matrix_product = Sheet(
    "matrix product", *DEFAULT_FORMULAS, product_traffic, tiles, waves, matmul_time_split, matmul_share,
    doc="A product of activations and weights on a device.",
)  # fmt: skip

# Products on AMD devices, whose kernels wait for their loads.
waiting_product = matrix_product.using(matmul_time_waited)

__all__ = [*formulas_of(__name__), "DEFAULT_FORMULAS", "matrix_product", "waiting_product"]
