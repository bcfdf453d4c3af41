"""The kernels of a step: that they add up to its parts, and what ideal kernels would take."""

import pytest

from scalebook import accelerators, models, training_step  # noqa: F401  (accelerators: of cases.csv)
from scalebook.block import GPT, LLAMA, backward
from scalebook.block.work import work
from scalebook.language import Formula
from scalebook.machine import kernels
from scalebook.training.profile import profile
from scalebook.training.strategy import Strategy

from .support import A100, H100, cases  # noqa: F401  (A100: of cases.csv)

STEPS = cases("steps that are profiled", globals())


@pytest.mark.parametrize("rates", ["measured", "ideal"])
@pytest.mark.parametrize("name", STEPS)
def test_the_kernels_of_blocks_add_up_to_the_parts(name, rates):
    model, device, words = STEPS[name]
    run = training_step(model, device, **words, kernels=rates)
    calls = run.microbatches * run.stage_blocks
    counted = calls, calls * run.get("unread_rerun", 1)  # kernels whose results nothing reads run in some blocks only
    blocks = sum(x.time for x in profile(model, device, **words, kernels=rates).lines if x.calls in counted)
    assert blocks == pytest.approx(run.step_forward + run.step_backward + run.step_again, rel=1e-9)


@pytest.mark.parametrize("name", STEPS)
def test_ideal_kernels_are_faster_and_hold_and_do_the_same(name):
    model, device, words = STEPS[name]
    run, ideal = (training_step(model, device, **words, kernels=x) for x in ("measured", "ideal"))
    for part in ("step_forward", "step_backward", "step_again", "optimizer_time"):
        assert ideal[part] < run[part] or run[part] == 0
    assert ideal.step_time < run.step_time
    assert all(ideal[x] == run[x] for x in ("memory", "model_flops", "hardware_flops", "block_params"))
    assert ideal.hfu < 1


@pytest.mark.parametrize("name", STEPS)
def test_no_kernel_beats_the_roofline(name):
    model, device, words = STEPS[name]
    for x in profile(model, device, **words, kernels="ideal").lines:
        assert x.achieved <= 1 + 1e-9
        assert x.time >= x.traffic / device.hbm_bandwidth * (1 - 1e-9)


@pytest.mark.parametrize("block", [GPT, LLAMA], ids=["GPT", "LLAMA"])
def test_the_ideal_time_of_a_product_is_the_formula_for_it(block):
    run = training_step(models.llama3_8b, H100, seq=4096, global_batch=8, dp=1, attention="unfused")
    known = dict(run)
    split = Strategy(attention="unfused").transformed(block)
    products = [w for w in (*work(split, "forward"), *work(backward(split))) if w.kind == "product"]
    assert len(products) > 10
    for w in products:
        flops, traffic, ideal = (
            Formula(w.name, n, x)(known)
            for n, x in (("flops", w.flops), ("traffic", w.traffic), ("matmul_time", w.ideal))
        )
        said = kernels.matmul_time_ideal(H100, rows=flops / 2, columns=1, inner=1, copies=1, traffic=traffic)
        assert ideal == pytest.approx(said, rel=1e-12)
