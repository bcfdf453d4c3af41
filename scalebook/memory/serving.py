"""Memory of a model that is served: its weights, and the cache of every sequence."""

from sympy import Max, Min, floor

from scalebook.attention.assumptions import linear_bits_wide
from scalebook.language import formula, formulas_of, same
from scalebook.language.defaults import equations
from scalebook.tables.shapes import kv_width_grouped, kv_width_latent


@formula("weight_memory", "austin2025 ch. 4")
def weight_memory(params, weight_bits):
    """Memory of all the weights, including weights that a token does not use.

    >>> weight_memory(params=7e9, weight_bits=4)
    3500000000.0
    """
    return params * weight_bits / 8


@formula("kv_cache_per_token", "pope2022 §2.1", given=[kv_width_grouped, kv_width_latent])
def kv_cache_per_token(layers, kv_width, kv_bits):
    """Memory of the keys and values that all layers keep for one token.

    A model's row gives `kv_width`, or `kv_heads` and `head_dim` (or `kv_rank` and `rope_dim`).

    >>> kv_cache_per_token(layers=32, kv_heads=32, head_dim=128, kv_bits=16)
    524288.0
    """
    return layers * kv_width * kv_bits / 8


full_attention = same(
    "full_attention", "cached", "context", "vaswani2017 §3.2",
    "Cached tokens if every layer keeps every token of the context.",
)  # fmt: skip


@formula("cached", "beltagy2020 §3.1")
def sliding_window(context, layers, window, window_layers):
    """Cached tokens of a sequence, averaged over layers, if some layers keep only the last `window` tokens.

    >>> sliding_window(context=8192, layers=36, window=128, window_layers=18)
    4160.0
    """
    return ((layers - window_layers) * context + window_layers * Min(context, window, evaluate=False)) / layers


@formula("linear_memory", "yang2024 §3")
def linear_memory(linear_state, linear_bits):
    """Memory of linear attention's state for one sequence, whatever its length. Other layers' caches come on top.

    >>> linear_memory(linear_state=49_397_760, linear_bits=32)
    197591040.0
    """
    return linear_state * linear_bits / 8


@formula("kv_cache", "pope2022 §2.1", given=[kv_cache_per_token, sliding_window, full_attention])
def kv_cache(batch, cached, kv_cache_per_token):
    """Memory of the cache of all sequences that are decoded together.

    A call with a row that has a `linear_state` includes the states of the sequences, as `kv_cache_states`.

    >>> kv_cache(layers=80, kv_heads=8, head_dim=128, batch=1, context=8192, kv_bits=16) / 2**30
    2.5
    """
    return batch * cached * kv_cache_per_token


_OWN = equations(__name__)  # those of serving.toml, of models whose blocks keep a state


@formula("decode_memory", "pope2022 §2.1", given=[weight_memory, _OWN.kv_cache_states, kv_cache])
def decode_memory(weight_memory, kv_cache):
    """Memory of the weights and the cache. Activations in flight are small in comparison and left out.

    >>> decode_memory(weight_memory="16 GB", kv_cache="4 GB")
    20000000000.0
    """
    return weight_memory + kv_cache


@formula("max_batch", "memory-bottlenecks", given=[weight_memory, kv_cache_per_token, sliding_window, full_attention])
def max_batch(hbm_capacity, weight_memory, cached, kv_cache_per_token):
    """Number of whole sequences whose cache fits next to the weights, or 0 if the weights alone do not fit.

    >>> max_batch(hbm_capacity="80 GB", weight_memory="16 GB", cached=8192, kv_cache_per_token=131072)
    59.0
    """
    return Max(0, floor((hbm_capacity - weight_memory) / (cached * kv_cache_per_token)), evaluate=False)


# Formulas that replace these for models whose blocks keep a state, and for models without windows.
kv_cache.instead = ((lambda known: "linear_state" in known, (_OWN.kv_cache_states, linear_memory, linear_bits_wide)),)
max_batch.instead = ((lambda known: "linear_state" in known, (_OWN.max_batch_states, linear_memory, linear_bits_wide)),)
sliding_window.instead = ((lambda known: "layers" in known and "window" not in known, (full_attention,)),)

__all__ = [*formulas_of(__name__)]
