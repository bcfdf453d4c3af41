"""Kernels: what a matrix product and a stream through memory reach of the peak.

A device works on the result of a matrix product tile by tile, one a core, so what sticks out over whole tiles and
whole waves of tiles is waste.  A tile that is ready has to be written, of which the arithmetic of other tiles hides
a part only.  Arithmetic and loads hide one another where one is much the shorter, and in part where they are nearly
as long.  The rest, clocks and instructions, is one measured share for a device and a precision.

>>> from scalebook.tables import accelerators
>>> row = matrix_product(
...     accelerators.h100.at("bf16"), rows=8192, columns=8192, inner=8192, copies=1,
...     activation_bits=16, weight_bits=16,
... )
>>> round(row.matmul_time * 1e3, 2), round(row.matmul_share, 2)
(1.36, 0.81)
"""

from sympy import Integer, Max, Min, Pow, Rational, ceiling, floor, sqrt

from scalebook.language import Sheet, formula

__all__ = [
    "USUAL",
    "attention_peak_bf16",
    "attention_peak_same",
    "exposed_write",
    "grouped_hidden",
    "inner_half",
    "matmul_share",
    "matmul_time",
    "matmul_time_grouped",
    "matmul_time_ideal",
    "matmul_time_split",
    "matmul_time_waited",
    "matrix_product",
    "one_core",
    "product_traffic",
    "split_step",
    "split_time",
    "stream_time",
    "stream_time_ideal",
    "tile_columns",
    "tile_rows",
    "tiles",
    "typical_matmul_efficiency",
    "typical_stream_efficiency",
    "waiting_product",
    "waves",
    "wide_efficiency",
]  # fmt: skip

_TILES = "nvidia-matmul-guide §3.1"


@formula("tile_rows", _TILES)
def tile_rows():
    """The least that a library falls back to: with the smallest tile it best leaves no core idle.

    Libraries choose between tiles of up to 256 by 128 and split the inner size, so that times of products for serving
    hardly jump where a large tile would not fit: tiles of 64 by 64 predict them better than larger ones.  Sweeps of
    older libraries on the V100 and the A100 do jump, as tiles of 256 by 128 would (`gemm_eleuther`).

    >>> tile_rows()
    64.0
    """
    return Integer(64)


@formula("tile_columns", _TILES)
def tile_columns():
    """The columns of the smallest tile that a library falls back to: as many as its rows.

    >>> tile_columns()
    64.0
    """
    return Integer(64)


@formula("cores", "nvidia-matmul-guide §3.2")
def one_core():
    """Where a device does not publish its cores: one, so that none idles in the last wave.

    >>> one_core()
    1.0
    """
    return Integer(1)


@formula("exposed_write", "aiconfigurator-gemm")
def exposed_write():
    """Half of the writing of results, as found on devices from the A100 to the GB300.

    >>> exposed_write()
    0.5
    """
    return Rational(1, 2)


@formula("matmul_efficiency", "aiconfigurator-gemm")
def typical_matmul_efficiency():
    """Where nothing was measured for a device and precision:
    the median of those in the table, which reach 0.34 to 0.87.

    In 16 bits they reach 0.43 (MI300X) to 0.87 (Gaudi 2), 0.70 in the median; in 8 bits 0.45 to 0.86, 0.63 in the
    median; in 4 bits 0.34 to 0.54.

    >>> typical_matmul_efficiency()
    0.6
    """
    return Rational(3, 5)


@formula("stream_efficiency", "aiconfigurator-gemm")
def typical_stream_efficiency():
    """Where nothing was measured for a device: about the median of those in the table, which reach 0.70 to 0.90.

    >>> typical_stream_efficiency()
    0.75
    """
    return Rational(3, 4)


@formula("attention_peak", "dao2022 §3.1")
def attention_peak_same(peak_flops):
    """Attention multiplies at the rate of the other products.

    >>> attention_peak_same(peak_flops="312 TFLOP/s")
    312000000000000.0
    """
    return peak_flops


