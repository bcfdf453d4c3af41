"""Systolic arrays: the closed form counts what an array that is run cycle by cycle takes."""

from itertools import product

import numpy as np
import pytest

from scalebook.machine.systolic import (
    array_cycles,
    array_cycles_in_turn,
    array_efficiency,
    array_tiles,
    execute,
    load_fast,
    peak_of_arrays,
    systolic,
)
from scalebook.tables import accelerators

from .every import every

ARRAYS = accelerators.having("arrays", "array_side", "peak_flops")


@every(product([2, 3, 5], [1, 3, 7, 12], [None, 1, 2], [(1, 2), (4, 6), (9, 11)]))
def test_the_array_is_run(side, rows, load, sizes):
    inner, columns = sizes
    rng = np.random.default_rng(side * rows)
    left, weight = rng.integers(-9, 9, (rows, inner)), rng.integers(-9, 9, (inner, columns))
    product, busy = execute(left, weight, side, load)
    assert (product == left @ weight).all()
    known = dict(rows=rows, inner=inner, columns=columns, array_side=side)
    assert len(busy) == array_cycles(known, load_cycles=load or side)
    assert busy.sum() == array_tiles(known) * rows * side**2  # zeros take as long as numbers
    asked = array_efficiency(known, load_cycles=load or side)
    assert asked == pytest.approx(rows * inner * columns / busy.size)


@pytest.mark.parametrize("side", [2, 3, 5])
def test_one_tile_is_that_of_scale_sim(side):
    """Twice the rows, the columns and the length, less two: what the simulator of others counts for a tile."""
    for rows in (1, 4, 9):
        _, busy = execute(np.ones((rows, side)), np.ones((side, side)), side)
        known = dict(rows=rows, inner=side, columns=side, array_side=side)
        assert len(busy) == 3 * side + rows - 2 == array_cycles(known) == array_cycles_in_turn(known)


def test_many_tiles_in_turn_take_longer():
    known = dict(rows=np.array([8, 128, 4096]), inner=4096, columns=4096, array_side=128)
    assert (array_cycles(known) < array_cycles_in_turn(known)).all()


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 512])
def test_many_tiles_cost_what_aws_states_of_trainium(rows):
    """A multiplication by a whole tile takes max(min(64, columns of the tile), rows) cycles, one after the other."""
    one, two = (
        array_cycles(rows=rows, inner=128 * n, columns=128, array_side=128, load_cycles=load_fast(array_side=128))
        for n in (100, 101)
    )
    assert two - one == max(64, rows)


def test_long_and_whole_is_full_and_short_is_not():
    sizes = dict(inner=8192, columns=8192, array_side=128)
    shares = systolic(sizes, rows=np.array([1, 32, 64, 128, 8192])).array_efficiency
    assert shares[-1] > 0.999 and (np.diff(shares) > 0).all()
    assert shares[:3] == pytest.approx(np.array([1, 32, 64]) / 128, rel=0.01)


@pytest.mark.parametrize("key", ARRAYS)
def test_peaks_ask_for_a_clock_that_a_chip_may_have(key):
    """Of what is published arrays and sides fit the peak: but of the v6e, as its note says."""
    clock = peak_of_arrays.solve("clock")(ARRAYS[key].at("bf16"))
    assert 0.9e9 < clock < 3e9 or (key == "tpu_v6e" and "3.5 GHz" in ARRAYS[key].cells["arrays"].note)
