"""Default values that a serving step needs besides data sheets. Each is a formula that can be replaced or given.

The kernel figures were fitted to published times of single kernels, never to a step or a service (sets
`attention_decode`, `attention_mla_decode`, `attention_prefill` and `moe_layer` of `scalebook.measurements`). If a
device's row has cells for its own attention kernels (`read_launch_grouped` and so on), those values are used instead.
"""

import itertools
from collections.abc import Mapping

from sympy import Integer, Max, Rational

from scalebook.attention.linear import delta_chunk, linear_bits_wide
from scalebook.attention.sparse import (
    dense_tokens_picked,
    head_tile_hopper,
    index_bits_block,
    sparse_efficiency,
    tiled_heads,
)
from scalebook.language import Row, formula
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


@formula("read_launch", _HERE)
def read_launch_grouped():
    """Default launch time of attention to cached keys and values: TensorRT-LLM's on the H100.

    >>> read_launch_grouped()
    8.4e-06
    """
    return Rational(84, 10) * _MICRO


@formula("read_efficiency", _HERE)
def read_efficiency_grouped():
    """Default share of the memory bandwidth that attention to cached keys and values reaches: TensorRT-LLM's.

    >>> read_efficiency_grouped()
    0.72
    """
    return Rational(18, 25)


@formula("item_time", _HERE)
def read_item_grouped():
    """Default minimum time a core spends on one sequence and one key-value head: TensorRT-LLM's attention.

    >>> read_item_grouped()
    1.5e-06
    """
    return Rational(3, 2) * _MICRO


@formula("read_launch", _HERE)
def read_launch_latent():
    """Default launch time of absorbed attention to cached latents: TensorRT-LLM's on the H100.

    >>> read_launch_latent()
    1.35e-05
    """
    return Rational(27, 2) * _MICRO


@formula("read_efficiency", _HERE)
def read_efficiency_latent():
    """Default share of the memory bandwidth that absorbed attention to latents reaches: TensorRT-LLM's.

    >>> read_efficiency_latent()
    0.83
    """
    return Rational(83, 100)


@formula("item_time", _HERE)
def read_item_latent():
    """Default minimum time a core spends on one sequence in absorbed attention: TensorRT-LLM's.

    >>> read_item_latent()
    5.6e-06
    """
    return Rational(28, 5) * _MICRO


@formula("prompt_launch", _HERE)
def prompt_launch():
    """Default launch time of the attention operator for prompts: TensorRT-LLM's on the H100.

    The operator takes in the projections, writes the cache and returns the attention output.

    >>> prompt_launch()
    1.54e-05
    """
    return Rational(77, 5) * _MICRO


@formula("prompt_efficiency", _HERE)
def prompt_efficiency():
    """Default share of the memory bandwidth that prompt attention reaches when it writes the cache: TensorRT-LLM's.

    >>> prompt_efficiency()
    0.59
    """
    return Rational(59, 100)


@formula("score_flops", _HERE)
def score_arithmetic():
    """Default vector operations per attention score, for the softmax: TensorRT-LLM's prompt attention.

    On Blackwell Ultra the softmax takes half as long.

    >>> score_arithmetic()
    26.0
    """
    return Integer(26)


@formula("query_tile", "shah2024 §3")
def one_tile():
    """Default number of queries that a core holds in fused attention kernels.

    >>> one_tile()
    128.0
    """
    return Integer(128)


@formula("routing_time_least", _EXPERTS)
def routing_time_least():
    """Default time of the small kernels that sort tokens by expert: TensorRT-LLM's.

    >>> routing_time_least()
    1.5e-05
    """
    return 15 * _MICRO


@formula("assigned_passes", _EXPERTS)
def assigned_passes():
    """Default number of memory passes over the routed token copies: gather, quantize, weight and sum.

    These passes come on top of the expert products. Fitted on the even rows of `moe_layer`, assuming that expert
    products stream weights as fast as other kernels do. With the measured rate of expert products
    (`libraries.trtllm_experts_hopper`) the same rows give 4.

    >>> assigned_passes()
    6.5
    """
    return Rational(13, 2)


