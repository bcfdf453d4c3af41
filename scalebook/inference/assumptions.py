"""What a step of serving rests on besides data sheets: each a formula, to be swapped or given.

The numbers of kernels were fitted to published times of these kernels alone, never to a step or a service
(`scalebook.measurements`: attention_decode, attention_mla_decode, attention_prefill, moe_layer).  A device whose own
kernels read caches otherwise says so in its row (`read_launch_grouped` and the like), and that is taken.

>>> read_launch_grouped() * 1e6
8.4
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
    """TensorRT-LLM's attention to a cache of grouped keys and values, on the H100.

    >>> read_launch_grouped()
    8.4e-06
    """
    return Rational(84, 10) * _MICRO


@formula("read_efficiency", _HERE)
def read_efficiency_grouped():
    """TensorRT-LLM's attention reads a cache of grouped keys and values at this share of the bandwidth.

    >>> read_efficiency_grouped()
    0.72
    """
    return Rational(18, 25)


@formula("item_time", _HERE)
def read_item_grouped():
    """A core spends at least this on a sequence and key-value head in TensorRT-LLM's attention.

    >>> read_item_grouped()
    1.5e-06
    """
    return Rational(3, 2) * _MICRO


@formula("read_launch", _HERE)
def read_launch_latent():
    """TensorRT-LLM's absorbed attention to a cache of latents, on the H100.

    >>> read_launch_latent()
    1.35e-05
    """
    return Rational(27, 2) * _MICRO


@formula("read_efficiency", _HERE)
def read_efficiency_latent():
    """TensorRT-LLM's absorbed attention reads latents at this share of the bandwidth.

    >>> read_efficiency_latent()
    0.83
    """
    return Rational(83, 100)


@formula("item_time", _HERE)
def read_item_latent():
    """A core spends at least this on a sequence in TensorRT-LLM's absorbed attention.

    >>> read_item_latent()
    5.6e-06
    """
    return Rational(28, 5) * _MICRO


@formula("prompt_launch", _HERE)
def prompt_launch():
    """TensorRT-LLM's attention over a prompt, on the H100: projections in, cache written, attention out.

    >>> prompt_launch()
    1.54e-05
    """
    return Rational(77, 5) * _MICRO


@formula("prompt_efficiency", _HERE)
def prompt_efficiency():
    """TensorRT-LLM's attention over a prompt writes the cache at this share of the bandwidth.

    >>> prompt_efficiency()
    0.59
    """
    return Rational(59, 100)


@formula("score_flops", _HERE)
def score_arithmetic():
    """Vector arithmetic of the softmax in the same operator, for each score.  Blackwell Ultra takes half as long.

    >>> score_arithmetic()
    26.0
    """
    return Integer(26)


@formula("query_tile", "shah2024 §3")
def one_tile():
    """Queries that a core of these kernels holds.

    >>> one_tile()
    128.0
    """
    return Integer(128)


@formula("routing_time_least", _EXPERTS)
def routing_time_least():
    """The small kernels that sort tokens by expert in TensorRT-LLM.

    >>> routing_time_least()
    1.5e-05
    """
    return 15 * _MICRO


@formula("assigned_passes", _EXPERTS)
def assigned_passes():
    """The copies of tokens are gathered, quantized, weighted and summed beside the products.

    Fitted on the even rows of `moe_layer` with products of experts that stream weights no faster than others do; with
    what they reach there (`libraries.trtllm_experts_hopper`) the same rows say 4.

    >>> assigned_passes()
    6.5
    """
    return Rational(13, 2)


@formula("result_bits", "micikevicius2022 §5")
def result_bits(activation_bits, fp32_bits):
    """What products write, what is summed over devices and what passes between blocks has 16 bits, half of full
    precision, or as many as they take in.

    >>> result_bits(activation_bits=8, fp32_bits=32), result_bits(activation_bits=32, fp32_bits=32)
    (16.0, 32.0)
    """
    return Max(fp32_bits / 2, activation_bits)


@formula("expert_peak", "deepseek2024-v3 §3.3")
def expert_peak_same(peak_flops):
    """Where nothing else is said, experts multiply in the precision of the other products.

    >>> expert_peak_same(peak_flops="1 PFLOP/s")
    1000000000000000.0
    """
    return peak_flops


@formula("expert_efficiency", _EXPERTS)
def expert_efficiency_same(matmul_efficiency):
    """Where nothing else is said, experts reach as much of their peak as other products.

    >>> expert_efficiency_same(matmul_efficiency=0.7)
    0.7
    """
    return matmul_efficiency


@formula("etp", "deepseek2024-v3 §3.4")
def expert_ways_left(tp, attention_dp, ep):
    """The devices that share a layer of experts split each expert's width where they are more than split the experts.

    >>> expert_ways_left(tp=8, attention_dp=1, ep=2)
    4.0
    """
    return tp * attention_dp / ep


@formula("step_overhead", "kwon2023")
def no_step_overhead():
    """The engine plans the next step while this one runs.

    >>> no_step_overhead()
    0.0
    """
    return Integer(0)


@formula("layer_overhead", "kwon2023")
def no_layer_overhead():
    """Kernels follow each other without a gap, as in a captured graph.

    >>> no_layer_overhead()
    0.0
    """
    return Integer(0)


@formula("scale_kernels", "kwon2023")
def no_scale_kernels():
    """Scales of activations are fixed, and the kernels before a product apply them.

    >>> no_scale_kernels()
    0.0
    """
    return Integer(0)


@formula("norm_sums", "minimax2026")
def no_norm_sums():
    """Norms are within a device: of whole tokens, or of one head.

    >>> no_norm_sums()
    0.0
    """
    return Integer(0)


@formula("sum_launch", "aiconfigurator-nccl")
def sum_launch_collective(collective_launch):
    """Where an engine's own sums over devices were not measured, they start like others.

    >>> sum_launch_collective(collective_launch="7 us")
    7e-06
    """
    return collective_launch


@formula("sum_latency", "aiconfigurator-nccl")
def sum_latency_near(near_latency):
    """Where an engine's own sums over devices were not measured, a device waits for its neighbour as in a ring.

    >>> sum_latency_near(near_latency="1 us")
    1e-06
    """
    return near_latency


def kind_read(model: Mapping) -> str:
    """Which of a device's cells price the reading of a model's cache.

    >>> kind_read({"kv_rank": 512})
    'latent'
    """
    return "latent" if "kv_rank" in model else "grouped"


GROUPED = (read_launch_grouped, read_efficiency_grouped, read_item_grouped)
LATENT = (read_launch_latent, read_efficiency_latent, read_item_latent)
INDEXED = (*LATENT, dense_tokens_picked, index_bits_block, head_tile_hopper, tiled_heads, sparse_efficiency)
LINEAR = (*GROUPED, delta_chunk, linear_bits_wide)
# By kind of cache the cells in which a device's row says how its own kernels read it, and what stands in for each.
READ_CELLS = {
    kind: {f"{f.letter}_{kind}": f for f in formulas} for kind, formulas in (("grouped", GROUPED), ("latent", LATENT))
}
ASSUMED = (
    prompt_launch, prompt_efficiency, score_arithmetic, one_tile, routing_time_least, assigned_passes, result_bits,
    expert_peak_same, expert_efficiency_same, expert_ways_left, no_step_overhead, no_layer_overhead,
    no_scale_kernels, no_norm_sums, sum_launch_collective, sum_latency_near,
)  # fmt: skip


def read_by(kind: str, *rows: Mapping) -> Row:
    """What rows say of a device's own kernels that read a kind of cache; of one that says nothing, nothing.

    >>> from scalebook.tables import accelerators
    >>> read_by("grouped", accelerators.b200).read_efficiency, len(read_by("grouped", accelerators.h100))
    (0.85, 0)
    """
    found = {}
    for row, (name, f) in itertools.product(rows, READ_CELLS[kind].items()):
        if name in row:
            found[f.letter] = row.cells[name] if isinstance(row, Row) else Cell(quantity(name, row[name]))
    return Row("kernels that read caches", found)
