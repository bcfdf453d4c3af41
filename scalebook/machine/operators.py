"""Linear layers as engines run them: a matrix product, and the kernel before it that quantizes its input.

How long quantizing takes depends on the engine and the format more than on the device; see `tables.libraries`.

>>> from scalebook.tables import accelerators
>>> narrow = linear_operator(accelerators.h100.at("fp8").running("vllm_fp8"), rows=64, columns=8192, inner=8192)
>>> [round(1e6 * x, 1) for x in (narrow.matmul_time, narrow.quantize_time, narrow.operator_time)]
[28.4, 4.0, 32.4]
"""

from sympy import Ge, Le, Max, Piecewise, ceiling

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import stated

from . import kernels
from .datasheet import best_found
from .tiles import aligned_share

_DEFAULTS = stated(__name__)  # those of operators.toml
globals().update(_DEFAULTS)

_MEASURED = "aiconfigurator-gemm"
_FEW = (16, 32, 64)  # rows of AITER's smaller tiles; its largest has 128


@formula("inner_half", _MEASURED)
def inner_half_results(exposed_write, result_bits, peak_flops, hbm_bandwidth):
    """Inner size for which computing a result takes as long as writing it, for results wider than the operands.

    >>> inner_half_results(exposed_write=0.5, result_bits=16, peak_flops="1 PFLOP/s", hbm_bandwidth="2 TB/s")
    250.0
    """
    return exposed_write * result_bits / 8 * peak_flops / (2 * hbm_bandwidth)


@formula("traffic", "williams2009 §3")
def operator_traffic(rows, columns, inner, copies, activation_bits, weight_bits, result_bits):
    """Bytes moved by a product: operands read once and results written once, each in its own width.

    >>> operator_traffic(rows=2, columns=3, inner=5, copies=1, activation_bits=8, weight_bits=8, result_bits=16)
    37.0
    """
    read = rows * inner * activation_bits + inner * columns * weight_bits
    return copies * (read + rows * columns * result_bits) / 8


# Quantizing the input


@formula("quantize_time", _MEASURED, given=[_DEFAULTS["results_of_16_bits"]])
def quantize_time(
    rows, inner, copies, activation_bits, result_bits, quantize_start, quantize_passes, quantize_row,
    stream_efficiency, hbm_bandwidth,
):  # fmt: skip
    """Time to quantize a product's input: a start-up and passes, or more if rows take longer; 0 if it keeps its width.

    >>> rates = dict(quantize_start="3 us", quantize_row="7 ns", stream_efficiency=0.8, hbm_bandwidth="3.35 TB/s")
    >>> round(quantize_time(rates, rows=4096, inner=8192, copies=1, activation_bits=8, quantize_passes=2), 7)
    7.81e-05
    """
    moved = copies * rows * inner * (result_bits + activation_bits) / 8
    streamed = quantize_passes * moved / (stream_efficiency * hbm_bandwidth)
    taken = quantize_start + Max(streamed, copies * rows * quantize_row, evaluate=False)
    return Piecewise((0, Ge(activation_bits, result_bits)), (taken, True))


@formula("operator_time", _MEASURED)
def operator_time(matmul_time, quantize_time):
    """Time of a linear layer: quantize the input, then multiply.

    >>> operator_time(matmul_time="30 us", quantize_time="4 us").__round__(9)
    3.4e-05
    """
    return matmul_time + quantize_time


@formula("operator_time", "aiconfigurator-2026")
def operator_time_issued(matmul_time, quantize_time, launch_time):
    """Time of a linear layer that the host launches: the layer's own time, or the launch time if that is longer.

    >>> operator_time_issued(matmul_time="20 us", quantize_time="4 us", launch_time="34 us").__round__(9)
    3.4e-05
    """
    return Max(launch_time, matmul_time + quantize_time, evaluate=False)


_PRODUCT = ("single_product", "wide_activations", "same_bits", "results_of_16_bits", "no_inner_wait")
_LAYER = {f.letter: f for f in (
    *kernels.DEFAULT_FORMULAS, *(_DEFAULTS[x] for x in _PRODUCT), inner_half_results, operator_traffic,
    kernels.tiles, kernels.waves, kernels.matmul_time_waited, kernels.matmul_share,
    *(_DEFAULTS[f"quantize_{x}"] for x in ("start", "passes", "row")), quantize_time, operator_time,
)}  # fmt: skip
_LINEAR = "A linear layer as an engine runs it: quantize the input, then multiply."
linear_operator = Sheet("linear operator", *_LAYER.values(), doc=_LINEAR)


# Benchmarks that read their weights from a cache


@formula("l2_bandwidth", _MEASURED)
def l2_bandwidth_usual(hbm_bandwidth):
    """Default bandwidth of the last-level cache: three times the memory's, as on the L40S and the RTX PRO 6000.

    >>> l2_bandwidth_usual(hbm_bandwidth="1 TB/s")
    3000000000000.0
    """
    return 3 * hbm_bandwidth


