"""Attention operators as serving engines run them: sheets that need a device's row and a shape.

>>> from scalebook.tables import accelerators
>>> shape = dict(batch=64, heads=32, kv_heads=8, head_dim=128, context=8192, kv_bits=16)
>>> round(1e6 * decode_attention(accelerators.h200.at("bf16"), **shape).kernel_time)
630
"""

from sympy import Max, Min, ceiling, floor

from scalebook.attention import arithmetic
from scalebook.attention import assumptions as attended
from scalebook.attention import kernels as fused
from scalebook.inference import assumptions
from scalebook.inference.assumptions import one_new_token, queries_as_they_come
from scalebook.language import Formula, Sheet, constant, formula, formulas_of
from scalebook.machine.kernels import one_core

_HERE = "aiconfigurator"


# Defaults


def _of_kind(name: str, default: Formula) -> Formula:
    """Return a step's default under the letter that a device's row has for one kind of cache."""
    letter = f"{default.letter}_{name.partition('_')[0]}"
    return constant(name, letter, default.rhs, _HERE, default.__doc__.partition("\n")[0])


grouped_read_launch = _of_kind("grouped_read_launch", assumptions.read_launch_grouped)
grouped_read_share = _of_kind("grouped_read_share", assumptions.read_efficiency_grouped)
grouped_item = _of_kind("grouped_item", assumptions.read_item_grouped)
latent_read_launch = _of_kind("latent_read_launch", assumptions.read_launch_latent)
latent_read_share = _of_kind("latent_read_share", assumptions.read_efficiency_latent)
latent_item = _of_kind("latent_item", assumptions.read_item_latent)

# Keys and values of grouped heads


@formula("kernel_time", "shah2024 §3", _HERE, given=[fused.append_traffic, fused.least_traffic, fused.busy_pairs])
def grouped_prompt_time(
    prompt_launch, append_traffic, traffic, hbm_bandwidth, prompt_efficiency, busy_pairs, head_dim, peak_flops,
    score_flops, peak_vector,
):  # fmt: skip
    """Time of an engine's prompt attention: `prefill_kernel_time` with its own launch time and bandwidth share.

    >>> rates = dict(hbm_bandwidth=3.35e12, prompt_efficiency=0.6, peak_flops=989.4e12, peak_vector=66.9e12)
    >>> sizes = dict(append_traffic=1e3, traffic=1e3, busy_pairs=1e9, head_dim=128, score_flops=26)
    >>> 1e3 * grouped_prompt_time(rates, sizes, prompt_launch="15 us")
    0.92112...
    """
    return fused.prefill_kernel_time.of(launch_time=prompt_launch, bandwidth_efficiency=prompt_efficiency)


@formula("kernel_time", "dao2022 §3.2", _HERE, given=[fused.least_traffic])
def grouped_decode_time(
    read_launch_grouped, batch, kv_heads, cores, item_time_grouped, traffic, hbm_bandwidth, read_efficiency_grouped,
    flops, peak_flops,
):  # fmt: skip
    """Time of an engine's decode attention: `decode_kernel_time` with its own launch time and bandwidth share.

    >>> rates = dict(hbm_bandwidth=3.35e12, read_efficiency_grouped=0.8, peak_flops=989.4e12, cores=132)
    >>> sizes = dict(read_launch_grouped=8e-6, batch=64, kv_heads=8, item_time_grouped=1.4e-6)
    >>> 1e6 * grouped_decode_time(rates, sizes, traffic="1 GB", flops="8 GFLOP")
    381.134328...
    """
    own = dict(launch_time=read_launch_grouped, item_time=item_time_grouped)
    return fused.decode_kernel_time.of(**own, bandwidth_efficiency=read_efficiency_grouped)


@formula("resident_share", "trtllm-dispatch", given=[fused.least_traffic])
def resident_when_repeated(traffic, l2_capacity):
    """Share of keys and values still in the L2 cache if the same call is repeated, as in benchmarks.

    All are if they fit, none if they are a quarter larger. In a service other kernels run between: give 0.

    >>> [resident_when_repeated(traffic=x, l2_capacity="96 MiB") for x in ("30 MB", "1 GB")]
    [1.0, 0.0]
    """
    return Max(0, Min(1, 5 - 4 * traffic / l2_capacity, evaluate=False), evaluate=False)


