"""The closed forms of serving: against numbers that were published, against each other, and against simulations."""

import heapq
import math

import numpy as np
import pytest
import sympy

from scalebook import runs
from scalebook.inference import bill, disaggregation, prefix, queues, scaling, speculation, tail
from scalebook.inference.bill import least_million_cost_alone, million_cost, million_cost_alone, speed_cost
from scalebook.inference.disaggregation import cache_rate, disaggregating, disaggregation_bound, disaggregation_gain
from scalebook.inference.prefix import computed_rate, prompt_time_prefix, prompt_time_prefix_attention, zipf
from scalebook.inference.prompts import prompts_ahead_out_of_step, queue_time_of_group
from scalebook.inference.queues import capacity_open, closed_loop, half_price_batch, open_loop, response_time_together
from scalebook.inference.scaling import best_tp_ring, scaling_efficiency, token_time_replicas, token_time_ring
from scalebook.inference.simulation import simulate_serving
from scalebook.inference.speculation import speculating, speculation_gain_free, speculation_gain_linear, step_tokens
from scalebook.inference.tail import mean_of_largest, slowest_exponential, slowest_normal, slowest_pareto, waiting
from scalebook.language import symbol
from scalebook.runs import checkpointing, goodput, lost_share, lost_share_at_best, near_checkpoint_interval
from scalebook.tables import accelerators, models

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


BESIDE = {
    "usual": SERVER,
    "short answers": {**SERVER, "prompt_time": 3e-3, "output": 20},
    "long answers": dict(base_time=5e-3, added_time=100e-6, prompt_time=100e-3, output=500),
    "prompts of 300 ms": {**SERVER, "prompt_time": 0.3},
}


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
    assert tpots(seen) == pytest.approx(queues.tpot_open_swinging(SERVER, rate=rate), rel=0.03)
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


def test_capacity_is_the_rate_that_meets_the_target():
    solved = queues.tpot_open.solve("rate")
    for target in (0.011, 0.02, 0.1):
        known = {**TIMES, "output": 200}
        assert solved(known, tpot=target) == pytest.approx(capacity_open(known, tpot_target=target), rel=1e-12)
        row = open_loop(known, tpot_target=target, rate=0.999999 * capacity_open(known, tpot_target=target))
        assert row.tpot == pytest.approx(target, rel=1e-4) and row.headroom == pytest.approx(1e-6)
    assert queues.load_open(SERVER, rate=12.5) == 0.5 and half_price_batch(
        **{x: TIMES[x] for x in ("base_time", "added_time")}
    )


def test_at_the_half_price_batch_a_token_costs_twice_the_least():
    batch = half_price_batch(base_time=0.01, added_time=50e-6)
    assert (0.01 + 50e-6 * batch) / batch == pytest.approx(2 * 50e-6)


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
    queue = queues.queue_time_burst(users=32, prompt_time=0.03)
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


# Served together


def together(rate, base_time, added_time, seed=5):
    """Mean time from request to answer, and mean batch, where all that wait make the next batch."""
    requests = int(1e6 * rate**2)  # at a high load they are seldom independent, and come in large batches
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
    assert 0.98 * time < bound < 1.08 * time  # the least batch is within some percent
    assert response_time_together(known, batch=batch) == pytest.approx(time, rel=0.03)  # the batch itself is exact


def test_batch_service_as_it_was_published():
    r, a, t = map(symbol, ["rate", "added_time", "base_time"])
    published = 3 * t / (2 * (1 - r * a)) + a / 2 * (r * a + 2) / (1 - r**2 * a**2)
    at = {symbol("load"): r * a, symbol("batch"): r * t / (1 - r * a)}
    assert (response_time_together.compose(queues.met_batch).rhs.subs(at) - published).simplify() == 0
    assert response_time_together(rate=1e-9, base_time=5, added_time=1) == pytest.approx(6)  # alone: exact too


# Two pools


