"""A step of serving and what follows from it: parts that sum, three evaluators that agree, experts by simulation."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from scalebook import inference
from scalebook.block import LLAMA, MLA_ABSORBED, MLA_MOE, MOE, blocks_of, served_blocks  # noqa: F401  (of cases.csv)
from scalebook.inference import decode_step, decoding, devices_touched, mixed_step, prefill_step, serve, step_sheet  # noqa: F401
from scalebook.inference.kernels import Work  # noqa: F401
from scalebook.inference.serving import serve_sheet  # noqa: F401
from scalebook.tables import accelerators, engines, models

from .every import every
from .support import agree, cases, sound

H100, H200, B200 = (accelerators[x].at("fp8") for x in ("h100", "h200", "b200"))
CASES = cases("steps of serving", globals())
STEPS = {
    "decode": (decode_step, dict(batch=32, context=4096)),
    "prefill": (prefill_step, dict(read_chunk=2048, past=2048)),
    "mixed": (mixed_step, dict(batch=32, context=4096, read_chunk=512)),
}


def sheets():
    """Made by the tests that ask: each worker reads this file, and one runs it."""
    return [*cases("sheets of serving", globals()).values()]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("phase", STEPS)
def test_parts_sum_to_a_step(case, phase):
    model, device, layout = CASES[case]
    step, asked = STEPS[phase]
    row = step(model, device, **layout, **asked)
    parts = [row[part] for part in inference.PARTS]
    assert sum(parts) + row.engine_time == pytest.approx(row.pass_time, rel=1e-12)
    assert all(x >= 0 for x in parts) and row.weights_time > 0
    assert (row.cache_time > 0) == (phase != "prefill") and (row.reading_time > 0) == (phase != "decode")
    assert (row.experts_time > 0) == ("experts" in model and model.experts > 0)


@every(lambda: enumerate(sheets()), name=lambda x: f"sheet {x[0]}")
def test_python_numpy_and_javascript_agree(_, sheet):
    assert list(agree(sheet, 6, rel=1e-9))


def test_a_formula_made_from_a_listing_has_its_unit_a_meaning_and_a_source():
    sound(sheets())


@pytest.mark.parametrize("case", CASES)
def test_more_of_a_device_is_never_slower_and_more_users_never_faster(case):
    model, device, layout = CASES[case]
    asked = layout | dict(users=64, prompt=1024, output=512, hbm_capacity="2 TB")
    before = serve(model, device, **asked)
    for letter in ("hbm_bandwidth", "scaleup_bandwidth", "peak_flops", "stream_efficiency", "matmul_efficiency"):
        more = min(1.0, device[letter] * 1.2) if letter.endswith("efficiency") else device[letter] * 1.2
        after = serve(model, device, **asked | {letter: more})
        assert after.tpot <= before.tpot * (1 + 1e-12) and after.ttft <= before.ttft * (1 + 1e-12), letter
    users = np.arange(2 * layout.get("attention_dp", 1) if "overlap" in layout else 1, 200)
    rows = serve(model, device, **asked | dict(users=users))
    assert (np.diff(rows.tpot) >= -1e-12).all() and (np.diff(rows.ttft) >= -1e-12).all()
    assert rows.tpot[users == 64] == pytest.approx(before.tpot, rel=1e-12)


@pytest.mark.parametrize("name", ["llama3_70b", "deepseek_v3", "gpt_oss_120b", "glm_5", "qwen3_5_397b"])
def test_stages_make_no_token_faster(name):
    """A sequence goes through all layers, and its whole cache is read in each, however many stages hold them."""
    for step, asked in ((decode_step, {}), (mixed_step, dict(read_chunk=512))):
        one, *more = (step(models[name], H200, tp=8, pp=pp, batch=1, context=100_000, **asked) for pp in (1, 2, 8))
        for row in more:
            assert row.cache_time == pytest.approx(one.cache_time, rel=1e-12) and row.pass_time >= one.pass_time
    one, *more = (serve(models[name], B200, tp=8, pp=x, users=1, prompt=1000, output=100) for x in (1, 2, 8))
    assert all(row.tpot >= one.tpot and row.ttft >= one.ttft for row in more)


@pytest.mark.parametrize("pp", [1, 4])
@pytest.mark.parametrize("name", ["llama3_8b", "gpt_oss_120b", "deepseek_v3"])
def test_longer_answers_end_no_sooner_and_more_users_are_served_no_less(name, pp):
    """But for a tenth, by which what is read together is taken at its mean."""
    asked = dict(tp=8, pp=pp, generations=10**6)
    ends = serve(models[name], B200, **asked, users=64, prompt=1000, output=np.array([2, 3, 4, 8, 16, 300])).end_to_end
    assert (ends[1:] > 0.9 * ends[:-1]).all()  # prompts waited for were once met again, and ends fell by 40 %
    users = 2.0 ** np.arange(14)  # every prompt was once charged a step of its own, and rates fell a thousandfold
    rates = serve(models[name], B200, **asked, users=users, prompt=20, output=30).request_rate
    assert (rates[1:] > 0.9 * rates[:-1]).all()


def test_the_end_of_a_request_is_its_first_token_and_the_others():
    row = serve(models.llama3_70b, H200, tp=8, users=64, prompt=1024, output=1024, engine="vllm")
    assert row.end_to_end == pytest.approx(row.ttft + 1023 * row.tpot)
    assert row.request_rate * row.end_to_end == pytest.approx(64)  # Little's law
    assert row.device_rate == pytest.approx(row.request_rate * 1024 / 8)
    assert row.tpot_low < row.tpot < row.tpot_high and row.ttft_low < row.ttft < row.ttft_high
    assert row.million_cost == pytest.approx(row.price_hour / 3600 / row.device_rate * 1e6)
    ideal = serve(models.llama3_70b, H200, tp=8, users=64, prompt=1024, output=1024, engine=engines.ideal)
    assert ideal.ttft < row.ttft


@pytest.mark.parametrize("name", ["gpt_oss_20b", "gemma3_4b", "mistral_7b", "llama3_8b", "deepseek_v2_lite"])
def test_a_user_of_serve_holds_what_a_sequence_of_decoding_does(name):
    """Layers that slide keep a window: users who have room were once refused, six of seven of Gemma 3's."""
    asked = dict(kv_bits=16, weight_bits=16)
    row = serve(models[name], B200, users=2, prompt=30_000, output=2000, **asked)
    one = decoding(models[name], B200, batch=1, context=31_000, **asked)
    assert row.cached_tokens == pytest.approx(one.get("cached", 31_000)) and row.context == 31_000
    held = row.cached_tokens * row.token_cache
    assert held == pytest.approx(one.kv_cache, rel=1e-12) and row.max_users == row.cache_room // held
    assert (full := row.call.again(cache_room=2 * held)).max_users == 2 and full.filled == pytest.approx(1, rel=1e-12)


