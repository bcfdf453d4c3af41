"""Calculators without a browser: the words on the page are those of the sheet, in Python and in JavaScript."""

import json

import numpy as np
import pytest

from scalebook import accelerators, calculator, models
from scalebook.block import LLAMA
from scalebook.display.described import _wrapped
from scalebook.inference import decode_step, serve
from scalebook.inference.tokens import decoding, token_time
from scalebook.language import Formula, Sheet, show, symbol
from scalebook.machine.roofline import ridge_intensity
from scalebook.memory.serving import weight_memory
from scalebook.pipeline.bubbles import bubble_interleaved
from scalebook.training import (
    DEFAULT_LETTERS,
    Strategy,
    attention_peak_same,
    devices_of_ways,
    microbatches_of_batch,
    training_sheet,
)
from scalebook.training.assumptions import MEASURED
from tools.notebooks import notebooks

from .support import calculators, cases, each_case, live, on_page, printed, some_states

PRECISIONS = ["bf16", "fp16", "fp8", "fp4", "int8"]
CURVE = {
    "also": ["kv_cache", "max_batch", "idle_fraction", "decode_rate", "ridge_context", "latency_floor"],
    "curve": ["batch"], "precision": PRECISIONS, "device": accelerators, "model": models, "batch": (1, 512),
    "context": (1024, 131072), "weight_bits": [4, 8, 16], "kv_bits": [4, 8, 16],
}  # fmt: skip
TOKEN = calculator(
    decoding.using(token_time),  # as if all of it fitted
    "token_time", start=dict(device="h100", model="llama3_8b", precision="bf16", context=8192), **CURVE
)  # fmt: skip
DECODE = live()


def on_a_page(calc, several):
    """What the page's script makes of these states."""
    said = "{ const {texts, message} = answers(spec, x); return {texts, message} }"
    return on_page(DECODE, calc, f"{json.dumps(several)}.map((x) => {said})")


def in_python(calc, state):
    calc.state = state
    return {"texts": list(calc.texts.values()), "message": calc.message}


def test_the_menus_offer_every_row_that_serves():
    precise = {k for k, row in accelerators.items() if any(f"peak_{p}" in row for p in PRECISIONS)}
    assert {o["key"] for o in TOKEN.options["device"]} == precise
    assert len(TOKEN.options["model"]) > 60
    assert list(TOKEN.state) == ["device", "model", "precision", "batch", "context", "weight_bits", "kv_bits"]
    for options in TOKEN.options.values():
        labels = [o["label"] for o in options]
        assert len(set(labels)) == len(labels)


def test_a_device_without_any_of_the_precisions_is_not_offered():
    calc = calculator(ridge_intensity, device=accelerators, precision=["bf16"])
    assert "v100" not in [o["key"] for o in calc.options["device"]]
    assert any(x.startswith(accelerators.v100.name) and "no bf16" in x for x in calc.spec["lacking"])


def test_start():
    row = decoding(models.llama3_8b, accelerators.h100, batch=1, context=8192, weight_bits=4, kv_bits=4)
    assert TOKEN.spec["start"]["device"] == "h100" and TOKEN.spec["start"]["context"] == 8192
    TOKEN.state = {}
    assert TOKEN.texts["token_time"] == show(row.token_time, "s")


SEVERAL = some_states(TOKEN, 300, seed=3)
TYPED = [{**x, "batch": 12_000 / (i + 1), "context": 1000 + 7 * i} for i, x in enumerate(SEVERAL[:40])]


def test_python_and_the_page_write_the_same_words():
    nones = messages = 0
    for state, page in zip([*SEVERAL, *TYPED], on_a_page(TOKEN, [*SEVERAL, *TYPED]), strict=True):
        assert page == in_python(TOKEN, state)
        assert not any("nan" in x.lower() or "inf" in x.lower() for x in page["texts"])
        nones += "none" in page["texts"] and not page["message"]
        messages += bool(page["message"])
    assert nones and messages, "the states should meet letters without a value and devices without a precision"


