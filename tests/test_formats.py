"""Number formats: their largest and their smallest numbers."""

import numpy as np
import pytest

from scalebook.memory import number_range
from scalebook.tables import precisions


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
