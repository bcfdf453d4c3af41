"""What cannot be served is refused in one sentence that says what would do; what can be is not."""

import numpy as np
import pytest

from scalebook import inference, search
from scalebook.inference import assumptions, decode_step, fullest_share, mixed_step, prefill_step, serve
from scalebook.inference.rules import RULES, check, reason
from scalebook.tables import accelerators, engines, models

from .support import each_case

DENSE, MOE, H200 = models.llama3_70b, models.mixtral_8x7b, accelerators.h200.at("fp8")
SERVED = dict(tp=8, users=64, prompt=1024, output=256)
STEPS = {
    decode_step: dict(tp=8, batch=64, context=4096),
    prefill_step: dict(tp=8, read_chunk=4096),
    mixed_step: dict(tp=8, batch=64, context=4096, read_chunk=512),
    serve: SERVED,
}


def refused(step, *knowns, **letters) -> str:
    with pytest.raises((ValueError, TypeError, LookupError)) as stopped:
        step(*knowns, **letters)
    said = str(stopped.value)
    assert "\n" not in said and len(said) < 400
    return said


@pytest.mark.parametrize("step", STEPS, ids=lambda x: x.name)
@each_case("what a server refuses", "model, letters, said", globals())
def test_what_cannot_run_is_refused(step, model, letters, said):
    assert said in refused(step, model, H200, **{**STEPS[step], **letters})


@pytest.mark.parametrize("step", STEPS, ids=lambda x: x.name)
def test_what_is_lacking_is_named(step):
    assert f"{step.name} needs a device's row, such as accelerators.h100" in refused(step, DENSE, **STEPS[step])
    assert f"{step.name} needs a model's row" in refused(step, H200, **STEPS[step])
    said = refused(step, DENSE, accelerators.rtx_4090.published, **{**STEPS[step], "weight_bits": 4, "kv_bits": 4})
    assert "RTX 4090 has no scaleup_size or scaleout_bandwidth, which devices that share a model need: give" in said


@pytest.mark.parametrize("step", STEPS, ids=lambda x: x.name)
def test_one_device_needs_no_network(step):
    card = accelerators.rtx_4090.published
    asked = {**STEPS[step], "tp": 1} | ({"users": 4} if step is serve else {})
    alone = step(models.llama3_8b, card, **asked, weight_bits=8)
    assert alone.pass_time > 0 and alone.exchange_time == 0
    network = dict(scaleup_size=1, scaleout_bandwidth="12.5 GB/s")
    assert step(models.llama3_8b, card, **asked, **network, weight_bits=8).pass_time == alone.pass_time


def test_an_engine_is_a_row_or_its_name():
    assert serve(DENSE, H200, **SERVED, engine="vllm").ttft == serve(DENSE, H200, **SERVED, engine=engines.vllm).ttft
    slow = decode_step(DENSE, H200, **STEPS[decode_step], engine="vllm", step_overhead="1 ms")
    assert slow.pass_time - decode_step(DENSE, H200, **STEPS[decode_step]).pass_time == pytest.approx(1e-3)


def test_what_does_not_fit_says_what_would():
    one = refused(serve, DENSE, accelerators.h100, **{**SERVED, "tp": 1})
    assert one.startswith(
        "141.1 GB of weights are too many for a device of 80 GB, of which 80 GB are for weights, caches"
    )
    assert one.endswith("tp=2 would hold them") and serve(DENSE, accelerators.h100, **{**SERVED, "tp": 2, "users": 1})
    said = refused(serve, DENSE, H200, **{**SERVED, "users": 100_000})
    assert "the caches of 100,000 users at 1,152 tokens do not fit: " in said
    most = serve(DENSE, H200, **SERVED).max_users
    assert f"{most:,.0f} fit" in said and serve(DENSE, H200, **{**SERVED, "users": most}).filled <= 1


@pytest.mark.parametrize("rule", RULES, ids=lambda x: x.name)
def test_rules_say_the_same_of_arrays(rule):
    rng = np.random.default_rng(1)
    words = {"exchange": "all_reduce", "overlap": "half_batches"}
    known = {n: rng.choice([1.0, 2, 3, 4, 8, 64], 50) for n in rule.needs if n not in words} | words
    holds = np.broadcast_to(rule.of(known), 50)
    assert [bool(rule.of({n: x if n in words else x[i] for n, x in known.items()})) for i in range(50)] == [*holds]


