"""Arithmetic of attention: scores and values, compared with the projections and the feed-forward layer of a block.

>>> from scalebook.tables import models
>>> round(attention_share(models.llama3_8b, batch=1, seq=8192), 3), round(layer_crossover(models.llama3_8b))
(0.235, 26624)
"""

from sympy import Min, floor

from scalebook.attention.assumptions import prefill_context
from scalebook.language import Sheet, formula, formulas_of

# Query-key pairs


@formula("pairs", "vaswani2017 §3.2", given=[prefill_context])
def full_pairs(seq, context):
    """Query-key pairs without a mask, or with a mask that is applied only after computing all of them.

    >>> full_pairs(seq=4096, context=4096)
    16777216.0
    """
    return seq * context


@formula("pairs", "vaswani2017 §3.2.3", given=[prefill_context])
def causal_pairs(seq, context):
    """Query-key pairs with a causal mask: each token meets itself and all earlier tokens.

    >>> causal_pairs(seq=4096, context=4096)
    8390656.0
    """
    return seq * (2 * context - seq + 1) / 2


@formula("pairs", "beltagy2020 §3.1")
def window_pairs(seq, window):
    """Query-key pairs with a sliding window: each token meets the last `window` tokens, itself included.

    >>> window_pairs(seq=4096, window=1024)
    3670528.0
    """
    reach = Min(seq, window, evaluate=False)
    return seq * reach - reach * (reach - 1) / 2


