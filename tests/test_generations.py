"""Generations of devices: Amdahl's law of a step, and the pairs of published runs that it is held against."""

import pytest
from scalebook.book.measured.generations import ALIKE, paired, ratio

from scalebook.inference import decode_step, generation_gain, reading_share
from scalebook.tables import accelerators, models


def test_pairs_are_alike_and_are_chosen_by_a_mask():
    pairs = paired("h200", "b200", "ttft")
    assert len({tuple(row[x] for x in ALIKE) for row in pairs.rows}) == len(pairs.rows)
    few = pairs.at(pairs.users <= 4)
    assert len(few.rows) == (pairs.users <= 4).sum() == len(few.said) and few.users.max() <= 4


@pytest.mark.parametrize(("batch", "error"), [(1, 0.02), (16, 0.02), (64, 0.02), (256, 0.05)])
def test_it_is_the_ratio_of_two_steps_where_only_the_memory_changes(batch, error):
    """The H200 is the H100 with another memory.  With many users arithmetic hides some of the reading."""
    run = dict(tp=8, batch=batch, context=2048)
    h100 = accelerators.h100.at("fp8")
    old = decode_step(models.llama3_70b, h100, **run)
    new = decode_step(models.llama3_70b, h100, **run, hbm_bandwidth=accelerators.h200.hbm_bandwidth)
    share = reading_share(old)
    said = generation_gain(reading_share=share, computing_share=0, flops_ratio=1,
                           bandwidth_ratio=ratio("hbm_bandwidth", "h100", "h200"))  # fmt: skip
    assert 0 <= said / (old.pass_time / new.pass_time) - 1 < error
