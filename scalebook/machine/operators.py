"""Linear layers as engines run them: a matrix product, and the kernel before it that quantizes its input.

In 16 bits a linear layer is its product.  In 8 and 4 bits the activations arrive in 16 bits, so another kernel first
reads them, finds their scales and writes them in the format of the product.  How long that takes depends on the engine
and on the format more than on the device: rows of `tables.libraries` such as `vllm_fp8` know it.

>>> from scalebook.tables import accelerators
>>> layer = dict(rows=64, columns=8192, inner=8192)
>>> wide = linear_operator(accelerators.h100.at("bf16"), **layer)
>>> narrow = linear_operator(accelerators.h100.at("fp8").running("vllm_fp8"), **layer)
>>> [round(1e6 * x, 1) for x in (wide.operator_time, narrow.matmul_time, narrow.quantize_time, narrow.operator_time)]
[53.6, 28.4, 4.0, 32.4]
"""

from sympy import Ge, Integer, Le, Max, Piecewise, Rational, ceiling

from scalebook.language import Sheet, formula

from .datasheet import best_found
from .kernels import (
    USUAL,
    matmul_share,
    matmul_time_split,
    matmul_time_waited,
    tiles,
    typical_stream_efficiency,
    waves,
)
from .tiles import aligned_share

__all__ = [
    "aiter_operator", "aiter_tile_rows", "aligned_operator", "best_operator", "best_time", "cached_share",
    "cycled_operator", "cycled_traffic", "element_kernel", "element_time", "inner_half_results",
    "l2_bandwidth_usual", "linear_operator", "matmul_time_aligned", "no_host_wait", "no_inner_wait", "one_pass",
    "operator_time", "operator_traffic", "quantize_passes", "quantize_row", "quantize_start", "quantize_time",
    "results_of_16_bits", "same_bits", "single_product", "wide_activations",
]  # fmt: skip

_MEASURED = "aiconfigurator-gemm"
_FEW = (16, 32, 64)  # rows of AITER's tiles, before its largest of 128


@formula("copies", _MEASURED)
def single_product():
    """A linear layer is one product.

    >>> single_product()
    1.0
    """
    return Integer(1)


@formula("activation_bits", _MEASURED)
def wide_activations():
    """Activations have 16 bits where no library says otherwise.

    >>> wide_activations()
    16.0
    """
    return Integer(16)


@formula("weight_bits", _MEASURED)
def same_bits(activation_bits):
    """Weights have the bits of the activations that they are multiplied with.

    >>> same_bits(activation_bits=8)
    8.0
    """
    return activation_bits


@formula("result_bits", _MEASURED)
def results_of_16_bits():
    """Results have 16 bits, whatever the format of the product.

    >>> results_of_16_bits()
    16.0
    """
    return Integer(16)


@formula("inner_wait", _MEASURED)
def no_inner_wait():
    """Kernels that load the next operands while they multiply wait for none of them.

    >>> no_inner_wait()
    0.0
    """
    return Integer(0)


@formula("inner_half", _MEASURED)
def inner_half_results(exposed_write, result_bits, peak_flops, hbm_bandwidth):
    """As `inner_half`, for results that are wider than the operands.

    >>> inner_half_results(exposed_write=0.5, result_bits=16, peak_flops="1 PFLOP/s", hbm_bandwidth="2 TB/s")
    250.0
    """
    return exposed_write * result_bits / 8 * peak_flops / (2 * hbm_bandwidth)


@formula("traffic", "williams2009 §3")
def operator_traffic(rows, columns, inner, copies, activation_bits, weight_bits, result_bits):
    """Both operands are read once and the result is written once, each in its own bits.

    >>> operator_traffic(rows=2, columns=3, inner=5, copies=1, activation_bits=8, weight_bits=8, result_bits=16)
    37.0
    """
    read = rows * inner * activation_bits + inner * columns * weight_bits
    return copies * (read + rows * columns * result_bits) / 8


# Quantizing the input


@formula("quantize_start", _MEASURED)
def quantize_start():
    """Start of the kernel that quantizes, where no library is named: about the median of those in the table.

    >>> quantize_start()
    3e-06
    """
    return Rational(3, 10**6)


