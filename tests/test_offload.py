"""Offloading: the algebra of its formulas, the block they rest on, a played schedule, and Calculon's account."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebook import accelerators, calculon, confront, models, offload
from scalebook.block import GPT, backward, flash, sequence_parallel, tensor_parallel
from scalebook.measurements.calculon import priced
from scalebook.measurements.calls import row_of
from scalebook.measurements.sets import stanzas
from scalebook.offload import tiers as offload_tiers
from scalebook.offload.bandwidth import EVERYTHING, MIXED, break_even, offloading, offloading_with_collectives

from .support import ROOT, csv_rows, written

OWN = ROOT / "scalebook" / "measurements" / "offload_calculon.csv"
RUN = dict(batch=1, seq=8192, tp=32, dp=16, pp=8, chunks=4, kept_values=17, recomputed=0.05, flops_efficiency=0.75,
           near_blocks=2, near_states=3, **MIXED)  # fmt: skip
POSTERS = [key for key in models if key.startswith("poster")]
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])
size = st.floats(1e6, 1e11)
time = st.floats(1e-4, 1.0)
MOVES = dict(weight_offload=shares, activation_offload=shares, optimizer_offload=shares, block_weights=size,
             saved_activations=size, block_states=size, block_forward=time, block_backward=time)  # fmt: skip


def of(model, device="h100", **letters):
    return offloading(models[model], accelerators[device], **(RUN | EVERYTHING | {"link_bandwidth": 1e11} | letters))


def test_the_backward_pass_takes_twice_the_forward_pass_and_the_scores():
    block = GPT.then(tensor_parallel, sequence_parallel, flash)
    back = sympy.expand(backward(block).flops - 2 * block.flops)
    assert sympy.simplify(back - block["scores"].flops) == 0


class TestBandwidth:
    @settings(max_examples=60)
    @given(moves=st.fixed_dictionaries(MOVES), link=st.floats(1e9, 1e12))
    def test_nothing_is_exposed_exactly_when_the_link_is_fast_enough(self, moves, link):
        if not any(moves[x] for x in EVERYTHING):
            return
        need = offload.offload_bandwidth(moves)
        assert offload.exposed_time(moves, link_bandwidth=need * 1.0001) == 0
        waits = offload.exposed_time(moves, link_bandwidth=link)
        assert (waits > 0) == (link < need) or link == pytest.approx(need)
        efficiency = offload.offload_efficiency(moves, link_bandwidth=link)
        busy = moves["block_forward"] + moves["block_backward"]
        assert efficiency == pytest.approx(busy / (busy + waits))

    @settings(max_examples=40)
    @given(moves=st.fixed_dictionaries(MOVES))
    def test_a_mix_needs_at_least_each_class_and_at_most_their_sum(self, moves):
        nothing = dict.fromkeys(EVERYTHING, 0.0)
        alone = [offload.offload_bandwidth(moves | nothing | {x: moves[x]}) for x in EVERYTHING if moves[x]]
        if alone:
            need = offload.offload_bandwidth(moves)
            assert max(alone) * (1 - 1e-12) <= need <= sum(alone) * (1 + 1e-12)


def each(compute, arrive, leave, late, places, in_place=False):
    """The time per block in the long run: a block waits for its lane, its place, and the latency of what it needs."""
    came, done, left = [], [], []
    for i in range(160):
        free, empty = (x[i - places] if i >= places else 0 for x in (done, left))
        came.append(max(empty + late * (i >= places) if in_place else free, came[-1] if came else 0) + arrive)
        done.append(max(came[-1] + late, done[-1] if done else 0, empty + late * (i >= places)) + compute)
        left.append(max(done[-1], left[-1] if left else 0) + leave)
    return (done[-1] - done[-61]) / 60


class TestPlaces:
    """The number of places is the least with which a played schedule goes as fast as with any number."""

    @settings(max_examples=60)
    @given(st.lists(st.integers(1, 40), min_size=3, max_size=3))
    def test_one_fewer_would_be_slower(self, times):
        compute, arrive, late = times
        at = dict(link_bandwidth=1, link_latency=late)
        n = offload_tiers.near_blocks_weights(at, block_weights=arrive, block_forward=compute)
        lanes = compute, arrive, 0, late
        assert n >= 2 and each(*lanes, int(n)) == pytest.approx(max(lanes[:3]))
        assert n > 25 or each(*lanes, int(n) - 1) > max(lanes[:3]) * (1 + 1e-9)

    @settings(max_examples=60)
    @given(st.lists(st.integers(1, 20), min_size=5, max_size=5), st.integers(1, 20))
    def test_a_mix_takes_the_larger_number_of_its_passes(self, times, late):
        weights, kept, states, forward, backward = times
        at = dict(
            EVERYTHING, block_weights=weights, saved_activations=kept, block_states=states, link_bandwidth=1,
            block_forward=forward, block_backward=backward, link_latency=late,
        )  # fmt: skip
        passes = (forward, weights, kept, late), (backward, weights + kept + states, 0, late)
        fits = [n for n in range(1, 42) if all(each(*x, n) <= max(x[:3]) * (1 + 1e-9) for x in passes)]
        assert offload_tiers.near_blocks_mix(at) == fits[0]

    @settings(max_examples=60)
    @given(st.lists(st.integers(1, 20), min_size=4, max_size=4), st.integers(1, 20))
    def test_states_changed_in_place(self, times, late):
        weights, kept, states, compute = times
        at = dict(
            EVERYTHING, block_weights=weights, saved_activations=kept, block_states=states, link_bandwidth=1,
            block_backward=compute, link_latency=late,
        )  # fmt: skip
        lanes = compute, weights + kept + states, states, late
        n = int(offload_tiers.near_states_in_place(at))
        assert each(*lanes, n, in_place=True) == pytest.approx(max(lanes[:3]))
        assert each(*lanes, n - 1, in_place=True) > max(lanes[:3]) * (1 + 1e-9)

    @pytest.mark.parametrize("link", [5e9, 1e11, 1e13])
    @pytest.mark.parametrize("model", POSTERS)
    def test_double_buffering_is_enough_however_slow_the_link(self, model, link):
        row = of(model, link_bandwidth=link)
        at = {x: row[x] for x in (*MOVES, "link_bandwidth")}
        assert offload_tiers.near_blocks_mix(at, link_latency="10 us") == 2
        assert offload_tiers.near_states_in_place(at, link_latency="10 us") <= 3

    def test_a_latency_of_a_block_wants_another_block(self):
        row = of("poster_1t")
        at = {x: row[x] for x in (*MOVES, "link_bandwidth")}
        late = np.array([1e-5, 1, 2, 3]) * row.block_forward
        assert list(offload_tiers.near_blocks_mix(at, link_latency=late)) == [2, 3, 4, 5]


def test_no_share_where_all_fits_and_none_where_nothing_helps():
    run = RUN | dict(weight_offload=0.0, activation_offload=1.0, link_bandwidth=1e11)
    row = break_even(models.llama3_8b, accelerators.h100, run, near_memory=80e9)
    assert row.optimizer_offload == 0 == row.offload_memory - row.saved_activations * row.held_microbatches * 4


def test_memory_is_conserved():
    """With nothing offloaded all is near, and what leaves is held in the second tier but for the blocks in use."""
    kept, moved = of("poster_11t", **dict.fromkeys(EVERYTHING, 0.0)), of("poster_11t")
    assert kept.offload_memory == 0
    moving = 2 * (moved.block_weights + moved.saved_activations) + 3 * moved.block_states
    assert moved.near_memory == pytest.approx(moving)
    assert kept.near_memory == pytest.approx(moved.offload_memory)


class TestCalculon:
    def test_the_calibrated_numbers_fit_the_rows_they_name(self):
        result = confront("offload_calculon_weights")
        rows = [row for row, fitted in zip(result.rows, result.fitted, strict=True) if fitted]
        assert {row["system"] for row in rows} == {"a100_80e", "a100_80g"}
        calls = [stanzas()["offload_calculon_weights"].call(row) for row in rows]

        def run(call, **letters):
            return offloading_with_collectives(*map(row_of, call.rows), **call.letters, **letters)

        said = np.array([run(x).block_weights for x in calls]) / result.measured[result.fitted]
        arithmetic = np.array([run(x, flops_efficiency=1, link_achieved=1e30).block_forward for x in calls])
        network = np.array([run(x, flops_efficiency=1).block_forward for x in calls]) - arithmetic
        found = np.linalg.lstsq(np.stack([arithmetic, network], 1) / said[:, None], np.ones(len(rows)), rcond=None)[0]
        assert 1 / found == pytest.approx([calculon.machine("a100_80g").flops_efficiency, 1], rel=0.002)

    @pytest.mark.parametrize("system", ["a100_80g", "h100_80g_nvl8"])
    def test_tensor_parallelism_runs_on_the_network_that_is_said(self, system):
        """Held against Calculon's own model of the same runs on their second, slower network."""
        result, networks = confront("offload_calculon_weights"), dict(pipeline_par_net="1", data_par_net="1")
        predict, theirs = result.confrontation.predict, dict(tensor_par_net="1", data_par_overlap="False")
        kind = {"system": system, "tensor_par": "8", "tensor_par_overlap": "none", "tensor_par_comm_type": "rs_ag"}
        rows = [row | networks for row in result.rows if kind.items() <= row.items()][:6]
        near, far = (np.array([predict([row | dict(network=net)])[0][0] for row in rows]) for net in ("0", "1"))
        assert np.median(np.abs(far / [priced(row | theirs)["weight_move_needed"] for row in rows] - 1)) < 0.2
        assert (far < near / 1.4).all()

    def test_a_file_as_calculon_writes_it_needs_no_row_id_and_no_source(self, tmp_path):
        own = csv_rows(OWN)
        columns = [x for x in own[0] if x not in ("row_id", "source")]
        rows = [{"id": number} | {x: row[x] for x in columns} for number, row in enumerate(own)]
        assert confront("offload_calculon", written(tmp_path, rows)).summary["rows"] == 43
