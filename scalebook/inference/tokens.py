"""A decode step on one device: bytes read, FLOPs, time, and whether memory or arithmetic limits it."""

from functools import cache

from sympy import Min

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.machine.roofline import compute_time, idle_fraction, intensity, memory_time, ridge_intensity
from scalebook.memory import serving as held
from scalebook.tables import shapes

_OWN = equations(__name__)  # those of tokens.toml


@formula("flops", "deepseek2025-v32 §2.1", given=[shapes.used_params, held.sliding_window, held.full_attention])
def decode_flops_picked(batch, used_params, layers, attention_width, cached, index_tokens, index_heads, index_dim):
    """FLOPs of a step of sparse attention: an indexer scores all cached tokens, and attention reads those it picks.

    >>> known = dict(used_params=37e9, layers=61, attention_width=139264, index_tokens=2048, index_heads=64)
    >>> decode_flops_picked(known, batch=1, cached=8192, index_dim=128) / 1e9
    116.983227392
    """
    picked = attention_width * Min(cached, index_tokens, evaluate=False)
    return 2 * batch * (used_params + layers * (picked + index_heads * index_dim * cached))


def _picks(known) -> bool:
    return {"index_heads", "index_tokens"} <= {*known} and "entry_tokens" not in known


_OWN.decode_flops.instead = ((_picks, (decode_flops_picked,)),)


_GROUPED = [shapes.attention_width_grouped, shapes.kv_width_grouped]
_LATENT = [shapes.attention_width_latent, shapes.kv_width_latent]


@formula("decode_intensity", "recasens2025 §IV", given=[*_GROUPED, *_LATENT])
def decode_intensity(attention_width, kv_width, kv_bits):
    """FLOPs per byte of attention in decoding, whatever the batch and the context.

    >>> from scalebook.tables import models
    >>> decode_intensity(models.llama2_7b, kv_bits=16), decode_intensity(models.llama3_70b, kv_bits=16)
    (1.0, 8.0)
    """
    return 2 * attention_width / (kv_width * kv_bits / 8)


@cache
def _grouped():
    return decode_intensity.compose(*_GROUPED)


@formula("decode_intensity", "vaswani2017 §3.2", "recasens2025 §IV")
def decode_intensity_mha(heads, kv_bits):
    """FLOPs per byte of multi-head attention in decoding, where every head has its own keys and values.

    >>> decode_intensity_mha(kv_bits=16)
    1.0
    """
    return _grouped()(kv_heads=heads).rhs


@formula("decode_intensity", "ainslie2023 §2.2")
def decode_intensity_gqa(heads, kv_heads, kv_bits):
    """FLOPs per byte of grouped-query attention in decoding, where a group of heads shares one key and value.

    >>> decode_intensity_gqa(heads=64, kv_heads=8, kv_bits=16)
    8.0
    """
    return _grouped().rhs


@formula("decode_intensity", "deepseek2024-v2 §2.1")
def decode_intensity_mla(heads, kv_rank, rope_dim, kv_bits):
    """FLOPs per byte of multi-head latent attention in decoding, with the projections absorbed.

    >>> round(decode_intensity_mla(heads=128, kv_rank=512, rope_dim=64, kv_bits=16), 1)
    241.8
    """
    return decode_intensity.compose(*_LATENT).rhs


# Time


_FITS = {"weights and caches that fit": lambda decode_memory, hbm_capacity: decode_memory <= hbm_capacity}

# What a caller can change if weights and caches do not fit.
CHANGES = {
    "weight_bits": (16, 8, 4),
    "kv_bits": (16, 8, 4),
    "batch": range(1, 4097),
    "context": range(1024, 2**20 + 1, 1024),
}


@formula("token_time", "pope2022 §2.1", given=[compute_time, memory_time, held.decode_memory], domain=_FITS)
def token_time_fitting(compute_time, memory_time):
    """Time of a step: the longer of arithmetic and memory. It has no value if weights and caches do not fit.

    >>> token_time_fitting(compute_time="1 ms", memory_time="5 ms", decode_memory="75 GB", hbm_capacity="80 GB")
    0.005
    """
    return _OWN.token_time.of(compute_time=compute_time, memory_time=memory_time)


