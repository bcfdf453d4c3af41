"""Fewer synchronisations: closed forms beside what is executed, step by step or device by device."""

import heapq
from itertools import product

import numpy as np
import pytest

from scalebook.runs import compression, stragglers

from .every import every


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
