"""Operating a cluster: checkpoints into a store and to neighbours, restarts, and slow hosts."""

import numpy as np
import pytest

from scalebook import runs
from scalebook.inference import any_slow
from scalebook.runs import checkpoint_interval_daly, lost_share_tiers, lost_share_with_restarts, operating
from scalebook.tables import models, precisions


def test_the_sheet_of_a_run():
    row = operating(
        models.llama3_405b, precisions.adam_bf16, devices=16384, device_mtbf=3600 * 50_677,
        storage_bandwidth="2 TB/s", restart_time=900,
    )  # fmt: skip
    assert row.mtbf / 3600 == pytest.approx(3.09, abs=0.005)
    assert row.checkpoint_time == pytest.approx(2.435, abs=1e-3)
    assert row.checkpoint_interval == checkpoint_interval_daly(row)
    assert 0.9 < row.goodput < 0.91, "Llama 3's makers report more than 90 %"


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_near_copies_that_are_free_leave_the_root_of_the_far_failures(share):
    known = dict(checkpoint_time=60, mtbf=11_135)
    tiers = lost_share_tiers(known, near_checkpoint_time=1e-12, near_failures=share)
    assert tiers == pytest.approx((1 - share) ** 0.5 * runs.lost_share_at_best(known), rel=1e-4)


def test_restarts_come_on_top():
    known = dict(checkpoint_time=60, near_checkpoint_time=2, near_failures=0.9, mtbf=11_135)
    assert lost_share_with_restarts(known, restart_time=0) == pytest.approx(lost_share_tiers(known))
    assert lost_share_with_restarts(known, restart_time=1113.5) == pytest.approx(lost_share_tiers(known) + 0.1)


def test_some_host_is_slow():
    drawn = np.random.default_rng(0).random((20_000, 128)) < 0.005
    assert any_slow(slow_share=0.005, ways=128) == pytest.approx(drawn.any(axis=1).mean(), abs=0.01)
