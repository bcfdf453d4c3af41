"""Measured values that a training step needs and no data sheet states. Each is a formula that you can replace.

A device's own table cell, or a value given in a call, takes precedence over these.
"""

from sympy import Max, Min, ceiling

from scalebook.attention.arithmetic import causal_pairs, chunk_pairs, window_pairs
from scalebook.language import constant, formula, same
from scalebook.machine.collective_rates import FABRIC
from scalebook.machine.kernels import grouped_hidden

__all__ = [
    "MEASURED", "attended_chunks", "attended_half", "attended_picked", "attended_tiles", "attended_tiles_chunks",
    "attended_tiles_windows", "attended_windows", "backward_reached_tiles", "expert_ways_same",
    "grouped_efficiency_padded", "host_efficiency", "one_port",
]  # fmt: skip

sustained_rate = constant(
    "sustained_rate", "sustained_rate", "0.95", "korthikanti2022 table 4",
    "Rate of products within a step, relative to running alone: clocks drop and caches are cold.\n\n"
    "Fitted to the six layer times in this table, on A100: 0.946 makes their mean error zero. Hopper and the GB300 "
    "have cells of their own, calibrated on half of NVIDIA's rows. AMD's devices are not slowed down (1).",
)  # fmt: skip


training_efficiency_alone = same(
    "training_efficiency_alone", "training_efficiency", "matmul_efficiency", "aiconfigurator-gemm",
    "Efficiency of products in training, equal to their efficiency alone if the device has no cell for training.",
)  # fmt: skip


grouped_efficiency_same = same(
    "grouped_efficiency_same", "grouped_efficiency", "training_efficiency", "simumax-b200",
    "Efficiency of the experts' products, equal to other products'. A B200 measures 0.52 and 0.50.",
)  # fmt: skip


@formula("grouped_efficiency", "maxtext")
def grouped_efficiency_padded(training_efficiency, capacity_factor):
    """Efficiency of the experts' products if every expert's buffer is padded with zeros beyond an even share of tokens.

    >>> grouped_efficiency_padded(training_efficiency=0.75, capacity_factor=1.25)
    0.6
    """
    return training_efficiency / capacity_factor


saved_bits_as_computed = same(
    "saved_bits_as_computed", "saved_bits", "activation_bits", "korthikanti2022 §4.1",
    "Bits per activation kept for the backward pass: as many as it is computed with.",
)  # fmt: skip

training_wide_alone = same(
    "training_wide_alone", "training_bf16", "matmul_bf16", "deepseek2024-v3 §3.3.1",
    "Efficiency in training of products that stay in 16 bits when others are narrower: the same as alone.",
)  # fmt: skip


collective_cores = constant(
    "collective_cores", "collective_cores", "0.15", "isaev2023-calculon systems/a100_80g.json",
    "Share of a device's cores that collectives take from the kernels that overlap with them.",
)  # fmt: skip

attention_efficiency = constant(
    "attention_efficiency", "attention_efficiency", "0.55", "flash-attention-figures",
    "Share of peak that fused attention reaches forward, causal with heads of 128.\n\n"
    "FlashAttention-2 on the A100 reaches 0.55 and FlashAttention-3 on the H100 0.60.",
)  # fmt: skip

attention_backward = constant(
    "attention_backward", "attention_backward", "0.85", "flash-attention-figures",
    "Rate of fused attention's backward kernels over its forward kernels.",
)  # fmt: skip


@formula("backward_reached", "jax-splash")
def backward_reached_tiles(attention_backward, attended_share, attended_back):
    """Rate of attention's backward kernels over its forward kernels, if backward tiles compute other masked pairs.

    >>> backward_reached_tiles(attention_backward=0.8, attended_share=0.6, attended_back=0.75)
    0.64
    """
    return attention_backward * attended_share / attended_back


attended_half = constant(
    "attended_half", "attended_share", "0.5", "dao2022 §3.1",
    "Share of query-key pairs that a causal kernel computes: half, if it skips tiles above the diagonal.\n\n"
    "This assumes sequences of many tiles.",
)  # fmt: skip


@formula("picked_share", "deepseek2025-v32 §2.1")
def attended_picked(seq, index_tokens):
    """Share of query-key pairs that attention computes if an indexer picks at most `index_tokens` keys for a token.

    >>> attended_picked(seq=4096, index_tokens=2048).__round__(4), attended_picked(seq=65536, index_tokens=2048)
    (0.3751, 0.030761...)
    """
    return window_pairs.of(seq=seq, window=index_tokens) / seq**2