def test_every_device_and_precision():
    sheet = calculator(ridge_intensity, device=accelerators, precision=PRECISIONS)
    pairs = [dict(device=d["key"], precision=p) for d in sheet.options["device"] for p in PRECISIONS]
    for state, page in zip(pairs, on_a_page(sheet, pairs), strict=True):
        device, precision = accelerators[state["device"]], state["precision"]
        found = f"peak_{precision}" in device
        assert page == in_python(sheet, state)
        said = show(ridge_intensity(device.at(precision)), "FLOP/B") if found else "none"
        assert page["texts"] == [said] and bool(page["message"]) != found
        assert found or page["message"].startswith(f"{device.name} has no peak at {precision}; it has ")


def test_what_rests_on_a_refused_letter_has_no_value_either():
    """A difference that comes out negative, and a positive number made of it."""
    rest = Formula("rest", "kv_cache", symbol("hbm_capacity") - symbol("weight_memory"))
    half = Formula("half", "traffic", symbol("kv_cache") ** 2)
    calc = calculator(
        Sheet("s", rest, half), "traffic", hbm_capacity=[1e9, 4e9], weight_memory=[2e9, 3e9], curve="weight_memory"
    )
    for capacity, weights in ((1e9, 2e9), (1e9, 3e9), (4e9, 2e9)):
        state = dict(hbm_capacity=capacity, weight_memory=weights)
        assert on_a_page(calc, [state]) == [in_python(calc, state)]
        assert (calc.texts["traffic"] == "none") == (capacity == 1e9)


def test_a_letter_without_a_value_does_not_stop_the_others():
    pole = Formula("a", "intensity", symbol("flops") / (symbol("batch") - 4))
    sheet = Sheet("odd", pole, Formula("b", "traffic", 8 * symbol("batch")))
    odd = calculator(sheet, "intensity", also=["traffic"], batch=[2, 4, 8], flops=8)
    states = [{"batch": x} for x in (2.0, 4.0, 8.0)]
    pages = on_a_page(odd, states)
    assert pages == [in_python(odd, x) for x in states]
    assert [x["texts"] for x in pages] == [["none", "16 B"], ["none", "32 B"], ["2 FLOP/B", "64 B"]]


def test_state_is_read_set_and_observed():
    calc, seen = calculator(ridge_intensity, device=accelerators, precision=["bf16", "fp8"]), []
    calc.observe(lambda change: seen.append(change["new"]["ridge_intensity"]), "values")
    calc.choose(device="h200", precision="fp8")
    assert seen[-1] == ridge_intensity(accelerators.h200.at("fp8"))
    assert calc.state == {"device": "h200", "precision": "fp8"}
    sized = calculator(ridge_intensity, hbm_bandwidth=(1e12, 8e12), peak_flops=1e15)
    sized.choose(hbm_bandwidth="3.5 TB/s")
    assert sized.state == {"hbm_bandwidth": 3.5e12}


@each_case("what is typed", "text, unit, value", globals())
def test_what_is_typed_is_understood(text, unit, value):
    [found] = DECODE(f"[parse({json.dumps(text)}, {json.dumps(unit)}).value ?? null]")
    assert found == pytest.approx(value, rel=1e-14)


@each_case("what is typed wrongly", "text, unit", globals())
def test_what_is_not_is_said_in_a_sentence(text, unit):
    said = DECODE(f"parse({json.dumps(text)}, {json.dumps(unit)})")
    assert "value" not in said and "is not understood here: type a number" in said["error"]