@formula("attention_peak", "deepseek2024-v3 §3.3.1")
def attention_peak_bf16(peak_bf16, peak_flops):
    """With 8-bit products attention and logits stay in bf16.

    >>> attention_peak_bf16(peak_bf16="989.4 TFLOP/s", peak_flops="1978.9 TFLOP/s")
    989400000000000.0
    """
    return Min(peak_bf16, peak_flops, evaluate=False)


@formula("matmul_bf16", "deepseek2024-v3 §3.3.1")
def wide_efficiency(matmul_efficiency):
    """Where products in 16 bits were not measured, they reach as much of their peak as the others of theirs.

    >>> wide_efficiency(matmul_efficiency=0.7)
    0.7
    """
    return matmul_efficiency


@formula("tiles", _TILES)
def tiles(rows, columns, copies, tile_rows, tile_columns):
    """The tiles that cover the results.

    >>> tiles(rows=129, columns=128, copies=1, tile_rows=128, tile_columns=128)
    2.0
    """
    return copies * ceiling(rows / tile_rows, evaluate=False) * ceiling(columns / tile_columns, evaluate=False)


@formula("waves", "nvidia-matmul-guide §3.2", given=[tiles])
def waves(tiles, cores):
    """Rounds in which every core takes on a tile; the last may leave cores idle.

    >>> waves(tiles=109, cores=108)
    2.0
    """
    return ceiling(tiles / cores, evaluate=False)


@formula("inner_half", "aiconfigurator-gemm")
def inner_half(exposed_write, activation_bits, peak_flops, hbm_bandwidth):
    """Every result is written, which takes as long as so many multiplications and additions at peak.

    A product of inner size k then runs at k/(k + inner_half) of its highest rate.

    >>> inner_half(exposed_write=0.5, activation_bits=16, peak_flops="1 PFLOP/s", hbm_bandwidth="2 TB/s")
    250.0
    """
    return exposed_write * activation_bits / 8 * peak_flops / (2 * hbm_bandwidth)


@formula("traffic", "williams2009 §3")
def product_traffic(rows, columns, inner, copies, activation_bits, weight_bits):
    """Activations times weights: each operand read once, the result written once.

    >>> product_traffic(rows=2, columns=3, inner=5, copies=1, activation_bits=16, weight_bits=8)
    47.0
    """
    return copies * (rows * (inner + columns) * activation_bits + inner * columns * weight_bits) / 8


def _both(arithmetic, streamed):
    """The longer of two, and more where they are nearly equal: cores that wait for loads, and loads for cores.

    Its exponent, 4, has the least mean error on the even rows of `gemm` (3 and 6 have 0.1 to 0.2 % more); with 1
    nothing would hide the other, without limit it is a roofline.  Not evaluated, or powers of all factors are printed,
    and SymPy asks long whether the sum is negative.
    """
    both = Pow(arithmetic, 4, evaluate=False) + Pow(streamed, 4, evaluate=False)
    return Pow(both, Rational(1, 4), evaluate=False)


@formula("matmul_time", _TILES)
def matmul_time(
    rows,
    columns,
    inner,
    copies,
    tile_rows,
    tile_columns,
    cores,
    peak_flops,
    matmul_efficiency,
    inner_half,
    traffic,
    hbm_bandwidth,
    stream_efficiency,
    kernel_launch,
):
    """Launch, then whole waves of whole tiles or the traffic, whichever takes longer; where they take as long, a fifth
    more than either, for cores do not all compute and load at the same time.

    >>> matmul_time(
    ...     rows=1024, columns=1024, inner=1024, copies=1, tile_rows=128, tile_columns=128, cores=64,
    ...     peak_flops="1 PFLOP/s", matmul_efficiency=0.8, inner_half=256,
    ...     traffic="6 MB", hbm_bandwidth="2 TB/s", stream_efficiency=0.8, kernel_launch="2 us",
    ... ).__round__(9)
    6.244e-06
    """
    wave = 2 * cores * tile_rows * tile_columns * (inner + inner_half) / (matmul_efficiency * peak_flops)
    high, wide = (ceiling(x, evaluate=False) for x in (rows / tile_rows, columns / tile_columns))
    rounds = ceiling(copies * high * wide / cores, evaluate=False)
    streamed = traffic / (stream_efficiency * hbm_bandwidth)
    return kernel_launch + _both(rounds * wave, streamed)


