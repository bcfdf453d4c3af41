"""Sheets for a mixture-of-experts layer as an engine runs it, and for the matrix products within it.

Efficiencies come from the device's row, or from a library's row for experts (`trtllm_experts`).
"""

from sympy import Max, Min, floor

from scalebook.language import Sheet, formula, formulas_of, symbol
from scalebook.language.defaults import equations
from scalebook.machine import kernels

from . import assumptions
from .experts import devices_touched

_EXPERTS = "aiconfigurator-moe"
_OWN = equations(__name__)  # those of expert_layer.toml
x = symbol


# Tokens of each expert


def _mean_blocks(expert_rows, load_spread, height):
    """Return the mean blocks of an expert with rows uniform between (1 - spread) and (1 + spread) times the mean."""

    def below(most):  # the integral of the blocks from 0 to `most` rows
        whole = floor((most - 1) / height, evaluate=False)
        return height * (whole + 1) * ((most - 1) / height - whole / 2)

    low, high = (expert_rows * (1 + side * load_spread) for side in (-1, 1))
    return (below(high) - below(low)) / (high - low)


@formula("assigned_tokens", "infersim")
def assigned_tokens_spread(experts, expert_rows, load_spread):
    """Token rows of all experts if each expert gets (1 - spread) to (1 + spread) times an even share.

    >>> assigned_tokens_spread(experts=32, expert_rows=1, load_spread=0.3)
    16.0
    """
    return experts * _mean_blocks(expert_rows, load_spread, 1)


@formula("expert_blocks", "infersim", "deepgemm", given=[_OWN.block_rows_deepgemm])
def expert_blocks_spread(experts, expert_rows, load_spread, block_rows):
    """Blocks of rows of all experts if each expert gets (1 - spread) to (1 + spread) times an even share.

    >>> expert_blocks_spread(experts=32, expert_rows=128, load_spread=0.3, block_rows=128).__round__(1)
    47.6
    """
    return experts * _mean_blocks(expert_rows, load_spread, block_rows)


# Time


def _grouped(columns, inner, **known):
    """Return the time of one grouped product: whole blocks of rows, and the weights of experts with tokens."""
    operands = x("assigned_tokens") * (inner * x("activation_bits") + columns * x("result_bits"))
    moved = (operands + x("local_experts") * inner * columns * x("weight_bits")) / 8
    copies = x("expert_blocks") * x("block_rows") / x("tile_rows")
    known |= dict(rows=x("tile_rows"), columns=columns, inner=inner, copies=copies, traffic=moved)
    half = kernels.inner_half.of(activation_bits=x("result_bits"))
    return kernels.matmul_time.of(**known, inner_half=half, stream_efficiency=x("expert_stream_efficiency"))


@formula("matmul_time", "nvidia-matmul-guide §3.1", "deepgemm")
def grouped_time(
    columns, inner, assigned_tokens, local_experts, expert_blocks, block_rows, activation_bits, weight_bits,
    result_bits, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency, exposed_write, hbm_bandwidth,
    expert_stream_efficiency, kernel_launch,
):  # fmt: skip
    """Time of a grouped product, one matrix product per expert in one kernel.

    >>> from scalebook.tables import accelerators
    >>> shape = dict(columns=4096, inner=7168, experts=32, expert_rows=256, activation_bits=8, weight_bits=8)
    >>> round(1e6 * grouped_product(accelerators.h800.at("fp8"), shape, load_spread=0.3).matmul_time)
    501
    """
    return _grouped(columns, inner)


@formula("expert_layer_time", _EXPERTS)
def expert_layer_time(
    layer_tokens, hidden, expert_ffn, etp, assigned_tokens, local_experts, expert_blocks, block_rows, activation_bits,
    weight_bits, result_bits, gather_bits, assigned_passes, routing_time_least, scale_time, tile_rows, tile_columns,
    cores, peak_flops, matmul_efficiency, exposed_write, hbm_bandwidth, stream_efficiency, expert_stream_efficiency,
    kernel_launch,
):  # fmt: skip
    """Time of an expert layer: sorting by expert, both products, and the memory passes around them.

    If the products run in low precision, a kernel first quantizes the tokens. If each group of 128 inputs has a scale,
    a kernel before each product quantizes the copies, and a core takes `scale_time` for each number.

    >>> from scalebook.tables import accelerators
    >>> shape = dict(hidden=4096, expert_ffn=1536, experts=128, top_k=8, ep=8, activation_bits=16, weight_bits=16)
    >>> round(1e6 * experts_layer(accelerators.h100.at("bf16"), shape, etp=1, layer_tokens=4096).expert_layer_time)
    429
    """
    width, stream = expert_ffn / etp, stream_efficiency * hbm_bandwidth
    gathered = layer_tokens * hidden * (gather_bits + result_bits)
    copied = assigned_tokens * (assigned_passes * hidden * result_bits + width * (2 * result_bits + gather_bits))
    passed = kernel_launch + (gathered + copied) / 8 / stream
    is_quantized = Min(1, result_bits / gather_bits - 1, evaluate=False)
    quantized = is_quantized * (kernel_launch + gathered / 8 / stream)
    scaled = scale_time * assigned_tokens * (hidden + width) / cores
    return routing_time_least + _grouped(2 * width, hidden) + _grouped(hidden, width) + passed + quantized + scaled


