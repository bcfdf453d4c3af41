"""Fewer synchronisations: closed forms beside what is executed, step by step or device by device."""

import heapq
from itertools import product

import numpy as np
import pytest

from scalebook.runs import compression, stragglers

from .every import every


def test_the_ratios_of_powersgd_follow_from_its_shapes():
    """Its table of an LSTM on WikiText-2: 310, 203 and 120 times; biases are exchanged whole."""
    matrices, biases = [(28869, 650)] + 6 * [(2600, 650)], 28869 + 6 * 2600
    whole = sum(x * y for x, y in matrices) + biases
    for rank, printed in {1: 310, 2: 203, 4: 120}.items():
        sent = biases
        for x, y in matrices:
            sent += x * y / compression.compression_rank(gradient_rows=x, gradient_columns=y, gradient_rank=rank)
        assert round(whole / sent) == printed


@pytest.mark.parametrize("workers", [1, 4, 32])
def test_workers_each_for_itself(workers):
    """Each takes a random time; a gradient's age is the updates since it was begun."""
    rng = np.random.default_rng(0)
    queue = [(rng.exponential(), x, 0) for x in range(workers)]
    heapq.heapify(queue)
    updates, ages = 0, []
    while updates < 20_000:
        now, worker, begun = heapq.heappop(queue)
        ages.append(updates - begun)
        updates += 1
        heapq.heappush(queue, (now + rng.exponential(), worker, updates))
    assert np.mean(ages) == pytest.approx(compression.staleness_workers(ways=workers), rel=0.02)


@pytest.mark.parametrize("delay", [0, 1, 3, 10, 40])
def test_late_gradients_are_stable_up_to_the_bound(delay):
    def last(rate, steps=60_000):
        path = [1.0] * (delay + 1)
        for _ in range(steps):
            path.append(path[-1] - rate * path[-1 - delay])
            if abs(path[-1]) > 1e6:
                return np.inf
            path.pop(0)
        return max(map(abs, path))

    bound = compression.stable_rate_delayed(staleness=delay)
    assert last(0.98 * bound) < 0.01 and last(1.02 * bound) > 1.0


@every(product([1, 8], [1, 8, 24], [0.1, 0.32, 0.5, 0.9], [1, 4, 10]))
def test_a_pool_of_two_kinds(fast, slow, ratio, most):
    """Device by device: micro-batches over speed is time, and all wait for the slowest."""
    known = dict(fast_devices=fast, slow_devices=slow, speed_ratio=ratio)
    able = fast + slow * ratio

    def done(mine, theirs):
        return (fast * mine + slow * theirs) / max(mine, theirs / ratio)

    assert stragglers.pool_lost_equal(known) == pytest.approx(1 - done(1, 1) / able)
    assert stragglers.pool_gain_equal(known) == pytest.approx(done(1, 1) / fast)
    theirs = int(ratio * most + 1e-9)
    assert stragglers.pool_lost_whole(known, fast_microbatches=most) == pytest.approx(1 - done(most, theirs) / able)
    assert stragglers.pool_gain_whole(known, fast_microbatches=most) == pytest.approx(done(most, theirs) / fast)
