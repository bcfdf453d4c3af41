"""Quantities that follow from a model's shape alone. Each row of `models` has them from the formula that fits it."""

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations

equations(__name__)  # those of shapes.toml


@formula("linear_state", "yang2024 §3")
def linear_state(linear_layers, linear_key_heads, linear_key_dim, linear_value_heads, linear_value_dim, linear_conv):
    """Values in the state of Gated DeltaNet: a key by value matrix per value head, and the inputs of convolutions.

    A convolution keeps one input per unit of its width, as in transformers; engines may keep one less.

    >>> qwen = dict(linear_key_heads=16, linear_key_dim=128, linear_value_heads=64, linear_value_dim=128)
    >>> linear_state(qwen, linear_layers=45, linear_conv=4)
    49397760.0
    """
    keys, values = linear_key_heads * linear_key_dim, linear_value_heads * linear_value_dim
    return linear_layers * (values * linear_key_dim + linear_conv * (2 * keys + values))


@formula("linear_params", "qwen3-next")
def linear_params(hidden, linear_key_heads, linear_key_dim, linear_value_heads, linear_value_dim, linear_conv):
    """Parameters of Gated DeltaNet as in Qwen3-Next: projections, a convolution, decays with biases, and a gain.

    >>> qwen = dict(linear_key_heads=16, linear_key_dim=128, linear_value_heads=64, linear_value_dim=128)
    >>> linear_params(qwen, hidden=4096, linear_conv=4)
    118014208.0
    """
    keys, values = linear_key_heads * linear_key_dim, linear_value_heads * linear_value_dim
    projections = hidden * (2 * keys + 3 * values + 2 * linear_value_heads)
    return projections + linear_conv * (2 * keys + values) + 2 * linear_value_heads + linear_value_dim


__all__ = [*formulas_of(__name__)]
