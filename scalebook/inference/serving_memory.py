"""Memory of a serving device: weights, users' caches, and what the engine keeps for itself."""

from functools import cache

from sympy import Max, Rational, S, floor

from scalebook.block import LLAMA, Block, Hybrid, cached, core_kernels, kinds_of  # noqa: F401  (the first in examples)
from scalebook.inference.assumptions import cache_share_usual
from scalebook.inference.kernels import counted, on_device, whole_heads
from scalebook.language import Formula, formula, formulas_of, symbol
from scalebook.memory.serving import linear_memory, sliding_window


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


@formula("token_cache", "pope2022 §3.3")
def token_cache_grouped(layers, kv_heads, head_dim, tp, pp, kv_bits):
    """Bytes of keys and values per token on a device; each device holds at least one whole key-value head.

    >>> token_cache_grouped(layers=80, kv_heads=8, head_dim=128, tp=8, pp=1, kv_bits=16)
    40960.0
    """
    return layers / pp * 2 * Max(1, kv_heads / tp, evaluate=False) * head_dim * kv_bits / 8


@formula("token_cache", "deepseek2024-v2 §2.1")
def token_cache_latent(layers, kv_rank, rope_dim, pp, kv_bits):
    """Bytes of latents per token on a device, which holds all of the latent that all heads share.

    >>> token_cache_latent(layers=61, kv_rank=512, rope_dim=64, pp=1, kv_bits=16)
    70272.0
    """
    return layers / pp * (kv_rank + rope_dim) * kv_bits / 8


@formula("token_cache", "deepseek2025-v32 §2.1")
def token_cache_indexed(layers, kv_rank, rope_dim, index_dim, pp, kv_bits, index_bits):
    """Bytes of latents and indexer keys per token on a device; all heads share one latent and one key.

    >>> token_cache_indexed(layers=78, kv_rank=512, rope_dim=64, index_dim=128, pp=1, kv_bits=16, index_bits=8.25)
    100152.0
    """
    return layers / pp * ((kv_rank + rope_dim) * kv_bits + index_dim * index_bits) / 8


@formula("token_cache", "qwen3-next")
def token_cache_hybrid(layers, linear_layers, kv_heads, head_dim, tp, pp, kv_bits):
    """Bytes of keys and values per token on a device, cached only in layers that are not linear attention.

    >>> token_cache_hybrid(layers=60, linear_layers=45, kv_heads=2, head_dim=256, tp=8, pp=1, kv_bits=16)
    15360.0
    """
    return token_cache_grouped.of(layers=layers - linear_layers)


@formula("sequence_state", "yang2024 §3", "qwen3-next", given=[linear_memory])
def sequence_state(linear_memory, tp, pp):
    """Bytes of linear-attention state per sequence on a device; heads are split over devices.

    >>> sequence_state(linear_memory="197.6 MB", tp=8, pp=1)
    24700000.0
    """
    return linear_memory / (tp * pp)


@formula("cached_tokens", "kwon2023")
def cached_tokens(prompt, output):
    """Cached tokens of a sequence: the prompt and, on average, half of the answer.

    >>> cached_tokens(prompt=1024, output=512)
    1280.0
    """
    return prompt + output / 2


@formula("cached_tokens", "kwon2023", "beltagy2020 §3.1")
def cached_tokens_windows(prompt, output, layers, window, window_layers):
    """Cached tokens of a sequence, averaged over layers with and without a sliding window, each kind with its own pool.

    >>> cached_tokens_windows(prompt=8000, output=1000, layers=36, window=128, window_layers=18)
    4314.0
    """
    whole = cached_tokens.of(prompt=prompt, output=output)
    return sliding_window.of(context=whole, layers=layers, window=window, window_layers=window_layers)


@formula("cache_room", "kwon2023", given=[cache_share_usual])
def cache_room(hbm_capacity, cache_share, held_weights, workspace):
    """Memory left for caches after weights and workspace; negative if these do not fit.

    >>> cache_room(hbm_capacity="80 GB", cache_share=0.9, held_weights="60 GB", workspace="2 GB")
    10000000000.0
    """
    return hbm_capacity * cache_share - held_weights - workspace


@formula("cache_room", "kwon2023", given=[cache_share_usual])
def cache_room_in_gib(hbm_capacity, cache_share, held_weights, workspace):
    """Memory for caches if the device holds GiB where its maker prints GB; `filled` remains a share of the printed GB.

    >>> cache_room_in_gib(hbm_capacity="80 GB", cache_share=0.9, held_weights="60 GB", workspace="2 GB")
    15309411328.0
    """
    return hbm_capacity * Rational(2**30, 10**9) * cache_share - held_weights - workspace