@formula("quantize_passes", _MEASURED)
def quantize_passes():
    """Where no library is named, activations are read once and written once, and read again for their scale.

    Libraries are measured at 0.5 to 4 passes.

    >>> quantize_passes()
    1.5
    """
    return Rational(3, 2)


@formula("quantize_row", _MEASURED)
def quantize_row():
    """Where no library is named, rows take no time beside their traffic.

    >>> quantize_row()
    0.0
    """
    return Integer(0)


@formula("quantize_time", _MEASURED)
def quantize_time(
    rows,
    inner,
    copies,
    activation_bits,
    quantize_start,
    quantize_passes,
    quantize_row,
    stream_efficiency,
    hbm_bandwidth,
):
    """A kernel reads activations of 16 bits and writes them in the bits of the product; at 16 bits there is none.

    It takes its start, then as many passes of its traffic as its library needs, or the rows one after another where a
    library gives each row to a block of threads.

    >>> quantize_time(
    ...     rows=4096, inner=8192, copies=1, activation_bits=8, quantize_start="3 us", quantize_passes=2,
    ...     quantize_row="7 ns", stream_efficiency=0.8, hbm_bandwidth="3.35 TB/s",
    ... ).__round__(7)
    7.81e-05
    """
    moved = copies * rows * inner * (16 + activation_bits) / 8
    streamed = quantize_passes * moved / (stream_efficiency * hbm_bandwidth)
    taken = quantize_start + Max(streamed, copies * rows * quantize_row, evaluate=False)
    return Piecewise((0, Ge(activation_bits, 16)), (taken, True))


@formula("operator_time", _MEASURED)
def operator_time(matmul_time, quantize_time):
    """The input is quantized, then multiplied.

    >>> operator_time(matmul_time="30 us", quantize_time="4 us").__round__(9)
    3.4e-05
    """
    return matmul_time + quantize_time


_LAYER = {f.letter: f for f in (
    *USUAL, single_product, wide_activations, same_bits, results_of_16_bits, no_inner_wait, inner_half_results,
    operator_traffic, tiles, waves, matmul_time_waited, matmul_share, quantize_start, quantize_passes, quantize_row,
    quantize_time, operator_time,
)}  # fmt: skip
linear_operator = Sheet(
    "linear operator",
    *_LAYER.values(),
    doc="A linear layer as an engine runs it: its input is quantized, then multiplied.",
)


# Benchmarks that read their weights out of a cache


@formula("l2_bandwidth", _MEASURED)
def l2_bandwidth_usual(hbm_bandwidth):
    """Where it was not measured, three times the memory's: as of the L40S and the RTX PRO 6000.

    >>> l2_bandwidth_usual(hbm_bandwidth="1 TB/s")
    3000000000000.0
    """
    return 3 * hbm_bandwidth


@formula("cached_share", _MEASURED)
def cached_share(rows, columns, inner, copies, activation_bits, weight_bits, result_bits, l2_capacity):
    """A benchmark goes through copies of one weight until they are no less than the last-level cache.

    If all of them just fit, every read is a hit.  If they are a tenth more, a third of the reads are hits, because the
    cache throws out first what is needed next.  In a service a layer's weights come around once a step, and none is there.

    >>> cached_share(
    ...     rows=1, columns=4096, inner=4096, copies=1, activation_bits=16, weight_bits=16, result_bits=16,
    ...     l2_capacity="96 MiB",
    ... ).__round__(2)
    1.0
    """
    weight = copies * inner * columns * weight_bits / 8
    beside = copies * (rows * inner * activation_bits + rows * columns * result_bits) / 8
    held = weight * ceiling(l2_capacity / weight, evaluate=False) + beside
    return (l2_capacity / held) ** 12


@formula("traffic", _MEASURED)
def cycled_traffic(
    rows,
    columns,
    inner,
    copies,
    activation_bits,
    weight_bits,
    result_bits,
    cached_share,
    l2_bandwidth,
    stream_efficiency,
    hbm_bandwidth,
):
    """Traffic to memory that takes as long: what hits the cache moves at the cache's rate.

    >>> cycled_traffic(
    ...     rows=1, columns=3, inner=5, copies=1, activation_bits=16, weight_bits=16, result_bits=16, cached_share=1,
    ...     l2_bandwidth="3 TB/s", stream_efficiency=0.75, hbm_bandwidth="1 TB/s",
    ... )
    11.5
    """
    read = rows * inner * activation_bits + inner * columns * weight_bits
    whole = copies * (read + rows * columns * result_bits) / 8
    return whole * (1 - cached_share + cached_share * stream_efficiency * hbm_bandwidth / l2_bandwidth)


