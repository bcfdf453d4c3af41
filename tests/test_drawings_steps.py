"""The drawings of steps: as every drawing is, and with the numbers of the formulas."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from scalebook.book.drawings import steps as drawings_steps
from scalebook.book.drawings.steps import (
    ORDER,
    chain_of_costs,
    deep_and_wide,
    flags_of_a_step,
    steps_and_sums,
    time_of_a_step,
)

from scalebook.display.steps import TIME
from scalebook.flags import read
from scalebook.runs import run_costs
from scalebook.tables import accelerators, models, ranges
from scalebook.training import training_step

from .test_schematics import (  # noqa: F401 (run here too)
    SVG,
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)

FLAGS = (
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 8 --num-virtual-stages-per-pipeline-rank 5"
    " --micro-batch-size 1 --global-batch-size 128 --seq-length 8192 --use-distributed-optimizer --tp-comm-overlap"
    " --sequence-parallel --bf16 --lr 3e-4"
)
SHOWN = ["--num-virtual-stages-per-pipeline-rank", "--tp-comm-overlap", "--use-distributed-optimizer", "--lr"]


def flags_priced():
    setup = read(FLAGS, devices=64)
    return flags_of_a_step(setup, training_step(models.llama3_70b, accelerators.h100.at("bf16"), **setup.knowns), SHOWN)


def megatron():
    return training_step(
        models.megatron_175b, accelerators.a100.at("bf16"), seq=2048, batch=1, dp=1, attention="unfused", tp=8, pp=8,
        sharding="replicated", chunks=3, microbatches=64, recompute="selective", sequence_parallel=True,
    )  # fmt: skip


def run(which="usual"):
    h100 = {x: accelerators.h100[x] for x in ("peak_flops", "tdp")}
    return run_costs(models.llama3_405b, h100, ranges[which], train_tokens=15.6e12, devices=16384)


DRAWN = {
    "steps_and_sums": lambda: steps_and_sums(step_time=4, site_exchange=4.8),
    "chain_of_costs": lambda: chain_of_costs(run()),
    "flags_of_a_step": flags_priced,
    "time_of_a_step": lambda: time_of_a_step(megatron()),
    "deep_and_wide": lambda: deep_and_wide(1e12),
}


@pytest.fixture(params=DRAWN)
def scene(request):
    return DRAWN[request.param]()


def test_every_drawing_is_looked_at():
    assert sorted(DRAWN) == sorted(drawings_steps.__all__)


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_the_same_every_time(name):
    assert DRAWN[name]()._repr_html_() == DRAWN[name]()._repr_html_()


def bars(scene, kind):
    found = [x for x in ElementTree.fromstring(scene.svg).iter(f"{SVG}rect") if x.get("class") == f"sb-{kind}"]
    return [tuple(float(x.get(y)) for y in ("x", "y", "width", "height")) for x in found]


def test_sums_take_the_share_of_time_that_is_said_to_be_lost():
    drawn = steps_and_sums(step_time=4, site_exchange=4.8, compression=8, local_steps=20)
    assert re.findall(r"(\d+) % lost", drawn.description) == ["55", "13", "6"]
    rows = {}
    for x, y, wide, _ in bars(drawn, "network"):
        rows.setdefault(y, []).append((x, wide))
    assert [len(x) for x in rows.values()] == [10, 18, 1]
    assert all(abs(x + wide - 339) < 0.2 for x, wide in list(rows.values())[2])


@pytest.mark.parametrize("steps", [0, 2.5])
def test_steps_that_cannot_be_drawn_are_refused(steps):
    with pytest.raises(ValueError, match=f"^steps between two sums are a whole number from 1 on; these are {steps}$"):
        steps_and_sums(step_time=4, site_exchange=4.8, local_steps=steps)


@pytest.mark.parametrize("which", ranges)
def test_the_chain_of_costs_holds_for_every_range(which):
    said = chain_of_costs(run(which)).description
    hours, cost = (float(re.search(x, said)[1]) for x in (r"([\d.]+) million h of devices", r"([\d.]+) million \$"))
    assert abs(cost / hours / ranges[which].price_hour - 1) < 1e-3


def test_a_letter_stands_beside_its_flag_and_its_formula():
    said = flags_priced().description
    assert f"{SHOWN[0]}; chunks = 5; bubble_interleaved" in said and f"{SHOWN[-1]}; no letter" in said


def test_the_parts_of_a_step_follow_each_other_and_fill_it():
    assert set(ORDER) == set(TIME)
    found = sorted(
        (y, x, wide) for kind in set(ORDER.values()) for x, y, wide, _ in bars(time_of_a_step(megatron()), kind)
    )
    parts = [x for k, x in enumerate(found) if k == 0 or x[1] != found[k - 1][1]]  # not what runs beside the one above
    assert len(parts) == len(found) - 1 and parts[0][1] == 190 and abs(sum(parts[-1][1:]) - 338) < 0.2
    assert all(abs(a[1] + a[2] - b[1]) < 0.2 for a, b in pairwise(parts))


@pytest.mark.parametrize("aspects", [(50, 400), (100, 200), (100, 800)])
def test_a_deep_and_a_wide_model_have_areas_as_equal_as_their_parameters(aspects):
    rows = bars(deep_and_wide(1e12, aspects), "memory")
    areas = {}
    for x, _, wide, high in rows:
        areas[x] = areas.get(x, 0) + wide * high
    deep, wide = areas.values()
    assert abs(deep / wide - 1) < 0.05


def test_the_deep_model_comes_first():
    with pytest.raises(ValueError, match=r"^the first aspect is the deep model's, so the smaller; these are 400, 50$"):
        deep_and_wide(1e12, (400, 50))
