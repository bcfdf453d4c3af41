"""The simulation of serving: held to queues that are known, to a slower one, and in JavaScript to Python's digits."""

import json
import random
from functools import cache

import numpy as np
import pytest
from scalebook.book.drawings.queues import queue_curve, request_timeline

from scalebook.inference import decode_step, mixed_step, prefill_step, serve, simulate_serving
from scalebook.inference.arrivals import drawn, exponential, uniform
from scalebook.search import search
from scalebook.tables import accelerators, models

from .support import ROOT, JavaScript, each_case

H200 = accelerators.h200.at("fp8")
PAGE = JavaScript((ROOT / "scalebook" / "inference" / "simulation.js").read_text("utf-8").replace("export ", ""))
ENGINE = dict(prompt=1000, output=200, base_time=10e-3, added_time=50e-6, prompt_time=30e-3)
ONE = dict(prompt=100, output=5, base_time=10e-3, added_time=1e-3, prompt_time=20e-3, max_batch=1)
ALONE = 10e-3 + 20e-3 + 4 * 11e-3  # a prompt read and four more tokens


# What is drawn.


def test_waits_are_drawn_from_the_exponential_distribution():
    draw, number = uniform(5), 100_000
    drawn = np.sort([exponential(draw) for _ in range(number)])
    distance = np.abs(1 - np.exp(-drawn) - (np.arange(number) + 0.5) / number).max()
    assert distance < 1.63 / np.sqrt(number)  # Kolmogorov and Smirnov's at 1 %
    assert drawn.mean() == pytest.approx(1, rel=0.01) and drawn.var() == pytest.approx(1, rel=0.03)


def test_arrivals_do_not_depend_on_each_other_and_scale_with_the_rate():
    run, faster = (simulate_serving(**ENGINE | dict(output=1), rate=x, requests=20_000, seed=2) for x in (1, 4))
    gaps = np.diff(run.arrivals)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 3 / np.sqrt(len(gaps))
    assert faster.arrivals == pytest.approx(run.arrivals / 4)


def test_lengths_are_drawn_evenly():
    run = simulate_serving(**{**ENGINE, "output": 10}, users=1000, requests=30_000, shortest=0.8)
    number, count = np.unique(run.outputs, return_counts=True)
    assert number.tolist() == [8, 9, 10] and count == pytest.approx(10_000, rel=0.03)


# Queues that are known.


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_one_at_a_time_is_the_queue_of_pollaczek_and_khinchine(load):
    """Equal requests are M/D/1."""
    run = simulate_serving(**ONE, rate=load / ALONE, requests=25_000, warmup=500)
    wait = load * ALONE / (2 * (1 - load))
    assert (run.starts - run.arrivals)[500:].mean() == pytest.approx(wait, rel=0.02)
    assert run.ttft.mean() == pytest.approx(wait + 30e-3, rel=0.02)
    assert run.end_to_end.mean() == pytest.approx(wait + ALONE, rel=0.02)
    assert run.tpot == pytest.approx(11e-3) and run.utilisation == pytest.approx(load, rel=0.02)


LITTLE = [dict(rate=4), dict(rate=16), dict(rate=30), dict(rate=8, max_batch=12), dict(users=40)]


@pytest.mark.parametrize("more", LITTLE)
def test_littles_law(more):
    run = simulate_serving(**ENGINE, **more, shortest=0.8, requests=2000)
    elapsed = run.ends.max() - run.arrivals[0]
    decoding = run.mean_batch * run.utilisation  # as the steps saw it, beside what the requests saw
    assert decoding == pytest.approx(2000 / elapsed * (run.ends - run.firsts).mean())


# The closed form, as far as it goes.


def closed(rate):
    """Each step reads the prompts that came during one: mean field."""
    return 10e-3 / (1 - rate * (200 * 50e-6 + 30e-3))


# What an engine does, exactly.


def test_a_request_alone():
    run = simulate_serving(**{**ENGINE, "prompt": 1000}, users=1, requests=3, chunk=300)
    assert run.ttft == pytest.approx(4 * 10e-3 + 30e-3) and run.tpot == pytest.approx(10.05e-3)
    assert run.end_to_end == pytest.approx(run.ttft + 199 * 10.05e-3)
    assert run.throughput == pytest.approx(200 / run.end_to_end[0]) and run.utilisation == 1


