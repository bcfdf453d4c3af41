"""Whole tiles and whole waves: what they must be, whatever the sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook.machine import tiles as tiling
from scalebook.machine.kernels import matrix_product
from scalebook.machine.tiles import fill, shapes, sharded_columns, tile_efficiency, wave_efficiency
from scalebook.tables import accelerators

SIZES = st.integers(1, 40_000)
EDGES = st.sampled_from([16, 64, 96, 128, 160, 256])
CORES = st.sampled_from([80, 108, 132, 148, 256, 304])


@given(SIZES, SIZES, EDGES, EDGES, CORES)
def test_no_share_exceeds_one_and_both_are_the_fill(rows, columns, high, wide, cores):
    size = dict(rows=rows, columns=columns, tile_rows=high, tile_columns=wide)
    by_tiles, by_waves = tile_efficiency(size), wave_efficiency(size, copies=1, cores=cores)
    assert 0 < by_tiles <= 1 and 0 < by_waves <= 1
    assert fill(size, copies=1, cores=cores) == pytest.approx(by_tiles * by_waves)
    assert (by_tiles == 1) == (rows % high == 0 and columns % wide == 0)


def test_the_fill_is_what_kernels_lose():
    """Where arithmetic sets the time, the fill alone tells two sizes of one kernel apart."""
    h100, fixed = accelerators.h100.at("bf16"), dict(rows=4096, copies=1, tile_rows=128, tile_columns=256)
    columns, alone = np.arange(4096, 16385, 32), dict(hbm_bandwidth=1e17, kernel_launch=0)
    run = matrix_product(h100, fixed, columns=columns, inner=8192, activation_bits=16, weight_bits=16, **alone)
    said = fill(fixed, columns=columns, cores=h100.cores)
    assert np.ptp(run.matmul_share / said) < 1e-9


@pytest.mark.parametrize("key, columns", [("h100", 8448), ("b200", 9472), ("mi300x", 4864), ("mi355x", 4096)])
def test_the_width_that_fills_a_device(key, columns):
    size = dict(rows=4096, tile_rows=256, tile_columns=256, cores=accelerators[key].cores)
    found = [tiling.whole_waves_columns(size, waves=n) for n in range(1, 33)]
    assert columns in found and fill(size, columns=columns, copies=1) == 1
    assert (fill(size, columns=8192, copies=1) == 1) == (key == "mi355x")  # of these, a power of two of cores


def test_a_power_of_two_splits_evenly_and_another_is_refused():
    assert all(sharded_columns(weight_columns=8192, tp=2**n) == 2 ** (13 - n) for n in range(14))
    assert shapes(weight_columns=np.array([3700, 3712]), tp=4, rows=256, copies=1, tile_rows=64, tile_columns=64,
                  cores=8).columns.tolist() == [925, 928]  # fmt: skip
