"""Memory of a serving device: weights, users' caches, and what the engine keeps for itself."""

from functools import cache

from sympy import S

from scalebook.block import LLAMA, Block, Hybrid, cached, core_kernels, kinds_of  # noqa: F401  (the first in examples)
from scalebook.inference.device_part import on_device, whole_heads
from scalebook.inference.kernels import counted
from scalebook.language import Formula, formula, formulas_of, symbol
from scalebook.language.defaults import equations
from scalebook.memory.serving import linear_memory, sliding_window

_OWN = equations(__name__)  # those of serving_memory.toml


@cache
def held_weights(dense: Block | None, moe: Block | None) -> Formula:
    """Return the formula of a device's weights: its part of a stage's blocks, and both embeddings in 16 bits."""
    x, total = symbol, S.Zero
    for kind, count in counted(dense, moe):
        for weight in on_device(kind.block).weights:
            bits = x("expert_bits") / x("ep") if weight.is_routed else x("weight_bits")
            total += count / x("pp") * kind.of(whole_heads(weight.elements)) * bits / 8
    total += x("embeddings") * x("vocab") * x("hidden") / x("tp") * x("result_bits") / 8
    return Formula("held_weights_listed", "held_weights", total, ("pope2022 §3.3",))


@formula("cached_tokens", "kwon2023", "beltagy2020 §3.1")
def cached_tokens_windows(prompt, output, layers, window, window_layers):
    """Cached tokens of a sequence, averaged over layers with and without a sliding window, each kind with its own pool.

    >>> cached_tokens_windows(prompt=8000, output=1000, layers=36, window=128, window_layers=18)
    4314.0
    """
    whole = _OWN.cached_tokens.of(prompt=prompt, output=output)
    return sliding_window.of(context=whole, layers=layers, window=window, window_layers=window_layers)


def token_cache_mixed(dense: Block | Hybrid | None, moe: Block | Hybrid | None) -> Formula:
    """Return the formula of the bytes that all kinds of block cache for one token on a device.

    An indexer's keys have `index_bits`, as its kernels read them; MiniMax-M3's stay in 16 bits, whatever the cache has.

    >>> token_cache_mixed(LLAMA, None)(layers=80, kv_heads=8, head_dim=128, tp=8, pp=1, kv_bits=16)
    40960.0
    """
    total = S.Zero
    for kind, count in counted(dense, moe):
        if "kv_rank" in kind.block.indices:
            keys = symbol("index_dim") * symbol("index_bits") / 8 if "index_heads" in kind.block.indices else S.Zero
            each = _OWN.token_cache_latent.rhs / symbol("layers") + keys / symbol("pp")
        elif {"flash", "entries"} & core_kernels(kind.block).keys():
            one = {symbol("batch"): S.One, symbol("context"): S.One}
            each = whole_heads(on_device(cached(kind.block)).cache.xreplace(one)) / symbol("pp")
            keys = each - each.xreplace({symbol("index_dim"): S.Zero})
            bits = symbol("index_bits" if "entries" in core_kernels(kind.block) else "result_bits")
            each += keys.xreplace({symbol("kv_bits"): bits}) - keys
        else:
            continue
        total += count * kind.of(each)
    return Formula("token_cache_mixed", "token_cache", total, ("pope2022 §3.3", "vllm-sparse", "sglang-m3-index"))


def memory_formulas(dense: Block | Hybrid | None, moe: Block | Hybrid | None) -> tuple[Formula, ...]:
    """Return the formulas of a serving device's memory: weights, caches, users that fit, and share filled.

    >>> [f.letter for f in memory_formulas(LLAMA, None)]
    ['max_users', 'filled', 'held_weights', 'token_cache']
    """
    indices = {i for kind in (*kinds_of(dense), *kinds_of(moe)) for i in kind.block.indices}
    held, each = held_weights(dense, moe), _OWN.token_cache_grouped
    if isinstance(dense or moe, Hybrid):
        each = token_cache_mixed(dense, moe)
        if {"linear_conv", "linear_key_dim"} & indices:
            return _OWN.max_users_states, _OWN.filled_states, held, each, _OWN.sequence_state, linear_memory
    elif "kv_rank" in indices:
        each = _OWN.token_cache_indexed if "index_heads" in indices else _OWN.token_cache_latent
    return _OWN.max_users, _OWN.filled_serving, held, each


__all__ = [*formulas_of(__name__), "held_weights", "memory_formulas", "token_cache_mixed"]