cycled_operator = Sheet(
    "cycled operator", *(_LAYER | {"traffic": cycled_traffic}).values(), l2_bandwidth_usual, cached_share,
    doc="A linear layer in a benchmark that goes through copies of its weight, as many as the last-level cache holds.",
)  # fmt: skip


# Libraries that choose their tiles, or lose by sizes that are not aligned


@formula("tile_rows", "rocm-aiter")
def aiter_tile_rows(rows, columns, copies, tile_columns, cores):
    """AITER has tiles of 16 to 128 rows: of those it takes the smallest that holds all rows or gives no core a second.

    >>> [aiter_tile_rows(rows=n, columns=7168, copies=1, tile_columns=64, cores=256) for n in (1, 100, 4096)]
    [16.0, 64.0, 128.0]
    """
    wide = copies * ceiling(columns / tile_columns, evaluate=False)
    first = [
        (x, condition) for x in _FEW for condition in (Le(rows, x), Le(ceiling(rows / x, evaluate=False) * wide, cores))
    ]
    return Piecewise(*first, (128, True))


aiter_operator = Sheet(
    "AITER operator", *(_LAYER | {"tile_rows": aiter_tile_rows}).values(),
    doc="A linear layer with the tiles that AITER chooses on AMD's devices.",
)  # fmt: skip


@formula("matmul_time", "anthony2024 §3", "nvidia-ptx cp.async")
def matmul_time_aligned(
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
    aligned_share,
):
    """As `matmul_time_split`, at the share of its rate that rows of 16-bit numbers leave that are not aligned.

    >>> from scalebook.tables import accelerators
    >>> device, sizes = accelerators.a100.at("fp16"), dict(rows=8192, inner=8192)
    >>> [round(1e3 * aligned_operator(device, sizes, columns=n).matmul_time, 1) for n in (50304, 50257)]
    [26.1, 90.0]
    """
    return matmul_time_split.of(peak_flops=aligned_share * peak_flops)


aligned_operator = Sheet(
    "aligned operator", *(_LAYER | {"matmul_time": matmul_time_aligned}).values(), aligned_share,
    doc="A linear layer on an A100, whose rows may begin elsewhere than at multiples of 16 bytes.",
)  # fmt: skip


# The best that a search finds


@formula("best_time", "bekman-accelerators")
def best_time(matmul_time, best_found):
    """Time of the best product that a search finds.

    >>> best_time(matmul_time="1 ms", best_found=0.9)
    0.0009
    """
    return best_found * matmul_time


best_operator = Sheet(
    "best operator",
    *_LAYER.values(),
    best_found,
    best_time,
    doc="The fastest product that a search finds on a device.",
)


# Element-wise kernels


@formula("element_passes", "vidur")
def one_pass():
    """A fused kernel reads its input once and writes its result once.

    >>> one_pass()
    1.0
    """
    return Integer(1)


@formula("launch_time", "vidur")
def no_host_wait():
    """Kernels of a captured graph wait for no host.

    >>> no_host_wait()
    0.0
    """
    return Integer(0)


@formula("stream_time", "vidur")
def element_time(traffic, element_passes, hbm_bandwidth, stream_efficiency, kernel_launch, launch_time):
    """An element-wise kernel: its launch and all passes of its traffic, or the host's launch if that takes longer.

    >>> element_time(
    ...     traffic="1.6 GB", element_passes=2, hbm_bandwidth="2 TB/s", stream_efficiency=0.8, kernel_launch="0 us",
    ...     launch_time="12 us",
    ... )
    0.002
    """
    return Max(kernel_launch + element_passes * traffic / (stream_efficiency * hbm_bandwidth), launch_time)


element_kernel = Sheet(
    "element-wise kernel", one_pass, no_host_wait, typical_stream_efficiency, element_time,
    doc="A norm, an activation or a sum on a device, as a library's kernels run it.",
)  # fmt: skip