@formula("split_time", "aiconfigurator-gemm")
def split_time():
    """Partial sums are written, and added once all are there: a second kernel, or cores that wait for one another.

    Fitted, with `split_step`, on the even rows of products in 16 bits (`gemm`, `gemm_2026`): 2 to 4 us do equally.

    >>> split_time()
    3e-06
    """
    return Rational(3, 10**6)


@formula("split_step", "aiconfigurator-gemm")
def split_step():
    """Every partial sum beyond the second adds little.

    A product of 64 columns and an inner size of 65,536 takes 8 us on an H100, shared by all cores; if each share took
    3 us it would be 32 us.

    >>> split_step()
    5e-08
    """
    return Rational(5, 10**8)


@formula("matmul_time", _TILES, "nvidia-cutlass-splitk")
def matmul_time_split(
    rows,
    columns,
    inner,
    copies,
    tile_rows,
    tile_columns,
    cores,
    peak_flops,
    matmul_efficiency,
    inner_half,
    traffic,
    hbm_bandwidth,
    stream_efficiency,
    kernel_launch,
    split_time,
    split_step,
):
    """A product of fewer tiles than cores, whose inner size is shared: in as many splits as a tile has cores,
    or as many as are worth their time.

    With as many tiles as cores or more it is `matmul_time`.

    >>> matmul_time_split(
    ...     rows=2, columns=256, inner=12288, copies=1, tile_rows=64, tile_columns=64, cores=108, split_time="2 us",
    ...     split_step="50 ns", peak_flops="312 TFLOP/s", matmul_efficiency=0.837, inner_half=38, traffic="6.4 MB",
    ...     hbm_bandwidth="2.04 TB/s", stream_efficiency=0.737, kernel_launch="3.8 us",
    ... ).__round__(8)
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
    """Waves of tiles whose inner size is shared by cores that would idle, and the sums of the splits."""
    pace = 2 * cores * tile_rows * tile_columns / (matmul_efficiency * peak_flops)
    high, wide = (ceiling(x, evaluate=False) for x in (rows / tile_rows, columns / tile_columns))
    waves = ceiling(copies * high * wide / cores, evaluate=False)
    shared = copies * Max(1, high, evaluate=False) * wide  # a step in which nobody decodes has no rows for it
    whole = (pace + inner_wait) * inner
    worth = Min(floor(cores / shared, evaluate=False), sqrt(whole / split_step), evaluate=False)
    splits = Max(1, worth, evaluate=False)
    apart = whole / splits + split_time + split_step * Max(0, splits - 2, evaluate=False)
    return pace * ((waves - 1) * inner + waves * inner_half) + Min(whole, apart, evaluate=False)


@formula("matmul_time", _TILES, "rocm-aiter")
def matmul_time_waited(
    rows,
    columns,
    inner,
    copies,
    tile_rows,
    tile_columns,
    cores,
    peak_flops,
    matmul_efficiency,
    inner_half,
    traffic,
    hbm_bandwidth,
    stream_efficiency,
    kernel_launch,
    split_time,
    split_step,
    inner_wait,
):
    """As `matmul_time_split`, where cores wait for their loads: along the inner size one load follows another, and
    each takes as long as memory answers, however few rows and columns the tile has.

    Tiles that follow on the same core load while others compute, so that it is waited for once.  With 16 rows a
    product of few columns takes as long as one of many, until memory is full:

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
    rows,
    columns,
    inner,
    copies,
    tile_rows,
    tile_columns,
    peak_flops,
    matmul_efficiency,
    traffic,
    hbm_bandwidth,
    stream_efficiency,
    grouped_hidden,
    kernel_launch,
):
    """One product for each expert, one after another: much of an expert's reading and writing is waited for.

    Of arithmetic and traffic, a share of the shorter hides under the longer.  With few rows an expert's weights are
    read for little arithmetic, so that the rate falls with the rows, and most for gradients of weights, which are
    read and written in 32 bits.

    >>> matmul_time_grouped(
    ...     rows=1024, columns=1024, inner=1024, copies=1, tile_rows=64, tile_columns=64,
    ...     peak_flops="1 PFLOP/s", matmul_efficiency=0.8, traffic="6 MB", hbm_bandwidth="2 TB/s",
    ...     stream_efficiency=0.8, grouped_hidden=0.5, kernel_launch="2 us",
    ... ).__round__(8)
    7.09e-06
    """
    high, wide = (tile * ceiling(x / tile, evaluate=False) for x, tile in ((rows, tile_rows), (columns, tile_columns)))
    arithmetic = 2 * copies * high * wide * inner / (matmul_efficiency * peak_flops)
    streamed = traffic / (stream_efficiency * hbm_bandwidth)
    return kernel_launch + arithmetic + streamed - grouped_hidden * Min(arithmetic, streamed, evaluate=False)


