"""Linear attention with a state that each token corrects (Gated DeltaNet): arithmetic and memory traffic."""

from scalebook.language import formula

__all__ = ["delta_flops", "delta_kernel_time", "delta_state_traffic", "delta_traffic"]

_HERE = "yang2024 §3.3"


@formula("attention_flops", _HERE)
def delta_flops(batch, seq, linear_value_heads, linear_key_dim, linear_value_dim, delta_chunk):
    """FLOPs of Gated DeltaNet over a prompt: per token three products with the state; per chunk five and a solve.

    >>> one = dict(batch=1, seq=64, linear_value_heads=1, linear_key_dim=128, linear_value_dim=128)
    >>> delta_flops(one, delta_chunk=64) / 64
    182954.66...
    """
    within = delta_chunk * (3 * linear_key_dim + 2 * linear_value_dim) + delta_chunk**2 / 3
    return 2 * batch * seq * linear_value_heads * (3 * linear_key_dim * linear_value_dim + within)


@formula("traffic", _HERE)
def delta_traffic(
    batch, seq, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, delta_chunk, activation_bits
):
    """Bytes moved by Gated DeltaNet over a prompt, with one kernel after another.

    Queries, keys and values are read twice and written once; results are written once. The corrections and the states
    of chunks are written and read.

    >>> heads = dict(linear_key_heads=16, linear_value_heads=64, linear_key_dim=128, linear_value_dim=128)
    >>> delta_traffic(heads, batch=1, seq=1, delta_chunk=64, activation_bits=16)
    221184.0
    """
    keys, values = linear_key_heads * linear_key_dim, linear_value_heads * linear_value_dim
    corrected = linear_value_heads * (linear_key_dim + linear_value_dim)
    states = values * linear_key_dim / delta_chunk
    moved = 3 * (2 * keys + values) + values + 2 * corrected + 2 * states
    return batch * seq * moved * activation_bits / 8


@formula("traffic", "yang2024 §3")
def delta_state_traffic(batch, linear_state, linear_bits, linear_layers, tp):
    """Bytes moved per decode step for one layer on a device: the sequence's state read and written, however long it is.

    >>> delta_state_traffic(batch=1, linear_state=48844800, linear_bits=32, linear_layers=45, tp=8)
    1085440.0
    """
    return 2 * batch * linear_state * linear_bits / (8 * linear_layers * tp)


@formula("kernel_time", _HERE)
def delta_kernel_time(attention_flops, peak_flops, traffic, bandwidth_efficiency, hbm_bandwidth):
    """Time of Gated DeltaNet over a prompt: arithmetic and traffic in sum, since its small kernels overlap little.

    >>> rates = dict(peak_flops="989.4 TFLOP/s", bandwidth_efficiency=0.8, hbm_bandwidth="3.35 TB/s")
    >>> 1e3 * delta_kernel_time(rates, attention_flops="1 TFLOP", traffic="1 GB")
    1.383847...
    """
    return attention_flops / peak_flops + traffic / (bandwidth_efficiency * hbm_bandwidth)
