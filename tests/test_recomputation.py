"""What is run again, how gradients add up, what narrow products gain: closed forms beside the step, and by counting."""

from math import ceil

import pytest

from scalebook import accelerators, models, training
from scalebook.block import LLAMA
from scalebook.training import DEFAULT_LETTERS, rerun_blocks_needed, rerun_sheet, segment_memory_kept
from scalebook.training.profile import profile

H100 = accelerators.h100
LAYOUT = dict(tp=8, pp=4, dp=32, global_batch=1024, seq=8192)


def held(blocks, again, flying, whole, entry):
    """The most that is kept as a stage goes backward through its last micro-batch, of `flying`, block by block."""
    keeps = [entry] * again + [whole] * (blocks - again)
    before = (flying - 1) * sum(keeps)
    return max(before + sum(keeps[: k + 1]) + (whole - keeps[k]) for k in range(blocks))


@pytest.mark.parametrize("flying", [1, 4])
@pytest.mark.parametrize(("blocks", "entry"), [(5, 1), (20, 3), (20, 8)])
def test_the_fewest_blocks_are_enough_and_one_fewer_is_not(flying, blocks, entry):
    known = dict(held_microbatches=flying, stage_blocks=blocks, working_activations=17, block_input=entry)
    least, most = (flying * blocks - 1) * entry + 17, flying * blocks * 17
    for room in range(least, most + 40, 7):
        again = ceil(round(rerun_blocks_needed(known, activation_room=room), 9))
        # counted with the blocks that are run again the last to go backward, beside all that is kept of the others
        total = flying * (again * entry + (blocks - again) * 17) + (17 - entry) * bool(again)
        assert total <= room and 0 <= again <= blocks and held(blocks, again, flying, 17, entry) <= room
        if again:
            fewer = flying * ((again - 1) * entry + (blocks - again + 1) * 17) + (17 - entry) * (again > 1)
            assert fewer > room


@pytest.mark.parametrize("words", [{}, dict(sharding="zero3")])
def test_both_ends_are_those_of_the_step(words):
    letters = DEFAULT_LETTERS | dict(tp=8, pp=4, dp=32, microbatches=32, seq=8192, stage=1)
    kept, again = (training.memory_sheet(LLAMA, recompute=x, **words) for x in ("none", "full"))
    rows = [
        sheet(models.llama3_70b, **{x: n for x, n in letters.items() if x in {*sheet.inputs, *sheet.formulas}})
        for sheet in (kept, again)
    ]
    none, full = rows
    known = dict(
        held_microbatches=none.held_microbatches, stage_blocks=none.stage_blocks,
        working_activations=none.saved_activations, block_input=full.saved_activations,
    )  # fmt: skip
    room = full.activation_memory + full.buffer_memory - none.buffer_memory
    assert rerun_blocks_needed(known, activation_room=room + 1) == pytest.approx(none.stage_blocks)
    assert rerun_blocks_needed(known, activation_room=none.activation_memory) == 0


def counted_peak(blocks, spacing, whole):
    """Blocks of which every spacing-th keeps its input: inputs kept, and the segment that is run again."""
    starts = list(range(0, blocks, spacing))
    return max(k + 1 + whole * (min(start + spacing, blocks) - start) for k, start in enumerate(starts))


@pytest.mark.parametrize(("blocks", "spacing", "whole"), [(100, 10, 1), (80, 4, 2), (81, 9, 16.75)])
def test_segments_hold_what_counting_says(blocks, spacing, whole):
    said = segment_memory_kept(
        held_microbatches=1, stage_blocks=blocks, block_input=1, working_activations=whole, segment_blocks=spacing
    )
    assert said == counted_peak(blocks, spacing, whole)


@pytest.mark.parametrize("bits", [16, 32])
def test_gradients_cost_most_what_the_share_says(bits):
    """Halving a micro-batch makes the products of a step longer by less than the whole traffic of its gradients."""
    times = {}
    for batch in (1, 2):
        shown = profile(models.llama3_70b, H100.at("bf16"), **LAYOUT, batch=batch, gradient_bits=bits)
        times[batch] = sum(x.time for x in shown.lines if x.kind == "product")
    one, two = (training.accumulation_share(H100.at("bf16"), gradient_bits=bits, seq=8192, batch=n) for n in (1, 2))
    assert 0 <= times[1] / times[2] - 1 < one - two < 0.06


@pytest.mark.parametrize("columns", [1024, 4096, 16384])
def test_a_narrow_product_gains_what_kernels_say(columns):
    """Beside the kernels of the step, with the writing of results and their starts; within a few per cent."""
    from scalebook.machine.kernels import matrix_product, stream_time

    known = dict(rows=8192, columns=columns, inner=8192, copies=1, weight_bits=16, activation_bits=16)
    wide = matrix_product(H100.at("bf16"), known).matmul_time
    narrow = matrix_product(H100.at("fp8"), known).matmul_time
    cast = stream_time(H100, traffic=8192 * 8192 * (16 + 2 * 8) / 8)
    said = training.part_gain_cast(H100.at("fp8"), columns=columns, activation_bits=16, quantized_bits=8)
    assert said == pytest.approx(wide / (narrow + cast), rel=0.05)


@pytest.mark.parametrize(("batch", "again"), [(1, 0), (2, 0), (4, 7), (8, 14)])
def test_the_running_cluster_runs_again_what_does_not_fit(batch, again):
    """By hand: 65.5 GB of room, four micro-batches of twenty blocks of 0.28 GB a sequence, inputs of 17 MB."""
    sheet = rerun_sheet(LLAMA)
    letters = DEFAULT_LETTERS | dict(tp=8, pp=4, dp=32, microbatches=32 / batch, seq=8192, stage=1, batch=batch)
    row = sheet(models.llama3_70b, H100, **{x: letters[x] for x in letters if x in {*sheet.inputs, *sheet.formulas}})
    assert ceil(row.rerun_blocks) == again and row.again_share == row.rerun_blocks / 60
    assert row.block_input == batch * 8192 * 8192 * 2 / 8
    assert (row.filled > 1) == (again > 0)