@formula("pairs", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E")
def chunk_pairs(seq, window):
    """Query-key pairs with chunks of `window` tokens: each token attends to itself and earlier tokens of its chunk.

    >>> chunk_pairs(seq=4096, window=1024)
    2099200.0
    """
    whole = floor(seq / window)
    rest = seq - whole * window
    return (whole * window * (window + 1) + rest * (rest + 1)) / 2


# Arithmetic per pair


@formula("pair_width", "vaswani2017 §3.2.2")
def pair_width_grouped(heads, head_dim):
    """Multiply-adds per query-key pair: each query head multiplies a key and a value, even if heads share them.

    >>> pair_width_grouped(heads=32, head_dim=128)
    8192.0
    """
    return 2 * heads * head_dim


@formula("pair_width", "deepseek2024-v2 §2.1")
def pair_width_latent(heads, nope_dim, rope_dim, v_dim):
    """Multiply-adds per query-key pair with latents expanded, as in training and prefill; the key has a rotary part.

    >>> pair_width_latent(heads=128, nope_dim=128, rope_dim=64, v_dim=128)
    40960.0
    """
    return heads * (nope_dim + rope_dim + v_dim)


@formula("pair_width", "deepseek2024-v2 §2.1")
def pair_width_absorbed(heads, kv_rank, rope_dim):
    """Multiply-adds per query-key pair with latents as keys and values, as in decoding: wider, but shared by all heads.

    >>> pair_width_absorbed(heads=128, kv_rank=512, rope_dim=64)
    139264.0
    """
    return heads * (2 * kv_rank + rope_dim)


# The three parts of a block


@formula("attention_flops", "kaplan2020 table 1", given=[pair_width_grouped, pair_width_latent, full_pairs])
def attention_flops(batch, pairs, pair_width):
    """FLOPs of scores and weighted values: a multiply and an add for every pair and unit of width.

    >>> attention_flops(batch=1, heads=32, head_dim=128, seq=8192, context=8192) / 1e12
    1.099511627776
    """
    return 2 * batch * pairs * pair_width


@formula("attention_flops", "katharopoulos2020 §3.2")
def linear_attention_flops(batch, seq, heads, head_dim):
    """FLOPs of linear attention, without a softmax: each token updates and reads a state of head_dim² per head.

    >>> linear_attention_flops(batch=1, seq=8192, heads=32, head_dim=128) / 1e9
    17.179869184
    """
    return 4 * batch * seq * heads * head_dim**2


@formula("features", "dumankeles2022 abstract")
def taylor_features(head_dim, order):
    """Features of a key for a Taylor series of exp(q·k): products of up to `order` components, in any order.

    >>> taylor_features(head_dim=128, order=2)
    16513.0
    """
    return (head_dim ** (order + 1) - 1) / (head_dim - 1)


@formula("attention_flops", "dumankeles2022 abstract", given=[taylor_features])
def taylor_attention_flops(batch, seq, heads, head_dim, features):
    """FLOPs of softmax attention by a truncated series: linear in the length, with a state row per monomial.

    >>> taylor_attention_flops(batch=1, seq=8192, heads=32, head_dim=128, order=2) / 1e12
    2.216337342464
    """
    return 4 * batch * seq * heads * head_dim * features


@formula("projection_flops", "kaplan2020 table 1")
def projection_flops(batch, seq, hidden, heads, kv_heads, head_dim):
    """FLOPs of the projections: queries and output for every head, keys and values for every key-value head.

    >>> projection_flops(batch=1, seq=8192, hidden=4096, heads=32, kv_heads=8, head_dim=128) / 1e12
    0.68719476736
    """
    return 4 * batch * seq * hidden * head_dim * (heads + kv_heads)


@formula("ffn_flops", "shazeer2020")
def ffn_flops(batch, seq, hidden, ffn, gating):
    """FLOPs of the feed-forward layer: two matrices, three with a gate.

    >>> ffn_flops(batch=1, seq=8192, hidden=4096, ffn=14336, gating=1) / 1e12
    2.886218022912
    """
    return 2 * batch * seq * hidden * ffn * (2 + gating)


_parts = [projection_flops, attention_flops, ffn_flops, pair_width_grouped, pair_width_latent, full_pairs]


@formula("layer_flops", "kaplan2020 table 1", given=_parts)
def layer_flops(projection_flops, attention_flops, ffn_flops):
    """FLOPs of a block's matrix products in the forward pass, with every query-key pair unless you give `pairs`.

    >>> layer_flops(projection_flops="1 TFLOP", attention_flops="1 TFLOP", ffn_flops="3 TFLOP")
    5000000000000.0
    """
    return projection_flops + attention_flops + ffn_flops


@formula("attention_share", "kaplan2020 table 1", given=_parts)
def attention_share(projection_flops, attention_flops, ffn_flops):
    """Share of a block's arithmetic that is quadratic in the length.

    >>> attention_share(projection_flops="1 TFLOP", attention_flops="1 TFLOP", ffn_flops="3 TFLOP")
    0.2
    """
    return attention_flops / (projection_flops + attention_flops + ffn_flops)


@formula("growth", "kaplan2020 table 1", given=[attention_share, *_parts])
def doubling_growth(attention_share):
    """Growth factor (2 to 4) of a block's arithmetic when the number of tokens doubles, if every pair is computed.

    >>> doubling_growth(attention_share=0.25)
    2.5
    """
    return 2 * (1 + attention_share)


@formula("crossover", "kaplan2020 table 1")
def projection_crossover(hidden, heads, kv_heads):
    """Sequence length at which scores and values cost as much as the projections. A causal mask doubles it.

    >>> projection_crossover(hidden=4096, heads=32, kv_heads=8)
    5120.0
    """
    return hidden * (heads + kv_heads) / heads


@formula("crossover", "kaplan2020 table 1")
def layer_crossover(hidden, heads, kv_heads, head_dim, ffn, gating):
    """Sequence length at which scores and values cost as much as the rest of the block. A causal mask doubles it.

    >>> layer_crossover(hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, gating=1)
    26624.0
    """
    return hidden * (heads + kv_heads) / heads + hidden * ffn * (2 + gating) / (2 * heads * head_dim)


layer_work = Sheet(
    "layer_work", prefill_context, causal_pairs, pair_width_grouped, projection_flops, attention_flops, ffn_flops,
    layer_flops, attention_share, doubling_growth,
    doc="The arithmetic of one block over a whole causal sequence, part by part.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "layer_work"]