@formula("result_bits", "micikevicius2022 §5")
def result_bits(activation_bits, fp32_bits):
    """Default width of results: 16 bits (half of full precision), or the width of the inputs if that is larger.

    It applies to outputs of products, to sums over devices and to activations passed between blocks.

    >>> result_bits(activation_bits=8, fp32_bits=32), result_bits(activation_bits=32, fp32_bits=32)
    (16.0, 32.0)
    """
    return Max(fp32_bits / 2, activation_bits)


@formula("expert_peak", "deepseek2024-v3 §3.3")
def expert_peak_same(peak_flops):
    """Default peak FLOP/s of expert products: experts multiply in the same precision as all other products.

    >>> expert_peak_same(peak_flops="1 PFLOP/s")
    1000000000000000.0
    """
    return peak_flops


@formula("expert_efficiency", _EXPERTS)
def expert_efficiency_same(matmul_efficiency):
    """Default share of the peak that expert products reach: the same as other products.

    >>> expert_efficiency_same(matmul_efficiency=0.7)
    0.7
    """
    return matmul_efficiency


@formula("etp", "deepseek2024-v3 §3.4")
def expert_ways_left(tp, attention_dp, ep):
    """Default expert tensor parallelism: devices of an expert layer divided by the ways of expert parallelism.

    If more devices share a layer of experts than split the experts among them, each expert's width is split as well.

    >>> expert_ways_left(tp=8, attention_dp=1, ep=2)
    4.0
    """
    return tp * attention_dp / ep


@formula("step_overhead", "kwon2023")
def no_step_overhead():
    """Default host overhead of a step: none, because the engine plans the next step while this one runs.

    >>> no_step_overhead()
    0.0
    """
    return Integer(0)


@formula("layer_overhead", "kwon2023")
def no_layer_overhead():
    """Default gap between the kernels of a layer: none, as in a captured CUDA graph.

    >>> no_layer_overhead()
    0.0
    """
    return Integer(0)


@formula("scale_kernels", "kwon2023")
def no_scale_kernels():
    """Default number of extra kernels for activation scales: none.

    Scales are fixed in advance, and the kernel before a product applies them.

    >>> no_scale_kernels()
    0.0
    """
    return Integer(0)


@formula("norm_sums", "minimax2026")
def no_norm_sums():
    """Default number of norms that need a sum over devices: none.

    A norm over a whole token or over one head stays within a device.

    >>> no_norm_sums()
    0.0
    """
    return Integer(0)


@formula("sum_launch", "aiconfigurator-nccl")
def sum_launch_collective(collective_launch):
    """Default launch time of an engine's own all-reduce, if it was not measured: the library's `collective_launch`.

    >>> sum_launch_collective(collective_launch="7 us")
    7e-06
    """
    return collective_launch


@formula("sum_latency", "aiconfigurator-nccl")
def sum_latency_near(near_latency):
    """Default hop latency of an engine's own all-reduce, if it was not measured: the `near_latency` of a ring.

    >>> sum_latency_near(near_latency="1 us")
    1e-06
    """
    return near_latency


def kind_read(model: Mapping) -> str:
    """Return the kind of a model's cache, "latent" or "grouped", which selects the cells of a device's row.

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


def read_by(kind: str, *rows: Mapping) -> Row:
    """Return a row with the cells about kernels that read this kind of cache, under the letters of a step.

    The row is empty if none of `rows` has such cells. Later rows replace earlier ones.

    >>> from scalebook.tables import accelerators
    >>> read_by("grouped", accelerators.b200).read_efficiency, len(read_by("grouped", accelerators.h100))
    (0.85, 0)
    """
    found = {}
    for row, (name, f) in itertools.product(rows, READ_CELLS[kind].items()):
        if name in row:
            found[f.letter] = row.cells[name] if isinstance(row, Row) else Cell(quantity(name, row[name]))
    return Row("kernels that read caches", found)
