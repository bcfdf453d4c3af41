"""The shape of a dense model: width and depth from its size and aspect ratio, and their effects on a step.

The feed-forward layer is four times as wide as the model, heads share the width, and biases and norms do not count.
"""

from sympy import Rational

from scalebook.language import Sheet, formula, formulas_of


@formula("aspect", "isaev2023 table I")
def aspect_of_shape(hidden, layers):
    """Aspect ratio: width over depth.

    >>> aspect_of_shape(hidden=24576, layers=128)
    192.0
    """
    return hidden / layers


@formula("params", "kaplan2020 table 1")
def params_of_shape(layers, hidden):
    """Parameters without embeddings: four h² attention matrices and eight h² of the feed-forward layer, in every block.

    >>> params_of_shape(layers=128, hidden=25600) / 1e12
    1.00663296
    """
    return 12 * layers * hidden**2


@formula("hidden", "kaplan2020 table 1", "isaev2023 table II")
def hidden_of_size(params, aspect):
    """Width of a model with this size and aspect ratio.

    >>> round(hidden_of_size(params=1e12, aspect=200))
    25544
    """
    return (params * aspect / 12) ** Rational(1, 3)


@formula("layers", "kaplan2020 table 1", "isaev2023 table II")
def layers_of_size(params, aspect):
    """Depth of a model with this size and aspect ratio (width over depth).

    >>> round(layers_of_size(params=1e12, aspect=200), 1)
    127.7
    """
    return (params / (12 * aspect**2)) ** Rational(1, 3)


@formula("block_params", "kaplan2020 table 1")
def block_params_wide(hidden):
    """Parameters of one block, which must be in device memory while the block is at work.

    >>> block_params_wide(hidden=148480) / 1e9
    264.5557248
    """
    return 12 * hidden**2


@formula("attention_share", "kaplan2020 table 1")
def attention_share_wide(seq, hidden):
    """Share of a block's FLOPs in attention's scores and values, if every token attends to all.

    >>> round(attention_share_wide(seq=8192, hidden=24576), 3)
    0.053
    """
    return seq / (6 * hidden + seq)


@formula("all_saved", "korthikanti2022 §5")
def saved_activations_whole(kept_values, batch, seq, hidden, layers, activation_bits, tp):
    """Bytes that all blocks keep of one micro-batch for the backward pass.

    >>> at = dict(batch=1, seq=8192, hidden=24576, layers=128, activation_bits=16)
    >>> saved_activations_whole(at, kept_values=17, tp=8) / 1e9
    109.521666048
    """
    return kept_values * batch * seq * hidden * layers * activation_bits / 8 / tp


shape = Sheet(
    "shape", hidden_of_size, layers_of_size, block_params_wide, attention_share_wide, saved_activations_whole,
    doc="Width and depth from size and aspect ratio, and the memory of one block and one micro-batch.",
)  # fmt: skip


__all__ = [*formulas_of(__name__), "shape"]