@formula("max_users", "memory-bottlenecks", given=[cache_room, cached_tokens])
def max_users(cache_room, cached_tokens, token_cache, attention_dp, replicas):
    """Users whose sequences, at their mean length, fit in memory, over all groups and copies.

    >>> max_users(cache_room="10 GB", cached_tokens=1000, token_cache="100 kB", attention_dp=1, replicas=1)
    100.0
    """
    return replicas * attention_dp * floor(Max(0, cache_room, evaluate=False) / (cached_tokens * token_cache))


@formula("max_users", "qwen3-next", given=[cache_room, cached_tokens])
def max_users_states(cache_room, cached_tokens, token_cache, sequence_state, attention_dp, replicas):
    """Users whose sequences fit in memory if each also has a state of fixed size.

    >>> caches = dict(cache_room="10 GB", cached_tokens=1000, token_cache="75 kB", sequence_state="25 MB")
    >>> max_users_states(caches, attention_dp=1, replicas=1)
    100.0
    """
    each = cached_tokens * token_cache + sequence_state
    return replicas * attention_dp * floor(Max(0, cache_room, evaluate=False) / each)


@formula("filled", "kwon2023")
def filled_serving(batch, held_weights, workspace, cached_tokens, token_cache, hbm_capacity, cache_share):
    """Share of the engine's memory in use: weights, workspace and the caches of all users.

    >>> held = dict(held_weights="50 GB", workspace="2 GB", cached_tokens=1000, token_cache="1 MB")
    >>> filled_serving(held, batch=10, hbm_capacity="80 GB", cache_share=0.9).__round__(3)
    0.861
    """
    return (held_weights + workspace + batch * cached_tokens * token_cache) / (hbm_capacity * cache_share)


@formula("filled", "qwen3-next")
def filled_states(
    batch, held_weights, workspace, cached_tokens, token_cache, sequence_state, hbm_capacity, cache_share
):
    """Share of the engine's memory in use if each sequence also has a state of fixed size.

    >>> held = dict(held_weights=5e10, workspace=2e9, cached_tokens=1000, token_cache=5e5, sequence_state=5e8)
    >>> filled_states(held, batch=10, hbm_capacity="80 GB", cache_share=0.9).__round__(3)
    0.861
    """
    caches = batch * (cached_tokens * token_cache + sequence_state)
    return (held_weights + workspace + caches) / (hbm_capacity * cache_share)


def token_cache_mixed(dense: Block | Hybrid | None, moe: Block | Hybrid | None) -> Formula:
    """Return the formula of the bytes that all kinds of block cache for one token on a device.

    >>> token_cache_mixed(LLAMA, None)(layers=80, kv_heads=8, head_dim=128, tp=8, pp=1, kv_bits=16)
    40960.0
    """
    total = S.Zero
    for kind, count in counted(dense, moe):
        if "kv_rank" in kind.block.indices:
            keys = symbol("index_dim") * symbol("kv_bits") / 8 if "index_heads" in kind.block.indices else S.Zero
            each = token_cache_latent.rhs / symbol("layers") + keys / symbol("pp")
        elif {"flash", "entries"} & core_kernels(kind.block).keys():
            one = {symbol("batch"): S.One, symbol("context"): S.One}
            each = whole_heads(on_device(cached(kind.block)).cache.xreplace(one)) / symbol("pp")
        else:
            continue
        total += count * kind.of(each)
    return Formula("token_cache_mixed", "token_cache", total, ("pope2022 §3.3",))


def memory_formulas(dense: Block | Hybrid | None, moe: Block | Hybrid | None) -> tuple[Formula, ...]:
    """Return the formulas of a serving device's memory: weights, caches, users that fit, and share filled.

    >>> [f.letter for f in memory_formulas(LLAMA, None)]
    ['max_users', 'filled', 'held_weights', 'token_cache']
    """
    held, blocks = held_weights(dense, moe), [x.block for x in (*kinds_of(dense), *kinds_of(moe))]
    indices = {i for x in blocks for i in x.indices}
    if isinstance(dense or moe, Hybrid):
        is_usual = "recalled" in blocks[-1].makers and not kinds_of(dense or moe)[-1].letters
        each = token_cache_hybrid if is_usual else token_cache_mixed(dense, moe)
        if "linear_conv" not in indices and "linear_key_dim" not in indices:
            return max_users, filled_serving, held, each
        return max_users_states, filled_states, held, each, sequence_state, linear_memory
    each = token_cache_latent if "kv_rank" in indices else token_cache_grouped
    return max_users, filled_serving, held, token_cache_indexed if "index_heads" in indices else each


__all__ = [*formulas_of(__name__), "held_weights", "memory_formulas", "token_cache_mixed"]