@formula("token_time", "he2022 overhead", given=[memory_time, _OWN.decode_traffic])
def token_time_engine(memory_time, bandwidth_efficiency, readers, layers, block_overhead, handovers, turn_time):
    """Time of a memory-bound step of an engine: achieved bandwidth, an overhead per block, and turns of devices.

    Either `readers` devices each read a part of every matrix at once, or devices with own layers take `handovers`
    turns.

    >>> from scalebook.tables import engines, models
    >>> one = dict(batch=1, context=64, weight_bits=4.54, kv_bits=16, readers=1, handovers=0)
    >>> round(token_time_engine(models.llama2_7b, engines.llama_cpp_2025, one, hbm_bandwidth="1.008 TB/s") * 1e3, 2)
    5.34
    """
    return memory_time / (bandwidth_efficiency * readers) + layers * block_overhead + handovers * turn_time


@formula("token_time", "he2022 overhead", "little1961", given=[memory_time, _OWN.decode_traffic])
def token_time_loads(
    memory_time, bandwidth_efficiency, load_rate, hbm_bandwidth, readers, layers, block_overhead, handovers, turn_time
):
    """Time of a memory-bound step like `token_time_engine`, if the number of loads in flight limits the bandwidth.

    >>> from scalebook.tables import accelerators, engines, models
    >>> one = dict(batch=1, context=64, weight_bits=4.54, kv_bits=16, readers=1, handovers=0)
    >>> known = models.llama2_7b, accelerators.a100.running("llama_cpp"), engines.llama_cpp_2025
    >>> round(token_time_loads(*known, one) * 1e3, 2)
    4.75
    """
    reached = Min(bandwidth_efficiency, load_rate / hbm_bandwidth, evaluate=False)
    return memory_time / (reached * readers) + layers * block_overhead + handovers * turn_time


@formula("token_time", "he2022 overhead", given=[memory_time, _OWN.decode_traffic])
def token_time_sums(
    memory_time, bandwidth_efficiency, readers, layers, block_overhead, batch, hidden, result_bits, own_sum_rate
):
    """Time of a memory-bound step on tensor-parallel devices, with two all-reduces per block charged per byte.

    >>> from scalebook.tables import accelerators, engines, models
    >>> eight = dict(batch=16, context=1024, weight_bits=8, kv_bits=8, readers=8, result_bits=16)
    >>> round(token_time_sums(models.llama3_70b, accelerators.mi300x, engines.vllm_2025_rocm, eight) * 1e3, 2)
    10.27
    """
    summed = 2 * layers * batch * hidden * result_bits / 8
    return memory_time / (bandwidth_efficiency * readers) + layers * block_overhead + summed / own_sum_rate


@formula("ridge_context", "memory-bottlenecks", given=[shapes.used_params, ridge_intensity, held.kv_cache_per_token])
def ridge_context(used_params, ridge_intensity, kv_cache_per_token, layers, attention_width):
    """Context beyond which reading the caches takes longer than all arithmetic, however large the batch.

    >>> from scalebook.tables import accelerators, models
    >>> round(ridge_context(models.llama2_7b, accelerators.h100, kv_bits=16))
    86
    """
    return 2 * used_params / (ridge_intensity * kv_cache_per_token - 2 * layers * attention_width)


decoding = Sheet(
    "decoding", held.weight_memory, held.kv_cache_per_token, held.sliding_window, held.kv_cache, held.decode_memory,
    held.max_batch, shapes.used_params, _OWN.read_params, _OWN.decode_traffic, _OWN.decode_flops, intensity,
    ridge_intensity, compute_time, memory_time, token_time_fitting, _OWN.decode_rate, idle_fraction,
    _OWN.latency_floor, decode_intensity, _OWN.ridge_batch, ridge_context,
    doc="One step of decoding on one device: what it holds, reads and computes, and how long it takes.",
    changes=CHANGES,
)  # fmt: skip

__all__ = [*formulas_of(__name__), "CHANGES", "decoding"]
