"""Linear attention with a state that each token corrects (Gated DeltaNet): its arithmetic."""

from scalebook.language import formula

__all__ = ["delta_flops"]

_HERE = "yang2024 §3.3"


@formula("attention_flops", _HERE)
def delta_flops(batch, seq, linear_value_heads, linear_key_dim, linear_value_dim, delta_chunk):
    """FLOPs of Gated DeltaNet over a prompt: three products with the state per token, five and a solve per chunk.

    >>> one = dict(batch=1, seq=64, linear_value_heads=1, linear_key_dim=128, linear_value_dim=128)
    >>> delta_flops(one, delta_chunk=64) / 64
    182954.66...
    """
    within = delta_chunk * (3 * linear_key_dim + 2 * linear_value_dim) + delta_chunk**2 / 3
    return 2 * batch * seq * linear_value_heads * (3 * linear_key_dim * linear_value_dim + within)
