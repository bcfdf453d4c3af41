"""Kernels with a state (Gated DeltaNet, Kimi's delta attention, Mamba-2): their work, traffic and time.

A prompt is read in chunks, which cores share but which wait for one another within a sequence. Each new token of a
decoding sequence reads and writes the whole state. A short convolution comes first.
"""

from sympy import Max, ceiling

from scalebook.language import formula, formulas_of

_DELTA, _KDA, _MAMBA, _MEASURED = "yang2024 §3.3", "kimi2025-linear §3", "dao2024 §6", "aiconfigurator-2026"


# The short convolution


@formula("conv_width", _DELTA, _MAMBA)
def conv_width(linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim):
    """Channels under the short convolution: queries, keys and values (in Mamba-2 outputs, inputs and values).

    >>> conv_width(linear_key_heads=16, linear_value_heads=32, linear_key_dim=128, linear_value_dim=128)
    8192.0
    """
    return 2 * linear_key_heads * linear_key_dim + linear_value_heads * linear_value_dim


@formula("kernel_items", "vllm-conv")
def conv_items(batch, seq, conv_width, conv_tokens, conv_channels):
    """Work items of a short convolution: tiles of tokens and channels. A tile with fewer tokens counts as a fraction.

    >>> conv_items(batch=2, seq=1000, conv_width=8192, conv_tokens=8, conv_channels=256)
    8000.0
    """
    return batch * seq / conv_tokens * ceiling(conv_width / conv_channels)


@formula("traffic", _MAMBA)
def conv_traffic(batch, seq, conv_width, linear_conv, activation_bits):
    """Bytes moved by a short convolution: tokens read and written, and the last few tokens read and kept.

    >>> conv_traffic(batch=1, seq=1024, conv_width=8192, linear_conv=4, activation_bits=16) / 1e6
    33.652736
    """
    return 2 * batch * conv_width * (seq + linear_conv - 1) * activation_bits / 8


# A prompt in chunks


@formula("kernel_items", "fla")
def chunk_items(batch, seq, linear_value_heads, delta_chunk):
    """Work items of a prompt: the chunks of every sequence and head. A partial chunk counts as a fraction.

    >>> chunk_items(batch=2, seq=4096, linear_value_heads=32, delta_chunk=64)
    4096.0
    """
    return batch * linear_value_heads * seq / delta_chunk


@formula("kernel_steps", "fla")
def chunk_steps(seq, delta_chunk):
    """Sequential steps of a prompt: a sequence's chunks, because each needs the state that the one before leaves.

    >>> chunk_steps(seq=4096, delta_chunk=64)
    64.0
    """
    return ceiling(seq / delta_chunk)


def _ends(batch, seq, key_heads, value_heads, key_dim, value_dim, gates, bits):
    keys, values = (2 * key_heads + gates * value_heads) * key_dim, 2 * value_heads * value_dim
    return batch * seq * (keys + values) * bits / 8


@formula("traffic", _DELTA, _KDA)
def state_prompt_traffic(
    batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, linear_bits, key_gates,
    activation_bits,
):  # fmt: skip
    """Least bytes moved over a prompt: queries, keys, gates, values and results once, and the state read and written.

    >>> kimi = dict(linear_key_heads=96, linear_value_heads=96, linear_key_dim=128, linear_value_dim=128)
    >>> state_prompt_traffic(kimi, batch=1, seq=4096, linear_bits=32, key_gates=1, activation_bits=16) / 1e6
    515.899392
    """
    ends = _ends(
        batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, key_gates, activation_bits
    )
    return ends + 2 * batch * linear_value_heads * linear_key_dim * linear_value_dim * linear_bits / 8


@formula("flops", _MAMBA)
def ssd_flops(batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, delta_chunk):
    """FLOPs of Mamba-2 over a prompt: scores and values within chunks, and each chunk's state written and read.

    >>> nemotron = dict(linear_key_heads=8, linear_value_heads=128, linear_key_dim=128, linear_value_dim=64)
    >>> ssd_flops(nemotron, batch=1, seq=1, delta_chunk=128)
    6553600.0
    """
    within = delta_chunk * (linear_key_heads * linear_key_dim + linear_value_heads * linear_value_dim)
    return 2 * batch * seq * (within + 2 * linear_value_heads * linear_key_dim * linear_value_dim)


@formula("traffic", _MAMBA)
def ssd_traffic(
    batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, linear_bits, delta_chunk,
    activation_bits,
):  # fmt: skip
    """Bytes moved by Mamba-2's kernels over a prompt: tokens, scores within chunks, and the states of chunks.

    >>> nemotron = dict(linear_key_heads=8, linear_value_heads=128, linear_key_dim=128, linear_value_dim=64)
    >>> ssd_traffic(nemotron, batch=1, seq=128, linear_bits=32, delta_chunk=128, activation_bits=16) / 128
    192512.0
    """
    keys, values = linear_key_heads * linear_key_dim, linear_value_heads * linear_value_dim
    ends = 4 * keys + 3 * values + 2 * linear_key_heads * delta_chunk
    states = 4 * values * linear_key_dim / delta_chunk
    return batch * seq * (ends * activation_bits + states * linear_bits) / 8


# Decoding


@formula("kernel_items", _MEASURED)
def recurrent_items(batch, seq, linear_value_heads):
    """Work items of decoding: new tokens of every sequence and head (more than one with speculative decoding).

    >>> recurrent_items(batch=64, seq=1, linear_value_heads=32)
    2048.0
    """
    return batch * seq * linear_value_heads


@formula("traffic", _DELTA, _KDA, _MAMBA)
def recurrent_traffic(
    batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, linear_bits, key_gates,
    activation_bits,
):  # fmt: skip
    """Bytes moved in decoding: a state read once, and written after each new token, because drafts may be rejected.

    >>> kimi = dict(linear_key_heads=96, linear_value_heads=96, linear_key_dim=128, linear_value_dim=128)
    >>> known = dict(kimi, batch=1, linear_bits=32, key_gates=1, activation_bits=16)
    >>> [round(recurrent_traffic(known, seq=n) / 1e6, 2) for n in (1, 4)]
    [12.71, 31.95]
    """
    ends = _ends(
        batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, key_gates, activation_bits
    )
    return ends + (1 + seq) * batch * linear_value_heads * linear_key_dim * linear_value_dim * linear_bits / 8


# Time


@formula("kernel_time", "yang2024 §3.3", _MEASURED)
def state_kernel_time(
    launch_time, kernel_items, core_time, cores, kernel_steps, chunk_step, traffic, resident_share, l2_bandwidth,
    bandwidth_efficiency, hbm_bandwidth,
):  # fmt: skip
    """Time of a kernel with a state: launch, then the longest of the cores' work, the sequential steps and the traffic.

    >>> rates = dict(cores=132, hbm_bandwidth="3.35 TB/s", bandwidth_efficiency=0.78, l2_bandwidth="8 TB/s")
    >>> known = dict(rates, launch_time="20 us", core_time="23 us", chunk_step="2.5 us", resident_share=0)
    >>> 1e6 * state_kernel_time(known, kernel_items=4096, kernel_steps=64, traffic="100 MB")
    733.696969...
    """
    worked = kernel_items * core_time / cores
    read = (1 - resident_share) * traffic / (bandwidth_efficiency * hbm_bandwidth)
    moved = read + resident_share * traffic / l2_bandwidth
    return launch_time + Max(worked, kernel_steps * chunk_step, moved, evaluate=False)


__all__ = [*formulas_of(__name__)]
