"""Speedup of low-precision products within a step, including the cast of their inputs."""

from scalebook.language import formula

__all__ = ["eager_experts_time", "part_gain_cast"]


@formula("part_gain", "deepseek2024-v3 §3.3")
def part_gain_cast(
    columns, peak_bf16, matmul_bf16, peak_flops, matmul_efficiency, activation_bits, quantized_bits, hbm_bandwidth,
    stream_efficiency,
):  # fmt: skip
    """Speedup of a low-precision product over a 16-bit one, if its activations are cast first.

    The cast reads activations in high precision and writes two low-precision copies, one as stored and one transposed.
    Rows and inner size cancel, because casting and multiplying both grow with them. The cast is a kernel of its own
    here; fused into the previous kernel it costs less. Writing results, kernel starts and partly filled tiles are left
    out.

    >>> part_gain_cast(columns=8192, peak_bf16="1 PFLOP/s", matmul_bf16=0.8, peak_flops="2 PFLOP/s",
    ...                matmul_efficiency=0.8, activation_bits=16, quantized_bits=8, hbm_bandwidth="4 TB/s",
    ...                stream_efficiency=0.8).__round__(3)
    1.782
    """
    wide = 2 * columns / (peak_bf16 * matmul_bf16)  # for one row and one unit of inner size
    narrow = 2 * columns / (peak_flops * matmul_efficiency)
    cast = (activation_bits + 2 * quantized_bits) / 8 / (hbm_bandwidth * stream_efficiency)
    return wide / (narrow + cast)


@formula("eager_time", "megatron-bridge")
def eager_experts_time(batch, seq, top_k, expert_ffn, activation_bits, expert_passes, hbm_bandwidth, stream_efficiency):
    """Time of unfused biases and activations of experts.

    Each step reads and writes the experts' activations of every token.

    >>> eager_experts_time(batch=1, seq=4096, top_k=4, expert_ffn=2880, activation_bits=16, expert_passes=100,
    ...                    hbm_bandwidth="3.35 TB/s", stream_efficiency=0.8).__round__(4)
    0.0035
    """
    held = batch * seq * top_k * expert_ffn * activation_bits / 8
    return expert_passes * held / (hbm_bandwidth * stream_efficiency)