def test_a_chosen_number_is_shown_exactly_and_read_back():
    rng = np.random.default_rng(1)
    for unit in ("", "token", "B", "B/s", "s", "%", "bit", "$", "FLOP/s"):
        values = [2.0**17, 2.0**20, 12_345.0, 199_936.0, 0.03, 3.35e12, 4.15625, *rng.uniform(1e-3, 1e9, 40).tolist()]
        shown = DECODE(
            f"{json.dumps(values)}.map((x) => [exact(x, '{unit}'), parse(exact(x, '{unit}'), '{unit}').value ?? null])"
        )
        for value, (text, back) in zip(values, shown, strict=True):
            assert back == pytest.approx(value, rel=1e-9), (unit, value, text)
    exact = DECODE("[exact(131072, 'token'), exact(1048576, ''), exact(199936, '')]")
    assert exact == ["131,072 token", "1,048,576", "199,936"]
    assert DECODE("['1 token', '8,192 token', '3.5 million token', '2 token/s', '16 bit'].map(plural)") == [
        "1 token", "8,192 tokens", "3.5 million tokens", "2 tokens/s", "16 bits",
    ]  # fmt: skip


def test_a_link_gives_the_state_back_and_takes_nothing_else():
    cut = "x.indexOf(':')"
    pairs = f"(text) => text.split(';').map((x) => [x.slice(0, {cut}), decodeURIComponent(x.slice({cut} + 1))])"
    for state in [*SEVERAL[:30], *TYPED[:10]]:
        found = on_page(DECODE, TOKEN, f"read(spec, ({pairs})(written(spec, {json.dumps(state)})), spec.start)")
        assert found == {"next": state, "refused": []}
    hostile = [*cases("what no link to a calculator may say", {}).values()]
    found = on_page(DECODE, TOKEN, f"read(spec, {json.dumps(hostile)}, spec.start)")
    assert found == {"next": TOKEN.spec["start"], "refused": [x for x, _ in hostile]}


def test_the_python_of_a_calculator_prints_its_answer():
    for state in SEVERAL[:12]:
        TOKEN.state = state
        if TOKEN.texts["token_time"] == "none":
            continue
        [code] = on_page(DECODE, TOKEN, f"[python(spec, {json.dumps(state)})]")
        assert float(printed(code)) == TOKEN.values["token_time"]


def test_bars_are_the_answer_taken_apart():
    """A maximum shows its alternatives, a sum its pieces, memory the device's capacity; and they add up."""
    bars = {x["letter"]: x for x in TOKEN.spec["bars"]}
    assert [[p["js"] for p in r["pieces"]] for r in bars["token_time"]["rows"]] == [["compute_time"], ["memory_time"]]
    calc = calculator(decoding.using(token_time), "token_time", **CURVE | dict(also=["decode_memory"]))
    memory = next(x for x in calc.spec["bars"] if x["letter"] == "decode_memory")
    assert memory["line"]["letter"] == "hbm_capacity"
    for state in SEVERAL[:40]:
        calc.state = state
        measured = on_page(DECODE, calc, f"measured(spec, answers(spec, {json.dumps(state)}).values)")
        found = next(x for x in measured if x["letter"] == "decode_memory")
        assert found["rows"][0]["total"] == pytest.approx(calc.values["decode_memory"], rel=1e-12)
        is_full = found["rows"][0]["total"] > found["limit"]
        assert ("It does not fit" in calc.message) == is_full or "peak" in calc.message


def test_sliders():
    calc = calculator(weight_memory, params=(1e9, 1e12), weight_bits=16)
    values = [o["letters"]["params"] for o in calc.options["params"]]
    assert values[0] == 1e9 and values[-1] == 1e12 and values == sorted(set(values))
    units = calculator(ridge_intensity, hbm_bandwidth=("1 TB/s", "8 TB/s"), peak_flops="1 PFLOP/s")
    assert units.options["hbm_bandwidth"][0]["label"] == "1 TB/s" and units.texts == {"ridge_intensity": "1,000 FLOP/B"}


