"""Memory traffic of attention, what tiling saves, and the time of attention kernels."""

from sympy import Max, ceiling

from scalebook.attention.arithmetic import attention_flops, causal_pairs, pair_width_grouped
from scalebook.attention.assumptions import prefill_context
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.machine import roofline

_OWN = equations(__name__)  # those of kernels.toml

# Traffic


@formula("traffic", "dao2022 §3.1", given=[prefill_context])
def unfused_traffic(batch, heads, kv_heads, head_dim, seq, context, activation_bits):
    """Bytes moved by separate kernels for scores, softmax and values; each score crosses the memory bus four times.

    >>> unfused_traffic(batch=1, heads=32, kv_heads=8, head_dim=128, seq=8192, activation_bits=16) / 1e9
    17.347641344
    """
    ends = 2 * seq * heads * head_dim + 2 * context * kv_heads * head_dim
    return batch * (4 * heads * seq * context + ends) * activation_bits / 8


@formula("traffic", "dao2022 §3.2", given=[prefill_context])
def least_traffic(batch, heads, kv_heads, head_dim, seq, context, query_bits, kv_bits, activation_bits):
    """Least bytes moved by fused attention: queries, results, keys and values once each, for all tiles and heads.

    >>> shape = dict(batch=1, heads=32, kv_heads=8, head_dim=128, seq=1, context=8192)
    >>> least_traffic(shape, query_bits=16, kv_bits=16, activation_bits=16)
    33570816.0
    """
    ends = seq * heads * (query_bits + activation_bits)
    return batch * head_dim * (ends + 2 * context * kv_heads * kv_bits) / 8


@formula("append_traffic", "vaswani2017 §3.2.2")
def append_traffic(batch, seq, heads, kv_heads, head_dim, query_bits, kv_bits, activation_bits):
    """Bytes moved before attention by the kernel that reads projections, rotates queries and keys, and fills the cache.

    >>> append_traffic(batch=1, heads=32, kv_heads=8, head_dim=128, seq=1, query_bits=16, kv_bits=8, activation_bits=16)
    22528.0
    """
    read = activation_bits * (heads + 2 * kv_heads)
    return batch * seq * head_dim * (read + query_bits * heads + 2 * kv_bits * kv_heads) / 8


@formula("traffic", "deepseek2024-v2 §2.1", given=[prefill_context])
def absorbed_traffic(batch, heads, kv_rank, rope_dim, seq, context, query_bits, kv_bits, activation_bits):
    """Least bytes moved by absorbed latent attention: each latent with its rotary part once, for all heads.

    >>> shape = dict(batch=1, heads=128, kv_rank=512, rope_dim=64, seq=1, context=8192)
    >>> absorbed_traffic(shape, query_bits=16, kv_bits=16, activation_bits=16)
    9715712.0
    """
    ends = seq * heads * ((kv_rank + rope_dim) * query_bits + kv_rank * activation_bits)
    return batch * (ends + context * (kv_rank + rope_dim) * kv_bits) / 8


@formula("append_traffic", "deepseek2024-v2 §2.1")
def latent_append_traffic(batch, seq, heads, kv_rank, rope_dim, kv_bits, activation_bits):
    """Bytes moved before latent attention: the latent read and cached, and rotary parts also copied to each head.

    >>> shape = dict(batch=1, heads=128, kv_rank=512, rope_dim=64, seq=8192)
    >>> latent_append_traffic(shape, kv_bits=16, activation_bits=16) / 1e6
    421.527552
    """
    turned = 3 * heads * rope_dim * activation_bits
    return batch * seq * ((kv_rank + rope_dim) * (activation_bits + kv_bits) + turned) / 8


# Time


@formula("pairs", "dao2022 §3.2", given=[prefill_context])
def tiled_pairs(seq, context, query_tile):
    """Query-key pairs computed in whole causal tiles; tiles on the diagonal are computed in full.

    >>> tiled_pairs(seq=512, query_tile=128), causal_pairs(seq=512)
    (163840.0, 131328.0)
    """
    rows = ceiling(seq / query_tile)
    past = ceiling((context - seq) / query_tile)
    return query_tile**2 * (rows * past + rows * (rows + 1) / 2)


@formula("busy_pairs", "dao2022 §3.2", given=[tiled_pairs])
def busy_pairs(batch, heads, pairs, cores, context, query_tile):
    """Query-key pairs that set causal attention's time: all pairs or, if more, the longest tile's pairs on every core.

    >>> busy_pairs(batch=1, heads=8, seq=512, context=512, cores=132, query_tile=128)
    8650752.0
    """
    return Max(batch * heads * pairs, cores * query_tile**2 * ceiling(context / query_tile), evaluate=False)


@formula("kernel_time", "shah2024 §3", given=[append_traffic, least_traffic, busy_pairs])
def prefill_kernel_time(
    prompt_launch, append_traffic, traffic, hbm_bandwidth, prompt_efficiency, busy_pairs, head_dim, peak_flops,
    score_flops, peak_vector,
):  # fmt: skip
    """Time of prompt attention: write the cache, run the matrix products at peak, then the softmax on vector units.

    >>> rates = dict(hbm_bandwidth="3.35 TB/s", prompt_efficiency=0.6, peak_flops=989.4e12, peak_vector=66.9e12)
    >>> sizes = dict(prompt_launch="15 us", append_traffic="1 kB", traffic="1 kB", head_dim=128, score_flops=26)
    >>> 1e3 * prefill_kernel_time(rates, sizes, busy_pairs=1e9)
    0.92112...
    """
    rate = prompt_efficiency * hbm_bandwidth
    computed = busy_pairs * (4 * head_dim / peak_flops + score_flops / peak_vector)
    return prompt_launch + append_traffic / rate + Max(computed, traffic / rate, evaluate=False)


@formula("kernel_time", "dao2022 §3.2", given=[least_traffic])
def decode_kernel_time(
    launch_time, batch, kv_heads, cores, item_time, traffic, hbm_bandwidth, bandwidth_efficiency, flops, peak_flops
):
    """Time of decode attention: launch, then the longest of cache reads, arithmetic, and work items (sequence x head).

    >>> rates = dict(hbm_bandwidth="3.35 TB/s", bandwidth_efficiency=0.8, peak_flops=989.4e12, cores=132)
    >>> sizes = dict(launch_time="8 us", batch=64, kv_heads=8, item_time="1.4 us", flops="8 GFLOP")
    >>> 1e6 * decode_kernel_time(rates, sizes, traffic="1 GB")
    381.134328...
    """
    read = traffic / (bandwidth_efficiency * hbm_bandwidth)
    return launch_time + Max(batch * kv_heads * item_time / cores, read, flops / peak_flops, evaluate=False)


fused_attention = Sheet(
    "fused_attention", prefill_context, causal_pairs, pair_width_grouped, attention_flops, _OWN.kernel_flops,
    _OWN.flash_traffic, roofline.intensity, roofline.ridge_intensity, _OWN.balanced_tile, _OWN.sharing_cores,
    _OWN.tile_memory, roofline.compute_time, roofline.memory_time, roofline.roofline_time, roofline.idle_fraction,
    doc="Fused attention of one layer over a causal sequence; every tile of queries reads its keys by itself.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "fused_attention"]
