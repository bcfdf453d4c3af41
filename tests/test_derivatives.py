"""What becomes of a cost if one letter is doubled: twice the context-parallel ways halve what is sent."""

import pytest

from scalebook.inference.step import decode_step, prefill_step
from scalebook.language import symbol
from scalebook.tables import accelerators, models
from scalebook.training import training_step
from scalebook.training.block_costs import _near
from scalebook.training.contention import dp_contention_shared

from .test_worked_numbers import LIMITS, NETWORK, SERVED, TRAINED

AT = dict(tp=2, cp=2, pp=2, dp=4, seq=8192, microbatches=16)
WIDE = dict(scaleup_size=1024)  # one domain for all
HALF, SAME, TWICE = 0.5, 1, 2
TRAINING = [  # letter, what is doubled, what becomes of it, other letters and words
    *[("transfer_time", x, y, {}) for x, y in dict(cp=HALF, tp=HALF, seq=TWICE, batch=TWICE, dp=SAME).items()],
    *[("saved_activations", x, y, {}) for x, y in dict(cp=HALF, tp=HALF, batch=TWICE).items()],
    *[("logits_memory", x, y, dict(stage=2)) for x, y in dict(cp=HALF, tp=HALF, batch=TWICE).items()],
    *[("embedding_time", x, y, WIDE) for x, y in dict(cp=HALF, seq=TWICE).items()],
    *[("weight_gradient_compute", x, y, {}) for x, y in dict(cp=HALF, tp=HALF, batch=TWICE, dp=SAME).items()],
    *[("head_forward", x, y, {}) for x, y in dict(cp=HALF, tp=HALF).items()],
    *[("model_flops", x, y, {}) for x, y in dict(cp=SAME, tp=SAME, pp=SAME, dp=TWICE, microbatches=TWICE).items()],
    *[("pp_scaleup_time", x, y, WIDE) for x, y in dict(cp=HALF, tp=HALF, chunks=TWICE, microbatches=SAME).items()],
    *[("cp_forward", x, y, WIDE) for x, y in dict(tp=HALF, batch=TWICE).items()],
    *[("weight_memory", "dp", y, dict(sharding=x)) for x, y in dict(zero1=SAME, zero2=SAME, zero3=HALF).items()],
    *[("gradient_memory", "dp", y, dict(sharding=x)) for x, y in dict(zero1=SAME, zero2=HALF, zero3=HALF).items()],
    *[("optimizer_memory", "dp", y, dict(sharding=x)) for x, y in dict(replicated=SAME, zero1=HALF).items()],
    *[
        (letter, "microbatches", y, WIDE | dict(sharding=x))
        for letter, each in dict(dp_reduce=("zero2", "zero3"), dp_gather=("zero3", "zero3_hpz")).items()
        for x in ("zero1", "zero2", "zero3", "zero3_hpz")
        for y in [TWICE if x in each or x == "zero3_hpz" else SAME]
    ],
]
EXPERTS = [
    *[("weight_gradient_compute", x, y, {}) for x, y in dict(cp=HALF, tp=HALF, batch=TWICE).items()],
    *[("saved_activations", x, y, {}) for x, y in dict(cp=HALF, batch=TWICE).items()],
    *[("ep_forward", x, y, WIDE) for x, y in dict(cp=HALF, tp=HALF, batch=TWICE).items()],
    ("block_routed_params", "ep", HALF, {}),
]
SERVING = [
    *[("cache_time", x, y, "memory") for x, y in dict(batch=TWICE, tp=HALF).items()],
    *[("cache_time", x, y, "arithmetic") for x, y in dict(batch=TWICE, context=TWICE, tp=HALF).items()],
    *[("weights_time", x, y, "memory") for x, y in dict(batch=SAME, context=SAME, tp=HALF).items()],
    *[("products_time", x, y, "arithmetic") for x, y in dict(batch=TWICE, tp=HALF).items()],
]


def doubled(call, rows, letters, letter, at):
    """A letter of a call, after another has been doubled, over the letter before."""
    before, after = (call(*rows, **letters | {at: letters.get(at, 1) * n})[letter] for n in (1, 2))
    return after / before