@formula("cached_share", _MEASURED)
def cached_share(rows, columns, inner, copies, activation_bits, weight_bits, result_bits, l2_capacity):
    """Share of weight reads that hit the last-level cache in a benchmark that cycles through as many copies as fill it.

    >>> shape = dict(rows=1, columns=4096, inner=4096, copies=1, activation_bits=16, weight_bits=16, result_bits=16)
    >>> round(cached_share(shape, l2_capacity="96 MiB"), 2)
    1.0
    """
    weight = copies * inner * columns * weight_bits / 8
    beside = copies * (rows * inner * activation_bits + rows * columns * result_bits) / 8
    held = weight * ceiling(l2_capacity / weight, evaluate=False) + beside
    return (l2_capacity / held) ** 12


@formula("traffic", _MEASURED)
def cycled_traffic(
    rows, columns, inner, copies, activation_bits, weight_bits, result_bits, cached_share, l2_bandwidth,
    stream_efficiency, hbm_bandwidth,
):  # fmt: skip
    """Bytes from memory that take as long as the traffic of `cached_share`'s benchmark, whose cache hits are faster.

    >>> shape = dict(rows=1, columns=3, inner=5, copies=1, activation_bits=16, weight_bits=16, result_bits=16)
    >>> rates = dict(l2_bandwidth="3 TB/s", stream_efficiency=0.75, hbm_bandwidth="1 TB/s")
    >>> cycled_traffic(shape, rates, cached_share=1)
    11.5
    """
    read = rows * inner * activation_bits + inner * columns * weight_bits
    whole = copies * (read + rows * columns * result_bits) / 8
    return whole * (1 - cached_share + cached_share * stream_efficiency * hbm_bandwidth / l2_bandwidth)


cycled_operator = Sheet(
    "cycled operator", *(_LAYER | {"traffic": cycled_traffic}).values(), l2_bandwidth_usual, cached_share,
    doc="A linear layer in a benchmark that cycles through as many copies of its weight as fill the last-level cache.",
)  # fmt: skip


# Libraries that choose their tiles, or slow down at sizes that are not aligned


@formula("tile_rows", "rocm-aiter")
def aiter_tile_rows(rows, columns, copies, tile_columns, cores):
    """Rows of the tile that AITER chooses: the smallest of 16 to 128 that holds all rows or gives no core two tiles.

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
    doc="A linear layer with the tiles that AITER chooses on AMD devices.",
)  # fmt: skip


@formula("matmul_time", "anthony2024 §3", "nvidia-ptx cp.async")
def matmul_time_aligned(
    rows, columns, inner, copies, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, inner_half,
    traffic, hbm_bandwidth, stream_efficiency, kernel_launch, split_time, split_step, aligned_share,
):  # fmt: skip
    """Time of a product, split over idle cores; at `aligned_share` of the peak for 16-bit rows not aligned to 16 bytes.

    >>> from scalebook.tables import accelerators
    >>> device, sizes = accelerators.a100.at("fp16"), dict(rows=8192, inner=8192)
    >>> [round(1e3 * aligned_operator(device, sizes, columns=n).matmul_time, 1) for n in (50304, 50257)]
    [26.1, 90.0]
    """
    return kernels.matmul_time_split.of(peak_flops=aligned_share * peak_flops)


aligned_operator = Sheet(
    "aligned operator", *(_LAYER | {"matmul_time": matmul_time_aligned}).values(), aligned_share,
    doc="A linear layer on an A100 whose rows may not be aligned to 16 bytes.",
)  # fmt: skip


# The best kernel that a search finds


@formula("best_time", "bekman-accelerators")
def best_time(matmul_time, best_found):
    """Time of the fastest kernel that a search finds for a product.

    >>> best_time(matmul_time="1 ms", best_found=0.9)
    0.0009
    """
    return best_found * matmul_time


_BEST = "A product on a device by the fastest kernel that a search finds."
best_operator = Sheet("best operator", *_LAYER.values(), best_found, best_time, doc=_BEST)


# Element-wise kernels


@formula("stream_time", "vidur")
def element_time(traffic, element_passes, hbm_bandwidth, stream_efficiency, kernel_launch, launch_time):
    """Time of an element-wise kernel: launch and all passes of its traffic, or the host's launch if longer.

    >>> rates = dict(hbm_bandwidth="2 TB/s", stream_efficiency=0.8, kernel_launch="0 us", launch_time="12 us")
    >>> element_time(rates, traffic="1.6 GB", element_passes=2)
    0.002
    """
    return Max(kernel_launch + element_passes * traffic / (stream_efficiency * hbm_bandwidth), launch_time)


element_kernel = Sheet(
    "element-wise kernel", _DEFAULTS["one_pass"], _DEFAULTS["no_host_wait"], kernels.typical_stream_efficiency,
    element_time,
    doc="A norm, an activation or a sum on a device, as a library's kernels run it: launch and memory passes.",
)  # fmt: skip

__all__ = [
    *formulas_of(__name__),
    "aiter_operator", "aligned_operator", "best_operator", "cycled_operator", "element_kernel", "linear_operator",
]  # fmt: skip
