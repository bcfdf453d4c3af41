"""The closed forms of serving: against numbers that were published, against each other, and against simulations."""

import heapq

import numpy as np
import pytest

from scalebook.inference.queues import (
    batch_together,
    capacity_open,
    closed_loop,
    half_price_batch,
    littles_law,
    load_open,
    open_loop,
    queue_time_benchmark,
    queue_time_burst,
    queue_time_prompts,
    response_time_together,
    tpot_open,
    tpot_open_swinging,
)
from scalebook.language import OutsideDomain, symbol

SERVER = {"base_time": 0.010, "added_time": 50e-6, "prompt_time": 0.030, "output": 200}


def served(base_time, added_time, prompt_time, waiting, next_of=lambda i, now: None):
    """Arrival, first token and last token of each request, on a server that reads all waiting prompts before a step.

    waiting: a heap of (arrival, output).  next_of: what the user of an answered request sends then.
    """
    running, now, step, seen = [], 0.0, 0, []
    while waiting or running:
        while waiting and waiting[0][0] <= now:
            arrival, output = heapq.heappop(waiting)
            now += prompt_time
            heapq.heappush(running, (step + output - 1, len(seen)))
            seen.append([arrival, now, now, output])
        if not running:
            now = waiting[0][0]
            continue
        now, step = now + base_time + added_time * len(running), step + 1
        while running and running[0][0] == step:
            i = heapq.heappop(running)[1]
            seen[i][2] = now
            if (new := next_of(i, now)) is not None:
                heapq.heappush(waiting, (now, new))
    return np.array(seen)


def tpots(seen):
    _, first, last, output = seen.T
    return (last - first).sum() / (output - 1).sum()


def at_random(rate, requests, output, seed=0):
    arrivals = np.random.default_rng(seed).exponential(1 / rate, requests).cumsum()
    return [(x, output) for x in arrivals]


TIMES = {x: SERVER[x] for x in ("base_time", "added_time", "prompt_time")}


# An open loop


@pytest.mark.parametrize(("rate", "said"), [(2, 10.87), (8, 14.71), (16, 27.78)])
def test_tokens_of_an_open_loop(rate, said):
    row = open_loop(SERVER, rate=rate)
    assert row.tpot * 1e3 == pytest.approx(said, abs=0.005)
    seen = served(**TIMES, waiting=at_random(rate, 10_000 + 2_500 * rate, 200, seed=3))[1_000:-1_000]
    assert tpots(seen) == pytest.approx(row.tpot, rel=0.03) and tpots(seen) > row.tpot
    assert tpots(seen) == pytest.approx(tpot_open_swinging(SERVER, rate=rate), rel=0.03)
    assert (seen[:, 1] - seen[:, 0]).mean() == pytest.approx(row.ttft, rel=0.04)
    assert (seen[:, 2] - seen[:, 0]).mean() == pytest.approx(row.end_to_end, rel=0.03)


def test_prompts_alone_are_an_md1_queue():
    waited, now, free = 0.0, 0.0, 0.0
    for gap in np.random.default_rng(0).exponential(1 / 20, 100_000):
        now += gap
        waited += max(0.0, free - now)
        free = max(free, now) + 0.030
    assert queue_time_prompts(prompt_time=0.030, rate=20) == pytest.approx(0.0225)
    assert waited / 100_000 == pytest.approx(0.0225, rel=0.03)


def test_capacity_is_the_rate_that_meets_the_target():
    solved = tpot_open.solve("rate")
    for target in (0.011, 0.02, 0.1):
        known = {**TIMES, "output": 200}
        assert solved(known, tpot=target) == pytest.approx(capacity_open(known, tpot_target=target), rel=1e-12)
        row = open_loop(known, tpot_target=target, rate=0.999999 * capacity_open(known, tpot_target=target))
        assert row.tpot == pytest.approx(target, rel=1e-4) and row.headroom == pytest.approx(1e-6)
    assert load_open(SERVER, rate=12.5) == 0.5 and half_price_batch(
        **{x: TIMES[x] for x in ("base_time", "added_time")}
    )


def test_at_the_half_price_batch_a_token_costs_twice_the_least():
    batch = half_price_batch(base_time=0.01, added_time=50e-6)
    assert (0.01 + 50e-6 * batch) / batch == pytest.approx(2 * 50e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tpot_open(SERVER, rate=25), "holds for a load below 1, not at"),
        (lambda: tpot_open(base_time=0.01, load=1), "holds for a load below 1, not at load=100 %"),
        (lambda: capacity_open(SERVER, tpot_target=0.01), "holds for a target above base_time, not at base_time=10 ms"),
        (lambda: queue_time_prompts(rate=40, prompt_time=0.03), "holds for a prompt_load below 1, not at"),
        (lambda: batch_together(rate=1, base_time=5, added_time=1), "whose added_time leaves time to spare, not at"),
        (lambda: queue_time_burst(users=0.5, prompt_time=1), "holds for at least one user, not at users=0.5"),
    ],
)
def test_what_cannot_be_has_no_value(call, words):
    with pytest.raises(OutsideDomain, match=words):
        call()


