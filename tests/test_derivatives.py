"""What becomes of a cost if one letter is doubled: twice the context-parallel ways halve what is sent."""

import pytest

from scalebook import accelerators, models, training_step
from scalebook.inference.step import decode_step, prefill_step
from scalebook.language import symbol
from scalebook.training.block_costs import _near
from scalebook.training.contention import dp_contention_shared

from .support import csv_rows
from .test_worked_numbers import LIMITS, NETWORK, SERVED, TRAINED, letters_of

AT = dict(tp=2, cp=2, pp=2, dp=4, seq=8192, microbatches=16)
ROWS = csv_rows("derivatives.csv")


def served(step, model, letters, limit):
    """The letters of a step of serving that nothing but one limit of an H100 binds."""
    sheet = step.plan((model, accelerators.h100), letters)[0]
    return letters | {x: y for x, y in SERVED.items() if x in sheet.letters} | NETWORK | LIMITS[limit]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['letter']}: {row['doubled']}, {row['letters']}")
def test_what_a_doubled_letter_does(row):
    """The letter after another has been doubled, over the letter before."""
    model, letters = models[row["model"]], letters_of(row["letters"])
    if row["call"] == "training_step":
        call, letters = training_step, NETWORK | LIMITS[row["bound_by"]] | TRAINED | AT | letters
    else:
        call, letters = decode_step, served(decode_step, model, letters, row["bound_by"])
    at = row["doubled"]
    one, two = (call(model, accelerators.h100, **letters | {at: letters.get(at, 1) * n})[row["letter"]] for n in (1, 2))
    assert two / one == pytest.approx(float(row["ratio"]), rel=1e-9)


def test_a_prompt_of_twice_the_chunks_past_attends_to_twice_as_many():
    """The growth of attention from one chunk to the next is the same, in layers with and without windows."""
    for model in (models.llama3_70b, models.gemma3_27b, models.deepseek_v3):
        letters = served(prefill_step, model, dict(tp=2, prompts=1, read_chunk=128), "arithmetic")
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