def _mean_share(pairs, seq, layers, window_layers):
    """Mean share of query-key pairs over causal blocks and blocks that attend within a window."""
    whole = causal_pairs.of(seq=seq, context=seq)
    return ((layers - window_layers) * whole + window_layers * pairs) / (layers * seq**2)


@formula("attended_share", "beltagy2020 §3.1", "dao2022 §3.1")
def attended_windows(seq, layers, window_layers, window):
    """Share of query-key pairs that attention computes, averaged over all blocks, if some have a sliding window.

    >>> attended_windows(seq=8192, layers=36, window_layers=18, window=128).__round__(3)
    0.258
    """
    return _mean_share(window_pairs.of(seq=seq, window=window), seq, layers, window_layers)


@formula("attended_share", "jax-splash")
def attended_tiles(seq, attention_tile):
    """Share of query-key pairs that a causal kernel with large tiles computes, including whole tiles on the diagonal.

    >>> attended_tiles(seq=8192, attention_tile=2048)
    0.625
    """
    return (1 + Min(seq, attention_tile, evaluate=False) / seq) / 2


@formula("attended_share", "jax-splash", "beltagy2020 §3.1")
def attended_tiles_windows(seq, layers, window_layers, window, attention_tile):
    """Share of query-key pairs that large tiles compute if some blocks have a sliding window: edge tiles count whole.

    >>> attended_tiles_windows(seq=8192, layers=36, window_layers=18, window=128, attention_tile=1024).__round__(3)
    0.398
    """
    tiles = seq / Min(seq, attention_tile, evaluate=False)
    reach = 1 + ceiling((window - 1) / attention_tile, evaluate=False)
    return _mean_share(window_pairs.of(seq=tiles, window=reach), tiles, layers, window_layers)


@formula("attended_share", "jax-splash", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E")
def attended_tiles_chunks(seq, layers, window_layers, window, attention_tile):
    """Share of query-key pairs that large tiles compute if some blocks attend within chunks: edge tiles count whole.

    >>> attended_tiles_chunks(seq=32768, layers=48, window_layers=36, window=8192, attention_tile=2048)
    0.25
    """
    tiles = seq / Min(seq, attention_tile, evaluate=False)
    chunk = Max(1, window / attention_tile, evaluate=False)
    return _mean_share(chunk_pairs.of(seq=tiles, window=chunk), tiles, layers, window_layers)


@formula("attended_share", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E", "dao2022 §3.1")
def attended_chunks(seq, layers, window_layers, window):
    """Share of query-key pairs that attention computes if some blocks attend within chunks, half a chunk on average.

    >>> attended_chunks(seq=32768, layers=48, window_layers=36, window=8192).__round__(3)
    0.219
    """
    return _mean_share(chunk_pairs.of(seq=seq, window=window), seq, layers, window_layers)


quantized_bits = constant(
    "quantized_bits", "quantized_bits", 8, "deepseek2024-v3 §3.3",
    "Bits of an activation or gradient that enters an 8-bit product.\n\n"
    "Two copies are written, one as stored and one transposed.",
)  # fmt: skip

one_port = constant(
    "one_port", "scaleout_bandwidth", "50000000000.0", "aiconfigurator",
    "Network bandwidth of a device whose row has none: one 400 Gb/s port, as in a DGX H100.\n\n"
    "The builder of a cluster chooses the real number.",
)  # fmt: skip


every_expert = same(
    "every_expert", "visited_experts", "experts", "shazeer2017 §2.1",
    "Experts that a micro-batch visits: in training, all of them.",
)  # fmt: skip


host_efficiency = constant(
    "host_efficiency", "host_efficiency", "0.86", ("azure-ai-benchmarking", "bekman-network"),
    "Share of the raw rate that large copies between host and device reach.\n\n"
    "It is 0.80 to 0.82 on an H100, 0.86 on H200 and MI300X, and 0.89 on GB200.",
)  # fmt: skip


expert_ways_same = same(
    "expert_ways_same", "etp", "tp", "liu2025-folding",
    "Ways that split experts' widths by default: the same as for the rest of the block.",
)  # fmt: skip


MEASURED = (
    sustained_rate, training_efficiency_alone, training_wide_alone, collective_cores, attention_efficiency,
    attention_backward, attended_half, quantized_bits, one_port, every_expert, expert_ways_same, host_efficiency,
    grouped_hidden, grouped_efficiency_same, *FABRIC,
)  # fmt: skip