@pytest.mark.parametrize("target", [0.011, 0.02, 0.1])
@pytest.mark.parametrize("prompt_time", [0.001, 0.03, 10.0])
def test_what_two_pools_gain(target, prompt_time):
    known = {**SERVER, "prompt_time": prompt_time, "tpot_target": target}
    gain = disaggregation_gain(known)
    assert gain == pytest.approx(disaggregation.capacity_disaggregated(known) / capacity_open(known))
    assert 1 < gain < disaggregation_bound(known)
    row = disaggregating(known, rate=100, load=1.0)  # both pools busy all the time take what the capacity says
    assert 100 / (row.prefill_devices + row.decode_devices) == pytest.approx(row.capacity)
    assert row.prefill_devices / row.decode_devices == pytest.approx(row.pool_ratio)
    assert row.batch == disaggregation.batch_under_target(known) and row.tpot == pytest.approx(target)


def test_caches_that_are_sent():
    assert cache_rate(models.deepseek_v3, kv_bits=16, prompt_rate=7839) == 70_272 * 7839  # 0.55 GB/s
    assert cache_rate(models.llama3_70b, kv_bits=16, prompt_rate=1) == 327_680
    known = dict(prompt=1000, kv_cache_per_token=327_680, prompt_time=0.03)
    least = cache_rate(known)
    assert disaggregation.handover_whole(known, link_bandwidth=least) == pytest.approx(0.03)
    assert disaggregation.handover_by_layers(known, link_bandwidth=least, layers=80) == pytest.approx(0.03 / 80)


# Speculation

DRAFT = {"acceptance": 0.8, "drafted": 5, "draft_cost": 0.05}
STEP = {"base_time": 0.01, "added_time": 50e-6}


@pytest.mark.parametrize(("acceptance", "drafted"), [(0.8, 5), (0.5, 1), (0.95, 16)])
def test_tokens_of_a_step(acceptance, drafted):
    accepted = np.random.default_rng(0).random((200_000, drafted)) < acceptance
    simulated = 1 + accepted.cumprod(axis=1).sum(axis=1).mean()
    assert simulated == pytest.approx(step_tokens(acceptance=acceptance, drafted=drafted), rel=0.01)


def test_the_gain_of_drafts():
    assert step_tokens(acceptance=0.8, drafted=5) == pytest.approx(3.689, abs=5e-4)
    assert speculation_gain_free(DRAFT) == pytest.approx(2.95, abs=0.005)
    assert speculation_gain_linear(DRAFT, STEP, batch=1e-9) == pytest.approx(speculation_gain_free(DRAFT))
    assert (step_tokens(drafted=1).rhs - speculation.step_tokens_two.rhs).simplify() == 0
    assert speculating(DRAFT, STEP, batch=16).tpot == pytest.approx(
        0.0108 / speculation_gain_linear(DRAFT, STEP, batch=16)
    )


def test_the_batch_at_which_drafts_stop_paying():
    batch = speculation.speculation_batch(DRAFT, STEP)
    assert speculation_gain_linear(DRAFT, STEP, batch=batch) == pytest.approx(1)
    solved = speculation_gain_linear.solve("batch")
    assert solved(DRAFT, STEP, speculation_gain=1) == pytest.approx(batch)


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


def test_prompts_with_prefixes():
    assert computed_rate(prompt_rate=73_700, hit_share=0.563) == pytest.approx(32_200, rel=1e-3)
    kept = {"whole_prompt_time": 0.03, "hit_share": 0.6}
    assert prompt_time_prefix(kept) == pytest.approx(0.012) == prompt_time_prefix_attention(kept, attention_share=0)
    assert prompt_time_prefix_attention(kept, attention_share=1) == pytest.approx(0.03 * (1 - 0.6**2))
    known = {x: SERVER[x] for x in ("base_time", "added_time", "output")}
    row = open_loop.using(prompt_time_prefix)(known, kept, rate=8, tpot_target=0.02)
    assert row.capacity == pytest.approx(0.5 / (0.01 + 0.012))


# Tails