def test_the_first_burst_is_read_chunk_by_chunk():
    run = simulate_serving(**ENGINE, users=20, chunk=8000, requests=20)
    first, second = 10e-3 + 8 * 30e-3, 10e-3 + 8 * 50e-6 + 8 * 30e-3
    assert run.firsts[:16] == pytest.approx([first] * 8 + [first + second] * 8)
    assert run.steps[2].batch == 16 and run.steps[2].tokens == 20


def test_what_is_found_in_the_cache_is_not_read():
    half = simulate_serving(**ENGINE, users=4, hits=0.5)
    assert half.firsts[:4] == pytest.approx(10e-3 + 4 * 15e-3)
    whole = simulate_serving(**ENGINE, users=4, hits=1)
    assert whole.firsts[:4] == pytest.approx(10e-3 + 4 * 30e-6)  # the last token


def test_a_full_cache_is_a_smaller_batch():
    by_cache, by_batch = (simulate_serving(**ENGINE, rate=12, **x) for x in (dict(cache_limit=3700), dict(max_batch=3)))
    assert by_cache.ends.tolist() == by_batch.ends.tolist()
    assert max(x.batch for x in by_cache.steps) == 3
    later = np.sort(by_cache.ends)[np.arange(len(by_cache.ends) - 3)]
    assert (by_cache.starts[3:] >= later).all()


def plainly(prompts, outputs, arrivals, chunk, most, room):
    """The first and the last token of every request, one step after the other."""
    number = len(prompts)
    unread, undone, firsts, ends = list(prompts), list(outputs), [0.0] * number, [0.0] * number
    begun, now = 0, 0.0
    while any(undone):
        running = [i for i in range(begun) if undone[i] and not unread[i]]
        taken = 0
        for i in range(number):
            if i == begun and taken < chunk and arrivals[i] <= now:
                there = [j for j in range(begun) if undone[j]]
                held = sum(prompts[j] + outputs[j] for j in there)
                begun += len(there) < most and held + prompts[i] + outputs[i] <= room
            if i == begun:
                break
            reads = min(unread[i], chunk - taken)
            unread[i], taken = unread[i] - reads, taken + reads
        if not taken and not running:
            now = arrivals[begun]
            continue
        now += 10e-3 + len(running) * 50e-6 + taken * 30e-6
        for i in range(begun):
            if undone[i] and not unread[i]:
                firsts[i], ends[i], undone[i] = firsts[i] or now, now, undone[i] - 1
    return np.column_stack([firsts, ends])


@pytest.mark.parametrize("seed", range(20))
def test_equal_steps_at_once_are_those_steps_one_by_one(seed):
    draw = random.Random(seed)
    most, room, chunk = draw.choice([2, 9, 400]), draw.choice([1200, 3000, 10**6]), draw.choice([150, 1000, 8192])
    rate = draw.choice([0.3, 4, 40])
    run = simulate_serving(
        **ENGINE, rate=rate, requests=40, shortest=0.5, seed=seed, chunk=chunk, max_batch=most, cache_limit=room
    )
    prompts, outputs, arrivals = drawn(40, 1000, 200, 0.5, rate, seed)
    expected = plainly(prompts, outputs, arrivals, chunk, most, room)
    assert np.column_stack([run.firsts, run.ends]) == pytest.approx(expected, rel=1e-9)


# JavaScript.


def some(seed):
    """Settings of all kinds."""
    draw = random.Random(seed)
    prompt, output = (round(10 ** draw.uniform(0, x)) for x in (3.7, 2.7))
    who = draw.choice([dict(users=draw.randint(1, 50)), dict(rate=10 ** draw.uniform(-1, 2))])
    given = dict(
        prompt=prompt, output=output, **who, requests=draw.randint(50, 90), chunk=draw.choice([64, 512, 2048, 8192]),
        base_time=draw.uniform(1e-3, 1e-1), added_time=draw.uniform(0, 1e-4), prompt_time=draw.uniform(0, 0.1),
        hits=draw.choice([0, draw.random(), 1]), shortest=draw.choice([1, 0.8, draw.random()]),
        warmup=draw.randint(0, 9), seed=draw.randrange(2**33),
    )  # fmt: skip
    limits = dict(max_batch=draw.randint(1, 20), cache_limit=round((prompt + output) * draw.uniform(1, 20)) + 1)
    return given | {x: limits[x] for x in limits if draw.random() < 0.4}


