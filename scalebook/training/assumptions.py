"""What a training step rests on besides data sheets: shares that were measured, each a formula to be swapped or given.

A device's own cell, or a value given in a call, stands before these.

>>> sustained_rate()
0.95
"""

from sympy import Integer, Max, Min, Rational, ceiling

from scalebook.attention.arithmetic import causal_pairs, chunk_pairs, window_pairs
from scalebook.language import formula
from scalebook.machine.collective_rates import FABRIC
from scalebook.machine.kernels import grouped_hidden

__all__ = [
    "MEASURED", "attended_chunks", "attended_half", "attended_tiles", "attended_tiles_chunks",
    "attended_tiles_windows", "attended_whole", "attended_windows", "attention_backward", "attention_efficiency",
    "backward_reached_tiles", "collective_cores", "every_expert", "expert_ways_same",
    "grouped_efficiency_padded", "grouped_efficiency_same", "host_efficiency", "one_port",
    "quantized_bits", "sustained_rate", "training_efficiency_alone", "training_wide_alone",
]  # fmt: skip


@formula("sustained_rate", "korthikanti2022 table 4")
def sustained_rate():
    """Within a step products run a little slower than alone, as clocks fall and caches are cold.

    Fitted on the six times of a layer in this table, A100: 0.946 makes their mean error zero.  Hopper and the GB300
    have cells of their own, calibrated on half of NVIDIA's rows; AMD's devices keep all of it.

    >>> sustained_rate()
    0.95
    """
    return Rational(19, 20)


@formula("training_efficiency", "aiconfigurator-gemm")
def training_efficiency_alone(matmul_efficiency):
    """Where a device has no cell of its own for training, products reach as much of the peak as alone.

    >>> training_efficiency_alone(matmul_efficiency=0.7)
    0.7
    """
    return matmul_efficiency


@formula("grouped_efficiency", "simumax-b200")
def grouped_efficiency_same(training_efficiency):
    """Products of experts reach what others do, their reading and writing counted apart: 0.52 and 0.50 on a B200.

    >>> grouped_efficiency_same(training_efficiency=0.6)
    0.6
    """
    return training_efficiency


@formula("grouped_efficiency", "maxtext")
def grouped_efficiency_padded(training_efficiency, capacity_factor):
    """Where every expert's buffer is larger than an even share of the tokens, the rest of it is zeros.

    >>> grouped_efficiency_padded(training_efficiency=0.75, capacity_factor=1.25)
    0.6
    """
    return training_efficiency / capacity_factor


@formula("training_bf16", "deepseek2024-v3 §3.3.1")
def training_wide_alone(matmul_bf16):
    """Products that stay in 16 bits where others are narrower reach as much of the peak as alone, too.

    >>> training_wide_alone(matmul_bf16=0.7)
    0.7
    """
    return matmul_bf16


@formula("collective_cores", "isaev2023-calculon systems/a100_80g.json")
def collective_cores():
    """Collectives run as kernels too, and take cores from what runs beside them.

    >>> collective_cores()
    0.15
    """
    return Rational(3, 20)


@formula("attention_efficiency", "flash-attention-figures")
def attention_efficiency():
    """FlashAttention-2 on the A100 and FlashAttention-3 on the H100, causal, heads of 128: 0.55 and 0.60 of peak.

    >>> attention_efficiency()
    0.55
    """
    return Rational(11, 20)


@formula("attention_backward", "flash-attention-figures")
def attention_backward():
    """Going back the same kernels reach about this share of their forward rate.

    >>> attention_backward()
    0.85
    """
    return Rational(17, 20)


@formula("backward_reached", "jax-splash")
def backward_reached_tiles(attention_backward, attended_share, attended_back):
    """Kernels that go back have tiles of their own, and are slower by what these compute in vain.

    >>> backward_reached_tiles(attention_backward=0.8, attended_share=0.6, attended_back=0.75)
    0.64
    """
    return attention_backward * attended_share / attended_back


@formula("attended_share", "dao2022 §3.1")
def attended_half():
    """A causal kernel leaves out tiles above the diagonal: half of the pairs, for sequences of many tiles.

    >>> attended_half()
    0.5
    """
    return Rational(1, 2)


@formula("attended_share", "vaswani2017 §3.2")
def attended_whole():
    """Without a mask every token attends to every other.

    >>> attended_whole()
    1.0
    """
    return Integer(1)