def test_a_long_prompt_is_read_in_several_steps():
    asked = dict(tp=8, users=16, output=256)
    short, long = (serve(models.llama3_70b, H200, **asked, prompt=n) for n in (8192, 8193))
    assert (short.chunks_of_prompt, long.chunks_of_prompt) == (1, 2)
    assert long.prompt_time == pytest.approx(short.prompt_time, rel=0.1)


def test_capacity_is_the_last_number_of_users_within_targets():
    asked = dict(tp=8, prompt=1000, output=300)
    most = serve.capacity(models.llama3_70b, H200, **asked, ttft=1, tpot="20 ms")
    assert most.binds == "tpot" and most.row.tpot <= 0.02 and most.rate == most.row.request_rate
    over = serve(models.llama3_70b, H200, **asked, users=most.users + 1, generations=10**6)
    assert over.tpot > 0.02


REQUEST = dict(prompt=1000, output=300, tp=2)
TURNS = dict(turns=4, appended=200, output=50, pause=2, sessions=64, tp=2)
SERVICES = [(serve, REQUEST | dict(users=64)), (serve, REQUEST | dict(rate=9)), (serve.sessions, TURNS)]


@pytest.mark.parametrize(("entry", "asked"), [*SERVICES, (serve.capacity, REQUEST), (serve.offline, REQUEST)])
def test_devices_of_a_call_hold_copies_of_the_model(entry, asked):
    rows = [entry(models.llama3_8b, H200, **asked, **x) for x in (dict(replicas=4), dict(devices=8))]
    rows.append(entry(models.llama3_8b, H200, dict(devices=8), **asked, replicas=4))
    first, *others = ({**getattr(x, "row", x)} for x in rows)
    assert first["replicas"] == 4 and all(x == first for x in others)


