"""The bandwidths a step needs, links that dimensions share, and the time data-parallel collectives have to hide in."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebook import models, training_step
from scalebook.language import Formula, symbol
from scalebook.machine.collectives import KINDS, port_times
from scalebook.pipeline.simulation import simulate
from scalebook.training import overlap
from scalebook.training.assumptions import dp_contention_none
from scalebook.training.contention import TIERS, dp_contention_shared
from scalebook.training.data_parallel import dp_passes_once, dp_unhidden_once

from .support import H100, each_case

WAYS = ("tp", "cp", "ep", "pp", "dp")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("ways", "near"), [(8, 8), (16, 8), (16, 1), (2, 1), (1, 1)])
def test_a_collective_whose_starts_cost_nothing_takes_as_long_as_its_busier_ports(kind, ways, near):
    free = dict(collective_launch=0, chunk_time=0, near_latency=0, far_latency=0)
    free = {n: x for n, x in free.items() if n in KINDS[kind].inputs}
    letters = dict(collective_bytes=1e9, ways=ways, near_ways=near)
    ports = port_times(kind, *map(symbol, letters))
    busy = [Formula(kind, "collective_time", x)(H100, letters) for x in ports]
    assert KINDS[kind](H100, letters, **free) == pytest.approx(max(busy))


@each_case("steps whose bandwidths are needed", "model, letters", globals())
@pytest.mark.parametrize("tier", TIERS)
def test_with_the_bandwidth_it_needs_a_dimension_takes_as_long_as_what_runs_beside_it(model, letters, tier):
    run = training_step(models[model], H100, **letters)
    found = {way: run[f"{way}_{tier}_needed"] for way in WAYS}
    assert sum(found.values()) == pytest.approx(run[f"all_{tier}_needed"]) and any(found.values())
    for way in filter(found.get, WAYS):
        enough = training_step(models[model], H100, **letters, **{f"{tier}_bandwidth": found[way]})
        parts = ("forward_compute", "again_compute", "input_gradient_compute", "weight_gradient_compute")
        block = sum(enough[x] for x in parts)
        often = run.microbatches if letters.get("sharding") == "zero3" else 1  # a step's own have the last chunk's pass
        beside = {"pp": run.stage_blocks, "dp": run.stage_blocks * often}.get(way, 1) * block
        assert enough[f"{way}_{tier}_time"] == pytest.approx(beside)


def shared_link(blocks, arithmetic, waited, behind):
    """Time a window takes when what runs behind shares a link with what blocks wait for, in equal halves."""
    left, end = Fraction(behind), Fraction(0)
    for _ in range(blocks):
        alone = min(left, Fraction(arithmetic))
        left, end = left - alone, end + arithmetic
        both = min(left, Fraction(waited))
        left, end = left - both, end + waited + both
    return end + left


@settings(max_examples=50)
@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 3000))
def test_contention_is_what_sharing_a_link_in_halves_costs(arithmetic, waited, behind):
    blocks = 200  # fine steps: what runs behind meets arithmetic and collectives alike
    window = blocks * (arithmetic + waited)
    none = {f"{x}_{y}": 0 for x in ("tp", "cp", "ep", "pp") for y in ("scaleup_time", "scaleout_time", "overlap")}
    none |= dict(tp_scaleup_beside=0, tp_scaleout_beside=0, tp_beside=1)
    none |= dict(tp_scaleup_time=waited, dp_scaleup_time=behind, dp_scaleout_time=0, dp_passes=1)
    none |= dict(dp_reduce=behind, dp_gather=0, dp_unhidden=max(0, behind - window))
    cost = dp_contention_shared(none, dp_window=window, stage_blocks=blocks)
    exact = shared_link(blocks, arithmetic, waited, behind) - window - max(0, behind - window)
    assert cost == pytest.approx(float(exact), abs=arithmetic + waited)


def test_contention_is_a_formula_to_swap_and_none_where_links_are_not_shared():
    model, letters = models.llama3_70b, dict(tp=4, dp=32, global_batch=256, seq=8192, sharding="zero3", dp_overlap=1)
    shared, alone = training_step(model, H100, **letters), training_step(model, H100, dp_contention_none, **letters)
    assert shared.dp_contention > 0 == alone.dp_contention
    assert shared.step_time - alone.step_time == pytest.approx(shared.dp_contention)
    # Tensor parallelism has the scale-up ports to itself.
    whole = training_step(model, H100, **letters | dict(tp=8, dp=16))
    assert whole.dp_contention == 0


@pytest.mark.parametrize("pp", [1, 2, 4, 8])
@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_passes_to_hide_in_are_those_of_the_schedule(pp, chunks):
    """From a chunk's last gradient to the end of the step, on every device; and from its first pass in the next."""
    kind, more = ("interleaved", [chunks]) if chunks > 1 and pp > 1 else ("1f1b", [])
    chunks = chunks if more else 1
    run = simulate(kind, pp, 4 * pp, *more)
    for device in range(pp):
        done, begun = {}, {}
        for slot in run.slots:
            for x in slot.operations if slot.device == device else ():
                if x.kind == "F":
                    begun[x.stage] = min(begun.get(x.stage, slot.start), slot.start)
                else:
                    done[x.stage] = max(done.get(x.stage, 0), slot.end)
        passes = [max(x.values()) - min(x.values()) for x in (done, begun)]
        third = Fraction(run.busy[device]) / run.microbatches / 3
        expected = Fraction(pp * (chunks - 1), chunks)
        assert passes == [2 * third * expected, third * expected]
    assert dp_passes_once(pp=pp, chunks=chunks) == pytest.approx(float(Fraction(pp * (chunks - 1) + 1, chunks)))


