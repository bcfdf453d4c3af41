"""What hides under arithmetic: buckets executed one by one, the batch that stands at the wall, sizes that cancel."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook import accelerators, models, training_step
from scalebook.training import overlap

H100 = accelerators.h100.at("bf16")
BITS = dict(weight_bits=16, gradient_bits=32)


def executed(reduce, window, count, start):
    """Seconds from the end of a backward pass to the end of the last bucket's sum."""
    free = Fraction(0)
    for i in range(1, count + 1):
        free = max(free, Fraction(window * i, count)) + start + Fraction(reduce, count)
    return free - window


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 60), st.integers(1, 20))
def test_buckets_are_as_executed(reduce, window, count, start):
    exact = executed(reduce, window, count, Fraction(start, 10))
    said = overlap.exposed_buckets(dp_reduce=reduce, dp_window=window, bucket_count=count, collective_launch=start / 10)
    assert said == pytest.approx(float(exact), abs=1e-9)


@given(st.floats(0.01, 3), st.floats(1e-4, 0.05))
def test_no_other_number_of_buckets_leaves_less(share, start):
    known = dict(dp_reduce=share, dp_window=1, collective_launch=start)
    best = overlap.exposed_buckets(known, bucket_count=overlap.best_buckets(known))
    others = overlap.exposed_buckets(known, bucket_count=np.geomspace(1, 1e5, 400))
    assert best <= others.min() * (1 + 1e-9)


@pytest.mark.parametrize("model", ["llama3_8b", "llama3_70b", "llama3_405b"])
def test_the_sheet_of_a_step_waits_below_and_not_above_whatever_the_size(model):
    link = overlap.group_rate(H100, near_ways=8)
    tokens = overlap.hiding_zero3(H100, BITS, flops_efficiency=0.6, link_achieved=link)
    known = dict(sharding="zero3", dp=512, microbatches=1, dp_overlap=1, collective_cores=0)
    few, many = (training_step(models[model], H100, **known, seq=x) for x in (512, 4096))
    assert 3 * 512 < tokens < 4096
    assert few.dp_exposed > 0.3 * few.step_time
    assert many.dp_exposed < 0.03 * many.step_time
