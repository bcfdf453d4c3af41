"""Default values of serving steps that no data sheet states. Each is a formula that can be replaced or given.

The kernel figures were fitted to published times of single kernels (sets `attention_decode`, `attention_mla_decode`,
`attention_prefill` and `moe_layer`), never to a step or a service. A device's own values replace them.
"""

import itertools
from collections.abc import Mapping

from sympy import Integer, Max

from scalebook.attention.linear import delta_chunk, linear_bits_wide
from scalebook.attention.sparse import (
    dense_tokens_picked,
    head_tile_hopper,
    index_bits_block,
    sparse_efficiency,
    tiled_heads,
)
from scalebook.language import Row, constant, formula, same
from scalebook.language.arguments import checked
from scalebook.language.notation import either, quoted
from scalebook.language.row import Cell, quantity

__all__ = [
    "ASSUMED", "GROUPED", "INDEXED", "LATENT", "LINEAR", "READ_CELLS", "assigned_passes", "expert_efficiency_same",
    "expert_peak_same", "expert_ways_left", "kind_read", "no_layer_overhead", "no_norm_sums", "no_scale_kernels",
    "no_step_overhead", "one_tile", "prompt_efficiency", "prompt_launch", "read_by", "read_efficiency_grouped",
    "read_efficiency_latent", "read_item_grouped", "read_item_latent", "read_launch_grouped", "read_launch_latent",
    "result_bits", "routing_time_least", "score_arithmetic", "sum_latency_near", "sum_launch_collective",
]  # fmt: skip

_HERE = "aiconfigurator"
_EXPERTS = "aiconfigurator-moe"
_MICRO = Integer(10) ** -6

read_launch_grouped = constant(
    "read_launch_grouped", "read_launch", "8.4e-06", _HERE,
    "Default launch time of attention to cached keys and values: TensorRT-LLM's on the H100.",
)  # fmt: skip

read_efficiency_grouped = constant(
    "read_efficiency_grouped", "read_efficiency", "0.72", _HERE,
    "Default share of the memory bandwidth that attention to cached keys and values reaches: TensorRT-LLM's.",
)  # fmt: skip

read_item_grouped = constant(
    "read_item_grouped", "item_time", "1.5e-06", _HERE,
    "Default minimum time a core spends on one sequence and one key-value head: TensorRT-LLM's attention.",
)  # fmt: skip

read_launch_latent = constant(
    "read_launch_latent", "read_launch", "1.35e-05", _HERE,
    "Default launch time of absorbed attention to cached latents: TensorRT-LLM's on the H100.",
)  # fmt: skip

read_efficiency_latent = constant(
    "read_efficiency_latent", "read_efficiency", "0.83", _HERE,
    "Default share of the memory bandwidth that absorbed attention to latents reaches: TensorRT-LLM's.",
)  # fmt: skip

read_item_latent = constant(
    "read_item_latent", "item_time", "5.6e-06", _HERE,
    "Default minimum time a core spends on one sequence in absorbed attention: TensorRT-LLM's.",
)  # fmt: skip

prompt_launch = constant(
    "prompt_launch", "prompt_launch", "1.54e-05", _HERE,
    "Default launch time of the attention operator for prompts: TensorRT-LLM's on the H100.\n\n"
    "The operator takes in the projections, writes the cache and returns the attention output.",
)  # fmt: skip

prompt_efficiency = constant(
    "prompt_efficiency", "prompt_efficiency", "0.59", _HERE,
    "Default share of the memory bandwidth that prompt attention reaches when it writes the cache: TensorRT-LLM's.",
)  # fmt: skip

score_arithmetic = constant(
    "score_arithmetic", "score_flops", 26, _HERE,
    "Default vector operations per attention score, for the softmax: TensorRT-LLM's prompt attention.\n\n"
    "On Blackwell Ultra the softmax takes half as long.",
)  # fmt: skip

one_tile = constant(
    "one_tile", "query_tile", 128, "shah2024 §3",
    "Default number of queries that a core holds in fused attention kernels.",
)  # fmt: skip

routing_time_least = constant(
    "routing_time_least", "routing_time_least", "1.5e-05", _EXPERTS,
    "Default time of the small kernels that sort tokens by expert: TensorRT-LLM's.",
)  # fmt: skip

assigned_passes = constant(
    "assigned_passes", "assigned_passes", "6.5", _EXPERTS,
    "Default number of memory passes over the routed token copies: gather, quantize, weight and sum.\n\n"
    "These passes come on top of the expert products. Fitted on the even rows of `moe_layer`, assuming that expert "
    "products stream weights as fast as other kernels do. With the measured rate of expert products "
    "(`libraries.trtllm_experts_hopper`) the same rows give 4.",
)  # fmt: skip


