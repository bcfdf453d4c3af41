"""Quantities that follow from a model's shape alone. Each row of `models` has them from the formula that fits it."""

from scalebook.language import formula, formulas_of, same


@formula("kv_width", "ainslie2023 §2.2")
def kv_width_grouped(kv_heads, head_dim):
    """Cached values per token and layer of grouped, multi-head or multi-query attention: a key and a value per head.

    >>> kv_width_grouped(kv_heads=8, head_dim=128)
    2048.0
    """
    return 2 * kv_heads * head_dim


@formula("kv_width", "deepseek2024-v2 §2.1")
def kv_width_latent(kv_rank, rope_dim):
    """Cached values per token and layer of latent attention: one latent and one rotary key for all heads.

    >>> kv_width_latent(kv_rank=512, rope_dim=64)
    576.0
    """
    return kv_rank + rope_dim


@formula("kv_width", "qwen3-next")
def kv_width_hybrid(kv_heads, head_dim, layers, linear_layers):
    """Cached values per token, averaged over layers, if some layers have linear attention (a `linear_state`).

    >>> kv_width_hybrid(kv_heads=2, head_dim=256, layers=60, linear_layers=45)
    256.0
    """
    return 2 * kv_heads * head_dim * (layers - linear_layers) / layers


@formula("kv_width", "deepseek2025-v32 §2.1")
def kv_width_indexed(kv_rank, rope_dim, index_dim):
    """Cached values per token and layer with an indexer: latent, rotary key, and one indexer key for all its heads.

    >>> kv_width_indexed(kv_rank=512, rope_dim=64, index_dim=128)
    704.0
    """
    return kv_rank + rope_dim + index_dim


@formula("attention_width", "vaswani2017 §3.2")
def attention_width_grouped(heads, head_dim):
    """Multiply-adds per query-key pair: each query head multiplies a key and a value.

    >>> attention_width_grouped(heads=32, head_dim=128)
    8192.0
    """
    return 2 * heads * head_dim


@formula("attention_width", "qwen3-next")
def attention_width_hybrid(heads, head_dim, layers, linear_layers):
    """Multiply-adds per query-key pair, averaged over layers, if some layers have linear attention.

    >>> attention_width_hybrid(heads=32, head_dim=256, layers=60, linear_layers=45)
    4096.0
    """
    return 2 * heads * head_dim * (layers - linear_layers) / layers


@formula("attention_width", "deepseek2024-v2 §2.1")
def attention_width_latent(heads, kv_rank, rope_dim):
    """Multiply-adds per query-key pair of latent attention with absorbed projections: scores, then sums of latents.

    >>> attention_width_latent(heads=128, kv_rank=512, rope_dim=64)
    139264.0
    """
    return heads * (2 * kv_rank + rope_dim)


@formula("linear_state", "yang2024 §3")
def linear_state(linear_layers, linear_key_heads, linear_key_dim, linear_value_heads, linear_value_dim, linear_conv):
    """Values in the state of Gated DeltaNet: a key by value matrix per value head, and the inputs of convolutions.

    A convolution keeps one input per unit of its width, as in transformers; engines may keep one less.

    >>> qwen = dict(linear_key_heads=16, linear_key_dim=128, linear_value_heads=64, linear_value_dim=128)
    >>> linear_state(qwen, linear_layers=45, linear_conv=4)
    49397760.0
    """
    keys, values = linear_key_heads * linear_key_dim, linear_value_heads * linear_value_dim
    return linear_layers * (values * linear_key_dim + linear_conv * (2 * keys + values))


@formula("linear_params", "qwen3-next")
def linear_params(hidden, linear_key_heads, linear_key_dim, linear_value_heads, linear_value_dim, linear_conv):
    """Parameters of Gated DeltaNet as in Qwen3-Next: projections, a convolution, decays with biases, and a gain.

    >>> qwen = dict(linear_key_heads=16, linear_key_dim=128, linear_value_heads=64, linear_value_dim=128)
    >>> linear_params(qwen, hidden=4096, linear_conv=4)
    118014208.0
    """
    keys, values = linear_key_heads * linear_key_dim, linear_value_heads * linear_value_dim
    projections = hidden * (2 * keys + 3 * values + 2 * linear_value_heads)
    return projections + linear_conv * (2 * keys + values) + 2 * linear_value_heads + linear_value_dim


@formula("index_params", "deepseek2025-v32 §2.1")
def index_params(hidden, q_rank, index_heads, index_dim):
    """Parameters of an indexer: queries from the query latent, one key, a weight per head, and a norm of the key.

    >>> index_params(hidden=6144, q_rank=2048, index_heads=32, index_dim=128)
    9371904.0
    """
    return q_rank * index_heads * index_dim + hidden * (index_dim + index_heads) + 2 * index_dim


@formula("routed_share", "shazeer2017 §2.1")
def routed_share(top_k, experts):
    """Probability that a token visits a given routed expert, if the router balances them.

    >>> routed_share(top_k=8, experts=256)
    0.03125
    """
    return top_k / experts


cache_heads_grouped = same(
    "cache_heads_grouped", "cache_heads", "kv_heads", "shazeer2019 §3",
    "Heads over which a cache can be split across devices; a latent cache cannot be split.",
)  # fmt: skip


@formula("used_params", "austin2025 ch. 7")
def used_params(active_params, embeddings, vocab, hidden):
    """Parameters that a token multiplies: all active weights except the input embedding, where it looks up one row.

    >>> used_params(active_params=8.03e9, embeddings=2, vocab=128256, hidden=4096)
    7504663424.0
    """
    return active_params - (embeddings - 1) * vocab * hidden


__all__ = [*formulas_of(__name__)]
