"""Which strategies can run: every rule in one sentence that names the letter and values that would do."""

import re

import numpy as np
import pytest

from scalebook.tables import accelerators, models
from scalebook.training.rules import RULES, check, derived, reason
from scalebook.training.step import training_step

MODEL = {**models.megatron_1t, "seq": 2048, "schedule": "1f1b", "sequence_parallel": True, "offload": False}
MOE = {**models.mixtral_8x7b, "seq": 8192, "schedule": "1f1b", "sequence_parallel": True, "offload": False}

# By rule: a model, what breaks the rule and nothing before it, and what must be in the sentence.
BROKEN = {
    "dimensions multiply to the devices": (MODEL, dict(devices=4096, tp=8, pp=64, dp=7), "dp=8 would do"),
    "tp divides heads": (MODEL, dict(tp=7), "tp=7 does not divide the 160 heads: tp=1, 2, 4, 8, 16 or 32 would do"),
    "tp fits kv_heads": (MOE, dict(tp=16, kv_heads=6), "tp=16 neither divides"),
    "tp divides ffn": (MODEL, dict(tp=4, ffn=102), "tp=1 or 2 would do"),
    "etp divides expert_ffn": (MOE, dict(tp=4, expert_ffn=6), "etp=1 or 2 would do"),
    "etp divides tp": (MOE, dict(tp=8, etp=16), "etp=1, 2, 4 or 8 would do"),
    "etp has tokens of its own": (
        MOE,
        dict(tp=8, dp=8, etp=2, sequence_parallel=False),
        "that tp=8 devices all have where sequence_parallel is False: etp=8",
    ),
    "tp within scaleup_size": (MODEL, dict(tp=16, scaleup_size=8), "tp=1, 2, 4 or 8 would do"),
    "cp halves divide seq": (MODEL, dict(cp=3), "cp=3 does not divide seq=2048"),
    "tp divides the sequence": (MODEL, dict(tp=8, seq=20), "tp=1, 2 or 4 would do"),
    "pp within layers": (MODEL, dict(pp=256), "pp=256 is more than the 128 layers"),
    "stages have blocks": (MODEL, dict(pp=100), "pp=100 stages of at most 2 blocks leave more than one of them empty"),
    "interleaving alone has chunks": (MODEL, dict(chunks=2), "schedule='interleaved', not '1f1b': chunks=1 would do"),
    "stages hold the layers": (
        MODEL,
        dict(pp=3, stage_blocks=20),
        "stage_blocks=20 in the fullest of 3 stages does not deal out the 128 layers: stage_blocks=43, 44",
    ),
    "the last stage holds the rest": (
        MODEL,
        dict(pp=8, stage_blocks=17, last_blocks=3),
        "last_blocks=3 after 7 stages of at most 17 does not deal out the 128 layers: last_blocks=9, 10",
    ),
    "chunks divide a stage": (MODEL, dict(chunks=3, pp=16, schedule="interleaved"), "chunks=1, 2, 4 or 8 would do"),
    "a schedule's chunks divide a stage": (
        MODEL,
        dict(schedule="zb_v", pp=128),
        "and a stage has 1 blocks: pp=1, 2, 4, 5",
    ),
    "windows within layers": (MODEL, dict(window_layers=200), "window_layers=200 is more than the 128 layers"),
    "ep has experts": (MODEL, dict(ep=4, dp=8), "ep=1 would do"),
    "ep divides experts": (MOE, dict(ep=3, dp=3), "ep=3 does not divide the 8 experts: ep=1 would do"),
    "ep divides dp cp tp/etp": (MOE, dict(ep=8, dp=4), "ep=1, 2 or 4 would do"),
    "dp divides global_batch": (MODEL, dict(dp=64, global_batch=100), "global_batch=64 or 128"),
    "batch divides the rest": (MODEL, dict(dp=64, global_batch=512, batch=3), "batch=1, 2, 4 or 8 would do"),
    "a stage there is": (MODEL, dict(pp=8, stage=9), "stage=9 is none of the 8 stages: stage=1, 2"),
    "global_batch in micro-batches": (
        MODEL,
        dict(dp=8, microbatches=4, global_batch=64),
        "not microbatches=4 times dp=8 times batch=1: global_batch=32 would do",
    ),
    "all_to_all deals out heads": (
        MODEL,
        dict(tp=8, cp=64, seq=2**17, context_exchange="all_to_all"),
        "which does not divide: cp=1",
    ),
    "shard_group in groups": (MODEL, dict(dp=8, sharding="hybrid", shard_group=3), "shard_group=1, 2, 4 or 8"),
    "shard_group in groups of experts": (
        MOE,
        dict(dp=48, ep=4, sharding="hybrid", shard_group=8),
        "neither divides the 12 devices (dp cp tp/(ep etp)) that share",
    ),
    "kv_heads divide heads": (MODEL, dict(kv_heads=7), "kv_heads=7 do not divide the 160 heads: kv_heads=1, 2"),
    "embeddings are one or two": (MODEL, dict(embeddings=3), "embeddings=1 or 2 would do"),
    "a gate or none": (MODEL, dict(gating=2), "gating=2 is neither"),
    "moe_layers within layers": (MODEL, dict(moe_layers=129), "moe_layers=129 is more than the 128 layers"),
    "top_k within experts": (MOE, dict(top_k=9), "top_k=9 is more than the 8 experts"),
    "offload has near_blocks": (MODEL, dict(pp=64, offload=True), "pp=64 a stage has 2"),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda x: x.name)
