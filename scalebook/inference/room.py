"""What serving holds on one device: its weights, the caches of its users, and what an engine keeps for itself.

>>> weights_on_device(LLAMA, None).free_symbols >= {symbol("tp"), symbol("weight_bits")}
True
"""

from functools import cache

from sympy import Expr, Max, S, floor

from scalebook.block import LLAMA, Block, Hybrid  # noqa: F401  (the first stands in an example)
from scalebook.inference.kernels import counted, held, on_device
from scalebook.language import Formula, formula, symbol

__all__ = [
    "cache_room", "cache_share_usual", "cached_tokens", "held_weights", "max_users", "token_cache_grouped",
    "token_cache_latent", "weights_on_device", "workspace_usual",
]  # fmt: skip


@cache
def weights_on_device(dense: Block | None, moe: Block | None) -> Expr:
    """Bytes of weights on a device: its part of the blocks of a stage, and of both embeddings, in 16 bits."""
    x, total = symbol, S.Zero
    for block, count in counted(dense, moe):
        for weight in on_device(block).weights:
            bits = x("expert_bits") / x("ep") if weight.is_routed else x("weight_bits")
            total += count / x("pp") * held(weight.elements) * bits / 8
    return total + x("embeddings") * x("vocab") * x("hidden") / x("tp") * x("result_bits") / 8


@cache
def held_weights(dense: Block | None, moe: Block | None) -> Formula:
    """The same as a formula of a sheet.

    >>> held_weights(LLAMA, None).letter
    'held_weights'
    """
    said = "Weights of a device's part of the blocks, and of the embeddings."
    return Formula("held_weights_listed", "held_weights", weights_on_device(dense, moe), ("pope2022 §3.3",), said)


@formula("token_cache", "pope2022 §3.3")
def token_cache_grouped(layers, kv_heads, head_dim, tp, pp, kv_bits):
    """Keys and values of a device's heads; of fewer heads than devices each device has one whole.

    >>> token_cache_grouped(layers=80, kv_heads=8, head_dim=128, tp=8, pp=1, kv_bits=16)
    40960.0
    """
    return layers / pp * 2 * Max(1, kv_heads / tp, evaluate=False) * head_dim * kv_bits / 8


@formula("token_cache", "deepseek2024-v2 §2.1")
def token_cache_latent(layers, kv_rank, rope_dim, pp, kv_bits):
    """The latent is one for all heads, so every device that attends for a sequence has it whole.

    >>> token_cache_latent(layers=61, kv_rank=512, rope_dim=64, pp=1, kv_bits=16)
    70272.0
    """
    return layers / pp * (kv_rank + rope_dim) * kv_bits / 8


@formula("cached_tokens", "kwon2023")
def cached_tokens(prompt, output):
    """A sequence's cache grows with its answer: half of it is there in the mean.

    >>> cached_tokens(prompt=1024, output=512)
    1280.0
    """
    return prompt + output / 2


@formula("workspace", "kwon2023")
def workspace_usual():
    """Buffers of a step of some thousand tokens, captured graphs and the runtime: an assumption; engines print theirs.

    >>> workspace_usual()
    1500000000.0
    """
    return S(15) * 10**8


@formula("cache_share", "kwon2023")
def cache_share_usual():
    """vLLM's own setting: nine tenths of a device's memory for weights, work space and caches.

    >>> cache_share_usual()
    0.9
    """
    return S(9) / 10


@formula("cache_room", "kwon2023", given=[cache_share_usual])
def cache_room(hbm_capacity, cache_share, held_weights, workspace):
    """What weights and work space leave; below zero where they do not fit.

    >>> cache_room(hbm_capacity="80 GB", cache_share=0.9, held_weights="60 GB", workspace="2 GB")
    10000000000.0
    """
    return hbm_capacity * cache_share - held_weights - workspace


@formula("max_users", "memory-bottlenecks", given=[cache_room, cached_tokens])
def max_users(cache_room, cached_tokens, token_cache, attention_dp, replicas):
    """Whole sequences at their mean length, of all groups that attend for their own.

    >>> max_users(cache_room="10 GB", cached_tokens=1000, token_cache="100 kB", attention_dp=1, replicas=1)
    100.0
    """
    return replicas * attention_dp * floor(Max(0, cache_room, evaluate=False) / (cached_tokens * token_cache))
