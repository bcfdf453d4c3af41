"""Sparse attention to a few keys that an indexer picks: cost of the indexer's scores and of the picked keys."""

from sympy import Max, Min, Piecewise, Rational, ceiling

from scalebook.attention import arithmetic, assumptions
from scalebook.attention.kernels import kernel_flops
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.machine.kernels import one_core, typical_stream_efficiency

_OWN = equations(__name__)  # those of sparse.toml

_HERE = "deepseek2025-v32 §2.1"
_MEASURED = "aiconfigurator-2026"


@formula("traffic", _HERE)
def index_traffic(batch, pairs, context, index_dim, index_bits, fp32_bits):
    """Bytes moved by the indexer: its keys once per sequence, and each score written and read again for the top-k.

    >>> index_traffic(batch=1, pairs=1000, context=1000, index_dim=128, index_bits=8, fp32_bits=32)
    136000.0
    """
    return batch * (context * index_dim * index_bits + 2 * pairs * fp32_bits) / 8


@formula("pairs", _HERE)
def picked_pairs(seq, context, index_tokens):
    """Query-key pairs of sparse attention: each token attends to at most `index_tokens` keys.

    >>> picked_pairs(seq=1, context=8192, index_tokens=2048), picked_pairs(seq=512, context=512, index_tokens=2048)
    (2048.0, 131328.0)
    """
    whole, past = (arithmetic.window_pairs.of(seq=n, window=index_tokens) for n in (context, context - seq))
    return whole - past


@formula("sparse_efficiency", "flashmla")
def sparse_efficiency(kv_bits, result_bits):
    """Share of the peak of FlashMLA's sparse kernels on the H800 (its README): 640 of 989 TFLOP/s in 16 bits, else 410.

    >>> sparse_efficiency(kv_bits=16, result_bits=16), sparse_efficiency(kv_bits=8, result_bits=16)
    (0.65, 0.41)
    """
    return Piecewise((Rational(65, 100), kv_bits >= result_bits), (Rational(41, 100), True))


@formula("kernel_time", "flashmla")
def sparse_kernel_time(flops, sparse_efficiency, peak_flops, traffic, bandwidth_efficiency, hbm_bandwidth):
    """Time of sparse attention: arithmetic, or the traffic if longer. No two queries share a read of keys.

    >>> rates = dict(sparse_efficiency=0.65, peak_flops=989.4e12, bandwidth_efficiency=0.8, hbm_bandwidth=3.35e12)
    >>> 1e6 * sparse_kernel_time(rates, flops="18 GFLOP", traffic="151 MB")
    56.34328...
    """
    read = traffic / (bandwidth_efficiency * hbm_bandwidth)
    return Max(flops / (sparse_efficiency * peak_flops), read, evaluate=False)


# Kernels as engines of 2026 start them, each by itself


@formula("busy_pairs", "deepgemm", _MEASURED)
def index_busy_pairs(batch, seq, pairs, cores, index_rows, index_columns):
    """Query-key pairs that set the indexer's time: each core takes whole tiles of queries, and waits in the last wave.

    A tile scores the keys of all sequences that its queries belong to, so batches with few new tokens per sequence are
    expensive.

    >>> known = dict(cores=148, index_rows=4, index_columns=256)
    >>> [index_busy_pairs(known, batch=4, seq=n, pairs=n * 65536) / 148 / 65536 for n in (1, 4, 512)]
    [16.0, 4.0, 16.0]
    """
    span = index_columns * ceiling(pairs / seq / index_columns, evaluate=False)
    shared = Max(1, Min(batch, index_rows / seq, evaluate=False), evaluate=False)
    waves = ceiling(batch * seq / index_rows / cores, evaluate=False)
    return cores * index_rows * waves * shared * span


@formula("kernel_time", _HERE, _MEASURED)
def index_tile_time(
    index_launch, busy_pairs, index_heads, index_dim, index_efficiency, index_peak, traffic, stream_efficiency,
    hbm_bandwidth,
):  # fmt: skip
    """Time of the indexer's kernels by themselves: launch, then the products of busy tiles, or the traffic if longer.

    >>> rates = dict(index_efficiency=0.43, index_peak=5e15, stream_efficiency=0.7, hbm_bandwidth=8e12)
    >>> shape = dict(index_heads=32, index_dim=128, traffic="71 MB")
    >>> 1e6 * index_tile_time(rates, shape, index_launch="6.5 us", busy_pairs=1e8)
    387.5232...
    """
    computed = 2 * busy_pairs * index_heads * index_dim / (index_efficiency * index_peak)
    return index_launch + Max(computed, traffic / (stream_efficiency * hbm_bandwidth), evaluate=False)