def test_each_rule_says_which_values_would_do(rule):
    model, letters, said = BROKEN[rule.name]
    found = reason({**model, **letters})
    assert said.partition(" or ")[0] in found and "\n" not in found
    assert rule.of(derived({**model, **letters})) == False  # noqa: E712
    assert reason({**model, **letters}, lifted=[rule.name]) != found
    [(letter, values)] = re.findall(r": (\w+)=([\d., or]+?)(?:\.\.\.)? would do", found)
    for value in re.findall(r"\d+", values):
        again = reason({**model, **letters, letter: int(value)})
        assert again is None or not again.startswith(found.split(" ")[0])


def test_advice_binds_searches_only():
    check({**MODEL, "tp": 16, "scaleup_size": 8})
    assert reason({**MODEL, "tp": 16, "scaleup_size": 8})


def interleaved():
    knowns = models.megatron_1t, accelerators.h100.at("bf16")
    letters = dict(tp=8, pp=16, dp=32, batch=1, chunks=2, global_batch=4096, seq=2048)
    sheet, _, _ = training_step.sheet(knowns, letters | {"schedule": "interleaved"})
    return {**MODEL, **letters, "schedule": "interleaved"}, sheet


def test_the_domains_of_a_schedule():
    values, sheet = interleaved()
    check(values, sheet)
    with pytest.raises(
        ValueError, match=r"micro-batches in multiples of the stages, not at microbatches=4, pp=16: microbatches=16, 32"
    ):
        check(values | {"batch": 32}, sheet)


def test_the_first_row_outside_a_domain():
    values, sheet = interleaved()
    check(values | {"batch": np.array([1, 2, 4, 8])}, sheet)
    said = r"in 2 of 5 rows, the first: bubble_interleaved .* not at microbatches=4, pp=16: microbatches=16, 32"
    with pytest.raises(ValueError, match=said):
        check(values | {"batch": np.array([1, 2, 32, 4, 64])}, sheet)
    with pytest.raises(ValueError, match=r"in 1 of 3 rows, the first: .*microbatches=24, pp=16"):
        training_step(
            models.megatron_1t, accelerators.h100.at("bf16"), tp=8, pp=16, dp=1, microbatches=np.array([16, 24, 32]),
            chunks=2, seq=2048,
        )  # fmt: skip


@pytest.mark.parametrize(
    "letters", [dict(stage_blocks=16), dict(stage_blocks=18, last_blocks=2), dict(stage_blocks=17, last_blocks=17)]
)
def test_stages_dealt_out_by_hand(letters):
    check({**MODEL, "pp": 8, **letters})


def test_experts_on_the_devices_that_share_everything_else():
    """tp 8 and ep 8 on eight devices, the commonest layout of one node."""
    check({**MOE, "tp": 8, "ep": 8, "dp": 1, "etp": 1})
    assert reason({**MOE, "tp": 8, "ep": 8, "dp": 1}).endswith(
        "(dp cp tp/etp) that experts are spread over: etp=1 would do"
    )


def test_one_stage_may_be_empty_and_no_more():
    assert reason({"pp": 8, "layers": 28}) is None and reason({"pp": 32, "layers": 61}) is None
    assert reason({"pp": 31, "layers": 32}).startswith(
        "pp=31 stages of at most 2 blocks leave more than one of them empty"
    )
    check({"pp": 31, "layers": 32, "stage_blocks": 2})  # dealt out by hand
