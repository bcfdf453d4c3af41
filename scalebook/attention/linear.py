"""Linear attention with a state that each token corrects (Gated DeltaNet): its arithmetic."""

from scalebook.language import constant, formula

__all__ = ["delta_chunk", "delta_flops", "linear_bits_wide"]

_HERE = "yang2024 §3.3"

delta_chunk = constant(
    "delta_chunk", "delta_chunk", 64, "fla",
    "Default tokens of a prompt per chunk: 64, as in the kernels of flash-linear-attention.",
)  # fmt: skip

linear_bits_wide = constant(
    "linear_bits_wide", "linear_bits", 32, "qwen3-next",
    "Default width of the state: 32 bits, since every token adds to it.",
)  # fmt: skip


@formula("attention_flops", _HERE)
def delta_flops(batch, seq, linear_value_heads, linear_key_dim, linear_value_dim, delta_chunk):
    """FLOPs of Gated DeltaNet over a prompt: per token three products with the state; per chunk five and a solve.

    >>> one = dict(batch=1, seq=64, linear_value_heads=1, linear_key_dim=128, linear_value_dim=128)
    >>> delta_flops(one, delta_chunk=64) / 64
    182954.66...
    """
    within = delta_chunk * (3 * linear_key_dim + 2 * linear_value_dim) + delta_chunk**2 / 3
    return 2 * batch * seq * linear_value_heads * (3 * linear_key_dim * linear_value_dim + within)