def _mean_share(pairs, seq, layers, window_layers):
    """Causal blocks and blocks that attend within a window, by their numbers, over all pairs of a sequence."""
    whole = causal_pairs.of(seq=seq, context=seq)
    return ((layers - window_layers) * whole + window_layers * pairs) / (layers * seq**2)


@formula("attended_share", "beltagy2020 §3.1", "dao2022 §3.1")
def attended_windows(seq, layers, window_layers, window):
    """Where some blocks slide, a token meets its window there:
    the mean over all blocks, whole tiles at the edges left aside.

    >>> attended_windows(seq=8192, layers=36, window_layers=18, window=128).__round__(3)
    0.258
    """
    return _mean_share(window_pairs.of(seq=seq, window=window), seq, layers, window_layers)


@formula("attended_share", "jax-splash")
def attended_tiles(seq, attention_tile):
    """A causal kernel of large tiles computes those on the diagonal whole.

    >>> attended_tiles(seq=8192, attention_tile=2048)
    0.625
    """
    return (1 + Min(seq, attention_tile, evaluate=False) / seq) / 2


@formula("attended_share", "jax-splash", "beltagy2020 §3.1")
def attended_tiles_windows(seq, layers, window_layers, window, attention_tile):
    """Where some blocks slide, tiles at both edges of the window are computed whole too: two at least.

    >>> attended_tiles_windows(seq=8192, layers=36, window_layers=18, window=128, attention_tile=1024).__round__(3)
    0.398
    """
    tiles = seq / Min(seq, attention_tile, evaluate=False)
    reach = 1 + ceiling((window - 1) / attention_tile, evaluate=False)
    return _mean_share(window_pairs.of(seq=tiles, window=reach), tiles, layers, window_layers)


@formula("attended_share", "jax-splash", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E")
def attended_tiles_chunks(seq, layers, window_layers, window, attention_tile):
    """Where some blocks cut the sequence into chunks, tiles on the diagonal are computed whole.

    >>> attended_tiles_chunks(seq=32768, layers=48, window_layers=36, window=8192, attention_tile=2048)
    0.25
    """
    tiles = seq / Min(seq, attention_tile, evaluate=False)
    chunk = Max(1, window / attention_tile, evaluate=False)
    return _mean_share(chunk_pairs.of(seq=tiles, window=chunk), tiles, layers, window_layers)


@formula("attended_share", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E", "dao2022 §3.1")
def attended_chunks(seq, layers, window_layers, window):
    """Where some blocks cut the sequence into chunks, within which tokens attend: on average to half of one.

    >>> attended_chunks(seq=32768, layers=48, window_layers=36, window=8192).__round__(3)
    0.219
    """
    return _mean_share(chunk_pairs.of(seq=seq, window=window), seq, layers, window_layers)


@formula("quantized_bits", "deepseek2024-v3 §3.3")
def quantized_bits():
    """Activations and their gradients enter 8-bit products, once as they lie and once turned.

    >>> quantized_bits()
    8.0
    """
    return Integer(8)


@formula("scaleout_bandwidth", "aiconfigurator")
def one_port():
    """Where the table has none for a device: one port of 400 Gb/s each, as in a DGX H100;
    the builder of a cluster decides.

    >>> one_port()
    50000000000.0
    """
    return Integer(50 * 10**9)


@formula("visited_experts", "shazeer2017 §2.1")
def every_expert(experts):
    """The tokens of a micro-batch in training visit all experts.

    >>> every_expert(experts=256)
    256.0
    """
    return experts


@formula("host_efficiency", "azure-ai-benchmarking", "bekman-network")
def host_efficiency():
    """Large copies between host and device: 0.80 to 0.82 of the raw rate on an H100, 0.86 on H200 and MI300X,
    0.89 on GB200.

    >>> host_efficiency()
    0.86
    """
    return Rational(43, 50)


@formula("etp", "liu2025-folding")
def expert_ways_same(tp):
    """Where nothing else is said, experts' widths are split as the rest is.

    >>> expert_ways_same(tp=8)
    8.0
    """
    return tp


MEASURED = (
    sustained_rate, training_efficiency_alone, training_wide_alone, collective_cores, attention_efficiency,
    attention_backward, attended_half, quantized_bits, one_port, every_expert, expert_ways_same, host_efficiency,
    grouped_hidden, grouped_efficiency_same, *FABRIC,
)  # fmt: skip
