"""How far an answer may be off: a page draws what Python draws, from the same causes."""

import json

import numpy as np
import pytest

from scalebook import Sheet, calculator, decoding, tables, training
from scalebook.block import LLAMA, blocks_of
from scalebook.display.described import merge
from scalebook.inference import read_by, step_sheet
from scalebook.inference.kernels import Work
from scalebook.language.interval import _STEPS, _draws
from scalebook.machine import collective_rates, collectives
from scalebook.machine.kernels import attention_peak_bf16, matrix_product
from scalebook.memory.serving import weight_memory
from scalebook.tables import Table, accelerators, models
from scalebook.training import Strategy, assumptions

from .support import live, on_page, some_states

PAGE = live()
PUBLISHED = {k: x.published for k, x in accelerators.items()}
# A device that says its own network answers by it in Python; a calculator answers by the network that is chosen.
DEVICES = Table("accelerators", {k: x for k, x in PUBLISHED.items() if "scaleout_bandwidth" not in x})


def training_sheet():
    """A step of training with three sliders; what it takes is given."""
    own = (training.microbatches_of_batch, training.devices_of_ways, training.attention_peak_same)
    sheet = training.training_sheet(LLAMA, None, Strategy(), *own, *assumptions.MEASURED)
    ways = dict(tp=[1, 8], pp=[1, 4], dp=[8, 64], global_batch=[128, 1024], seq=[2048, 8192])
    usual = {k: v for k, v in training.DEFAULT_LETTERS.items() if k in sheet.inputs and k not in ways}
    return sheet, ["step_time", "mfu", "memory"], dict(ways, **usual, model=models[["llama3_70b"]], precision=["bf16"])


def decoding_step(model="llama3_70b", **more):
    sheet = step_sheet(*blocks_of(models[model]), Work("decode"), attention_peak_bf16)
    kept = Sheet(sheet.name, *(f for f in sheet.formulas.values() if f.letter != "matmul_bf16"))
    fixed = dict(pp=1, attention_dp=1, fullest_group=1, fp32_bits=32, window_layers=0, window=1)
    fixed |= dict(step_overhead=0, layer_overhead=0)
    bits = dict(weight_bits=8, kv_bits=8, activation_bits=8)
    ways = dict(tp=[1, 8], batch=[1, 64], context=[128, 131072])
    return kept, ["pass_time"], dict(fixed, **bits, **ways, **more, model=models[[model]], precision=["bf16", "fp8"])


def step_with_experts():
    """Which lacks more than a dense one."""
    return decoding_step("mixtral_8x7b", ep=[1, 8], fullest_share=1, expert_bits=8)


def product():
    shape = dict(rows=[1, 4096], columns=[128, 8192], inner=[2048], copies=1, activation_bits=16, weight_bits=16)
    return matrix_product, ["matmul_time", "matmul_share"], dict(shape, precision=["bf16", "fp8", "fp16"])


def exchange():
    sheet = Sheet("gather", collectives.all_gather, collective_rates.shared_ports, collective_rates.bus_bandwidth)
    rows = dict(device=DEVICES, network=tables.links[["infiniband_ndr"]])
    ways = dict(ports=8, crossing=8, collective_bytes=[1e6, 1e9], ways=[8, 64], near_ways=[1, 8])
    return sheet, ["collective_time", "bus_bandwidth"], rows | ways


def python_says(sheet, asked, answer, choices, state):
    """The row's own interval, of the package's rows and of numbers given in the call."""
    rows, numbers = [], {}
    for name, choice in choices.items():
        if isinstance(choice, tables.Table):
            row = choice[state[name]]
            rows.append(row.at(state["precision"]) if "precision" in state and hasattr(row, "at") else row)
            rows += [read_by("grouped", row)] if "read_launch" in sheet.formulas else []
        elif name != "precision":
            numbers[name] = state.get(name, choice)
    return sheet.only(*asked, given=choices)(*rows, **numbers).interval(answer)


@pytest.mark.parametrize("of", [training_sheet, decoding_step, step_with_experts, product, exchange])
def test_a_page_says_what_python_says(of):
    sheet, asked, choices = of()
    choices = dict(device=accelerators) | choices
    calc = calculator(sheet, asked[0], also=asked[1:], **choices)
    compared = 0
    for state in some_states(calc, 24, seed=5):
        if "precision" in state and f"peak_{state['precision']}" not in accelerators[state["device"]]:
            continue
        found = on_page(PAGE, calc, f"{json.dumps(asked)}.map((x) => likely(spec, {json.dumps(state)}, x) ?? null)")
        calc.state = state
        for answer, ends in zip(asked, found, strict=True):
            if not calc.values[answer] > 0:
                continue
            expected = python_says(sheet, asked, answer, choices, state)
            assert expected.typical == pytest.approx(calc.values[answer], rel=1e-12), (answer, state)
            assert expected.ranked and ends == pytest.approx([expected.low, expected.high], rel=1e-9), (answer, state)
            compared += 1
    assert compared > 15


def test_what_rests_on_nothing_uncertain_has_no_interval():
    weights = calculator(weight_memory, params=(1e9, 1e12), weight_bits=16)
    held = dict(device=accelerators, model=models, batch=1, context=8192, kv_bits=16, weight_bits=8)
    for calc in (weights, calculator(decoding, "decode_memory", **held)):
        assert "spread" not in calc.spec
        assert on_page(PAGE, calc, "[likely(spec, spec.start, spec.outputs[0].letter) ?? null]") == [None]


def test_what_a_device_says_itself_is_in_the_place_of_a_formula():
    """What products reach in training on a B200 is a cell of it, and follows from another's where a row is silent."""
    sheet, asked, choices = training_sheet()
    calc = calculator(sheet, asked[0], also=asked[1:], device=accelerators, **choices)
    for device in ("b200", "mi300x", "gaudi3", "h100"):
        calc.choose(device=device)
        own = accelerators[device].at("bf16").training_efficiency
        assert calc.values["training_efficiency"] == own
        assert on_page(PAGE, calc, f"[answers(spec, {json.dumps(calc.state)}).values.training_efficiency]") == [own]


def test_draws_are_normal_and_the_same_everywhere():
    causes = ["kernel_launch NVIDIA H100 SXM", "step_time step_time", "ü"]
    drawn = np.array([_draws(x) for x in causes])
    assert np.array(PAGE(f"{json.dumps(causes)}.map(steps)")) == pytest.approx(drawn, rel=1e-13)
    assert all(np.array_equal(np.sort(x), _STEPS) for x in drawn)
    several = np.array([_draws(f"cause {i}") for i in range(60)])
    apart = np.corrcoef(several)[np.triu_indices(60, 1)]
    assert abs(apart.mean()) < 0.01 and apart.std() < 1.2 * 400**-0.5  # causes are drawn apart


def test_rows_of_several_calculators_keep_what_each_needs():
    rows = [dict(name="a", letters=x, ends=e) for x, e in (({"p": 1}, {"p": [1, 2]}), ({"q": 2}, {"q": [3, 4]}))]
    data = dict(formulas={}, tables={})
    for row in [*rows, dict(name="a", letters={"r": 3})]:
        merge(data, dict(formulas={}, tables={"t": {"a": row}}))
    assert data["tables"]["t"]["a"] == dict(name="a", letters={"p": 1, "q": 2, "r": 3}, ends={"p": [1, 2], "q": [3, 4]})
