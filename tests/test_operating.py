"""Operating a cluster: checkpoints into a store and to neighbours, restarts, and slow hosts."""

import numpy as np
import pytest

from scalebook.inference import any_slow
from scalebook.runs import checkpoint_interval_daly, operating
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


def test_some_host_is_slow():
    drawn = np.random.default_rng(0).random((20_000, 128)) < 0.005
    assert any_slow(slow_share=0.005, ways=128) == pytest.approx(drawn.any(axis=1).mean(), abs=0.01)
