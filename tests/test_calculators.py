"""Calculators without a browser: the words on the page are those of the sheet, in Python and in JavaScript."""

import json

import numpy as np
import pytest

from scalebook.display.calculator import calculator
from scalebook.display.described import _wrapped
from scalebook.inference.tokens import decoding, token_time
from scalebook.language import NOTATION, Formula, Sheet, show, symbol
from scalebook.machine.roofline import ridge_intensity, roofline
from scalebook.memory.serving import weight_memory
from scalebook.pipeline.bubbles import bubble_interleaved
from scalebook.tables import accelerators, models

from .support import live

PRECISIONS = ["bf16", "fp16", "fp8", "fp4", "int8"]
CURVE = {
    "also": ["kv_cache", "max_batch", "idle_fraction", "decode_rate", "ridge_context", "latency_floor"],
    "curve": ["batch"],
    "precision": PRECISIONS,
    "device": accelerators,
    "model": models,
    "batch": (1, 512),
    "context": (1024, 131072),
    "weight_bits": [4, 8, 16],
    "kv_bits": [4, 8, 16],
}
TOKEN = calculator(
    decoding.using(token_time),  # as if all of it fitted
    "token_time",
    start={"device": "h100", "model": "llama3_8b", "precision": "bf16", "context": 8192},
    **CURVE,
)
DECODE = live()


def choose(calc, choice):
    for control, index in zip(calc.controls.values(), choice, strict=True):
        control.index = index


def option(calc, name):
    return calc.options[name][calc.controls[name].index]


def choices(calc, number):
    rng = np.random.default_rng(3)
    return np.stack([rng.integers(len(c), size=number) for c in calc.options.values()], axis=1).tolist()


def on_a_page(calc, several):
    """What live.js makes of these choices."""
    return DECODE(
        f"((spec) => {json.dumps(several)}.map((x) => {{ const {{texts, worked, message}} = answers(spec, x);"
        f"return {{texts, worked, message}} }}))(whole({json.dumps(calc.spec)}, {json.dumps(calc.data)}))"
    )


def test_the_menus_offer_every_row_that_serves():
    assert {o["key"] for o in TOKEN.options["device"]} == set(accelerators)
    assert len(TOKEN.options["model"]) > 60
    assert list(TOKEN.controls) == ["device", "model", "precision", "batch", "context", "weight_bits", "kv_bits"]
    for options in TOKEN.options.values():
        labels = [o["label"] for o in options]
        assert len(set(labels)) == len(labels)


def test_start():
    row = decoding(models.llama3_8b, accelerators.h100, batch=1, context=8192, weight_bits=4, kv_bits=4)
    assert option(TOKEN, "device")["key"] == "h100" and option(TOKEN, "context")["letters"] == {"context": 8192}
    assert TOKEN.texts["token_time"] == show(row.token_time, "s")


SEVERAL = choices(TOKEN, 300)


def test_python_and_the_page_write_the_same_words():
    pages = on_a_page(TOKEN, SEVERAL)
    nones = messages = 0
    for choice, page in zip(SEVERAL, pages, strict=True):
        choose(TOKEN, choice)
        assert page == {
            "texts": list(TOKEN.texts.values()),
            "worked": TOKEN._worked.value,
            "message": TOKEN._message.value,
        }
        assert "⟦" not in page["worked"] and not any("nan" in x.lower() or "inf" in x.lower() for x in page["texts"])
        nones += "none" in page["texts"] and not page["message"]
        messages += bool(page["message"])
    assert nones and messages, "the choices should meet letters without a value and devices without a precision"


def test_the_words_are_those_of_the_sheet():
    for choice in SEVERAL[:120]:
        choose(TOKEN, choice)
        device, precision = accelerators[option(TOKEN, "device")["key"]], option(TOKEN, "precision")["peak"]
        if f"peak_{precision}" not in device:
            assert TOKEN.texts["token_time"] == "none" and not TOKEN._worked.value
            assert TOKEN.texts["latency_floor"] != "none"  # what needs no peak is still answered
            assert TOKEN._message.value.startswith(f"{device.name} has no peak at {precision}; it has ")
            continue
        given = {
            k: v
            for name in ("batch", "context", "weight_bits", "kv_bits")
            for k, v in option(TOKEN, name)["letters"].items()
        }
        for name, text in TOKEN.texts.items():
            try:
                value = decoding.using(token_time).only(name)(
                    models[option(TOKEN, "model")["key"]],
                    device.at(precision),
                    **{k: v for k, v in given.items() if k in decoding.using(token_time).only(name).inputs},
                )[name]
            except KeyError:
                assert text == "none"
            else:
                assert text == show(value, NOTATION[name].unit)


