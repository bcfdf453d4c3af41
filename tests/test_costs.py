"""What runs cost: published hours, energy and carbon agree with the formulas, and the ranges with the runs."""

import pytest

from scalebook.runs import costs
from scalebook.runs.costs import carbon_of_run, device_hours_of_arithmetic, mfu_of_hours, price_hour_owned, run_costs
from scalebook.tables import accelerators, models, ranges, runs

PUBLISHED = [*runs]
OWNED = dict(utilization=0.8, tdp=accelerators.h100.tdp)


def reached(key):
    row = runs[key]
    return mfu_of_hours(row, models[row.model], accelerators[row.device])


@pytest.mark.parametrize("key", PUBLISHED)
def test_hours_and_the_share_that_they_reach_are_inverse(key):
    row = runs[key]
    assert 0.1 < reached(key) < 0.5, "of the bf16 or fp16 peak"
    again = device_hours_of_arithmetic(models[row.model], accelerators[row.device], mfu=reached(key), **tokens(row))
    assert again == pytest.approx(row.device_hours)


def tokens(row):
    return dict(train_tokens=row.train_tokens)


@pytest.mark.parametrize("key", ["llama2_70b", "llama3_8b", "llama3_70b", "llama3_405b"])
def test_cards_that_give_no_grid_use_the_mean_of_the_united_states(key):
    """Hours at the design power, a PUE near Meta's 1.08, and 0.385 t/MWh: within 2 %."""
    said = carbon_of_run(runs[key], pue=1.09, carbon_intensity=0.385)
    assert said == pytest.approx(runs[key].run_carbon, rel=0.025)


def test_what_deepseek_counts():
    assert costs.run_cost_of_hours(runs.deepseek_v3) == runs.deepseek_v3.run_cost


def test_gpt3_took_as_long_as_published():
    assert costs.run_time_of_hours(runs.gpt3_175b) / 86400 == pytest.approx(14.8)


@pytest.mark.parametrize(("name", "key"), [("cheap", "llama1_65b"), ("usual", "llama3_405b"), ("dear", "gpt3_175b")])
def test_the_range_of_what_runs_reach_is_of_the_table(name, key):
    assert ranges[name].mfu == pytest.approx(reached(key), rel=0.003)


@pytest.mark.parametrize("letter", ranges.cheap)
def test_a_range_is_in_order(letter):
    values = [ranges[x][letter] for x in ("cheap", "usual", "dear")]
    assert values == sorted(values, reverse=letter in ("mfu", "service_life")) and len(set(values)) == 3
    assert ranges.usual.device_price == accelerators.h100.device_price


def test_owned_is_cheaper_than_listed_and_electricity_is_the_small_part():
    prices = [price_hour_owned(ranges[x], **OWNED) for x in ranges]
    power = [costs.power_hour_of_device(ranges[x], tdp=OWNED["tdp"]) for x in ranges]
    assert all(mine < ranges[x].price_hour for mine, x in zip(prices, ranges, strict=True)) and prices == sorted(prices)
    assert all(x < 0.16 * mine for x, mine in zip(power, prices, strict=True))


def test_a_budget_is_spent_to_the_last_dollar():
    budget = run_costs.formula("run_cost").solve("train_tokens")
    known = dict(mfu=0.35, price_hour=2)
    bought = budget(models.llama3_8b, accelerators.h100, run_cost=1e6, **known)
    row = run_costs(models.llama3_8b, accelerators.h100, train_tokens=bought, devices=512, system_factor=1, **known)
    assert row.run_cost == pytest.approx(1e6)
    assert "run_carbon" not in row, "no grid, no carbon"
