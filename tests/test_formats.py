"""Number formats: the bits of the table of precisions, the noise of rounding, and what Amdahl leaves."""

import numpy as np
import pytest

from scalebook.memory import number_range, rounding_noise, weight_bits_scaled
from scalebook.tables import precisions


@pytest.mark.parametrize(("key", "element", "scale", "zero", "block"), [
    ("mxfp8", 8, 8, 0, 32), ("mxfp6", 6, 8, 0, 32), ("mxfp4", 4, 8, 0, 32), ("nvfp4", 4, 8, 0, 16),
    ("int4", 4, 16, 4, 128),
])  # fmt: skip
def test_the_table_counts_scales_as_the_formula_does(key, element, scale, zero, block):
    said = weight_bits_scaled(element_bits=element, scale_bits=scale, zero_bits=zero, block_values=block)
    assert said == precisions[key].weight_bits


@pytest.mark.parametrize("levels", [7, 31, 127])
def test_the_noise_of_rounding_is_that_of_a_simulation(levels):
    values = np.random.default_rng(0).normal(size=(500, 256))
    step = abs(values).max(axis=1, keepdims=True) / levels
    seen = np.std(np.round(values / step) * step - values)
    said = rounding_noise(peak_ratio=abs(values).max(axis=1).mean(), levels=levels)
    assert seen == pytest.approx(said, rel=0.03)


@pytest.mark.parametrize(("key", "kind"), [("fp16", np.float16), ("fp32", np.float32)])
def test_range_and_precision_are_those_of_the_numbers_that_numpy_has(key, kind):
    said, seen = number_range(precisions[key]), np.finfo(kind)
    assert said.largest_number == float(seen.max)
    assert said.least_number == float(seen.smallest_subnormal)
    assert said.unit_roundoff == float(seen.eps) / 2


def test_bf16_is_fp32_with_sixteen_bits_cut_off():
    """Its largest number, its smallest and its half step, from bits."""

    def made(bits):
        return float(np.array(bits << 16, np.uint32).view(np.float32))

    said = number_range(precisions.bf16)
    assert said.largest_number == made(0x7F7F) and said.least_number == made(0x0001)
    assert said.unit_roundoff == (made(0x3F81) - 1) / 2


def _numbers(exponent, mantissa, top):
    """All positive numbers of a format whose last `top` patterns are none."""
    bias, ones = 2 ** (exponent - 1) - 1, 2**mantissa
    every = [
        (m / ones) * 2.0 ** (1 - bias) if e == 0 else (1 + m / ones) * 2.0 ** (e - bias)
        for e in range(2**exponent)
        for m in range(ones)
    ]
    return every[1 : len(every) - top]


@pytest.mark.parametrize(("key", "top"), [("fp8", 1), ("fp4", 0)])
def test_the_narrowest_formats_by_all_their_numbers(key, top):
    row = precisions[key]
    every = _numbers(int(row.exponent_bits), int(row.mantissa_bits), top)
    assert max(every) == row.largest_number == number_range(row).largest_number
    assert min(every) == number_range(row).least_number
