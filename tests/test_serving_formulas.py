"""The closed forms of serving: against numbers that were published, against each other, and against simulations."""

import heapq

import numpy as np
import pytest

from scalebook import runs
from scalebook.inference import prefix, queues, scaling, tail
from scalebook.inference.prefix import zipf
from scalebook.inference.prompts import prompts_ahead_out_of_step, queue_time_of_group
from scalebook.inference.queues import closed_loop, open_loop
from scalebook.inference.scaling import best_tp_ring, token_time_replicas
from scalebook.inference.simulation import simulate_serving
from scalebook.inference.speculation import step_tokens
from scalebook.runs import goodput

from .support import cases

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


BESIDE = cases("servers that read prompts beside steps", globals())


@pytest.mark.parametrize("load", [0.1, 0.4, 0.7])
@pytest.mark.parametrize("name", BESIDE)
def test_prompts_beside_steps_are_within_5_percent_of_a_simulation(name, load):
    server = {x: BESIDE[name][x] for x in ("base_time", "added_time", "prompt_time", "output")}
    rate = load / (server["output"] * server["added_time"] + server["prompt_time"])
    run = simulate_serving(prompt=1000, rate=rate, requests=20_000, warmup=2_000, chunk=2**20, **server)
    assert queues.tpot_open_beside(server, rate=rate) == pytest.approx(run.tpot.mean(), rel=0.05)
    assert queues.ttft_beside(server, rate=rate) == pytest.approx(run.ttft.mean(), rel=0.05)


@pytest.mark.parametrize(("rate", "said"), [(2, 10.87), (8, 14.71), (16, 27.78)])
def test_tokens_of_an_open_loop(rate, said):
    row = open_loop(SERVER, rate=rate)
    assert row.tpot * 1e3 == pytest.approx(said, abs=0.005)
    seen = served(**TIMES, waiting=at_random(rate, 10_000 + 2_500 * rate, 200, seed=3))[1_000:-1_000]
    assert tpots(seen) == pytest.approx(row.tpot, rel=0.03) and tpots(seen) > row.tpot
    assert (seen[:, 1] - seen[:, 0]).mean() == pytest.approx(row.ttft, rel=0.04)
    assert (seen[:, 2] - seen[:, 0]).mean() == pytest.approx(row.end_to_end, rel=0.03)


def test_prompts_alone_are_an_md1_queue():
    waited, now, free = 0.0, 0.0, 0.0
    for gap in np.random.default_rng(0).exponential(1 / 20, 100_000):
        now += gap
        waited += max(0.0, free - now)
        free = max(free, now) + 0.030
    assert queues.queue_time_prompts(prompt_time=0.030, rate=20) == pytest.approx(0.0225)
    assert waited / 100_000 == pytest.approx(0.0225, rel=0.03)


def test_a_sheet_says_why_a_letter_has_no_value():
    row = open_loop(SERVER, rate=30, tpot_target=0.009)
    assert not {"tpot", "ttft", "batch", "capacity", "headroom"} & row.keys()
    assert "load must be" in row.missing["tpot"] and "a target above the time of" in row.missing["capacity"]


# A closed loop


def test_equal_answers_stay_in_step():
    closed = closed_loop(SERVER, users=32)
    sent = iter(range(32 * 9))
    seen = served(
        **TIMES, waiting=[(0.0, 200)] * 32, next_of=lambda i, now: 200 if next(sent, None) is not None else None
    )
    arrival, first, last, _ = seen.T
    assert last - arrival == pytest.approx(np.full(320, closed.end_to_end))
    queue = 31 * 0.03 / 2  # half of the others are read first
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
    assert queues.littles_law(closed) == pytest.approx(users)


def test_a_benchmark_begins_with_a_burst():
    rng, users = np.random.default_rng(2), 64
    lengths = iter(rng.integers(2, 399, 9 * users).tolist())
    start = [(0.0, x) for x in rng.integers(2, 399, users).tolist()]
    seen = served(**TIMES, waiting=start, next_of=lambda i, now: next(lengths, None))
    group = dict(batch=users, output=200, pp=1, chunks_of_prompt=1, prompts_together=1)
    ahead = prompts_ahead_out_of_step(group, prompts_beside=199)
    queue = queue_time_of_group(group, prompts_ahead=ahead, mixed_time=0.03, generations=10)
    assert (seen[:, 1] - seen[:, 0]).mean() == pytest.approx(queue + 0.03, rel=0.05)


# Speculation


