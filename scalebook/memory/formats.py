"""Number formats: what a value takes with its share of scales, what a pruned weight takes, what rounding does.

How many bits a value takes and how large its rounding error is follow from the format.  What a model makes of that
error does not: accuracy is measured, and nothing here predicts it.

>>> from scalebook.tables import precisions
>>> weight_bits_scaled(element_bits=4, scale_bits=8, zero_bits=0, block_values=16), precisions.nvfp4.weight_bits
(4.5, 4.5)
>>> weight_bits_pruned(element_bits=16, place_bits=2, kept_weights=2, group_weights=4)
9.0
"""

from sympy import sqrt

from scalebook.language import formula

__all__ = ["rounding_noise", "step_gain", "weight_bits_pruned", "weight_bits_scaled"]


@formula("weight_bits", "ocp-mx §5.2", "lin2023")
def weight_bits_scaled(element_bits, scale_bits, zero_bits, block_values):
    """The value itself, and its share of what a block of values has in common: a scale, and with some a zero point.

    >>> weight_bits_scaled(element_bits=4, scale_bits=16, zero_bits=4, block_values=128)
    4.15625
    """
    return element_bits + (scale_bits + zero_bits) / block_values


@formula("weight_bits", "mishra2021 §3.1")
def weight_bits_pruned(element_bits, place_bits, kept_weights, group_weights):
    """Of every group some weights are kept, each with where in the group it stands.

    >>> weight_bits_pruned(element_bits=8, place_bits=2, kept_weights=2, group_weights=4)
    5.0
    """
    return (element_bits + place_bits) * kept_weights / group_weights


@formula("rounding_noise", "bennett1948")
def rounding_noise(peak_ratio, levels):
    """Even steps up to the largest value of a block; an error is anything within half a step, alike.

    Its square is a twelfth of the step's on the mean.  Values that all round to zero, and steps that are not even, as
    those of floating point, are different.

    >>> round(rounding_noise(peak_ratio=3, levels=127), 4), round(rounding_noise(peak_ratio=3, levels=7), 3)
    (0.0068, 0.124)
    """
    return peak_ratio / (levels * sqrt(12))


@formula("step_gain", "amdahl1967")
def step_gain(faster_share, part_gain):
    """What becomes faster is some share of the time; the rest stays.

    >>> round(step_gain(faster_share=0.7, part_gain=2), 3)
    1.538
    """
    return 1 / (1 - faster_share + faster_share / part_gain)