@formula("result_bits", "micikevicius2022 §5")
def result_bits(activation_bits, fp32_bits):
    """Default width of results: 16 bits (half of full precision), or the width of the inputs if that is larger.

    >>> result_bits(activation_bits=8, fp32_bits=32), result_bits(activation_bits=32, fp32_bits=32)
    (16.0, 32.0)
    """
    return Max(fp32_bits / 2, activation_bits)


expert_peak_same = same(
    "expert_peak_same", "expert_peak", "peak_flops", "deepseek2024-v3 §3.3",
    "Default peak FLOP/s of expert products: experts multiply in the same precision as all other products.",
)  # fmt: skip


expert_efficiency_same = same(
    "expert_efficiency_same", "expert_efficiency", "matmul_efficiency", _EXPERTS,
    "Default share of the peak that expert products reach: the same as other products.",
)  # fmt: skip


@formula("etp", "deepseek2024-v3 §3.4")
def expert_ways_left(tp, attention_dp, ep):
    """Default expert tensor parallelism: devices of an expert layer divided by the ways of expert parallelism.

    >>> expert_ways_left(tp=8, attention_dp=1, ep=2)
    4.0
    """
    return tp * attention_dp / ep


no_step_overhead = constant(
    "no_step_overhead", "step_overhead", 0, "kwon2023",
    "Default host overhead of a step: none, because the engine plans the next step while this one runs.",
)  # fmt: skip

no_layer_overhead = constant(
    "no_layer_overhead", "layer_overhead", 0, "kwon2023",
    "Default gap between the kernels of a layer: none, as in a captured CUDA graph.",
)  # fmt: skip

no_scale_kernels = constant(
    "no_scale_kernels", "scale_kernels", 0, "kwon2023",
    "Default number of extra kernels for activation scales: none.\n\n"
    "Scales are fixed in advance, and the kernel before a product applies them.",
)  # fmt: skip

no_norm_sums = constant(
    "no_norm_sums", "norm_sums", 0, "minimax2026",
    "Default number of norms that need a sum over devices: none.\n\n"
    "A norm over a whole token or over one head stays within a device.",
)  # fmt: skip


sum_launch_collective = same(
    "sum_launch_collective", "sum_launch", "collective_launch", "aiconfigurator-nccl",
    "Default launch time of an engine's own all-reduce, if it was not measured: the library's `collective_launch`.",
)  # fmt: skip


sum_latency_near = same(
    "sum_latency_near", "sum_latency", "near_latency", "aiconfigurator-nccl",
    "Default hop latency of an engine's own all-reduce, if it was not measured: the `near_latency` of a ring.",
)  # fmt: skip


@checked
def kind_read(model: Mapping) -> str:
    """Return which kind of cache a model has, "latent" or "grouped": devices have efficiencies for reading each.

    >>> kind_read({"kv_rank": 512})
    'latent'
    """
    return "latent" if "kv_rank" in model else "grouped"


GROUPED = (read_launch_grouped, read_efficiency_grouped, read_item_grouped)
LATENT = (read_launch_latent, read_efficiency_latent, read_item_latent)
INDEXED = (*LATENT, dense_tokens_picked, index_bits_block, head_tile_hopper, tiled_heads, sparse_efficiency)
LINEAR = (*GROUPED, delta_chunk, linear_bits_wide)
# For each kind of cache: the cells of a device's row that describe its own kernels, and the default of each cell.
READ_CELLS = {
    kind: {f"{f.letter}_{kind}": f for f in formulas} for kind, formulas in (("grouped", GROUPED), ("latent", LATENT))
}
ASSUMED = (
    prompt_launch, prompt_efficiency, score_arithmetic, one_tile, routing_time_least, assigned_passes, result_bits,
    expert_peak_same, expert_efficiency_same, expert_ways_left, no_step_overhead, no_layer_overhead,
    no_scale_kernels, no_norm_sums, sum_launch_collective, sum_latency_near,
)  # fmt: skip


@checked
def read_by(kind: str, *rows: Mapping) -> Row:
    """Return a row with what table rows say about reading this kind of cache, under the names that a step uses.

    The row is empty if none of `rows` says anything. Later rows replace earlier ones.

    >>> from scalebook.tables import accelerators
    >>> read_by("grouped", accelerators.b200).read_efficiency, len(read_by("grouped", accelerators.h100))
    (0.85, 0)
    """
    found = {}
    if kind not in READ_CELLS:
        raise LookupError(f"a cache is {either(READ_CELLS)}, not {quoted(kind)}")
    if stray := [x for x in rows if not isinstance(x, Mapping)]:
        raise TypeError(f"the cells are read from rows of devices, not from {quoted(stray[0])}")
    for row, (name, f) in itertools.product(rows, READ_CELLS[kind].items()):
        if name in row:
            found[f.letter] = row.cells[name] if isinstance(row, Row) else Cell(quantity(name, row[name]))
    return Row("kernels that read caches", found)
