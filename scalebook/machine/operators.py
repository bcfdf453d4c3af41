"""Linear layers as engines run them: a matrix product, and the kernel before it that quantizes its input.

How long quantizing takes depends on the engine and the format more than on the device; see `tables.libraries`.

>>> from scalebook.tables import accelerators
>>> narrow = linear_operator(accelerators.h100.at("fp8").running("vllm_fp8"), rows=64, columns=8192, inner=8192)
>>> [round(1e6 * x, 1) for x in (narrow.matmul_time, narrow.quantize_time, narrow.operator_time)]
[28.4, 4.0, 32.4]
"""

from sympy import Ge, Le, Max, Piecewise, ceiling

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

from . import kernels
from .datasheet import best_found
from .tiles import aligned_share

_OWN = equations(__name__)  # those of operators.toml

_MEASURED = "aiconfigurator-gemm"
_FEW = (16, 32, 64)  # rows of AITER's smaller tiles; its largest has 128


# Quantizing the input


@formula("quantize_time", _MEASURED, given=[_OWN.results_of_16_bits])
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


_LAYER = {f.letter: f for f in (
    *kernels.DEFAULT_FORMULAS, _OWN.single_product, _OWN.wide_activations, _OWN.same_bits, _OWN.results_of_16_bits,
    _OWN.no_inner_wait, _OWN.inner_half_results, _OWN.operator_traffic, kernels.tiles, kernels.waves,
    kernels.matmul_time_waited, kernels.matmul_share, _OWN.quantize_start, _OWN.quantize_passes, _OWN.quantize_row,
    quantize_time, _OWN.operator_time,
)}  # fmt: skip
_LINEAR = "A linear layer as an engine runs it: quantize the input, then multiply."
linear_operator = Sheet("linear operator", *_LAYER.values(), doc=_LINEAR)


# Benchmarks that read their weights from a cache


cycled_operator = Sheet(
    "cycled operator", *(_LAYER | {"traffic": _OWN.cycled_traffic}).values(), _OWN.l2_bandwidth_usual,
    _OWN.cached_share,
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


_BEST = "A product on a device by the fastest kernel that a search finds."
best_operator = Sheet("best operator", *_LAYER.values(), best_found, _OWN.best_time, doc=_BEST)


# Element-wise kernels


element_kernel = Sheet(
    "element-wise kernel", _OWN.one_pass, _OWN.no_host_wait, kernels.typical_stream_efficiency, _OWN.element_time,
    doc="A norm, an activation or a sum on a device, as a library's kernels run it: launch and memory passes.",
)  # fmt: skip

__all__ = [
    *formulas_of(__name__),
    "aiter_operator", "aligned_operator", "best_operator", "cycled_operator", "element_kernel", "linear_operator",
]  # fmt: skip