def same(said, run):
    for name in ("outputs", "arrivals", "starts", "firsts", "ends"):
        assert said[name] == getattr(run, name).tolist(), name  # to the last digit
    assert said["steps"] == [x._asdict() for x in run.steps]
    for name in ("throughput", "utilisation", "mean_batch"):
        assert said[name] == pytest.approx(getattr(run, name), rel=1e-12, abs=1e-12), name
    for name in ("ttft", "tpot", "end_to_end"):
        if getattr(run, name).size:
            assert said[name] == pytest.approx(run.statistics(name), rel=1e-12), name
        else:
            assert said[name] is None


@pytest.mark.parametrize("block", range(6))
def test_javascript_says_the_same_to_the_last_digit(block):
    for seed in range(25 * block, 25 * (block + 1)):
        given = some(seed)
        same(PAGE(f"simulateServing({json.dumps(given)})"), simulate_serving(**given))


def test_javascript_says_the_same_of_any_step():
    given = dict(prompt=700, output=90, users=9, shortest=0.5, chunk=300)
    run = simulate_serving(**given, step=lambda batch, tokens: max(0.01, 0.001 * batch, 0.0003 * tokens))
    step = "(batch, tokens) => Math.max(0.01, 0.001 * batch, 0.0003 * tokens)"
    same(PAGE(f"simulateServing({{...{json.dumps(given)}, step: {step}}})"), run)


def test_javascript_refuses_what_never_fits():
    said = PAGE("(() => { try { simulateServing({prompt: 9, output: 1, users: 1, base_time: 1, cache_limit: 9}); } "
                "catch (e) { return e.message; } })()")  # fmt: skip
    assert said == "a request reserves 10 tokens, and cache_limit=9 would never have them"


# What cannot be served.


def test_answers_of_one_token_have_no_time_per_token_after_it():
    run = simulate_serving(**{**ENGINE, "output": 1}, users=4)
    assert run.ttft.tolist() == run.end_to_end.tolist() and run.mean_batch == 0


# Figures.


def test_a_curve_says_where_a_closed_form_ends():
    ax = queue_curve(closed, [0.3, 0.5, 0.7, 0.95], **ENGINE, requests=2000, warmup=300)
    error = ax.lines[0].get_ydata()
    print("load 30, 50, 70, 95 %:", *(f"{x:+.1%}" for x in error))
    assert (np.abs(error[:3]) < 0.05).all() and error[3] > 0.3 and "up to a load of 70 %" in ax.lines[0].get_label()


def test_a_timeline_shows_each_part_of_a_request():
    run = simulate_serving(**ENGINE, rate=20, requests=60, max_batch=8)
    ax = request_timeline(run, first=31, number=30)
    waits, reads, decodes = ([x.get_width() for x in part] for part in ax.containers)
    assert waits == pytest.approx((run.starts - run.arrivals)[30:]) and min(waits) > 0
    assert np.add(waits, reads) == pytest.approx(run.ttft[30:]) and len(decodes) == 30


def a_step(prompt, output):
    """Seconds of a step of Llama 70B on eight H100, of sequences that decode and prompt tokens that are read."""
    layout = (models.llama3_70b, accelerators.h100.at("fp8")), dict(tp=8, context=prompt + output / 2)

    @cache
    def seconds(batch, tokens):
        rows, letters = layout
        if not tokens:
            return float(decode_step(*rows, **letters, batch=batch).pass_time)
        number = max(1, round(tokens / prompt))
        part = dict(prompts=number, read_chunk=tokens / number, past=max(0, (prompt - tokens / number) / 2))
        if not batch:
            return float(prefill_step(*rows, tp=8, **part).pass_time)
        return float(mixed_step(*rows, **letters, **part, batch=batch).pass_time)

    return seconds


