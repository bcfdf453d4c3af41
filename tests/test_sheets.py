"""Every sheet of the package, and what a sheet can do."""

import pickle

import numpy as np
import pytest

from scalebook import accelerators, decoding, models, training_step
from scalebook.language import NOTATION, Formula, Sheet, code, symbol
from scalebook.machine.roofline import compute_time, memory_time, roofline, roofline_time
from scalebook.memory.serving import full_attention, kv_cache

from .support import SHEETS, agree, refuses

every = pytest.mark.parametrize("sheet", SHEETS, ids=lambda s: s.name)
GIVEN = {"batch": 8, "context": 8192, "weight_bits": 16, "kv_bits": 16}
KERNEL = {"flops": "2 TFLOP", "traffic": "4 GB", "peak_flops": "1 PFLOP/s", "hbm_bandwidth": "2 TB/s"}


def equation(letter, text, name="f"):
    """A formula of a letter, for a test."""
    return Formula(name, letter, eval(text, {n: symbol(n) for n in NOTATION}))


@every
def test_python_numpy_and_javascript_agree(sheet):
    outputs = list(sheet.formulas)
    point = code.point(sheet.inputs, [(n, f.guarded) for n, f in sheet.formulas.items()], outputs)
    for row, fine in agree(sheet, 60, rel=1e-11):
        if len(fine) == len(outputs):
            assert dict(zip(outputs, point(**row), strict=True)) == pytest.approx(fine, rel=1e-11)


@every
def test_shows(sheet):
    assert sheet.sources
    for text in (repr(sheet), sheet._repr_html_()):
        assert sheet.name in text
    assert len(repr(sheet).splitlines()) == len(sheet.formulas) + 1


def test_code_is_made_once_for_the_same_letters():
    sheet = Sheet("kernel", *roofline.formulas.values())
    code._compiled.cache_clear()
    for flops in (1e12, 2e12, 3e12):
        sheet(KERNEL, flops=flops)
    assert code._compiled.cache_info().misses == 1
    unusual = dict(optimizer="sgd", sharding="zero3", recompute="layernorm")  # no other test has compiled its sheet
    run = training_step(models.llama3_8b, accelerators.h100, dp=8, global_batch=128, seq=8192, **unusual)
    made = code._compiled.cache_info().misses
    assert run.call.again(pp_overlap=0, etp=1).step_time == run.step_time
    assert code._compiled.cache_info().misses == made, "copies need no code"


def test_a_row_of_everything_that_follows():
    row = roofline(**KERNEL)
    assert row.compute_time == 0.002 and row["memory_time"] == 0.002 and row.intensity == row.ridge_intensity == 500
    assert set(row) == {*roofline.inputs, *roofline.formulas}
    assert roofline(row, flops=4e12).compute_time == 0.004
    for name, f in roofline.formulas.items():
        assert f(row) == row[name]


def test_arrays_in_and_out():
    flops = np.geomspace(1e9, 1e15, 7)
    row = roofline(KERNEL, flops=flops)
    assert row.roofline_time.shape == (7,)
    assert row.roofline_time == pytest.approx(np.maximum(flops / 1e15, 0.002))
    many = roofline(KERNEL, flops=np.full(3 * code.BLOCK + 5, 2e12))
    assert (many.compute_time == 0.002).all() and many.compute_time.shape == (3 * code.BLOCK + 5,)


def test_all_devices_at_once():
    devices = accelerators.having("peak_flops")
    row = roofline(devices.columns, flops=1e12, traffic=1e9)
    assert list(row.compute_time) == [1e12 / x.peak_flops for x in devices.values()]


def test_using_swaps_and_calls_take_formulas_too():
    row = decoding.using(full_attention)(models.gpt_oss_120b, accelerators.h200, **GIVEN)
    assert row.cached == 8192 and decoding(models.gpt_oss_120b, accelerators.h200, **GIVEN).cached < 8192
    assert decoding(full_attention, models.gpt_oss_120b, accelerators.h200, **GIVEN).memory_time == row.memory_time


def test_closed_form():
    f = roofline.formula("roofline_time")
    assert f.inputs == ("flops", "hbm_bandwidth", "peak_flops", "traffic")
    assert f(**KERNEL) == roofline(**KERNEL).roofline_time
    assert set(compute_time.sources + memory_time.sources + roofline_time.sources) == set(f.sources)
    assert "compute_time" in roofline.formula("roofline_time", keep=("compute_time",)).inputs
    point = {**models.llama3_8b, **accelerators.h100, **GIVEN}
    for name in decoding.formulas:
        f = decoding.formula(name)
        assert f(**{x: point[x] for x in f.inputs}) == pytest.approx(decoding(point)[name], rel=1e-12)


def test_why_goes_down_to_the_tables():
    row = decoding(models.llama3_8b, accelerators.h100, **GIVEN)
    text = repr(row.why("token_time"))
    assert text.startswith("token_time = Max(compute_time, memory_time) = Max(")
    assert "hbm_bandwidth = 3.35 TB/s  [NVIDIA H100 SXM: nvidia-h100" in text
    assert "batch = 8  [given]" in text and "    memory_time = " in text and "[as above]" in text
    page = row.why("token_time")._repr_html_()
    assert page.count("<details") == page.count("</details>") > 5 and "<script" not in page


def test_a_letter_without_a_value_says_so_and_stops_no_other():
    equations = dict(intensity="flops / (batch - 1)", kv_cache="2 * intensity", traffic="flops")
    sheet = Sheet("s", *(equation(letter, text) for letter, text in equations.items()))
    for batch, value in [(1, "nan"), ([1, 2], "inf")]:
        row = sheet(flops=1, batch=batch)
        assert "intensity" not in row and "kv_cache" not in row and np.all(row.traffic == 1)
        for name in ("intensity", "kv_cache"):
            said = f"{name} of s has no value here: intensity must be a finite number, not {value}"
            refuses(AttributeError, said, getattr, row, name)
    row = decoding(models.deepseek_v3, accelerators.h200, batch=1, context=4096, weight_bits=8, kv_bits=8)
    assert row.memory_time > 0 and "ridge_context" in row.missing
    assert row.missing["token_time"].endswith("; no weight_bits, kv_bits, batch or context alone would do")


def test_formulas_and_rows_travel_between_processes():
    for thing in (kv_cache, kv_cache.solve("context"), roofline_time.solve("traffic")):
        back = pickle.loads(pickle.dumps(thing))
        assert repr(back) == repr(thing) and back.sources == thing.sources
    row = roofline(KERNEL)
    assert dict(pickle.loads(pickle.dumps(row))) == dict(row)
    assert pickle.loads(pickle.dumps(models.llama3_8b)).why("kv_width").inputs