def test_every_device_and_precision():
    sheet = calculator(ridge_intensity, device=accelerators, precision=PRECISIONS)
    pairs = [[d, p] for d in range(len(sheet.controls["device"].options)) for p in range(len(PRECISIONS))]
    for (d, p), page in zip(pairs, on_a_page(sheet, pairs), strict=True):
        choose(sheet, [d, p])
        device = accelerators[option(sheet, "device")["key"]]
        found = f"peak_{PRECISIONS[p]}" in device
        assert sheet.texts["ridge_intensity"] == (
            show(ridge_intensity(device.at(PRECISIONS[p])), "FLOP/B") if found else "none"
        )
        assert page["texts"] == [sheet.texts["ridge_intensity"]] and page["message"] == sheet._message.value
        assert bool(page["worked"]) == found


def test_what_rests_on_a_refused_letter_has_no_value_either():
    """A difference that comes out negative, and a positive number made of it."""
    rest = Formula("rest", "kv_cache", symbol("hbm_capacity") - symbol("weight_memory"))
    half = Formula("half", "traffic", symbol("kv_cache") ** 2)
    calc = calculator(
        Sheet("s", rest, half), "traffic", hbm_capacity=[1e9, 4e9], weight_memory=[2e9, 3e9], curve="weight_memory"
    )
    for choice in ([0, 0], [0, 1], [1, 0]):
        choose(calc, choice)
        assert calc.texts["traffic"] == on_a_page(calc, [choice])[0]["texts"][0]
        assert (calc.texts["traffic"] == "none") == (choice[0] == 0)


def test_a_letter_without_a_value_does_not_stop_the_others():
    sheet = Sheet(
        "odd",
        Formula("a", "intensity", symbol("flops") / (symbol("batch") - 4)),
        Formula("b", "traffic", 8 * symbol("batch")),
    )
    odd = calculator(sheet, "intensity", also=["traffic"], batch=[2, 4, 8], flops=8)
    shown = []
    for index, page in enumerate(on_a_page(odd, [[0], [1], [2]])):
        choose(odd, [index])
        shown.append(list(odd.texts.values()))
        assert page == {"texts": shown[-1], "worked": odd._worked.value, "message": odd._message.value}
    assert shown == [["none", "16 B"], ["none", "32 B"], ["2 FLOP/B", "64 B"]]


def test_sliders():
    calc = calculator(weight_memory, params=(1e9, 1e12), weight_bits=16)
    values = [o["letters"]["params"] for o in calc.options["params"]]
    assert values[0] == 1e9 and values[-1] == 1e12 and values == sorted(set(values))
    units = calculator(ridge_intensity, hbm_bandwidth=("1 TB/s", "8 TB/s"), peak_flops="1 PFLOP/s")
    assert units.controls["hbm_bandwidth"].options[0] == "1 TB/s" and units.texts == {"ridge_intensity": "1,000 FLOP/B"}


