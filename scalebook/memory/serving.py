"""What a model holds in memory where it serves: its weights, and the cache of every sequence.

>>> from scalebook.tables import models
>>> weight_memory(params=7e9, weight_bits=4)
3500000000.0
>>> kv_cache_per_token(models.llama2_7b, kv_bits=16)
524288.0
"""

from sympy import Max, Min, floor

from scalebook.language import formula
from scalebook.tables.shapes import kv_width_grouped, kv_width_latent

__all__ = [
    "decode_memory", "full_attention", "kv_cache", "kv_cache_per_token", "linear_memory", "max_batch", "sliding_window",
    "weight_memory",
]  # fmt: skip


@formula("weight_memory", "austin2025 ch. 4")
def weight_memory(params, weight_bits):
    """All the weights, whether a token uses them or not.

    >>> weight_memory(params=7e9, weight_bits=4)
    3500000000.0
    """
    return params * weight_bits / 8


@formula("kv_cache_per_token", "pope2022 §2.1", given=[kv_width_grouped, kv_width_latent])
def kv_cache_per_token(layers, kv_width, kv_bits):
    """The keys and values that every layer keeps of one token.

    `kv_width` follows from the kind of attention: a model's row knows it, and `kv_heads` with
    `head_dim` (or `kv_rank` with `rope_dim`) give it.

    >>> kv_cache_per_token(layers=32, kv_heads=32, head_dim=128, kv_bits=16)
    524288.0
    """
    return layers * kv_width * kv_bits / 8


@formula("cached", "vaswani2017 §3.2")
def full_attention(context):
    """Every layer keeps every token of the context.

    >>> full_attention(context=8192)
    8192.0
    """
    return context


@formula("cached", "beltagy2020 §3.1")
def sliding_window(context, layers, window, window_layers):
    """Some layers keep no more than the last `window` tokens.

    >>> sliding_window(context=8192, layers=36, window=128, window_layers=18)
    4160.0
    """
    return ((layers - window_layers) * context + window_layers * Min(context, window, evaluate=False)) / layers


@formula("linear_memory", "yang2024 §3")
def linear_memory(linear_state, linear_bits):
    """What linear attention keeps of a sequence, however long it is; the cache of the other layers comes on top.

    Engines may keep the convolution's last inputs in 16 bits beside a state in 32, some 2 % less in all.

    >>> from scalebook.tables import models
    >>> linear_memory(models.qwen3_5_397b)
    195379200.0
    """
    return linear_state * linear_bits / 8


@formula("kv_cache", "pope2022 §2.1", given=[kv_cache_per_token, sliding_window, full_attention])
def kv_cache(batch, cached, kv_cache_per_token):
    """The cache of all sequences that are decoded together.

    >>> from scalebook.tables import models
    >>> kv_cache(models.llama3_70b, batch=1, context=8192, kv_bits=16) / 2**30
    2.5
    """
    return batch * cached * kv_cache_per_token


@formula("decode_memory", "pope2022 §2.1", given=[weight_memory, kv_cache])
def decode_memory(weight_memory, kv_cache):
    """Weights and cache; activations in flight are small beside them.

    >>> decode_memory(weight_memory="16 GB", kv_cache="4 GB")
    20000000000.0
    """
    return weight_memory + kv_cache


@formula("max_batch", "memory-bottlenecks", given=[weight_memory, kv_cache_per_token, sliding_window, full_attention])
def max_batch(hbm_capacity, weight_memory, cached, kv_cache_per_token):
    """Whole sequences whose cache fits beside the weights; 0 where the weights alone do not fit.

    >>> from scalebook.tables import accelerators, models
    >>> max_batch(models.llama3_8b, accelerators.h100, context=8192, weight_bits=16, kv_bits=16)
    59.0
    """
    return Max(0, floor((hbm_capacity - weight_memory) / (cached * kv_cache_per_token)), evaluate=False)