@formula("grouped_hidden", "simumax-b200")
def grouped_hidden():
    """Fitted, with what products reach of the peak, on the 76 grouped products of a B200 in its system description:
    0.3 leaves 10 % of error in the mean, 10 % on the odd rows where it is fitted on the even.

    >>> grouped_hidden()
    0.3
    """
    return Rational(3, 10)


@formula("matmul_time", "williams2009 §3")
def matmul_time_ideal(rows, columns, inner, copies, peak_flops, traffic, hbm_bandwidth):
    """The roofline: arithmetic at peak or the traffic at full bandwidth, whichever takes longer.

    >>> matmul_time_ideal(
    ...     rows=1024, columns=1024, inner=1024, copies=1,
    ...     peak_flops="1 PFLOP/s", traffic="6 MB", hbm_bandwidth="2 TB/s",
    ... ) * 1e6
    3.0
    """
    arithmetic = 2 * copies * rows * columns * inner / peak_flops
    return Max(arithmetic, traffic / hbm_bandwidth, evaluate=False)


@formula("matmul_share", "williams2009 §3")
def matmul_share(rows, columns, inner, copies, peak_flops, matmul_time):
    """What the product reaches of the peak, by its own arithmetic alone.

    >>> matmul_share(rows=1000, columns=1000, inner=1000, copies=1, peak_flops="1 PFLOP/s", matmul_time="4 us")
    0.5
    """
    return 2 * copies * rows * columns * inner / (peak_flops * matmul_time)


@formula("stream_time", "williams2009 §3")
def stream_time(traffic, hbm_bandwidth, stream_efficiency, kernel_launch):
    """Launch, then the traffic at the rate that kernels reach.

    >>> stream_time(traffic="1.6 GB", hbm_bandwidth="2 TB/s", stream_efficiency=0.8, kernel_launch="0 us")
    0.001
    """
    return kernel_launch + traffic / (stream_efficiency * hbm_bandwidth)


@formula("stream_time", "williams2009 §3")
def stream_time_ideal(traffic, hbm_bandwidth):
    """The traffic at full bandwidth.

    >>> stream_time_ideal(traffic="2 GB", hbm_bandwidth="2 TB/s")
    0.001
    """
    return traffic / hbm_bandwidth


# What a sheet with these kernels needs besides: a device's own cells stand before these.
USUAL = (
    tile_rows,
    tile_columns,
    one_core,
    exposed_write,
    inner_half,
    split_time,
    split_step,
    typical_matmul_efficiency,
    typical_stream_efficiency,
)

matrix_product = Sheet(
    "matrix product", *USUAL, product_traffic, tiles, waves, matmul_time_split, matmul_share,
    doc="Activations times weights on a device.",
)  # fmt: skip

# Products of AMD's devices by kernels that wait for their loads.
waiting_product = matrix_product.using(matmul_time_waited)