def test_arrays_name_the_first_that_cannot_run():
    check({"tp": np.array([1.0, 2]), "heads": 64})
    assert reason({"tp": 8, "heads": 64, "ep": 8, "experts": 8, "attention_dp": 1}) is None


@each_case("steps too small for half batches", "step, letters", globals())
def test_half_batches_need_two_sequences(step, letters):
    assert "are too few for its pp=" in refused(step, DENSE, H200, **letters, overlap="half_batches")
    fewer = {n: 16 if n in ("batch", "users") else x for n, x in letters.items()}
    assert step(DENSE, H200, **fewer, overlap="half_batches").pass_time > 0


def test_a_capacity_of_half_batches_begins_with_two_sequences_a_group():
    asked = dict(attention_dp=8, ep=8, prompt=1000, output=300, overlap="half_batches")
    most = serve.capacity(models.deepseek_v3, H200, **asked, tpot="80 ms")
    assert most.users >= 16 and most.row.tpot <= 0.08
    said = refused(serve.capacity, models.deepseek_v3, H200, **asked, tpot="1 ms")
    assert "tpot=1 ms is met by no user: the fewest, 16, have " in said


def test_within_a_node_no_port_out_of_it_is_asked_for():
    asked, device = dict(batch=16, context=2000), accelerators.l40s.published
    whole = decode_step(models.llama3_8b, device, tp=8, **asked)
    given = decode_step(models.llama3_8b, device, tp=8, **asked, scaleout_bandwidth="32 GB/s")
    assert whole.pass_time == given.pass_time
    said = refused(decode_step, models.llama3_8b, device, tp=8, pp=2, **asked)
    assert "NVIDIA L40S has no scaleout_bandwidth, which devices that share a model need" in said


def test_groups_that_have_all_experts_gather_tokens():
    asked = dict(batch=16, context=2000, tp=4, attention_dp=2)
    usual = decode_step(MOE, H200, **asked)
    assert usual.pass_time == decode_step(MOE, H200, **asked, exchange="gather").pass_time
    assert usual.exchange_time > decode_step(MOE, H200, batch=16, context=2000, tp=4).exchange_time


def test_a_device_without_cores_reads_caches_as_fast_as_its_memory():
    """As one with very many cores, and not as one core that reads all caches."""
    asked = dict(tp=1, batch=16, context=2000)
    device = accelerators.tpu_v6e
    assert "cores" not in device
    few = decode_step(models.llama3_8b, device, **asked, cores=1)
    many = decode_step(models.llama3_8b, device, **asked, cores=10**6)
    assert decode_step(models.llama3_8b, device, **asked).cache_time == many.cache_time < few.cache_time
    assert decode_step(models.llama3_8b, accelerators.h100_nvl, **asked).cores == 132


READS = ("read_launch", "read_efficiency", "item_time")


@pytest.mark.parametrize("key", [x for x in accelerators if "peak_flops" in accelerators[x]])
@pytest.mark.parametrize(("model", "kind"), [("llama3_70b", "grouped"), ("deepseek_v3", "latent")])
def test_caches_are_read_by_a_device_s_own_kernels_where_its_row_has_them(key, model, kind):
    device, h100 = accelerators[key], decode_step(models[model], accelerators.h100, batch=8, context=4096)
    row = decode_step(models[model], device, batch=8, context=4096)
    assert ("read_launch_grouped" in device) == (key in ("b200", "b300", "gb200", "gb300"))
    for letter in READS:
        own = device.get(letter, device.get(f"{letter}_{kind}", h100[letter]))
        assert row[letter] == (own if letter != "item_time" or "cores" in device else 0)


def test_what_a_call_says_of_reading_caches_stands_before_a_device_s_own():
    asked = dict(tp=8, batch=64, context=32768)
    for model in (models.llama3_70b, models.deepseek_v3):
        own, said = (decode_step(model, accelerators.b200, **asked, **x) for x in ({}, dict(read_efficiency=1)))
        swapped = decode_step(model, accelerators.b200, assumptions.read_efficiency_grouped, **asked)
        assert said.read_efficiency == 1 and said.cache_time < own.cache_time
        assert swapped.read_efficiency == 0.72 and swapped.item_time == own.item_time
        as_numbers = decode_step(model, {**accelerators.b200}, **asked)  # a row without its sources
        assert as_numbers.pass_time == own.pass_time


