"""Systolic arrays: the closed form counts what an array that is run cycle by cycle takes."""

from itertools import product

import numpy as np
import pytest
from scalebook.book.drawings.systolic import execute

from scalebook import accelerators, models, training_step
from scalebook.machine import systolic as arrays
from scalebook.machine.systolic import array_cycles, array_efficiency
from scalebook.training.assumptions import attended_tiles, attended_tiles_chunks, attended_tiles_windows

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
    assert busy.sum() == arrays.array_tiles(known) * rows * side**2  # zeros take as long as numbers
    asked = array_efficiency(known, load_cycles=load or side)
    assert asked == pytest.approx(rows * inner * columns / busy.size)


@pytest.mark.parametrize("key", ARRAYS)
def test_peaks_ask_for_a_clock_that_a_chip_may_have(key):
    """Of what is published arrays and sides fit the peak: but of the v6e, as its note says."""
    clock = arrays.peak_of_arrays.solve("clock")(ARRAYS[key].at("bf16"))
    assert 0.9e9 < clock < 3e9 or (key == "tpu_v6e" and "3.5 GHz" in ARRAYS[key].cells["arrays"].note)


@every(product([64, 192, 256], [1, 16, 64, 512], [None, 1, 16, 17, 40]))
def test_a_tile_is_computed_whole_if_anything_in_it_is_wanted(seq, tile, window):
    """A mask, and the tiles of it that are not all masked, counted one by one."""
    query, key = np.mgrid[:seq, :seq]
    wanted = (key <= query) & (query - key < (window or seq))
    side = min(tile, seq)
    touched = wanted.reshape(seq // side, side, seq // side, side).any((1, 3))
    known = dict(seq=seq, layers=4, attention_tile=tile)
    if window is None:
        assert attended_tiles(seq=seq, attention_tile=tile) == pytest.approx(touched.mean())
    else:
        assert attended_tiles_windows(known, window_layers=4, window=window) == pytest.approx(touched.mean())


@every(product([256], [1, 16, 64], [64, 128, 256]))
def test_chunks_are_of_whole_tiles(seq, tile, chunk):
    query, key = np.mgrid[:seq, :seq]
    wanted = (key <= query) & (query // chunk == key // chunk)
    touched = wanted.reshape(seq // tile, tile, seq // tile, tile).any((1, 3))
    known = dict(seq=seq, layers=4, window_layers=4, window=chunk, attention_tile=tile)
    assert attended_tiles_chunks(known) == pytest.approx(touched.mean())


def test_a_step_on_a_tpu_is_priced_by_its_arrays_without_being_told():
    """The device's row decides, not the caller: what fills its arrays, and its tiles."""
    on = dict(dp=64, batch=2, global_batch=128, seq=4096)
    v7, h100 = accelerators.tpu_v7.at("bf16"), accelerators.h100.at("bf16")
    gpt, deepseek = training_step(models.gpt_oss_120b, v7, **on), training_step(models.deepseek_v3, v7, **on)
    assert gpt.attention_efficiency == pytest.approx(v7.attention_whole / 4)  # heads of 64 in arrays of 256
    assert gpt.grouped_efficiency == pytest.approx(v7.grouped_whole * (2880 / 3072) ** 2)
    assert deepseek.grouped_efficiency == v7.grouped_whole  # 7,168 and 2,048 fill theirs
    assert gpt.attended_share == attended_tiles_windows(models.gpt_oss_120b, v7, seq=4096)
    told = training_step(models.gpt_oss_120b, v7, **on, attention_efficiency=0.5, attended_share=0.5)
    assert (told.attention_efficiency, told.attended_share) == (0.5, 0.5)
    usual = training_step(models.gpt_oss_120b, h100, **on)
    own = h100.attention_efficiency, h100.training_efficiency
    assert (usual.attention_efficiency, usual.grouped_efficiency) == own
    assert usual.attended_share < gpt.attended_share


def test_an_expert_that_is_split_fills_arrays_by_what_a_device_has_of_it():
    """As wide as experts of that width that are whole; and never better than not split."""
    v7, known = accelerators.tpu_v7.at("bf16"), dict(dp=4, tp=16, ep=4, batch=1, global_batch=16, seq=4096)
    found = [training_step(models.gpt_oss_120b, v7, known, etp=etp).grouped_efficiency for etp in (1, 2, 16)]
    fills = [2880 / 3072, 1440 / 1536, 180 / 256]  # 12, 6 and 1 arrays
    assert found == pytest.approx([v7.grouped_whole * (2880 / 3072) * fill for fill in fills])


def test_arrays_of_others_keep_the_usual_share():
    """Trainium's arrays are known, what its attention reaches of them is not."""
    run = training_step(models.llama3_8b, accelerators.trainium1, dp=16, global_batch=16, seq=4096)
    assert (run.attention_efficiency, run.attended_share) == (0.55, 0.5)


def test_latent_attention_fills_arrays_by_two_widths():
    """Scores and mixes take turns, each at its own rate: the harmonic mean by their arithmetic."""
    known = dict(attention_whole=0.7, array_side=256)
    keys, values = (arrays.attention_efficiency_arrays(known, head_dim=x) for x in (192, 128))
    found = arrays.attention_efficiency_arrays_latent(known, nope_dim=128, rope_dim=64, v_dim=128)
    assert found == pytest.approx(320 / (192 / keys + 128 / values))
