"""Low-precision products with the cast of their inputs, and gradient accumulation over micro-batches."""

from scalebook.language import formula

__all__ = ["accumulation_share", "exchange_share_accumulated", "part_gain_cast"]


@formula("part_gain", "deepseek2024-v3 §3.3")
def part_gain_cast(
    columns, peak_bf16, matmul_bf16, peak_flops, matmul_efficiency, activation_bits, quantized_bits, hbm_bandwidth,
    stream_efficiency,
):  # fmt: skip
    """Speedup of a low-precision product over a 16-bit one, if a separate kernel casts its activations first.

    The cast writes two copies, one of them transposed. Results, kernel starts and partial tiles are left out.

    >>> at = dict(matmul_bf16=0.8, matmul_efficiency=0.8, stream_efficiency=0.8, activation_bits=16, quantized_bits=8)
    >>> part_gain_cast(at, columns=8192, peak_bf16=1e15, peak_flops=2e15, hbm_bandwidth=4e12).__round__(3)
    1.782
    """
    wide = 2 * columns / (peak_bf16 * matmul_bf16)  # for one row and one unit of inner size
    narrow = 2 * columns / (peak_flops * matmul_efficiency)
    cast = (activation_bits + 2 * quantized_bits) / 8 / (hbm_bandwidth * stream_efficiency)
    return wide / (narrow + cast)


@formula("exchange_share", "data-parallelism")
def exchange_share_accumulated(dp_exposed, microbatches, forward_time, input_gradient_time, weight_gradient_time):
    """Exposed time of a step's gradient sum, which happens once, over the compute time of all its micro-batches.

    >>> at = dict(forward_time=1, input_gradient_time=1, weight_gradient_time=0.5)
    >>> exchange_share_accumulated(at, dp_exposed=3, microbatches=30)
    0.04
    """
    return dp_exposed / (microbatches * (forward_time + input_gradient_time + weight_gradient_time))


@formula("accumulation_share", "kaplan2020 §2.1")
def accumulation_share(gradient_bits, batch, seq, peak_flops, matmul_efficiency, hbm_bandwidth, stream_efficiency):
    """Time to read and write all weight gradients in a micro-batch, over the time of its matrix products.

    It is an upper bound, because no traffic hides under arithmetic. `seq` is one device's part of a sequence.

    >>> rates = dict(peak_flops=1e15, matmul_efficiency=0.8, hbm_bandwidth=4e12, stream_efficiency=0.8)
    >>> accumulation_share(rates, gradient_bits=32, batch=1, seq=8192).__round__(3)
    0.041
    """
    traffic = 2 * gradient_bits / 8 / (hbm_bandwidth * stream_efficiency)
    return traffic / (6 * batch * seq / (peak_flops * matmul_efficiency))
