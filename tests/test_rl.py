"""Updates of reinforcement learning: closed forms against a simulation, and what a call of `rl_step` promises."""

import numpy as np
import pytest
from scalebook.book.measured.rl_simulation import simulate_rollout, simulate_staleness

from scalebook.language.interval import SPREADS
from scalebook.rl import rl_step, rollouts
from scalebook.rl.update import Lengths, programs
from scalebook.search import search
from scalebook.tables import accelerators, frameworks, models

STEP = dict(pass_base=8e-3, pass_answer=3e-5, pass_token=4e-9, prompt=500)
LAWS = [Lengths(2500, 0.8, 8192), Lengths(5500, 1.0, 32_768), Lengths(2500, 1.2, 16_384), Lengths(3300, 0.5, 8192)]
H100 = accelerators.h100
SMALL = dict(
    devices=32, responses=2048, response=3256, response_most=3976, rollout=dict(tp=4), training=dict(tp=4, pp=4)
)


def drawn(lengths, number, rng):
    return np.ceil(lengths.law(rng.standard_normal(number)))


def said(lengths, responses, group):
    own = dict(response=lengths.mean, response_square=lengths.square, longest_response=lengths.longest(responses))
    return rollouts.rollout_time_begun(STEP, own, responses=responses, response_group=group)


@pytest.mark.parametrize("lengths", LAWS, ids=str)
@pytest.mark.parametrize(("engines", "draws", "off"), [(1, 400, 0.01), (16, 60, 0.03)])
def test_a_rollout_is_as_simulated_until_the_slowest_engine_ends(lengths, engines, draws, off):
    rng = np.random.default_rng(engines // 16)
    for group in (64, 256):
        own = lambda group=group: simulate_rollout(**STEP, lengths=drawn(lengths, group, rng))  # noqa: E731
        found = np.mean([max(own() for _ in range(engines)) for _ in range(draws)])
        assert said(lengths, group * engines, group) == pytest.approx(found, rel=off)


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
@pytest.mark.parametrize("lengths", LAWS[:3:2], ids=str)
def test_staleness_is_answers_in_flight_over_answers_of_an_update(lengths, ratio):
    ages = simulate_staleness(lengths, in_flight=256 * ratio, responses=256)
    assert rollouts.staleness_in_flight(in_flight=256 * ratio, responses=256) == pytest.approx(ages.mean(), rel=0.01)


@pytest.mark.parametrize("lengths", LAWS, ids=str)
def test_lengths_have_the_mean_that_was_given(lengths):
    found = drawn(lengths, 400_000, np.random.default_rng(2))
    assert found.mean() == pytest.approx(lengths.mean, rel=0.01)
    assert (found**2).mean() == pytest.approx(lengths.square, rel=0.02)
    said = rollouts.longest_response_capped(
        response_typical=lengths.typical, response_spread=lengths.spread, response_most=lengths.most, responses=4096
    )
    assert said == pytest.approx(lengths.longest(4096), rel=0.12)


@pytest.mark.parametrize("program", programs())
def test_every_program_prices_an_update(program):
    small = dict(devices=16, responses=1024, response=2000, response_most=8192)
    run, scored = (rl_step(models.llama3_8b, H100, program, **small, **x) for x in ({}, {"reward_time": "20 s"}))
    parts = run.rollout_time, run.logprob_time + run.learning_time + run.sync_time + run.update_overhead
    is_apart = frameworks[program].words["placement"] == "apart"
    assert run.update_time == pytest.approx(max(parts) if is_apart else sum(parts))
    assert scored.update_time == pytest.approx(max(parts[0], parts[1] + 20) if is_apart else sum(parts) + 20)
    assert ("staleness" in run) == is_apart and 0 <= run.idle_share < 1


def test_the_wall_is_where_fixed_time_is_half_of_an_update():
    run = rl_step(models.qwen3_32b, H100, **SMALL)
    fixed = run.rollout_tail + run.sync_time + run.update_overhead
    assert (run.rollout_work + run.learning_work) / run.rollout_wall == pytest.approx(fixed)
    twice = rl_step(models.qwen3_32b, H100, **{**SMALL, "devices": 64})
    assert 0.5 < twice.update_time / run.update_time < 1


def test_the_best_share_is_no_worse_than_others():
    known = {**SMALL, "devices": 64, "age": 1}
    best = rl_step(models.qwen3_32b, H100, **known)
    others = [rl_step(models.qwen3_32b, H100, **known, share=x).update_time for x in (0.25, 0.5, 0.75)]
    assert best.update_time <= min(others) and 0 < best.staleness <= 1


def test_a_search_finds_the_fastest_of_its_layouts():
    lists = dict(rollout=[dict(tp=2), dict(tp=4), dict(tp=7)], training=["tp=4 pp=4", "tp=8 pp=2", "tp=1"])
    found = search(rl_step, models.qwen3_32b, H100, **{**SMALL, **lists})
    assert found.rejected == {"memory <= hbm_capacity": 2}  # learners with tp=1, for two rollouts
    own = [
        rl_step(models.qwen3_32b, H100, **{**SMALL, "rollout": x, "training": y}).update_time
        for x in lists["rollout"][:2] for y in lists["training"][:2]
    ]  # fmt: skip
    assert found.best[0].update_time == pytest.approx(min(own))
    several = search(rl_step, models.qwen3_32b, [H100, accelerators.h200, accelerators.tpu_v5e], **{**SMALL, **lists})
    one, two = (x.best[0].update_time for x in several.searches)  # of H100 and H200; the third is too small
    assert found.best[0].update_time == one > two and [*several.without] == ["Google TPU v5e"]


def test_an_update_has_an_interval():
    run = rl_step(models.qwen3_32b, H100, **SMALL)
    found = run.interval("update_time")
    assert found.low < run.update_time < found.high < 2 * found.low  # else the planner would not answer it
    assert "update_time" in SPREADS