@formula("kernel_time", "dao2022 §3.2", "trtllm-dispatch", given=[fused.least_traffic])
def decode_time_by_cores(
    read_launch_grouped, batch, kv_heads, context, head_dim, kv_bits, cores, item_time_grouped, core_bandwidth,
    split_tokens, join_time, traffic, resident_share, hbm_bandwidth, read_efficiency_grouped, flops, peak_flops,
):  # fmt: skip
    """Time of decode attention if each core works on one sequence's key-value head at a time.

    If there are fewer items than cores, several cores share an item, each with at least `split_tokens` of its tokens,
    and their results are joined.

    >>> known = dict(read_launch_grouped="6 us", kv_heads=1, head_dim=128, kv_bits=8, cores=142, traffic="17 MB",
    ...     item_time_grouped="3 us", core_bandwidth="16 GB/s", join_time="3 us", resident_share=1, flops="1 GFLOP",
    ...     hbm_bandwidth="864 GB/s", read_efficiency_grouped=0.8, peak_flops="362 TFLOP/s")
    >>> [1e6 * decode_time_by_cores(known, batch=8, context=8192, split_tokens=x) for x in (1e9, 512)]
    [140.072, 20.192]
    """
    items = batch * kv_heads
    cores_each = Min(floor(cores / items), ceiling(context / split_tokens), evaluate=False)
    splits = Max(1, cores_each, evaluate=False)
    share = 2 * head_dim * context * kv_bits / 8 / splits
    worked = ceiling(items / cores) * (item_time_grouped + share / core_bandwidth)
    read = (1 - resident_share) * traffic / (read_efficiency_grouped * hbm_bandwidth)
    joined = join_time * Min(1, splits - 1, evaluate=False)
    return read_launch_grouped + Max(worked, read, flops / peak_flops, evaluate=False) + joined


@formula("kernel_time", "shah2024 §3", given=[fused.least_traffic])
def flash_kernel_time(
    read_launch_grouped, batch, heads, pairs, head_dim, peak_flops, score_flops, peak_vector, traffic, hbm_bandwidth,
    read_efficiency_grouped,
):  # fmt: skip
    """Time of fused attention without a cache to write: products and softmax, or memory traffic if that takes longer.

    >>> 1e6 * flash_kernel_time(read_launch_grouped="8 us", batch=1, heads=8, pairs=1e8, head_dim=128,
    ...     peak_flops="989.4 TFLOP/s", score_flops=18.6, peak_vector="66.9 TFLOP/s", traffic="1 GB",
    ...     hbm_bandwidth="3.35 TB/s", read_efficiency_grouped=0.72)
    644.4098...
    """
    computed = batch * heads * pairs * (4 * head_dim / peak_flops + score_flops / peak_vector)
    read = traffic / hbm_bandwidth / read_efficiency_grouped
    return read_launch_grouped + Max(computed, read, evaluate=False)


@formula("score_flops", "aiconfigurator-2026")
def score_flops_widened(head_dim, widen_flops):
    """Vector arithmetic per score if 8-bit keys and values are widened to 16 bits for each tile, on top of the softmax.

    >>> score_flops_widened(head_dim=128, widen_flops=2)
    282.0
    """
    return assumptions.score_arithmetic.rhs + widen_flops * head_dim


@formula("issued_time", "aiconfigurator-2026")
def kernel_issued(kernel_time, launch_time):
    """Time of an attention operator that the host launches: its own time, or the launch time if that is longer.

    >>> kernel_issued(kernel_time="40 us", launch_time="75 us")
    7.5e-05
    """
    return Max(kernel_time, launch_time, evaluate=False)


# Latents


@formula("append_traffic", "deepseek2024-v2 §2.1", "trtllm-dispatch")
def latent_append_quantized(batch, seq, heads, kv_rank, nope_dim, rope_dim, v_dim, kv_bits, activation_bits):
    """Bytes moved to append latents to the cache; for an 8-bit cache, queries, keys and values are also quantized.

    >>> shape = dict(batch=1, heads=128, kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128, seq=8192)
    >>> latent_append_quantized(shape, kv_bits=8, activation_bits=16) / 1e6
    2027.421696
    """
    width = 2 * (nope_dim + rope_dim) + v_dim
    quantized = Min(1, activation_bits / kv_bits - 1, evaluate=False)
    moved = batch * seq * heads * width * (activation_bits + kv_bits) / 8
    return fused.latent_append_traffic.of() + quantized * moved


@formula("traffic", "deepseek2024-v2 §2.1", given=[attended.prefill_context])
def latent_prompt_traffic(batch, seq, context, heads, nope_dim, rope_dim, v_dim, kv_bits, activation_bits):
    """Bytes moved by prompt attention with latents expanded; each head reads its own queries, keys and values.

    >>> shape = dict(batch=1, heads=128, nope_dim=128, rope_dim=64, v_dim=128, seq=8192)
    >>> latent_prompt_traffic(shape, kv_bits=16, activation_bits=16) / 1e6
    1342.17728
    """
    read = seq * (nope_dim + rope_dim) + context * (nope_dim + rope_dim + v_dim)
    return batch * heads * (read * kv_bits + seq * v_dim * activation_bits) / 8