def test_outside_its_domain_a_formula_says_where_it_holds():
    calc = calculator(
        bubble_interleaved, "bubble", pp=[2, 4, 8], chunks=[1, 2], microbatches=[8, 12],
        start=dict(pp=8, microbatches=12),
    )  # fmt: skip
    several = some_states(calc, 30, seed=3)
    for state, page in zip(several, on_a_page(calc, several), strict=True):
        assert page == in_python(calc, state)
    said = {in_python(calc, x)["message"] for x in several}
    holds = "pipeline bubble: the formula holds for micro-batches in multiples of the stages, "
    assert f"{holds}not at micro-batches per step = 12; pipeline stages = 8" in said


def test_long_sums_are_broken_and_short_ones_and_those_inside_are_not():
    assert _wrapped("a + b - c + d + e + f + g") == r"a + b - c + d + e \\ &\quad {}+ f + g"
    for whole in ("a + b + c", r"\max\left(a + b + c + d + e + f, 1\right)", r"\frac{a + b + c + d + e + f}{2}"):
        assert _wrapped(whole) == whole


def test_a_curve_along_a_list_has_points_at_its_values_only():
    listed = calculator(bubble_interleaved, "bubble", curve="pp", pp=[2, 4, 8], chunks=2, microbatches=[8, 16])
    assert listed.spec["curve"]["steps"] and "steps" not in TOKEN.spec["curve"]


STEPS = {  # letters that stand fixed or that a chapter says otherwise
    "a-step-kernel-by-kernel": ("pass_time", decode_step),
    "experts-when-few-tokens-come": ("pass_time", decode_step),
    "capacity-pipelines-caches-prefixes": ("token_time", serve),
}


@pytest.mark.parametrize("chapter", STEPS)
def test_a_chapter_s_step_is_the_one_that_the_package_prices_on_every_device(chapter):
    """A device's own kernels read its caches, in Python and on the page."""
    letter, call = STEPS[chapter]
    path = next(p for p in notebooks() if p.stem == chapter)
    [calc] = [x for _, x in calculators(path) if x.choice["answer"] in (letter, "max_users")]
    for number, option in enumerate(calc.options["device"]):
        state = some_states(calc, 1, seed=number)[0] | dict(device=option["key"], tp=4, context=32768, prompt=16384)
        state |= dict(ep=2, users=16) | (dict(model="llama3_8b") if call is serve else {})
        state |= dict(precision="fp8" if "peak_fp8" in accelerators[option["key"]] else "bf16")
        state = calc.made.checked({x: v for x, v in state.items() if x in calc.state})
        letters = calc.choice["fixed"] | {x: v for x, v in state.items() if not isinstance(v, str)}
        row = call(models[state["model"]], accelerators[option["key"]].at(state["precision"]), **letters)
        page = f"answers(whole({json.dumps(calc.spec)}, {json.dumps(calc.made.data)}), {json.dumps(state)}).values"
        assert DECODE(page)[letter] == pytest.approx(row[letter], rel=1e-12), state
    blackwell = [o for o in calc.options["device"] if o["key"] in ("b200", "gb200")]
    assert blackwell and all(o["letters"]["read_launch"] in (1.08e-5, 1.07e-5) for o in blackwell)


def test_a_device_with_formulas_of_its_own_is_no_choice_where_others_are():
    """A step on a TPU is priced by its tiles and arrays: a sheet made for GPUs does not ask for them, and says so."""
    strategy = Strategy(recompute="full")
    sheet = training_sheet(
        LLAMA, None, strategy, microbatches_of_batch, devices_of_ways, attention_peak_same, *MEASURED
    )
    needed = sheet.only("step_time").inputs
    usual = {k: v for k, v in DEFAULT_LETTERS.items() if k in needed}
    made = calculator(
        sheet, "step_time", device=accelerators, model=models[["llama3_8b"]], precision=["bf16"], **usual, dp=[8, 64],
        global_batch=[64], seq=[4096], start=dict(device="h100"),
    )  # fmt: skip
    device = next(c for c in made.spec["controls"] if c["name"] == "device")
    assert "h100" in device["keys"] and not [x for x in device["keys"] if x.startswith("tpu")]
    assert [x for x in made.spec["lacking"] if x.startswith("Google TPU7x") and "training_step" in x]
