"""Number formats: the bits of the table of precisions, the noise of rounding, and what Amdahl leaves."""

import numpy as np
import pytest

from scalebook.memory import rounding_noise, step_gain, weight_bits_pruned, weight_bits_scaled
from scalebook.tables import precisions


@pytest.mark.parametrize(
    ("key", "element", "scale", "zero", "block"),
    [
        ("mxfp8", 8, 8, 0, 32),
        ("mxfp6", 6, 8, 0, 32),
        ("mxfp4", 4, 8, 0, 32),
        ("nvfp4", 4, 8, 0, 16),
        ("int4", 4, 16, 4, 128),
    ],
)
def test_the_table_counts_scales_as_the_formula_does(key, element, scale, zero, block):
    said = weight_bits_scaled(element_bits=element, scale_bits=scale, zero_bits=zero, block_values=block)
    assert said == precisions[key].weight_bits


def test_two_of_four_take_more_than_half():
    for bits in (4, 8, 16):
        said = weight_bits_pruned(element_bits=bits, place_bits=2, kept_weights=2, group_weights=4)
        assert said == bits / 2 + 1


@pytest.mark.parametrize("levels", [7, 31, 127])
def test_the_noise_of_rounding_is_that_of_a_simulation(levels):
    values = np.random.default_rng(0).normal(size=(500, 256))
    step = abs(values).max(axis=1, keepdims=True) / levels
    seen = np.std(np.round(values / step) * step - values)
    said = rounding_noise(peak_ratio=abs(values).max(axis=1).mean(), levels=levels)
    assert seen == pytest.approx(said, rel=0.03)


def test_a_part_that_becomes_endlessly_faster_leaves_the_rest():
    assert step_gain(faster_share=0.75, part_gain=1e12) == pytest.approx(4)
    assert step_gain(faster_share=0.5, part_gain=1) == 1