@formula("kernel_time", "deepseek2024-v2 §2.1", _HERE, given=[latent_append_quantized, latent_prompt_traffic])
def latent_prompt_time(
    prompt_launch, append_traffic, traffic, hbm_bandwidth, prompt_efficiency, busy_pairs, nope_dim, rope_dim, v_dim,
    peak_flops, score_flops, peak_vector,
):  # fmt: skip
    """Time of prompt attention with latents expanded: `grouped_prompt_time` with half of a pair's width per head.

    >>> 1e3 * latent_prompt_time(prompt_launch="15 us", append_traffic="1 kB", traffic="1 kB",
    ...     hbm_bandwidth="3.35 TB/s", prompt_efficiency=0.6, busy_pairs=1e9, nope_dim=128, rope_dim=64, v_dim=128,
    ...     peak_flops="989.4 TFLOP/s", score_flops=26, peak_vector="66.9 TFLOP/s")
    1.05049...
    """
    own = dict(launch_time=prompt_launch, bandwidth_efficiency=prompt_efficiency)
    return fused.prefill_kernel_time.of(**own, head_dim=(nope_dim + rope_dim + v_dim) / 2)


@formula("kernel_time", "deepseek2024-v2 §2.1", _HERE, given=[fused.absorbed_traffic])
def latent_decode_time(
    read_launch_latent, batch, cores, item_time_latent, traffic, hbm_bandwidth, read_efficiency_latent, flops,
    peak_flops,
):  # fmt: skip
    """Time of absorbed attention over cached latents: `decode_kernel_time` with one work item per sequence.

    >>> 1e6 * latent_decode_time(read_launch_latent="13 us", batch=64, cores=132, item_time_latent="5.6 us",
    ...     traffic="1 GB", hbm_bandwidth="3.35 TB/s", read_efficiency_latent=0.8, flops="8 GFLOP",
    ...     peak_flops="989.4 TFLOP/s")
    386.134328...
    """
    own = dict(launch_time=read_launch_latent, item_time=item_time_latent, bandwidth_efficiency=read_efficiency_latent)
    return fused.decode_kernel_time.of(**own, kv_heads=1)


_PROMPT = (
    attended.prefill_context, assumptions.one_tile, one_core, attended.sixteen_bits, fused.tiled_pairs,
    fused.busy_pairs, assumptions.prompt_launch, assumptions.prompt_efficiency, assumptions.score_arithmetic,
)  # fmt: skip
_DECODED = (
    one_new_token, one_core, attended.sixteen_bits, queries_as_they_come, arithmetic.full_pairs,
    arithmetic.attention_flops, fused.kernel_flops,
)  # fmt: skip
_READ = (fused.least_traffic, grouped_read_launch, grouped_read_share)
_GROUPED = (*_DECODED, arithmetic.pair_width_grouped, *_READ, grouped_item)

prompt_attention = Sheet(
    "prompt_attention", *_PROMPT, queries_as_they_come, fused.append_traffic, fused.least_traffic, grouped_prompt_time,
    doc="An engine's operator of causal attention over prompts: the cache written, and attention.",
)  # fmt: skip
decode_attention = Sheet(
    "decode_attention", *_GROUPED, grouped_decode_time,
    doc="An engine's operator of attention to cached keys and values, for one new token of each sequence.",
)  # fmt: skip
prompt_attention_issued, decode_attention_issued = (
    Sheet(f"{x.name}_issued", *x.formulas.values(), kernel_issued, doc=f"{x.doc} The host launches each kernel.")
    for x in (prompt_attention, decode_attention)
)
decode_attention_by_cores = Sheet(
    "decode_attention_by_cores", *_GROUPED, decode_time_by_cores, resident_when_repeated,
    doc="Decode attention by kernels whose time per core a library gives: mmha and xqa of TensorRT-LLM.",
)  # fmt: skip
latent_prompt_attention = Sheet(
    "latent_prompt_attention", *_PROMPT, latent_append_quantized, latent_prompt_traffic, latent_prompt_time,
    doc="An engine's operator of latent attention over prompts, with the latents expanded for each head.",
)  # fmt: skip
latent_decode_attention = Sheet(
    "latent_decode_attention", *_DECODED, arithmetic.pair_width_absorbed, fused.absorbed_traffic, latent_read_launch,
    latent_read_share, latent_item, latent_decode_time,
    doc="An engine's operator of absorbed attention to cached latents, for one new token of each sequence.",
)  # fmt: skip
flash_attention = Sheet(
    "flash_attention", attended.prefill_context, assumptions.one_tile, fused.tiled_pairs, attended.sixteen_bits,
    queries_as_they_come, *_READ, assumptions.score_arithmetic, flash_kernel_time,
    doc="A fused causal attention kernel by itself. Without a mask, give pairs: the square of the length.",
)  # fmt: skip

__all__ = [
    *formulas_of(__name__),
    "decode_attention", "decode_attention_by_cores", "decode_attention_issued", "flash_attention",
    "latent_decode_attention", "latent_prompt_attention", "prompt_attention", "prompt_attention_issued",
]  # fmt: skip
