"""The closed forms of serving: against numbers that were published, against each other, and against simulations."""

import heapq

import numpy as np
import pytest

from scalebook import runs
from scalebook.inference import queues
from scalebook.inference.queues import open_loop
from scalebook.inference.simulation import simulate_serving
from scalebook.runs import goodput

from .support import each_case

SERVER = {"base_time": 0.010, "added_time": 50e-6, "prompt_time": 0.030, "output": 200}


def served(base_time, added_time, prompt_time, waiting):
    """Arrival, first token and last token of each request, on a server that reads all waiting prompts before a step.

    waiting: a heap of (arrival, output).
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
    return np.array(seen)


def tpots(seen):
    _, first, last, output = seen.T
    return (last - first).sum() / (output - 1).sum()


def at_random(rate, requests, output, seed=0):
    arrivals = np.random.default_rng(seed).exponential(1 / rate, requests).cumsum()
    return [(x, output) for x in arrivals]


TIMES = {x: SERVER[x] for x in ("base_time", "added_time", "prompt_time")}


# An open loop


@pytest.mark.parametrize("load", [0.1, 0.4, 0.7])
@each_case("servers that read prompts beside steps", "row", globals())
def test_prompts_beside_steps_are_within_5_percent_of_a_simulation(row, load):
    server = {x: row[x] for x in ("base_time", "added_time", "prompt_time", "output")}
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


def test_a_sheet_says_why_a_letter_has_no_value():
    row = open_loop(SERVER, rate=30, tpot_target=0.009)
    assert not {"tpot", "ttft", "batch", "capacity", "headroom"} & row.keys()
    assert "load must be" in row.missing["tpot"] and "a target above the time of" in row.missing["capacity"]


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