@pytest.mark.parametrize(("letter", "at", "ratio", "more"), TRAINING)
def test_a_training_step_of_a_dense_model(letter, at, ratio, more):
    letters = NETWORK | LIMITS["arithmetic"] | TRAINED | AT | more
    found = doubled(training_step, (models.llama3_8b, accelerators.h100), letters, letter, at)
    assert found == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize(("letter", "at", "ratio", "more"), EXPERTS)
def test_a_training_step_with_experts(letter, at, ratio, more):
    letters = NETWORK | LIMITS["arithmetic"] | TRAINED | AT | dict(ep=2, sent_share=1) | more
    found = doubled(training_step, (models.mixtral_8x7b, accelerators.h100), letters, letter, at)
    assert found == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize(("letter", "at", "ratio", "limit"), SERVING)
def test_a_decode_step(letter, at, ratio, limit):
    letters = dict(tp=2, batch=16, context=4096)
    sheet = decode_step.plan((models.llama3_70b, accelerators.h100), letters)[0]
    letters |= {x: y for x, y in SERVED.items() if x in sheet.letters} | NETWORK | LIMITS[limit]
    assert doubled(decode_step, (models.llama3_70b, accelerators.h100), letters, letter, at) == pytest.approx(ratio)


def test_a_prompt_of_twice_the_chunks_past_attends_to_twice_as_many():
    """The growth of attention from one chunk to the next is the same, in layers with and without windows."""
    for model in (models.llama3_70b, models.gemma3_27b, models.deepseek_v3):
        letters = dict(tp=2, prompts=1, read_chunk=128)
        sheet = prefill_step.plan((model, accelerators.h100), letters)[0]
        letters |= {x: y for x, y in SERVED.items() if x in sheet.letters} | NETWORK | LIMITS["arithmetic"]
        at = [prefill_step(model, accelerators.h100, **letters, past=x).reading_time for x in (0, 128, 256)]
        assert at[2] - at[1] == pytest.approx(at[1] - at[0])


@pytest.mark.parametrize("domain", [2, 8, 72])
@pytest.mark.parametrize(("tp", "cp"), [(1, 4), (2, 4), (4, 4), (8, 2), (8, 16), (16, 2)])
def test_ranks_fill_domains_as_megatron_numbers_them(tp, cp, domain):
    """Megatron-LM's order is tp-cp-ep-dp-pp; for experts it is etp-ep-dp-pp, on a grid of their own."""
    tp_group = range(tp)
    cp_group = range(0, tp * cp, tp)  # the same tp rank, so the same heads
    at = dict(tp=tp, cp=cp, etp=tp, ep=cp, scaleup_size=domain)
    for way, group in dict(tp=tp_group, cp=cp_group, etp=tp_group, ep=cp_group).items():
        near = _near(way).subs({symbol(x): y for x, y in at.items()})
        assert near == sum(rank // domain == 0 for rank in group), f"{way} ranks {[*group]} in domains of {domain}"


@pytest.mark.parametrize(("way", "worth"), [("tp", 5e-3), ("cp", 5e-3), ("ep", 5e-3), ("pp", 5e-4)])
@pytest.mark.parametrize("tier", ["scaleup", "scaleout"])
def test_each_dimension_meets_hidden_collectives_alike(way, worth, tier):
    """Ports that are busy for a quarter of the window lengthen 2 ms of another dimension by a quarter, in 10 blocks."""
    none = {f"{x}_{y}": 0 for x in ("tp", "cp", "ep", "pp", "dp") for y in ("scaleup_time", "scaleout_time", "overlap")}
    none |= dict(tp_scaleup_beside=0, tp_scaleout_beside=0, tp_beside=1, dp_gather=0, dp_unhidden=0, stage_blocks=10)
    at = dict(dp_passes=1, dp_window="100 ms", dp_reduce="50 ms") | {f"dp_{tier}_time": "25 ms"}
    none.pop("dp_overlap")
    assert dp_contention_shared(none | at | {f"{way}_{tier}_time": "2 ms"}) == pytest.approx(worth)
