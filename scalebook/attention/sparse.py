"""Attention to a few keys that an indexer picks: what its scores and what the picked keys take.

>>> index_flops(batch=1, pairs=8192, index_heads=64, index_dim=128) / 1e9  # one token, 8,192 cached
0.134217728
>>> picked_pairs(seq=8192, context=8192, index_tokens=2048) / causal_pairs(seq=8192, context=8192)
0.43...
"""

from sympy import Integer, Max, Piecewise, Rational, ceiling

from scalebook.attention.arithmetic import causal_pairs, window_pairs  # noqa: F401  (the first stands in an example)
from scalebook.language import formula

__all__ = [
    "dense_tokens_picked", "head_tile_hopper", "index_bits_block", "index_flops", "index_kernel_time",
    "index_peak_fp8", "index_peak_same", "index_traffic", "picked_pairs", "sparse_efficiency", "sparse_kernel_time",
    "tiled_heads",
]  # fmt: skip

_HERE = "deepseek2025-v32 §2.1"


@formula("flops", _HERE)
def index_flops(batch, pairs, index_heads, index_dim):
    """Every head of the indexer scores every token that is cached; all devices that attend together do so alike.

    >>> index_flops(batch=1, pairs=1000, index_heads=64, index_dim=128)
    16384000.0
    """
    return 2 * batch * pairs * index_heads * index_dim


@formula("traffic", _HERE)
def index_traffic(batch, pairs, context, index_dim, index_bits, fp32_bits):
    """The indexer's keys are read once a sequence; each score is written, and read where the best are picked.

    >>> index_traffic(batch=1, pairs=1000, context=1000, index_dim=128, index_bits=8, fp32_bits=32)
    136000.0
    """
    return batch * (context * index_dim * index_bits + 2 * pairs * fp32_bits) / 8


@formula("kernel_time", _HERE)
def index_kernel_time(
    batch,
    pairs,
    index_heads,
    flops,
    index_peak,
    peak_vector,
    traffic,
    bandwidth_efficiency,
    hbm_bandwidth,
):
    """Products in 8 bits, then on the vector units a ReLU, a weight and a sum of each head; or the traffic.

    >>> 1e6 * index_kernel_time(batch=64, pairs=8192, index_heads=64, flops="8.6 GFLOP", index_peak="1979 TFLOP/s",
    ...     peak_vector="66.9 TFLOP/s", traffic="71 MB", bandwidth_efficiency=0.8, hbm_bandwidth="3.35 TB/s")
    26.49253...
    """
    computed = flops / index_peak + 3 * batch * pairs * index_heads / peak_vector
    return Max(computed, traffic / (bandwidth_efficiency * hbm_bandwidth), evaluate=False)


@formula("index_peak", _HERE)
def index_peak_fp8(peak_fp8):
    """An indexer multiplies in 8 bits, whatever the other products do.

    >>> index_peak_fp8(peak_fp8="1978.9 TFLOP/s")
    1978900000000000.0
    """
    return peak_fp8


@formula("index_peak", _HERE)
def index_peak_same(peak_flops):
    """Where a device has no products in 8 bits, as fast as its others.

    >>> index_peak_same(peak_flops="312 TFLOP/s")
    312000000000000.0
    """
    return peak_flops


@formula("index_bits", _HERE, "vllm-sparse")
def index_bits_block():
    """The indexer's key is cached in 8 bits, with a scale of 32 bits for its 128 values.

    >>> index_bits_block()
    8.25
    """
    return Rational(33, 4)


@formula("pairs", _HERE)
def picked_pairs(seq, context, index_tokens):
    """A new token attends to the best of those before it and itself: to all of them while they are few.

    >>> picked_pairs(seq=1, context=8192, index_tokens=2048), picked_pairs(seq=512, context=512, index_tokens=2048)
    (2048.0, 131328.0)
    """
    whole, past = (window_pairs.of(seq=n, window=index_tokens) for n in (context, context - seq))
    return whole - past


@formula("dense_tokens", "sglang-short")
def dense_tokens_picked(index_tokens):
    """While no key is left out, SGLang reads prompts as with latent attention to all: expanded, and nothing is scored.

    vLLM of 2026 picks keys for short prompts too: 0.

    >>> dense_tokens_picked(index_tokens=2048)
    2048.0
    """
    return index_tokens


@formula("head_tile", "flashmla", "vllm-sparse")
def head_tile_hopper():
    """FlashMLA's kernels of sparse attention multiply for 64 heads at once on the H100; on the B200 some for 128.

    A tile of dense attention is filled with many queries; here each has keys of its own, so only its heads fill one.

    >>> head_tile_hopper()
    64.0
    """
    return Integer(64)


@formula("tiled_heads", "flashmla", "vllm-sparse")
def tiled_heads(heads, tp, head_tile):
    """Of few heads on a device the tile stays partly empty, and takes as long.

    >>> tiled_heads(heads=64, tp=8, head_tile=64), tiled_heads(heads=128, tp=1, head_tile=64)
    (64.0, 128.0)
    """
    return head_tile * ceiling(heads / (tp * head_tile), evaluate=False)


@formula("sparse_efficiency", "flashmla")
def sparse_efficiency(kv_bits, result_bits):
    """FlashMLA's sparse kernels on the H800: 640 TFLOP/s of 989 in 16 bits, 410 where latents are cached in fewer.

    These are the rates of its README, of kernels alone and large; narrow latents are widened before they multiply.

    >>> sparse_efficiency(kv_bits=16, result_bits=16), sparse_efficiency(kv_bits=8, result_bits=16)
    (0.65, 0.41)
    """
    return Piecewise((Rational(65, 100), kv_bits >= result_bits), (Rational(41, 100), True))


@formula("kernel_time", "flashmla")
def sparse_kernel_time(flops, sparse_efficiency, peak_flops, traffic, bandwidth_efficiency, hbm_bandwidth):
    """Every query fetches its own keys, so nothing is shared between queries: arithmetic, or that traffic.

    >>> 1e6 * sparse_kernel_time(flops="18 GFLOP", sparse_efficiency=0.65, peak_flops="989.4 TFLOP/s",
    ...     traffic="151 MB", bandwidth_efficiency=0.8, hbm_bandwidth="3.35 TB/s")
    56.34328...
    """
    read = traffic / (bandwidth_efficiency * hbm_bandwidth)
    return Max(flops / (sparse_efficiency * peak_flops), read, evaluate=False)