@formula("kernel_time", _HERE, _MEASURED)
def topk_time(
    kernel_launch, batch, seq, context, index_tokens, cores, item_time, pick_time, fp32_bits, core_bandwidth,
):  # fmt: skip
    """Time to pick every token's highest scores: a core reads one token's scores as a stream and ranks them.

    >>> rates = dict(kernel_launch="4 us", cores=148, item_time="1 us", pick_time="5 us", core_bandwidth="10.5 GB/s")
    >>> rates["fp32_bits"] = 32
    >>> [1e6 * topk_time(rates, batch=8, seq=37, context=n, index_tokens=2048) for n in (2048, 65536)]
    [6.0, 65.92...]
    """
    longer = Max(0, Min(seq, context - index_tokens, evaluate=False), evaluate=False)
    read = (context - longer / 2) * fp32_bits / 8 / core_bandwidth
    waves, long_waves = (ceiling(batch * n / cores, evaluate=False) for n in (seq, longer))
    return kernel_launch + waves * item_time + long_waves * (pick_time + read)


@formula("pairs", "transformers modeling_deepseek_v4.py")
def compressed_pairs(seq, context, window, entry_tokens):
    """Query-key pairs of heavily compressed attention: the uncompressed window, and an entry per `entry_tokens` tokens.

    >>> compressed_pairs(seq=1, context=1e6, window=128, entry_tokens=128)
    7940.5
    """
    near = picked_pairs.of(seq=seq, context=context, index_tokens=window)
    return near + arithmetic.causal_pairs.of(seq=seq, context=context) / entry_tokens


@formula("pairs", "transformers modeling_deepseek_v4.py")
def compressed_picked_pairs(seq, context, window, entry_tokens, index_tokens):
    """Query-key pairs of compressed sparse attention: the uncompressed window, and the entries that an indexer picks.

    >>> compressed_picked_pairs(seq=1, context=1e6, window=128, entry_tokens=4, index_tokens=1024)
    1152.0
    """
    near = picked_pairs.of(seq=seq, context=context, index_tokens=window)
    far = picked_pairs.of(seq=seq, context=context, index_tokens=index_tokens * entry_tokens)
    return near + far / entry_tokens


@formula("traffic", "flashmla", _MEASURED)
def picked_traffic(batch, pairs, pair_bits, heads, head_tile):
    """Bytes that sparse attention reads: every query reads its own keys, once per tile of heads.

    >>> picked_traffic(batch=64, pairs=2048, pair_bits=9216, heads=128, head_tile=64) / 1e6
    301.989888
    """
    return batch * pairs * pair_bits / 8 * heads / head_tile


_PICKED = (
    assumptions.head_tile_hopper, picked_traffic, arithmetic.attention_flops, kernel_flops, sparse_efficiency,
    sparse_kernel_time,
)  # fmt: skip
index_scoring = Sheet(
    "index_scoring", arithmetic.causal_pairs, one_core, typical_stream_efficiency, assumptions.index_bits_block,
    assumptions.index_peak_fp8, assumptions.index_rows_deepgemm, assumptions.index_columns_deepgemm, index_busy_pairs,
    index_traffic, index_tile_time,
    doc="The indexer's kernels by themselves: scores of all cached keys. In decoding give busy_pairs: all pairs.",
)  # fmt: skip
picked_latent_attention = Sheet(
    "picked_latent_attention", picked_pairs, _OWN.pair_bits_latent, arithmetic.pair_width_absorbed, *_PICKED,
    doc="Attention to picked latents by itself. Give heads in whole tiles.",
)  # fmt: skip
picked_shared_attention = Sheet(
    "picked_shared_attention", compressed_picked_pairs, _OWN.pair_bits_shared, arithmetic.pair_width_grouped, *_PICKED,
    doc="Compressed sparse attention (DeepSeek-V4) by itself, with one key for all heads that is also the value.",
)  # fmt: skip
picked_grouped_attention = Sheet(
    "picked_grouped_attention", picked_pairs, _OWN.pair_bits_grouped, arithmetic.pair_width_grouped, *_PICKED,
    doc="Attention of grouped heads to picked blocks of keys (MiniMax-M3) by itself.",
)  # fmt: skip

__all__ = [
    *formulas_of(__name__),
    "index_scoring", "picked_grouped_attention", "picked_latent_attention", "picked_shared_attention",
]  # fmt: skip
