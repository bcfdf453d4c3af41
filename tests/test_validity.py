"""Which strategies can run: every rule in one sentence that names the letter and values that would do."""

import re

import numpy as np
import pytest

from scalebook import accelerators, models, training_step
from scalebook.training.rules import RULES, check, derived, reason

from .support import cases, refuses

MODEL = {**models.megatron_1t, "seq": 2048, "schedule": "1f1b", "sequence_parallel": True, "offload": False}
MOE = {**models.mixtral_8x7b, "seq": 8192, "schedule": "1f1b", "sequence_parallel": True, "offload": False}

# By rule: a model, what breaks the rule and nothing before it, and what must be in the sentence.
BROKEN = cases("a rule of training that is broken", globals())


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
    said = reason(values | {"batch": 32}, sheet)
    assert "in multiples of the stages, not at microbatches=4, pp=16: microbatches=16, 32" in said


def test_the_first_row_outside_a_domain():
    values, sheet = interleaved()
    check(values | {"batch": np.array([1, 2, 4, 8])}, sheet)
    said = r"in 2 of 5 rows, the first: bubble_interleaved .* not at microbatches=4, pp=16: microbatches=16, 32"
    refuses(ValueError, said, lambda: check(values | {"batch": np.array([1, 2, 32, 4, 64])}, sheet))


@pytest.mark.parametrize(
    "letters", [dict(stage_blocks=16), dict(stage_blocks=18, last_blocks=2), dict(stage_blocks=17, last_blocks=17)]
)
def test_stages_dealt_out_by_hand(letters):
    check({**MODEL, "pp": 8, **letters})


def test_experts_on_the_devices_that_share_everything_else():
    """tp 8 and ep 8 on eight devices, the commonest layout of one node."""
    check({**MOE, "tp": 8, "ep": 8, "dp": 1, "etp": 1})
    said = reason({**MOE, "tp": 8, "ep": 8, "dp": 1})
    assert said.endswith("(dp cp tp/etp) that experts are spread over: etp=1 would do")


def test_one_stage_may_be_empty_and_no_more():
    assert reason({"pp": 8, "layers": 28}) is None and reason({"pp": 32, "layers": 61}) is None
    said = reason({"pp": 31, "layers": 32})
    assert said.startswith("pp=31 stages of at most 2 blocks leave more than one of them empty")
    check({"pp": 31, "layers": 32, "stage_blocks": 2})  # dealt out by hand
