"""A training step: its parts, its formulas under every strategy, and what it must agree with."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebook.block import GPT, LLAMA, MOE, backward
from scalebook.language import NOTATION, code, symbol
from scalebook.language.units import check
from scalebook.parallelism import CHOICES, Strategy, work
from scalebook.profile import profile
from scalebook.tables import accelerators, models
from scalebook.training import training_sheet, training_step
from scalebook.training_memory import training as training_memory

from .support import JavaScript, draw

PARTS = (
    "step_forward", "step_backward", "step_again", "step_head", "optimizer_time", "bubble_time", "tp_exposed", "cp_exposed",
    "ep_exposed", "pp_exposed", "dp_exposed", "offload_exposed",
)  # fmt: skip
GPT3 = dict(tp=8, pp=8, dp=1, microbatches=64, chunks=3, seq=2048, attention="unfused")
STRATEGIES = [
    Strategy(), Strategy(recompute="full", sequence_parallel=False, sharding="replicated", schedule="gpipe"),
    Strategy(recompute="selective", attention="unfused", sharding="zero2", schedule="zb_h1"),
    Strategy(sharding="zero3", context="all_to_all", offload=True), Strategy(sharding="hybrid", quantized=True),
    Strategy(schedule="interleaved"), Strategy(schedule="zb_h2"), Strategy(schedule="zb_v"), Strategy(schedule="dualpipe"),
]  # fmt: skip
BUILT = [
    *(training_sheet(LLAMA, None, s) for s in STRATEGIES), training_sheet(GPT, None, STRATEGIES[1]),
    training_sheet(None, MOE, Strategy()),
]  # fmt: skip
MADE = {(f.name, f.letter, f.rhs): f for sheet in BUILT for f in sheet.formulas.values() if "__wrapped__" not in vars(f)}
A100, H100 = accelerators.a100.at("bf16"), accelerators.h100.at("bf16")


@pytest.mark.parametrize("f", MADE.values(), ids=lambda f: f.name)
def test_a_formula_made_from_a_block_has_its_unit_a_meaning_and_a_source(f):
    assert f.meaning.endswith(".") and f.sources
    if f.rhs != 0:
        check(f)


@pytest.mark.parametrize("sheet", BUILT, ids=[str(i) for i in range(len(BUILT))])
def test_python_numpy_and_javascript_agree_on_a_whole_step(sheet):
    values = draw(sheet.inputs, 8)
    statements, outputs = [(n, f.guarded) for n, f in sheet.formulas.items()], list(sheet.formulas)
    with np.errstate(all="ignore"):
        arrays = [np.broadcast_to(x, 8) for x in code.vector(sheet.inputs, statements, outputs)(*values.values())]
    rows = [{n: float(x[i]) for n, x in values.items()} for i in range(8)]
    pages = JavaScript().each(sheet.js, [[row] for row in rows])
    for i, page in enumerate(pages):
        fine = {n: float(x[i]) for n, x in zip(outputs, arrays, strict=True) if np.isfinite(x[i])}
        assert {n: x for n, x in page.items() if x is not None} == pytest.approx(fine, rel=1e-9)


RUNS = [
    (models.gpt3_175b, A100, GPT3 | dict(recompute="full", sequence_parallel=False)),
    (models.llama3_405b, accelerators.gb200.at("fp8"), dict(tp=4, pp=8, cp=2, dp=4, chunks=8, global_batch=128, seq=8192)),
    (models.deepseek_v3, H100, dict(tp=1, pp=4, dp=32, ep=32, microbatches=16, seq=4096, sharding="zero3")),
    (models.megatron_1t, H100, dict(tp=8, pp=8, dp=2, microbatches=32, seq=2048, weight_offload=1, activation_offload=0.5)),
]


@pytest.mark.parametrize(("model", "device", "letters"), RUNS, ids=lambda x: getattr(x, "name", ""))
def test_a_step_is_the_sum_of_its_parts_and_its_memory_too(model, device, letters):
    run = training_step(model, device, **letters)
    assert run.step_time == pytest.approx(sum(run[x] for x in PARTS))
    parts = ("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory", "logits_memory", "buffer_memory")
    assert run.memory == pytest.approx(sum(run[x] for x in parts))
    assert run.memory == max(run.first_memory, run.last_memory)
    assert 0 < run.mfu <= run.hfu < 1
    lines = profile(model, device, **letters).lines
    kernels = run.step_forward + run.step_backward + run.step_again
    blocks = sum(line.time for line in lines) - run.microbatches * _head(run, lines)
    assert blocks == pytest.approx(kernels, rel=1e-9)


def _head(run, lines):
    names = {"h", "fp32_logits", "loss", "d_fp32_logits", "d_Wout", "d_h_partial", "d_y"}
    return sum(line.time for line in lines if line.name in names) / run.microbatches


def test_every_stage_and_the_fullest():
    stages = np.arange(1, 9)
    run = training_step(models.gpt3_175b, A100, **GPT3, recompute="selective")
    every = training_step(models.gpt3_175b, A100, **GPT3, recompute="selective", stage=stages)
    assert every.train_memory.shape == (8,)
    assert every.train_memory.max() == pytest.approx(run.memory)
    assert every.train_memory[0] == pytest.approx(run.first_memory) and every.train_memory[-1] == pytest.approx(run.last_memory)


@pytest.mark.parametrize("name", ["llama3_8b", "llama3_70b"])
@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (8, 1), (4, 8)])
def test_memory_is_that_of_the_memory_chapter(name, tp, pp):
    """What the chapter on sharded memory sums in another way, stage by stage."""
    knowns = dict(tp=tp, pp=pp, dp=4, batch=2, seq=4096)
    bits = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96, activation_bits=16, logit_bits=48)
    stage = np.arange(1, pp + 1)
    run = training_step(models[name], H100, **knowns, microbatches=32, stage=stage)
    row = training_memory(models[name], **knowns, **bits, microbatches=32, stage=stage)
    assert np.asarray(run.train_memory) == pytest.approx(np.asarray(row.train_memory), rel=2e-3)


def test_model_flops_are_those_of_the_papers():
    run = training_step(models.gpt3_175b, A100, **GPT3, vocab=51200)
    layers, hidden, seq, vocab = 96, 12288, 2048, 51200
    whole = 72 * 64 * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (12 * layers * hidden))
    assert run.model_flops == pytest.approx(whole, rel=1e-3)  # Korthikanti et al. 2022, appendix A
    full = training_step(models.gpt3_175b, A100, **GPT3, vocab=51200, recompute="full")
    assert full.hardware_flops / full.model_flops == pytest.approx(4 / 3, abs=0.01)


@pytest.mark.parametrize("word", [w for w in CHOICES if isinstance(CHOICES[w][0], str)])
def test_a_word_that_no_strategy_has(word):
    with pytest.raises(ValueError, match=f"{word} is '.*not 'nonsense'"):
        Strategy(**{word: "nonsense"})


def test_needs_a_model():
    with pytest.raises(TypeError, match="needs a model's row"):
        training_step(H100, tp=8)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([16, 32, 64]))
def test_faster_parts_never_make_a_slower_step(tp, pp, microbatches):
    knowns = dict(tp=tp, pp=pp, dp=4, microbatches=microbatches, seq=4096)
    run = training_step(models.llama3_8b, H100, **knowns)
    for letter in ("hbm_bandwidth", "scaleup_bandwidth", "scaleout_bandwidth", "matmul_efficiency"):
        faster = min(run[letter] * 1.2, 1.0) if NOTATION[letter].sign == "share" else run[letter] * 2
        assert training_step(models.llama3_8b, H100, **knowns, **{letter: faster}).step_time <= run.step_time * (1 + 1e-12)
    for letter in ("tp_overlap", "pp_overlap", "dp_overlap"):
        assert training_step(models.llama3_8b, H100, **knowns, **{letter: 1}).step_time <= run.step_time * (1 + 1e-12)


@pytest.mark.parametrize(("recompute", "sequence_parallel"), list(itertools.product(CHOICES["recompute"], (True, False))))
def test_no_kernel_is_lost(recompute, sequence_parallel):
    """The time model sees the arithmetic and the traffic of every kernel once."""
    strategy = Strategy(recompute=recompute, sequence_parallel=sequence_parallel, attention="unfused")
    for block in (strategy.transformed(GPT), backward(strategy.transformed(GPT))):
        seen = work(block)
        letters = {x for w in seen for x in (w.flops + w.traffic).free_symbols}
        at = {x: 2.0 + i for i, x in enumerate(sorted(letters, key=str))}
        for cost in ("flops", "traffic"):
            total = getattr(block, cost).subs(symbol("context"), symbol("seq")).subs(at)
            assert float(sum(getattr(w, cost) for w in seen).subs(at)) == pytest.approx(float(total))
