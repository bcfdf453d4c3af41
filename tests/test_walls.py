"""The largest run: each wall against a run dealt out step by step, and what must hold for any machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook.machine.collectives import all_reduce
from scalebook.runs import walls
from scalebook.tables import accelerators

from .support import H100

QUARTER = 90 * 86400
BASE = dict(batch_tokens=16e6, base_flops=3.8e25, run_time=QUARTER, layers=126, tp=8)
WALLS = ("latency_wall", "grown_latency_wall", "bandwidth_wall", "grown_bandwidth_wall", "domain_wall")
BITS = dict(weight_bits=16, gradient_bits=32, activation_bits=16)


@pytest.mark.parametrize("tp", [1, 2, 8, 16, 64])
def test_a_message_is_an_all_reduce_of_no_bytes(tp):
    near = min(tp, 8)
    nothing = all_reduce(H100, collective_bytes=1e-9, ways=tp, near_ways=near)
    start = H100.collective_launch if tp == 1 else 0  # a group of one sends nothing
    assert walls.message_of_group(H100, tp=tp) == pytest.approx(nothing + start, rel=1e-3)


@given(st.sampled_from(["h100", "mi300x", "gb200"]), st.just(0) | st.floats(1e-6, 0.45), st.floats(1, 10))
def test_more_of_anything_but_depth_and_delay_is_no_smaller_a_run(key, power, factor):
    device = accelerators[key].at("bf16")
    base = walls.largest_run(device, BASE, BITS, batch_power=power)
    for letter in ("run_time", "batch_tokens"):
        more = walls.largest_run(device, BASE | {letter: BASE[letter] * factor}, BITS, batch_power=power)
        assert all(more[x] >= base[x] * (1 - 1e-9) for x in WALLS)
    deeper = walls.largest_run(device, BASE | {"layers": round(126 * factor)}, BITS, batch_power=power)
    assert deeper.latency_wall <= base.latency_wall and deeper.bandwidth_wall <= base.bandwidth_wall