# Prompts, answers, users and what a step may read: alone, some together, prompts in parts, more than steps can read,
# and prompts whose last part leaves room in a step.
@each_case("services that are simulated", "prompt, output, users, chunk", globals())
def test_a_service_is_what_its_simulation_finds(prompt, output, users, chunk):
    """Lengths differ by a fifth, as benchmarks draw them: 0.9 of the longest in the mean."""
    asked = dict(users=users, prompt=prompt, output=output, chunk_tokens=chunk)
    row = serve(models.llama3_70b, accelerators.h100.at("fp8"), tp=8, **asked)
    lengths = dict(prompt=round(prompt / 0.9), output=round(output / 0.9), shortest=0.8)
    run = simulate_serving(**lengths, users=users, chunk=chunk, step=a_step(prompt, output))
    mean = {x: run.statistics(x)["mean"] for x in ("ttft", "tpot", "end_to_end")}
    assert 0.97 < row.end_to_end / mean["end_to_end"] < 1.08 and 0.97 < row.tpot / mean["tpot"] < 1.08
    assert 0.8 < row.ttft / mean["ttft"] < 1.15


SPREAD = [(64, 1000, 500, 1, 1), (64, 4000, 300, 0.7, 0.7), (16, 4000, 300, 1, 1), (200, 1000, 200, 1, 0.7)]


def test_percentiles_of_requests_of_different_lengths_are_near_simulated_ones():
    errors = []
    for users, prompt, output, prompts, answers in SPREAD:
        spreads = dict(prompt_spread=prompts, answer_spread=answers)
        known = dict(users=users, prompt=prompt, output=output, **spreads)
        row = serve(models.llama3_70b, H200, tp=8, engine="vllm", generations=1e9, **known)
        step = dict(base_time=row.pass_time, prompt_time=row.prompt_time)
        run = simulate_serving(**known, **step, requests=max(60 * users, 6000), warmup=1500)
        # The engine adds this time, and the simulation does not.
        late = row.first_overhead + (row.first_tokens - 1 + row.wait_steps) * row.pass_time
        for name, added in (("ttft", late), ("tpot", 0), ("end_to_end", late)):
            times = getattr(run, name)
            errors += [(row[f"{name}_p{n}"] - added) / np.quantile(times, n / 100) - 1 for n in (50, 95, 99)]
    print([f"{x:+.0%}" for x in errors])
    assert np.median(np.abs(errors)) < 0.05 and np.abs(errors).max() < 0.19


def test_equal_lengths_have_the_times_of_a_service_without_percentiles():
    known = dict(tp=8, users=64, prompt=1000, output=500, engine="vllm")
    plain, row = (serve(models.llama3_70b, H200, **known, **x) for x in ({}, dict(prompt_spread=0, answer_spread=0)))
    assert all(row[x] == pytest.approx(plain[x], rel=1e-12) for x in plain)
    longer = serve(models.llama3_70b, H200, **known, answer_spread=1)
    assert serve(models.llama3_70b, H200, dict(answer_spread=1), **known).tpot_p95 == longer.tpot_p95  # in a row too
    assert longer.context > plain.context and longer.max_users < plain.max_users
    assert longer.end_to_end_p50 < longer.end_to_end < longer.end_to_end_p95 < longer.end_to_end_p99


def test_a_search_keeps_percentiles_within_limits():
    asked = dict(devices=16, rate=2.0, prompt=4000, output=500, engine="vllm", prompt_spread=0.8)
    loose, strict = (
        search(serve, models.llama3_70b, H200, **asked, ttft_p95=x, progress=False).best[0] for x in ("<2 s", "<0.4 s")
    )
    assert loose.row.ttft_p95 <= 2 and strict.row.ttft_p95 <= 0.4
    assert strict.values["million_cost"] > loose.values["million_cost"]
    most = search(serve, models.llama3_70b, H200, devices=8, prompt=4000, output=500, end_to_end_p99="< 30 s")
    assert most.best[0].row.end_to_end_p99 <= 30 < most.best[0].row.users