def simulated_largest(draw, ways):
    """The mean of the largest of so many draws, and its standard error."""
    rng, rounds = np.random.default_rng(ways), max(400, 1_000_000 // ways)
    largest = np.array([draw(rng, ways).max() for _ in range(min(rounds, 20_000))])
    return largest.mean(), largest.std() / len(largest) ** 0.5


@pytest.mark.parametrize("ways", [2, 8, 72, 2048])
@pytest.mark.parametrize(
    ("draw", "form", "slack"),
    [
        (lambda rng, n: rng.exponential(1, n), lambda n: slowest_exponential(mean_delay=1, ways=n), 1e-4),
        (
            lambda rng, n: 5 + rng.exponential(1, n),
            lambda n: tail.slowest_shifted(least_delay=5, mean_delay=6, ways=n),
            1e-4,
        ),
        (lambda rng, n: 1 + rng.pareto(3, n), lambda n: slowest_pareto(least_delay=1, tail_exponent=3, ways=n), 4e-3),
        (
            lambda rng, n: 10 + rng.standard_normal(n),
            lambda n: slowest_normal(mean_delay=10, delay_spread=1, ways=n),
            0.02,
        ),
        (lambda rng, n: rng.lognormal(0, 0.5, n), lambda n: mean_of_largest(lambda z: np.exp(0.5 * z), n), 1e-6),
        (lambda rng, n: rng.standard_normal(n), lambda n: mean_of_largest(lambda z: z, n), 1e-6),
    ],
)
def test_the_slowest_of_a_group(draw, form, slack, ways):
    mean, error = simulated_largest(draw, ways)
    assert form(ways) == pytest.approx(mean, rel=slack, abs=4.5 * error)


@pytest.mark.parametrize(("ways", "said", "excess"), [(8, 2.718, 0.07), (72, 4.861, 0.025), (16_384, 10.28, 0.006)])
def test_the_slowest_of_a_group_exactly(ways, said, excess):
    harmonic = sum(1 / k for k in range(1, ways + 1))
    assert slowest_exponential(mean_delay=1, ways=ways) == pytest.approx(harmonic, rel=1e-7)
    assert harmonic == pytest.approx(said, rel=5e-4)
    limit, exact = slowest_normal(mean_delay=1, delay_spread=1, ways=ways) - 1, mean_of_largest(lambda z: z, ways)
    assert exact < limit < (1 + excess) * exact
    law = math.exp(math.lgamma(ways + 1) + math.lgamma(0.5) - math.lgamma(ways + 0.5))
    assert slowest_pareto(least_delay=1, tail_exponent=2, ways=ways) == pytest.approx(law, rel=3e-4)


@pytest.mark.parametrize("x", [0.01, 0.3, 1, 2.5, 20])
def test_the_gamma_function(x):
    assert float(tail.gamma_function(sympy.Float(x))) == pytest.approx(math.gamma(x), rel=1e-6)


def test_what_less_waiting_is_worth():
    known = {"traffic": 16.5e9, "hbm_bandwidth": 3.3e12}
    now, then = (waiting(layers=80, ways=8, mean_delay=x).waiting_time for x in (2e-6, 1e-6))
    bandwidth = tail.traded_bandwidth(known, saved_waiting=now - then)
    assert 16.5e9 / bandwidth + then == pytest.approx(16.5e9 / 3.3e12 + now)


# Checkpoints

LLAMA = {"interruptions": 419, "run_time": 54 * 86400}


def test_checkpoints_of_a_long_run():
    row = checkpointing(LLAMA, checkpoint_time=60, restart_time=0)
    assert row.mtbf / 3600 == pytest.approx(3.09, abs=0.005)
    assert row.checkpoint_interval / 60 == pytest.approx(19.3, abs=0.05)
    assert row.lost_share == pytest.approx(0.104, abs=5e-4) and row.lost_share == pytest.approx(lost_share_at_best(row))
    for other in (0.8, 1.25):
        assert lost_share(row, checkpoint_interval=other * row.checkpoint_interval) > row.lost_share


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


def test_two_tiers_of_checkpoints():
    known = {"checkpoint_time": 60, "near_checkpoint_time": 2, "near_failures": 0.9, "mtbf": 11_135}
    near, far = near_checkpoint_interval(known), runs.checkpoint_interval_far(known)
    loss = 2 / near + 0.9 * near / 2 / 11_135 + 60 / far + 0.1 * far / 2 / 11_135
    assert runs.lost_share_tiers(known) == pytest.approx(loss) and loss < lost_share_at_best(known) / 2


# More devices, or more copies

RING = {"latency_floor": 0.0421, "way_time": 160 * 2 * 0.81e-6}


def test_where_more_devices_stop_helping():
    row = scaling.scaling_up(models.llama3_70b, accelerators.h100, weight_bits=16, tp=8)
    assert row.way_time == pytest.approx(160 * 2 * 0.81e-6) and row.best_tp == pytest.approx(12.7, abs=0.05)
    assert best_tp_ring(RING) == pytest.approx(12.7, abs=0.05)
    ways = np.geomspace(1, 200, 5001)
    times = token_time_ring(RING, tp=ways)
    assert times.min() == pytest.approx(scaling.least_token_time_ring(RING), rel=1e-6)
    assert ways[times.argmin()] == pytest.approx(best_tp_ring(RING), rel=1e-2)
    assert token_time_ring(RING, tp=scaling.idle_tp_ring(RING)) == pytest.approx(RING["latency_floor"])
    assert scaling_efficiency(RING, tp=1) == 1 and scaling_efficiency(RING, tp=best_tp_ring(RING)) == pytest.approx(
        0.52, abs=5e-3
    )
    turn = best_tp_ring(RING) / 2**0.5
    assert token_time_ring(RING, tp=turn) == pytest.approx(token_time_ring(RING, tp=2 * turn))


def test_where_a_tree_stops_helping():
    tree = {"latency_floor": 0.0421, "doubling_time": RING["way_time"]}
    ways = np.geomspace(1, 2000, 5001)
    times = scaling.token_time_tree(tree, tp=ways)
    assert times.min() == pytest.approx(scaling.least_token_time_tree(tree), rel=1e-6)
    assert ways[times.argmin()] == pytest.approx(scaling.best_tp_tree(tree), rel=1e-2)


@pytest.mark.parametrize("users", [1, 500])
def test_copies_with_their_best_number_of_devices(users):
    known = {**RING, "added_time": 1e-4, "users": users, "devices": 64}
    copies = np.linspace(1, 64, 6301)
    times = token_time_replicas(known, replicas=copies)
    assert copies[times.argmin()] == pytest.approx(scaling.best_replicas(known), abs=0.02)
    assert scaling.best_replicas(known) * best_tp_ring(RING) == pytest.approx(64)


def test_copies_have_a_device_each():
    known = {**RING, "added_time": 1e-4, "users": 100, "devices": 64}
    assert token_time_replicas(known, replicas=64) == pytest.approx(RING["latency_floor"] + 1e-4 * 100 / 64)


@pytest.mark.parametrize(("replicas", "each"), [(8, 64), (64, 64), (16, 1000)])
def test_imbalance_of_copies(replicas, each):
    loads = np.random.default_rng(0).multinomial(replicas * each, np.full(replicas, 1 / replicas), 20_000)
    simulated = loads.max(axis=1).mean() / each
    assert scaling.replica_imbalance(users=replicas * each, replicas=replicas) == pytest.approx(simulated, rel=0.012)


# The bill


@pytest.mark.parametrize("tpot", [0.0101, 0.02, 1.0])
def test_speed_against_cost(tpot):
    known = {"base_time": 0.01, "added_time": 50e-6, "devices": 8, "price_hour": 2, "tpot": tpot}
    batch = (tpot - 0.01) / 50e-6
    by_hand = 8 * 2 / 3600 * tpot / batch * 1e6  # a step's price over its batch
    assert million_cost_alone(known) == pytest.approx(by_hand)
    assert million_cost(price_hour=2, device_rate=bill.device_rate_alone(known)) == pytest.approx(by_hand)
    assert by_hand > least_million_cost_alone(known)
    served = speed_cost({**SERVER, **known}, tdp=700)
    rate = capacity_open(SERVER, tpot_target=tpot)
    assert served.device_rate == pytest.approx(rate * 200 / 8)
    assert served.million_cost == pytest.approx(8 * 2 / 3600 / (rate * 200) * 1e6)
    assert served.token_energy == pytest.approx(8 * 700 / (rate * 200))


def test_the_hyperbola_has_two_asymptotes():
    known = {"base_time": 0.01, "added_time": 50e-6, "devices": 1, "price_hour": 2}
    least = least_million_cost_alone(known)
    assert million_cost_alone(known, tpot=0.02) == pytest.approx(2 * least)
    assert million_cost_alone(known, tpot=1e6) == pytest.approx(least)
    solved = million_cost_alone.solve("tpot")
    assert solved(known, million_cost=2 * least) == pytest.approx(0.02)