@settings(max_examples=60)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.integers(1, 40))
def test_chunks_queue_for_the_link(pp, chunks, total):
    """Buckets of every chunk, ready one after another in its last pass, sent in this order."""
    pass_, buckets = Fraction(2), 400
    free = end = Fraction(0)
    for chunk in range(chunks):
        begin = chunk * pp * pass_ / chunks
        for bucket in range(buckets):
            ready = begin + pass_ / chunks * Fraction(bucket + 1, buckets)
            free, end = max(free, ready) + Fraction(total, chunks * buckets), ready
    said = dp_unhidden_once(
        dp_reduce=total, dp_gather=0, dp_window=pass_ * dp_passes_once(pp=pp, chunks=chunks), last_window=pass_,
        chunks=chunks, dp_overlap=1, stage_blocks=chunks * buckets, collective_cores=0,
    )  # fmt: skip
    assert said == pytest.approx(float(free - end), abs=0.02)


def test_with_the_bandwidth_it_needs_a_steps_own_exchange_leaves_a_bucket_and_no_more():
    letters = dict(
        tp=8, pp=16, dp=128, chunks=8, global_batch=2048, seq=8192, dp_overlap=1, pp_overlap=1, collective_cores=0
    )
    run = training_step(models.llama3_405b, H100, **letters)
    enough = training_step(models.llama3_405b, H100, **letters, scaleout_bandwidth=run.dp_scaleout_needed)
    total = enough.dp_reduce + enough.dp_gather  # with starts and hops, which come on top
    assert enough.dp_exposed == pytest.approx(total / run.stage_blocks, rel=0.35)
    less = training_step(models.llama3_405b, H100, **letters, scaleout_bandwidth=run.dp_scaleout_needed / 2)
    assert less.dp_exposed > 1.5 * enough.dp_exposed


@pytest.mark.parametrize("sharding", ["zero2", "zero3", "hybrid"])
def test_a_micro_batch_passes_one_of_the_two_stages_that_a_device_of_dualpipe_holds(sharding):
    """So that it moves about as much as in a pipeline where a device holds one."""
    letters = dict(tp=8, pp=8, dp=8, microbatches=16, seq=4096, sharding=sharding)
    letters |= dict(far_latency=0, near_latency=0, collective_launch=0, chunk_time=0)
    letters |= {"shard_group": 4} if sharding == "hybrid" else {}
    one, two = (training_step(models.llama3_70b, H100, **letters, schedule=x) for x in ("1f1b", "dualpipe"))
    assert two.dp_reduce / one.dp_reduce == pytest.approx(1, rel=0.25)


def test_where_nothing_is_gathered_the_forward_pass_hides_nothing():
    run = training_step(models.llama3_8b, H100, dp=64, microbatches=1, seq=1024, sharding="replicated", dp_overlap=1)
    assert run.dp_window == pytest.approx(run.input_gradient_time + run.weight_gradient_time)


def test_what_stands_at_the_ends_of_the_model_is_where_a_schedule_puts_it():
    letters = dict(pp=4, dp=4, microbatches=16, seq=2048)
    one, v, both = (training_step(models.gpt3_13b, H100, **letters, schedule=x) for x in ("1f1b", "zb_v", "dualpipe"))
    fewer = (one.stage_blocks - one.last_blocks) * (one.block_forward + one.block_backward)
    ends = one.head_forward + one.head_backward + one.embedding_time - fewer
    assert v.step_head == pytest.approx(max(0, 16 * ends)) and both.step_head == pytest.approx(max(0, 8 * ends))
    matrix = one.vocab * one.hidden  # tied: a device with both ends holds it once
    assert v.dense_params - v.stage_blocks * v.block_params == pytest.approx(matrix)
    assert both.dense_params - 2 * both.stage_blocks * both.block_params == pytest.approx(matrix)


@pytest.mark.parametrize("model", ["llama3_8b", "llama3_70b", "llama3_405b"])
def test_the_sheet_of_a_step_waits_below_and_not_above_whatever_the_size(model):
    link = overlap.group_rate(H100, near_ways=8)
    tokens = overlap.hiding_zero3(
        H100, dict(weight_bits=16, gradient_bits=32), flops_efficiency=0.6, link_achieved=link
    )
    known = dict(sharding="zero3", dp=512, microbatches=1, dp_overlap=1, collective_cores=0)
    few, many = (training_step(models[model], H100, **known, seq=x) for x in (512, 4096))
    assert 3 * 512 < tokens < 4096
    assert few.dp_exposed > 0.3 * few.step_time
    assert many.dp_exposed < 0.03 * many.step_time