@formula("expert_layer_time", "deepgemm", given=[devices_touched])
def fused_layer_time(
    top_k, hidden, expert_ffn, etp, ep, visited_devices, assigned_tokens, local_experts, expert_blocks, block_rows,
    activation_bits, weight_bits, result_bits, tile_rows, tile_columns, cores, peak_flops, matmul_efficiency,
    exposed_write, hbm_bandwidth, expert_stream_efficiency, kernel_launch, near_efficiency, scaleup_bandwidth,
):  # fmt: skip
    """Time of an expert layer in one kernel: launch, then both products or the exchanges around them, if longer.

    A token sends one copy to each device that it visits, in the width of activations. Results return in their own
    width.

    >>> from scalebook.tables import accelerators
    >>> shape = dict(hidden=7168, expert_ffn=3072, experts=384, top_k=6, ep=8, etp=1, activation_bits=8, weight_bits=4)
    >>> round(1e6 * experts_layer_fused(accelerators.gb300.at("fp8"), shape, layer_tokens=65536).expert_layer_time)
    2025
    """
    width = expert_ffn / etp
    worked = _grouped(2 * width, hidden, kernel_launch=0) + _grouped(hidden, width, kernel_launch=0)
    copies = assigned_tokens / top_k * visited_devices * (ep - 1) / ep
    sent = copies * hidden * (activation_bits + result_bits) / 8 / (near_efficiency * scaleup_bandwidth)
    return kernel_launch + Max(worked, sent, evaluate=False)


_EVEN = _OWN.assigned_tokens_whole, _OWN.local_experts_even, _OWN.expert_blocks_even
_USUAL = (
    kernels.tile_rows, kernels.tile_columns, kernels.one_core, kernels.exposed_write, kernels.typical_matmul_efficiency,
    kernels.typical_stream_efficiency, assumptions.results_in_sixteen, assumptions.expert_stream_same,
)  # fmt: skip

grouped_product = Sheet(
    "grouped_product", *_USUAL, _OWN.block_rows_deepgemm, assigned_tokens_spread, _OWN.local_experts_spread,
    expert_blocks_spread, grouped_time,
    doc="A grouped product, one per expert of a device in one kernel, as DeepGEMM runs it, with uneven loads.",
)  # fmt: skip


def _layer(name, block_rows, doc):
    return Sheet(
        name, *_USUAL, _OWN.expert_rows_expected, block_rows, *_EVEN, assumptions.gather_bits_same,
        assumptions.no_scale_time, assumptions.assigned_passes, assumptions.routing_time_least, expert_layer_time,
        doc=doc,
    )  # fmt: skip


experts_layer = _layer(
    "experts_layer", assumptions.block_rows_tile,
    "A layer of experts on one of its devices, with even loads: routing, both products, memory passes.",
)  # fmt: skip
experts_layer_deepgemm = _layer(
    "experts_layer_deepgemm", _OWN.block_rows_deepgemm,
    "A layer of experts on one of its devices, with even loads and DeepGEMM's blocks of rows.",
)  # fmt: skip

experts_layer_fused = Sheet(
    "experts_layer_fused", *_USUAL, _OWN.expert_rows_expected, assumptions.block_rows_tile, *_EVEN, devices_touched,
    fused_layer_time,
    doc="A layer of experts on one of its devices in one kernel, with even loads: exchanges hide behind both products.",
)  # fmt: skip


# All-to-all of tokens and experts by kernels that occupy cores, such as DeepEP within a node


token_exchange = Sheet(
    "token_exchange", devices_touched, _OWN.exchange_by_cores,
    doc="Tokens of a device sent to their experts, or their results back, by kernels that occupy cores.",
)  # fmt: skip

__all__ = [
    *formulas_of(__name__),
    "experts_layer", "experts_layer_deepgemm", "experts_layer_fused", "grouped_product", "token_exchange",
]  # fmt: skip