def test_a_sheet_says_why_a_letter_has_no_value():
    row = open_loop(SERVER, rate=30, tpot_target=0.009)
    assert not {"tpot", "ttft", "batch", "capacity", "headroom"} & row.keys()
    assert "load must be" in row.missing["tpot"] and "a target above base_time" in row.missing["capacity"]


# A closed loop


def test_equal_answers_stay_in_step():
    closed = closed_loop(SERVER, users=32)
    sent = iter(range(32 * 9))
    seen = served(
        **TIMES, waiting=[(0.0, 200)] * 32, next_of=lambda i, now: 200 if next(sent, None) is not None else None
    )
    arrival, first, last, _ = seen.T
    assert last - arrival == pytest.approx(np.full(320, closed.end_to_end))
    queue = queue_time_burst(users=32, prompt_time=0.03)
    assert (first - arrival).mean() == pytest.approx(queue + 0.03)
    assert tpots(seen) == pytest.approx(closed_loop(SERVER, users=32, queue_time=queue).tpot)


@pytest.mark.parametrize("users", [4, 32, 128])
def test_users_out_of_step(users):
    rng, closed = np.random.default_rng(1), closed_loop(SERVER, users=users)
    lengths = iter(rng.integers(2, 399, 60 * users).tolist())
    start = [(i * closed.end_to_end / users, 200) for i in range(users)]
    seen = served(**TIMES, waiting=start, next_of=lambda i, now: next(lengths, None))[10 * users : -2 * users]
    arrival, first, last, output = seen.T
    known = {**SERVER, "users": users, "output": output.mean()}
    assert (last - arrival).mean() == pytest.approx(closed_loop(known).end_to_end, rel=0.02)
    assert tpots(seen) == pytest.approx(closed_loop(known).tpot, rel=0.02)
    assert (first - arrival).mean() == pytest.approx(closed_loop(known).ttft, rel=0.06)
    assert littles_law(closed) == pytest.approx(users)


def test_a_benchmark_begins_with_a_burst():
    rng, users = np.random.default_rng(2), 64
    lengths = iter(rng.integers(2, 399, 9 * users).tolist())
    start = [(0.0, x) for x in rng.integers(2, 399, users).tolist()]
    seen = served(**TIMES, waiting=start, next_of=lambda i, now: next(lengths, None))
    queue = queue_time_benchmark(users=users, output=200, prompt_time=0.03, generations=10)
    assert (seen[:, 1] - seen[:, 0]).mean() == pytest.approx(queue + 0.03, rel=0.05)


# Served together


def together(rate, base_time, added_time, requests=200_000, seed=1):
    """Mean time from request to answer where all that wait make the next batch."""
    arrivals = np.random.default_rng(seed).exponential(1 / rate, requests).cumsum()
    now, i, spent, batches = 0.0, 0, 0.0, 0
    while i < requests:
        now = max(now, arrivals[i])
        end = np.searchsorted(arrivals, now, side="right")
        now += base_time + added_time * (end - i)
        spent, i, batches = spent + now * (end - i) - arrivals[i:end].sum(), end, batches + 1
    return spent / requests, requests / batches


@pytest.mark.parametrize(("rate", "said"), [(0.3, 11.98), (0.6, 20.78), (0.9, 82.63)])
def test_batch_service(rate, said):
    known = {"rate": rate, "base_time": 5, "added_time": 1}
    time, batch = together(**known)
    bound = response_time_together(known)
    assert bound == pytest.approx(said, rel=1e-3)
    assert 0.95 * time < bound < 1.08 * time  # the least batch is within some percent
    assert response_time_together(known, batch=batch) == pytest.approx(time, rel=0.03)  # the batch itself is exact


def test_batch_service_as_it_was_published():
    r, a, t = map(symbol, ["rate", "added_time", "base_time"])
    published = 3 * t / (2 * (1 - r * a)) + a / 2 * (r * a + 2) / (1 - r**2 * a**2)
    least = r * t / (1 - r * a)
    assert (response_time_together.rhs.subs(symbol("batch"), least) - published).simplify() == 0
    assert response_time_together(rate=1e-9, base_time=5, added_time=1) == pytest.approx(6)  # alone: exact too
