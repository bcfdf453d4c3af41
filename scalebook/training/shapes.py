"""The shape of a dense model: its width and depth, from its size and aspect, and what they mean for a step.

The feed-forward layer is four times as wide as the model, heads share the width, biases and norms do not count.

>>> from scalebook.tables import models
>>> hidden_of_size(params=1e12, aspect=aspect_of_shape(models.poster_1t)) / models.poster_1t.hidden
1.025...
"""

from sympy import Rational

from scalebook.language import Sheet, formula

__all__ = [
    "aspect_of_shape", "attention_share_wide", "block_params_wide", "hidden_of_size", "layers_of_size",
    "params_of_shape", "saved_activations_whole", "shape",
]  # fmt: skip


@formula("aspect", "isaev2023 table I")
def aspect_of_shape(hidden, layers):
    """Width over depth.

    >>> aspect_of_shape(hidden=24576, layers=128)
    192.0
    """
    return hidden / layers


@formula("params", "kaplan2020 table 1")
def params_of_shape(layers, hidden):
    """Four matrices of attention and eight of the feed-forward layer, each as wide as the model; no embeddings.

    >>> params_of_shape(layers=128, hidden=25600) / 1e12
    1.00663296
    """
    return 12 * layers * hidden**2


@formula("hidden", "kaplan2020 table 1", "isaev2023 table II")
def hidden_of_size(params, aspect):
    """The width of a model of this size and aspect.

    >>> round(hidden_of_size(params=1e12, aspect=200))
    25544
    """
    return (params * aspect / 12) ** Rational(1, 3)


@formula("layers", "kaplan2020 table 1", "isaev2023 table II")
def layers_of_size(params, aspect):
    """The depth of a model of this size and aspect.

    >>> round(layers_of_size(params=1e12, aspect=200), 1)
    127.7
    """
    return (params / (12 * aspect**2)) ** Rational(1, 3)


@formula("block_params", "kaplan2020 table 1")
def block_params_wide(hidden):
    """What one block has, and what must be near while it is at work.

    >>> block_params_wide(hidden=148480) / 1e9
    264.5557248
    """
    return 12 * hidden**2


@formula("attention_share", "kaplan2020 table 1")
def attention_share_wide(seq, hidden):
    """Scores and values beside the matrices, every token attending to all.

    >>> round(attention_share_wide(seq=8192, hidden=24576), 3)
    0.053
    """
    return seq / (6 * hidden + seq)


@formula("all_saved", "korthikanti2022 §5")
def saved_activations_whole(kept_values, batch, seq, hidden, layers, activation_bits, tp):
    """What all blocks keep of one micro-batch for the backward pass.

    >>> saved_activations_whole(kept_values=17, batch=1, seq=8192, hidden=24576, layers=128, activation_bits=16,
    ...                         tp=8) / 1e9
    109.521666048
    """
    return kept_values * batch * seq * hidden * layers * activation_bits / 8 / tp


shape = Sheet(
    "shape", hidden_of_size, layers_of_size, block_params_wide, attention_share_wide, saved_activations_whole,
    doc="Width and depth from size and aspect, and what one block and one micro-batch then hold.",
)  # fmt: skip