def test_how_caches_are_read_is_as_uncertain_on_a_device_of_its_own():
    """Its cell has ends, and moves the result as the usual formula's does."""
    asked = dict(tp=8, batch=64, context=65536)
    for model in (models.llama3_70b, models.deepseek_v3):
        causes = {x.letter: x for x in decode_step(model, accelerators.b200, **asked).interval("pass_time").ranked}
        assert causes["read_efficiency"].origin == "NVIDIA B200" and causes["read_efficiency"].share > 0.1


@pytest.mark.parametrize("step", [decode_step, mixed_step, prefill_step, serve], ids=lambda x: x.name)
def test_a_step_waits_for_its_fullest_device(step):
    """Its experts, what is sorted for them and sent to them grow with its load, and nothing else does."""
    ways = dict(attention_dp=16, ep=16)
    letters = {**STEPS, serve: {"users": 512, "prompt": 1024, "output": 1024}}[step] | {"tp": 1} | ways
    even, full = (step(models.deepseek_v3, H200.at("fp8"), **letters, fullest_share=x) for x in (1, 2))
    assert step(models.deepseek_v3, H200.at("fp8"), **letters).pass_time == even.pass_time < full.pass_time
    assert even.routing_time < full.routing_time < 2 * even.routing_time
    assert even.exchange_time < full.exchange_time < 2 * even.exchange_time
    assert even.experts_time < full.experts_time <= 2 * even.experts_time
    same = ("weights_time", "products_time", "cache_time", "reading_time", "streams_time", "launches_time")
    assert all(even[x] == full[x] for x in same)


@pytest.mark.parametrize("model", [models.deepseek_v3, models.glm_5, models.qwen3_5_397b], ids=lambda x: x.name)
def test_groups_that_attend_apart_wait_for_the_fullest(model):
    """Its caches are read by it alone, in proportion; nothing else grows."""
    ways = dict(attention_dp=16, ep=16, batch=32, context=4096)
    even, full = (decode_step(model, H200.at("fp8"), **ways, fullest_group=x) for x in (1, 2))
    assert decode_step(model, H200.at("fp8"), **ways).pass_time == even.pass_time
    assert full.cache_time == pytest.approx(2 * even.cache_time)
    assert full.pass_time - even.pass_time == pytest.approx(even.cache_time)


def test_a_formula_of_the_fullest_device_counts_the_tokens_of_each_step():
    """More come where a prompt is read too, and a device is then nearer to the mean; what is said holds for both."""
    rows, asked = (models.deepseek_v3, H200.at("fp8")), dict(attention_dp=16, users=512, prompt=1024, output=1024)
    row = serve(*rows, fullest_share, **asked, ep=16)
    assert row.fullest_share == fullest_share(ep=16, assigned_tokens=row.assigned_tokens)
    assert row.mixed_fullest == fullest_share(ep=16, assigned_tokens=row.mixed_assigned) < row.fullest_share
    said = serve(*rows, fullest_share=row.fullest_share, **asked, ep=16)
    assert said.mixed_fullest == said.fullest_share and said.pass_time == row.pass_time
    assert said.mixed_time > row.mixed_time and said.ttft > row.ttft
    found = search(serve, *rows, fullest_share, **asked, ep=[8, 16], minimize="tpot", progress=False)
    for x in found.best:
        assert x.values["tpot"] == pytest.approx(x.row.tpot) and x.row.mixed_fullest < x.row.fullest_share
    halves = serve(*rows, fullest_share, **asked, ep=16, exchange="all_to_all", overlap="half_batches")
    assert 1 < halves.mixed_fullest < halves.fullest_share


def test_the_fullest_group_is_no_fuller_than_said():
    rng = np.random.default_rng(0)
    for groups, each in ((2, 4), (8, 16), (32, 8), (32, 64)):
        found = rng.multinomial(groups * each, [1 / groups] * groups, size=4000).max(axis=1).mean() / each
        assert found < inference.fullest_group(attention_dp=groups, batch=each) < 1.5 * found
    assert "there is one" in refused(decode_step, DENSE, H200, **{**STEPS[decode_step], "fullest_group": 2})
