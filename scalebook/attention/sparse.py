"""Sparse attention to a few keys that an indexer picks: cost of the indexer's scores and of the picked keys."""

from sympy import Max, Piecewise, Rational, ceiling

from scalebook.attention.arithmetic import window_pairs
from scalebook.language import constant, formula, same

__all__ = [
    "dense_tokens_picked", "head_tile_hopper", "index_bits_block", "index_flops", "index_kernel_time",
    "index_peak_fp8", "index_peak_same", "index_traffic", "picked_pairs", "sparse_efficiency", "sparse_kernel_time",
    "tiled_heads",
]  # fmt: skip

_HERE = "deepseek2025-v32 §2.1"


@formula("flops", _HERE)
def index_flops(batch, pairs, index_heads, index_dim):
    """FLOPs of the indexer: every head scores every cached token, repeated on each device that attends.

    >>> index_flops(batch=1, pairs=1000, index_heads=64, index_dim=128)
    16384000.0
    """
    return 2 * batch * pairs * index_heads * index_dim


@formula("traffic", _HERE)
def index_traffic(batch, pairs, context, index_dim, index_bits, fp32_bits):
    """Bytes moved by the indexer: its keys once per sequence, and each score written and read again for the top-k.

    >>> index_traffic(batch=1, pairs=1000, context=1000, index_dim=128, index_bits=8, fp32_bits=32)
    136000.0
    """
    return batch * (context * index_dim * index_bits + 2 * pairs * fp32_bits) / 8


@formula("kernel_time", _HERE)
def index_kernel_time(
    batch, pairs, index_heads, flops, index_peak, peak_vector, traffic, bandwidth_efficiency, hbm_bandwidth,
):  # fmt: skip
    """Time to score all keys (DeepSeek's sparse attention): 8-bit products, then vector work, or traffic if longer.

    >>> rates = dict(index_peak=1979e12, peak_vector=66.9e12, bandwidth_efficiency=0.8, hbm_bandwidth=3.35e12)
    >>> 1e6 * index_kernel_time(rates, batch=64, pairs=8192, index_heads=64, flops="8.6 GFLOP", traffic="71 MB")
    26.49253...
    """
    computed = flops / index_peak + 3 * batch * pairs * index_heads / peak_vector
    return Max(computed, traffic / (bandwidth_efficiency * hbm_bandwidth), evaluate=False)


index_peak_fp8 = same(
    "index_peak_fp8", "index_peak", "peak_fp8", _HERE,
    "Peak FLOP/s of the indexer, which multiplies in 8 bits whatever the precision of the other products.",
)  # fmt: skip


index_peak_same = same(
    "index_peak_same", "index_peak", "peak_flops", _HERE,
    "Peak FLOP/s of the indexer on devices without 8-bit products, where it multiplies at the peak of other products.",
)  # fmt: skip


index_bits_block = constant(
    "index_bits_block", "index_bits", "8.25", (_HERE, "vllm-sparse"),
    "Bits per value of the indexer's cached key: 8, plus a 32-bit scale for each 128 values.",
)  # fmt: skip


@formula("pairs", _HERE)
def picked_pairs(seq, context, index_tokens):
    """Query-key pairs of sparse attention: each token attends to at most `index_tokens` keys.

    >>> picked_pairs(seq=1, context=8192, index_tokens=2048), picked_pairs(seq=512, context=512, index_tokens=2048)
    (2048.0, 131328.0)
    """
    whole, past = (window_pairs.of(seq=n, window=index_tokens) for n in (context, context - seq))
    return whole - past


dense_tokens_picked = same(
    "dense_tokens_picked", "dense_tokens", "index_tokens", "sglang-short",
    "Prompt length up to which SGLang runs dense latent attention and skips the indexer. For vLLM of 2026 give 0.",
)  # fmt: skip


head_tile_hopper = constant(
    "head_tile_hopper", "head_tile", 64, ("flashmla", "vllm-sparse"),
    "Heads per tile of FlashMLA's sparse attention: 64 on the H100; on the B200 some kernels take 128.\n\n"
    "A dense tile is filled with many queries. Here each query has its own keys, so only its heads fill a tile.",
)  # fmt: skip


@formula("tiled_heads", "flashmla", "vllm-sparse")
def tiled_heads(heads, tp, head_tile):
    """Heads that sparse attention computes on a device: the device's heads, rounded up to whole tiles of heads.

    >>> tiled_heads(heads=64, tp=8, head_tile=64), tiled_heads(heads=128, tp=1, head_tile=64)
    (64.0, 128.0)
    """
    return head_tile * ceiling(heads / (tp * head_tile), evaluate=False)


@formula("sparse_efficiency", "flashmla")
def sparse_efficiency(kv_bits, result_bits):
    """Share of the peak of FlashMLA's sparse kernels on the H800 (its README): 640 of 989 TFLOP/s in 16 bits, else 410.

    >>> sparse_efficiency(kv_bits=16, result_bits=16), sparse_efficiency(kv_bits=8, result_bits=16)
    (0.65, 0.41)
    """
    return Piecewise((Rational(65, 100), kv_bits >= result_bits), (Rational(41, 100), True))


@formula("kernel_time", "flashmla")
def sparse_kernel_time(flops, sparse_efficiency, peak_flops, traffic, bandwidth_efficiency, hbm_bandwidth):
    """Time of sparse attention: arithmetic, or the traffic if longer; queries share no reads of keys.

    >>> rates = dict(sparse_efficiency=0.65, peak_flops=989.4e12, bandwidth_efficiency=0.8, hbm_bandwidth=3.35e12)
    >>> 1e6 * sparse_kernel_time(rates, flops="18 GFLOP", traffic="151 MB")
    56.34328...
    """
    read = traffic / (bandwidth_efficiency * hbm_bandwidth)
    return Max(flops / (sparse_efficiency * peak_flops), read, evaluate=False)
