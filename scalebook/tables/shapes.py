"""What follows from a model's shape alone, whatever its kind of attention.

A row of `models` knows these letters too: each is given by the formula that fits the model, so a
calculator can offer every model in one menu.
"""

from scalebook.language import formula

__all__ = [
    "attention_width_grouped", "attention_width_latent", "cache_heads_grouped", "kv_width_grouped", "kv_width_latent",
    "routed_share", "used_params",
]  # fmt: skip


@formula("kv_width", "ainslie2023 §2.2")
def kv_width_grouped(kv_heads, head_dim):
    """A key and a value for every key-value head (multi-head, multi-query and grouped-query attention).

    >>> kv_width_grouped(kv_heads=8, head_dim=128)
    2048.0
    """
    return 2 * kv_heads * head_dim


@formula("kv_width", "deepseek2024-v2 §2.1")
def kv_width_latent(kv_rank, rope_dim):
    """Multi-head latent attention caches one latent and one rotary key for all heads together.

    >>> kv_width_latent(kv_rank=512, rope_dim=64)
    576.0
    """
    return kv_rank + rope_dim


@formula("attention_width", "vaswani2017 §3.2")
def attention_width_grouped(heads, head_dim):
    """Every query head multiplies a key and then a value of its width.

    >>> attention_width_grouped(heads=32, head_dim=128)
    8192.0
    """
    return 2 * heads * head_dim


@formula("attention_width", "deepseek2024-v2 §2.1")
def attention_width_latent(heads, kv_rank, rope_dim):
    """With the projections absorbed, every query head scores the latent and the rotary key, then sums latents.

    >>> attention_width_latent(heads=128, kv_rank=512, rope_dim=64)
    139264.0
    """
    return heads * (2 * kv_rank + rope_dim)


@formula("routed_share", "shazeer2017 §2.1")
def routed_share(top_k, experts):
    """The chance that a token visits a given routed expert, if the router balances them.

    >>> routed_share(top_k=8, experts=256)
    0.03125
    """
    return top_k / experts


@formula("cache_heads", "shazeer2019 §3")
def cache_heads_grouped(kv_heads):
    """Keys and values of different heads can lie on different devices; a latent cache is one for all of them.

    >>> cache_heads_grouped(kv_heads=8)
    8.0
    """
    return kv_heads


@formula("used_params", "austin2025 ch. 7")
def used_params(active_params, embeddings, vocab, hidden):
    """A token multiplies every active weight but the input embedding, of which it only looks one row up.

    >>> used_params(active_params=8.03e9, embeddings=2, vocab=128256, hidden=4096)
    7504663424.0
    """
    return active_params - (embeddings - 1) * vocab * hidden