KNOWN = {"hbm_bandwidth": (1e12, 8e12), "peak_flops": 1e15}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: calculator(ridge_intensity, hbm_bandwidth=(1e12, 8e12)), TypeError, "needs peak_flops"),
        (lambda: calculator(ridge_intensity, **KNOWN, batch=3), TypeError, "does not use batch"),
        (lambda: calculator(ridge_intensity, hbm_bandwith=(1, 2)), TypeError, "did you mean 'hbm_bandwidth'"),
        (
            lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=(0, 8)),
            ValueError,
            "hbm_bandwidth must be positive",
        ),
        (lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=(8, 2)), ValueError, "low < high"),
        (lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=(1, 2, 3)), ValueError, "low < high"),
        (lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=("1 GB", "2 GB")), ValueError, "unit B/s"),
        (
            lambda: calculator(ridge_intensity, **KNOWN, start={"batch": 3}),
            TypeError,
            "start names 'batch', which is no control",
        ),
        (
            lambda: calculator(ridge_intensity, device=accelerators, start={"device": "h10"}),
            LookupError,
            "did you mean 'h100'",
        ),
        (
            lambda: calculator(ridge_intensity, device=accelerators, precision=["bf16"], start={"precision": "fp8"}),
            LookupError,
            "has no 'fp8'",
        ),
        (lambda: calculator(ridge_intensity, **KNOWN, precision=["bf16"]), TypeError, "give a table of accelerators"),
        (
            lambda: calculator(ridge_intensity, **KNOWN, curve=["peak_flops"]),
            TypeError,
            "the curve runs along a slider",
        ),
        (
            lambda: calculator(roofline, flops=1, traffic=(1, 2)),
            TypeError,
            "a calculator answers one letter, not None; name one: ",
        ),
        (lambda: calculator(3, "intensity"), TypeError, "of a sheet or of a formula, not of 3"),
        (lambda: calculator(roofline, ["intensity"], flops=1, traffic=(1, 2)), TypeError, "answers one letter, not"),
        (lambda: calculator(roofline, "intensity", intensity=(1, 2)), TypeError, "intensity is the answer"),
        (lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=[]), ValueError, "a list of values, not"),
        (lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=()), ValueError, "a list of values, not"),
        (
            lambda: calculator(ridge_intensity, peak_flops=1e15, hbm_bandwidth=[[1, 2]]),
            TypeError,
            "takes one number here",
        ),
        (
            lambda: calculator(ridge_intensity, peak_flops=np.ones(2), hbm_bandwidth=1e12),
            TypeError,
            "takes one number here",
        ),
        (lambda: calculator(ridge_intensity, **KNOWN, also=3), TypeError, "also takes a list, not 3"),
        (lambda: calculator(ridge_intensity, **KNOWN, also=[3]), TypeError, "also takes names, not 3"),
        (lambda: calculator(ridge_intensity, **KNOWN, curve=3), TypeError, "curve takes a list, not 3"),
        (lambda: calculator(ridge_intensity, **KNOWN, precision=3), TypeError, "precision takes a list, not 3"),
        (lambda: calculator(ridge_intensity, **KNOWN, precision=["bf15"]), LookupError, "did you mean 'bf16'"),
        (lambda: calculator(ridge_intensity, **KNOWN, warn=3), TypeError, "warn takes a list, not 3"),
        (lambda: calculator(ridge_intensity, **KNOWN, warn=("a",)), TypeError, "a warning is .left, right, sentence."),
        (
            lambda: calculator(ridge_intensity, **KNOWN, warn=[("peak_flops", "batch", "!")]),
            TypeError,
            "warn names 'batch', which nothing here gives",
        ),
        (
            lambda: calculator(ridge_intensity, **KNOWN, warn=[("peak_flops", "hbm_bandwidth", "{batch}")]),
            TypeError,
            "warn names 'batch', which nothing here gives",
        ),
        (
            lambda: calculator(ridge_intensity, **KNOWN, start=3),
            TypeError,
            "start takes the first choice of each control",
        ),
        (
            lambda: calculator(ridge_intensity, **KNOWN, start={"hbm_bandwidth": [1e12]}),
            TypeError,
            "hbm_bandwidth takes one number here",
        ),
        (lambda: calculator(roofline, "intensty", flops=1, traffic=(1, 2)), ValueError, "did you mean 'intensity'"),
    ],
)
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_outside_its_domain_a_formula_says_where_it_holds():
    calc = calculator(
        bubble_interleaved,
        "bubble",
        pp=[2, 4, 8],
        chunks=[1, 2],
        microbatches=[8, 12],
        start=dict(pp=8, microbatches=12),
    )
    several = choices(calc, 30)
    said = 0
    for choice, page in zip(several, on_a_page(calc, several), strict=True):
        choose(calc, choice)
        assert (page["texts"], page["message"]) == (list(calc.texts.values()), calc._message.value)
        said += (
            page["message"]
            == "bubble_interleaved holds for multiples of pp micro-batches, not at microbatches=12, pp=8"
        )
    assert said


def test_every_letter_of_the_worked_formula_is_explained():
    (said,) = (x.value for x in TOKEN.children if "sb-letters" in x._dom_classes)
    for name in ["token_time", *TOKEN.sheet.formulas["token_time"].inputs]:
        assert NOTATION[name].tex in said and NOTATION[name].meaning in said


def test_long_sums_are_broken_and_short_ones_and_those_inside_are_not():
    assert _wrapped("a + b - c + d + e + f + g") == r"a + b - c + d + e \\ &\quad {}+ f + g"
    for whole in ("a + b + c", r"\max\left(a + b + c + d + e + f, 1\right)", r"\frac{a + b + c + d + e + f}{2}"):
        assert _wrapped(whole) == whole


def test_a_curve_along_a_list_has_points_at_its_values_only():
    listed = calculator(bubble_interleaved, "bubble", curve="pp", pp=[2, 4, 8], chunks=2, microbatches=[8, 16])
    assert listed.spec["curve"]["steps"] and "steps" not in TOKEN.spec["curve"]