@pytest.mark.parametrize(("acceptance", "drafted"), [(0.8, 5), (0.5, 1), (0.95, 16)])
def test_tokens_of_a_step(acceptance, drafted):
    accepted = np.random.default_rng(0).random((200_000, drafted)) < acceptance
    simulated = 1 + accepted.cumprod(axis=1).sum(axis=1).mean()
    assert simulated == pytest.approx(step_tokens(acceptance=acceptance, drafted=drafted), rel=0.01)


# Prefixes


def lru(shares, held, requests=60_000, seed=0):
    """The share found in a cache that drops the least recently used, after it has filled."""
    cache, found = {}, 0
    asked = np.random.default_rng(seed).choice(len(shares), requests, p=shares).tolist()
    for i, item in enumerate(asked):
        hit = cache.pop(item, None)
        found += hit is not None and i >= requests // 3
        cache[item] = True
        if len(cache) > held:
            del cache[next(iter(cache))]
    return found / (requests - requests // 3)


@pytest.mark.parametrize(("items", "skew", "held"), [(2000, 0.8, 100), (2000, 0.8, 1000), (2000, 1.2, 50), (20, 1, 5)])
def test_what_a_cache_of_prefixes_finds(items, skew, held):
    shares = zipf(items, skew)
    assert lru(shares, held) == pytest.approx(prefix.lru_hit_share(shares, held), abs=0.012)


# Tails


def simulated_largest(draw, ways):
    """The mean of the largest of so many draws, and its standard error."""
    rng, rounds = np.random.default_rng(ways), max(400, 1_000_000 // ways)
    largest = np.array([draw(rng, ways).max() for _ in range(min(rounds, 20_000))])
    return largest.mean(), largest.std() / len(largest) ** 0.5


@pytest.mark.parametrize("ways", [2, 8, 72, 2048])
@pytest.mark.parametrize(("draw", "form", "slack"), cases("the slowest of a group", {"tail": tail, "np": np}).values())
def test_the_slowest_of_a_group(draw, form, slack, ways):
    mean, error = simulated_largest(draw, ways)
    assert form(ways) == pytest.approx(mean, rel=slack, abs=4.5 * error)


# Checkpoints


def worked(checkpoint_time, checkpoint_interval, restart_time, mtbf, segments=20_000):
    """The share of the time that was work in a run of so many checkpoints, with failures at random."""
    rng, now = np.random.default_rng(0), 0.0
    fails = rng.exponential(mtbf)
    for _ in range(segments):
        need = checkpoint_interval + checkpoint_time
        while now + need > fails:
            now, fails = fails, fails + rng.exponential(mtbf)
            need = restart_time + checkpoint_interval + checkpoint_time
        now += need
    return segments * checkpoint_interval / now


@pytest.mark.parametrize("writing", [10, 60, 900])
def test_goodput(writing):
    known = {"checkpoint_time": writing, "restart_time": 300, "mtbf": 11_135}
    daly, young = (f(known) for f in (runs.checkpoint_interval_daly, runs.checkpoint_interval_young))
    assert worked(**known, checkpoint_interval=daly) == pytest.approx(
        goodput(known, checkpoint_interval=daly), rel=0.01
    )
    grid = goodput(known, checkpoint_interval=np.geomspace(daly / 5, daly * 5, 2001))
    assert goodput(known, checkpoint_interval=young) <= goodput(known, checkpoint_interval=daly)
    assert goodput(known, checkpoint_interval=daly) == pytest.approx(grid.max(), rel=1e-4)


# More devices, or more copies

RING = {"latency_floor": 0.0421, "way_time": 160 * 2 * 0.81e-6}


@pytest.mark.parametrize("users", [1, 500])
def test_copies_with_their_best_number_of_devices(users):
    known = {**RING, "added_time": 1e-4, "users": users, "devices": 64}
    copies = np.linspace(1, 64, 6301)
    times = token_time_replicas(known, replicas=copies)
    assert copies[times.argmin()] == pytest.approx(scaling.best_replicas(known), abs=0.02)
    assert scaling.best_replicas(known) * best_tp_ring(RING) == pytest.approx(64)


@pytest.mark.parametrize(("replicas", "each"), [(8, 64), (64, 64), (16, 1000)])
def test_imbalance_of_copies(replicas, each):
    loads = np.random.default_rng(0).multinomial(replicas * each, np.full(replicas, 1 / replicas), 20_000)
    simulated = loads.max(axis=1).mean() / each
    assert scaling.replica_imbalance(users=replicas * each, replicas=replicas) == pytest.approx(simulated, rel=0.012)
