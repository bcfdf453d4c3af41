"""Memory-bound decoding on tensor-parallel devices, each with a part of every matrix and of the caches.

Communication between devices is left out, so times are lower bounds.
"""

from sympy import Max, Min, floor

from scalebook.attention.assumptions import linear_bits_wide
from scalebook.inference.tokens import CHANGES, decode_flops, decode_rate, read_params, token_time
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.memory import serving as held
from scalebook.tables.shapes import cache_heads_grouped, used_params

_PER_TOKEN = [held.kv_cache_per_token, held.sliding_window, held.full_attention]


@formula("cache_ways", "pope2022 §3.3", given=[cache_heads_grouped])
def cache_ways(tp, cache_heads):
    """Devices over which a cache is split: at most one per cached head; further devices hold copies.

    >>> cache_ways(tp=16, kv_heads=8), cache_ways(tp=8, cache_heads=1)
    (8.0, 1.0)
    """
    return Min(tp, cache_heads, evaluate=False)


@formula("device_memory", "pope2022 §3.3", given=[held.weight_memory, held.kv_cache, cache_ways])
def device_memory(weight_memory, tp, kv_cache, cache_ways):
    """Bytes on a device: its part of the weights and of the caches.

    >>> device_memory(weight_memory="140 GB", tp=8, kv_cache="80 GB", cache_ways=8)
    27500000000.0
    """
    return weight_memory / tp + kv_cache / cache_ways


@formula("max_batch", "memory-bottlenecks", given=[held.weight_memory, cache_ways, *_PER_TOKEN])
def max_batch_shared(hbm_capacity, weight_memory, tp, cache_ways, cached, kv_cache_per_token):
    """Sequences whose caches fit next to the weights on all devices; 0 if the weights alone do not fit.

    >>> from scalebook.tables import accelerators, models
    >>> max_batch_shared(models.llama3_70b, accelerators.h100, tp=8, context=8192, weight_bits=16, kv_bits=16)
    185.0
    """
    room = hbm_capacity - weight_memory / tp
    return Max(0, floor(room * cache_ways / (cached * kv_cache_per_token)), evaluate=False)


@formula("cache_batch", "pope2022 §2.1", given=[used_params, cache_ways, *_PER_TOKEN])
def cache_batch(used_params, weight_bits, tp, cache_ways, cached, kv_cache_per_token):
    """Sequences whose caches take as long to read as a dense model's weights: throughput is half of its limit.

    >>> known = dict(cached=8192, kv_cache_per_token=327_680, tp=8, cache_ways=8)
    >>> round(cache_batch(known, used_params=70e9, weight_bits=16), 1)
    52.2
    """
    return used_params * weight_bits / 8 / tp / (cached * kv_cache_per_token / cache_ways)


@formula("full_read_time", "pope2022 §2.1")
def full_read_time(hbm_capacity, hbm_bandwidth):
    """Time to read a device's whole memory once: the longest time per token that memory can cause.

    >>> full_read_time(hbm_capacity="80 GB", hbm_bandwidth="3.2 TB/s")
    0.025
    """
    return hbm_capacity / hbm_bandwidth


@formula("latency_floor", "pope2022 §3.2", given=[used_params])
def latency_floor_shared(used_params, weight_bits, tp, hbm_bandwidth):
    """Lower bound of the time per token: the weights one token uses, read by all devices at full bandwidth.

    >>> latency_floor_shared(used_params=70e9, weight_bits=16, tp=8, hbm_bandwidth="3.35 TB/s")
    0.005223880597014925
    """
    return used_params * weight_bits / 8 / (tp * hbm_bandwidth)


@formula("memory_time", "pope2022 §3.3", given=[read_params, held.kv_cache, cache_ways])
def memory_time_shared(read_params, weight_bits, tp, kv_cache, cache_ways, hbm_bandwidth):
    """Time of a step for memory: each device reads its part of the weights in use and of the caches.

    >>> memory_time_shared(read_params=70e9, weight_bits=16, tp=8, kv_cache=28e9, cache_ways=8, hbm_bandwidth=3.5e12)
    0.006
    """
    return (read_params * weight_bits / 8 / tp + kv_cache / cache_ways) / hbm_bandwidth


@formula("compute_time", "pope2022 §3.2", given=[decode_flops])
def compute_time_shared(flops, tp, peak_flops):
    """Time of a step for arithmetic, divided over the devices.

    >>> compute_time_shared(flops="8 TFLOP", tp=8, peak_flops="1 PFLOP/s")
    0.001
    """
    return flops / tp / peak_flops


_FITS = {"weights and caches that fit": lambda device_memory, hbm_capacity: device_memory <= hbm_capacity}


_OWN = equations(__name__)  # those of shared.toml, of models whose blocks keep a state
_MEMORY = [_OWN.memory_time_states, memory_time_shared, _OWN.device_memory_states, device_memory]


@formula("token_time", "pope2022 §3.3", given=[compute_time_shared, *_MEMORY], domain=_FITS)
def token_time_shared(compute_time, memory_time):
    """Time of a step: the longer of arithmetic and memory. It has no value if memory does not suffice.

    >>> token_time_shared(compute_time="1 ms", memory_time="5 ms", device_memory="75 GB", hbm_capacity="80 GB")
    0.005
    """
    return token_time.of(compute_time=compute_time, memory_time=memory_time)


for _usual in (max_batch_shared, device_memory, memory_time_shared):
    _state = next(f for f in vars(_OWN).values() if f.letter == _usual.letter)
    _usual.instead = ((lambda known: "linear_state" in known, (_state, held.linear_memory, linear_bits_wide)),)

sharing = Sheet(
    "sharing", held.weight_memory, held.kv_cache_per_token, held.sliding_window, held.kv_cache, cache_ways,
    device_memory, max_batch_shared, used_params, read_params, decode_flops, compute_time_shared, memory_time_shared,
    token_time_shared, decode_rate, cache_batch, full_read_time, latency_floor_shared,
    doc="A decode step on tensor-parallel devices: what each holds and reads, and a lower bound of its time.",
    changes={"tp": [2**x for x in range(11)], **CHANGES},
)  # fmt: skip

__all__ = [*formulas_of(__name__), "sharing"]