def test_arrays_of_devices_hold_as_many_copies_each():
    by_devices, by_copies = dict(devices=[4, 8], tp=[1, 2]), dict(replicas=4, tp=[1, 2])
    rows = [serve(models.llama3_8b, H200, users=64, **REQUEST | x) for x in (by_devices, by_copies)]
    assert all((rows[0][x] == rows[1][x]).all() for x in ("tpot", "batch", "million_cost"))


# Experts, by simulation


def drawn(tokens, experts, top_k, rng):
    """The experts that each token picks, all choices equally likely."""
    return np.argsort(rng.random((tokens, experts)), axis=1)[:, :top_k]


@pytest.mark.parametrize(("experts", "top_k", "tokens"), [(256, 8, 64), (256, 8, 8), (8, 2, 5), (128, 4, 100)])
def test_experts_touched(experts, top_k, tokens):
    rng = np.random.default_rng(0)
    seen = np.mean([len(np.unique(drawn(tokens, experts, top_k, rng))) for _ in range(300)])
    said = inference.experts_touched(experts=experts, top_k=top_k, layer_tokens=tokens)
    assert said == pytest.approx(seen, rel=0.01)
    assert inference.visited_by_shares([top_k / experts] * experts, tokens) == pytest.approx(said)
    skewed = np.r_[np.full(experts // 2, 1.5), np.full(experts - experts // 2, 0.5)] * top_k / experts
    assert inference.visited_by_shares(skewed, tokens) < said  # a crowd leaves others idle


def devices_visited(experts, top_k, devices):
    """Devices that hold one of a token's experts at least: the mean over all choices, equally likely, exactly."""
    return float(devices * (1 - Fraction(comb(experts - experts // devices, top_k), comb(experts, top_k))))


@pytest.mark.parametrize(("experts", "top_k", "ep"), [(256, 8, 8), (256, 8, 64), (128, 8, 16), (8, 2, 4), (64, 6, 8)])
def test_devices_touched(experts, top_k, ep):
    said = devices_touched(experts=experts, top_k=top_k, ep=ep)
    assert said == pytest.approx(devices_visited(experts, top_k, ep), rel=0.01)


@pytest.mark.parametrize("experts", [1, 2, 5, 6, 8])
def test_devices_touched_at_the_limits(experts):
    """A token of all experts leaves no device out; no token visits more devices than there are, or than experts."""
    for ep in range(1, experts + 1):
        assert devices_touched(experts=experts, top_k=experts, ep=ep) == pytest.approx(ep, rel=3e-3)
        said = devices_touched(experts=experts, top_k=np.arange(1.0, experts + 1), ep=ep)
        assert (np.diff(said) >= 0).all() and (said <= np.minimum(ep, np.arange(1, experts + 1)) + 1e-9).all()


@pytest.mark.parametrize(("ep", "tokens"), [(8, 64), (32, 512), (144, 12672)])
def test_the_fullest_device_is_at_most_as_full_as_said(ep, tokens):
    rng, experts, draws = np.random.default_rng(1), *((288, 4) if ep == 144 else (256, 20))
    loads = [np.bincount(drawn(tokens, experts, 8, rng).ravel() * ep // experts, minlength=ep) for _ in range(draws)]
    seen = np.mean([x.max() / x.mean() for x in loads])
    said = inference.fullest_share(ep=ep, assigned_tokens=tokens * 8 / ep)
    assert seen - 0.01 <= said <= seen * 1.15
