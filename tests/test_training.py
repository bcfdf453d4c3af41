"""A training step: its parts, its formulas under every strategy, and what it must agree with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook import offload
from scalebook.block import GPT, LLAMA, MOE, backward
from scalebook.block.work import work
from scalebook.flags import read, write
from scalebook.language import NOTATION, symbol
from scalebook.tables import accelerators, models, precisions
from scalebook.training import assumptions
from scalebook.training.parts import stage_moe_blocks_whole
from scalebook.training.profile import profile
from scalebook.training.step import DEFAULT_LETTERS, memory_sheet, training_sheet, training_step
from scalebook.training.strategy import CHOICES, Strategy

from .support import A100, H100, agree, cases, each_case, refuses, sound  # noqa: F401  (A100: of cases.csv)

LETTERS = cases("letters of a training step", {})
GPT3 = dict(tp=8, pp=8, dp=1, microbatches=64, chunks=3, seq=2048, attention="unfused")
STRATEGIES = [*cases("strategies of every kind", globals()).values()]
SHEETS = [  # made by the tests that ask: each worker reads this file, and one runs it
    *((LLAMA, None, s) for s in STRATEGIES), (GPT, None, STRATEGIES[1]), (None, MOE, Strategy()),
    (LLAMA, MOE, Strategy(optimizer="muon", schedule="dualpipe")),
]  # fmt: skip


def test_a_formula_made_from_a_block_has_its_unit_a_meaning_and_a_source():
    sound(training_sheet(*asked) for asked in SHEETS)


@pytest.mark.parametrize("asked", SHEETS, ids=range(len(SHEETS)))
def test_python_numpy_and_javascript_agree_on_a_whole_step(asked):
    assert list(agree(training_sheet(*asked), 8, rel=1e-9))


@each_case("steps whose parts are summed", "model, device, letters", globals())
def test_a_step_is_the_sum_of_its_parts_and_its_memory_too(model, device, letters):
    run = training_step(model, device, **letters)
    assert run.step_time == pytest.approx(sum(run[x] for x in LETTERS["parts of its time"]))
    assert run.memory == pytest.approx(sum(run[x] for x in LETTERS["parts of its memory"]))
    assert run.memory == max(run.first_memory, run.last_memory)
    assert 0 < run.mfu <= run.hfu < 1


@pytest.mark.parametrize("words", [{}, dict(sharding="zero3"), dict(schedule="gpipe"), dict(recompute="full")], ids=str)
@pytest.mark.parametrize(("tp", "pp"), [(16, 1), (4, 9)])
def test_the_sheet_of_memory_is_the_steps_own(words, tp, pp):
    model, knowns = models.llama3_70b, dict(tp=tp, pp=pp, dp=4, microbatches=32, seq=4096)
    sheet, given = memory_sheet(LLAMA, **words), DEFAULT_LETTERS | knowns
    for stage in ({}, dict(stage=np.arange(1, pp + 1))):
        row = sheet(model, H100, **{x: given[x] for x in sheet.inputs if x in given}, **stage)
        run = training_step(model, H100, **knowns, **words, **stage)
        assert not row.missing
        assert all(np.all(row[x] == run[x]) for x in sheet.formulas)


@pytest.mark.parametrize("word", [w for w in CHOICES if isinstance(CHOICES[w][0], str)])
def test_a_word_that_no_strategy_has(word):
    refuses(ValueError, f"{word} is '.*not 'nonsense'", lambda: Strategy(**{word: "nonsense"}))


@pytest.mark.parametrize("recompute", CHOICES["recompute"])
@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_no_kernel_is_lost(recompute, sequence_parallel):
    """The time model sees the arithmetic and the traffic of every kernel once."""
    strategy = Strategy(recompute=recompute, sequence_parallel=sequence_parallel, attention="unfused")
    for block in (strategy.transformed(GPT), backward(strategy.transformed(GPT))):
        seen = work(block)
        letters = {x for w in seen for x in (w.flops + w.traffic).free_symbols}
        # More heads than devices.
        at = {x: 2.0 + i for i, x in enumerate(sorted(letters, key=str))} | {symbol("kv_heads"): 64.0}
        for cost in ("flops", "traffic"):
            total = getattr(block, cost).subs(symbol("context"), symbol("seq")).subs(at)
            assert float(sum(getattr(w, cost) for w in seen).subs(at)) == pytest.approx(float(total))


def _pairs_by_listing(seq, window, chunked):
    """Every query counts its keys."""
    first = [(i // window) * window if chunked else max(0, i - window + 1) for i in range(seq)]
    return sum(i - start + 1 for i, start in enumerate(first))


@given(st.integers(1, 60), st.integers(1, 80), st.integers(1, 8), st.integers(0, 8))
def test_the_share_of_pairs_that_windows_leave(seq, window, layers, sliding):
    letters = dict(seq=seq, window=window, layers=layers, window_layers=min(sliding, layers))
    kinds = [(assumptions.attended_windows, assumptions.counted_windows, False)]
    for f, counted, chunked in (*kinds, (assumptions.attended_chunks, assumptions.counted_chunks, True)):
        some, whole = _pairs_by_listing(seq, window, chunked), _pairs_by_listing(seq, seq, False)
        pairs = letters["window_layers"] * some + (layers - letters["window_layers"]) * whole
        assert f(**letters) == pytest.approx(pairs / (layers * seq**2))
        assert counted(**letters) == pytest.approx(2 * pairs / (layers * seq * (seq + 1)))
        if window >= seq:  # no window
            assert f(**letters) == pytest.approx((seq + 1) / (2 * seq))


def test_a_model_with_windows_attends_to_less():
    knowns = dict(tp=1, pp=4, dp=8, ep=8, microbatches=8, seq=65536)
    for name, f in (("gpt_oss_20b", assumptions.attended_windows), ("llama4_scout", assumptions.attended_chunks)):
        model = models[name]
        run = training_step(model, H100, **knowns)
        whole = training_step(model, H100, **knowns, attended_share=0.5)
        assert run.attended_share == f(model, seq=65536) < 0.5 and run.step_time < whole.step_time
        assert run.memory == whole.memory
        assert "attended_share" not in training_step(model, H100, **knowns, attention="unfused")
    run = training_step(models.mistral_7b, H100, dp=8, microbatches=8, seq=4096)  # its window is as long
    assert run.attended_share == pytest.approx(0.5, rel=1e-3)
    assert training_step(models.llama3_8b, H100, dp=8, microbatches=8, seq=4096).attended_share == 0.5


@pytest.mark.parametrize(
    "words", [{}, dict(recompute="full"), dict(attention="unfused", recompute="selective")], ids=str
)
def test_fewer_key_value_heads_than_devices_are_held_by_several(words):
    """Each of 16 devices holds one of 8 heads: as much as if there were 16, and the model stays what it is."""
    knowns = dict(tp=16, cp=2, dp=2, microbatches=4, seq=8192, **words)
    eight, sixteen = (training_step(models.llama3_8b, H100, **knowns, kv_heads=x) for x in (8, 16))
    for letter in LETTERS["of one device"]:
        assert eight[letter] == pytest.approx(sixteen[letter], rel=1e-12), letter
    whole = [training_step(models.llama3_8b, H100, **knowns | dict(tp=tp)) for tp in (1, 8, 16)]
    assert len({run.model_flops for run in whole}) == len({run.hardware_flops for run in whole}) == 1
    assert whole[0].block_params == parameters_of_a_block(models.llama3_8b)
    # All devices hold the norms.
    assert whole[1].block_params * 8 == pytest.approx(parameters_of_a_block(models.llama3_8b), rel=1e-3)


def parameters_of_a_block(row):
    return float(LLAMA.params.subs({x: row[x.name] for x in LLAMA.params.free_symbols}))


def test_heads_dealt_out_to_more_devices_than_there_are():
    knowns = dict(tp=4, dp=2, microbatches=4, seq=8192, context_exchange="all_to_all")
    few, many = (training_step(models.llama3_8b, H100, **knowns, cp=4, kv_heads=x) for x in (8, 16))
    for letter in ("cp_forward", "cp_backward", "tp_forward"):  # a head each, on 16 devices
        assert few[letter] == pytest.approx(many[letter], rel=1e-12)
    assert few.block_params < many.block_params  # the weights are split over tp alone
    enough = [training_step(models.llama3_8b, H100, **knowns, cp=2, kv_heads=x) for x in (8, 16)]
    assert enough[0].cp_forward < enough[1].cp_forward


@pytest.mark.parametrize("name", ["scores", "mix", "fp32_logits"])
def test_scores_and_logits_are_not_quantized(name):
    knowns = dict(tp=8, dp=1, microbatches=8, seq=4096, attention="unfused")

    def lines(precision, name, **letters):
        run = profile(models.llama3_8b, accelerators.h100.at(precision), **knowns, **letters)
        return [x for x in run.lines if x.name == name]

    def time(*asked, **letters):
        [line] = [x for x in lines(*asked, **letters) if x.phase == "forward"]
        return line.time

    assert time("fp8", name) == pytest.approx(time("bf16", name), rel=1e-12)
    assert time("fp8", "up gate") < 0.7 * time("bf16", "up gate")
    assert time("bf16", name, kernels="ideal") == pytest.approx(time("fp8", name, kernels="ideal"), rel=1e-12)
    assert not lines("fp8", f"{name} cast")


@pytest.mark.parametrize("precision", ["fp8", "fp4"])
def test_a_device_without_bf16_quantizes_and_attends_at_its_peak(precision):
    device = accelerators.maia200.at(precision)
    knowns = dict(dp=8, microbatches=1, seq=8192, scaleup_size=8)
    run = training_step(models.llama3_8b, device, **knowns)
    assert run.attention_peak == device.peak_flops and run.quantized_bits == int(precision[-1])
    assert run.step_time == training_step(models.llama3_8b, device, **knowns, quantized=True).step_time
    assert run.step_time > training_step(models.llama3_8b, device, **knowns, quantized=False).step_time  # no casts


@pytest.mark.parametrize("name", ["deepseek_v2_lite", "deepseek_v3", "mixtral_8x7b", "llama3_8b", "gpt3_13b"])
@pytest.mark.parametrize(
    "words", [{}, dict(recompute="full"), dict(attention="unfused", recompute="selective")], ids=str
)
def test_sequence_parallelism_over_one_device_changes_nothing(name, words):
    knowns = dict(tp=1, dp=8, ep=4 if models[name].get("experts") else 1, microbatches=2, seq=2048)
    whole, split = (training_step(models[name], H100, **knowns, **words, sequence_parallel=x) for x in (False, True))
    assert dict(whole) == pytest.approx(dict(split), rel=1e-12)


@pytest.mark.parametrize(("precision", "width"), [("fp32", 32), ("tf32", 32), ("fp64", 64)])
def test_tensors_are_as_wide_as_products_take_them(precision, width):
    """As the table's recipe in 32 bits has it, whose weights are their own master copy."""
    device, known = accelerators.h100.at(precision), dict(dp=4, global_batch=8, seq=512)
    step = training_step(models.gpt2, device, known)
    for letter in ("weight_bits", "gradient_bits", "optimizer_bits", "activation_bits"):
        assert step[letter] == width / 32 * precisions.adam_fp32[letter]
    held = step.weight_memory + step.gradient_memory + step.optimizer_memory
    values = step.dense_params + step.learned_positions * step.hidden
    assert held == pytest.approx(values * width / 8 * (1 + 1 + 2 / 4))  # both moments are dealt out
    given = {x: step[x] for x in ("weight_bits", "gradient_bits", "optimizer_bits", "activation_bits", "logit_bits")}
    assert training_step(models.gpt2, device, known, **given).step_time == step.step_time


def test_letters_of_another_strategy_are_known_at_their_usual_values():
    knowns = dict(tp=1, pp=4, dp=4, microbatches=16, seq=4096, schedule="zb_v", sharding="zero3")
    run = training_step(models.llama3_8b, H100, **knowns)
    usual = training_step(models.llama3_8b, H100, **knowns, chunks=1, shard_group=8, near_blocks=3)
    assert usual.step_time == run.step_time


def test_one_interleaved_chunk_is_1f1b():
    knowns = dict(tp=1, pp=4, dp=4, microbatches=16, seq=4096, chunks=1)
    plain, one = (training_step(models.llama3_8b, H100, **knowns, schedule=x) for x in ("1f1b", "interleaved"))
    assert (plain.step_time, plain.memory) == (one.step_time, one.memory)


def _held(run):
    """Parameters whose bytes a device of the first stage holds."""
    return run.weight_memory * 8 / run.weight_bits


@pytest.mark.parametrize("model", ["llama3_70b", "mixtral_8x7b"])
@pytest.mark.parametrize(
    ("schedule", "pp"), [(x, n) for x in CHOICES["schedule"] for n in (1, 8) if (x, n) != ("dualpipe", 1)]
)
def test_what_is_summed_and_stepped_is_what_the_fullest_device_holds(schedule, model, pp):
    knowns = dict(tp=4, pp=pp, dp=2, microbatches=32, seq=4096, schedule=schedule, sharding="replicated")
    stages = [training_step(models[model], H100, **knowns, stage=i) for i in range(1, pp + 1)]
    assert stages[0].dense_params + stages[0].routed_params == pytest.approx(_held(stages[0]), rel=1e-12)
    assert _held(stages[0]) == max(map(_held, stages))
    over = 2 if schedule == "dualpipe" else 1  # what it holds twice, two devices share
    assert stages[0].shards == 2 * over
    row = training_step(models[model], H100, **knowns | dict(sharding="zero1"), stage=1)
    assert row.optimizer_memory * 2 * over == pytest.approx(stages[0].optimizer_memory)
    assert row.optimizer_time * 2 * over == pytest.approx(stages[0].optimizer_time)


def test_the_optimizers_state_moves_once_a_step():
    knowns = dict(
        tp=8, pp=8, dp=2, seq=2048, weight_offload=1, activation_offload=1, optimizer_offload=1,
        link_bandwidth="20 GB/s",
    )  # fmt: skip
    one, many = (training_step(models.megatron_1t, H100, **knowns, microbatches=m) for m in (1, 32))
    assert one.offload_exposed == pytest.approx(one.stage_blocks * one.exposed_time)
    again = many.offload_exposed - one.offload_exposed
    gradients = many.block_states * many.gradient_bits / (many.gradient_bits + many.optimizer_bits / many.shards)
    assert again == pytest.approx(31 * many.stage_blocks * offload.exposed_time(many, block_states=gradients))
    assert 0 < many.exposed_between < many.exposed_time
    still = knowns | dict(optimizer_offload=0)  # then no micro-batch differs
    usual = training_step(models.megatron_1t, H100, **still, microbatches=32)
    assert usual.exposed_between == usual.exposed_time > 0
    quick = knowns | dict(link_bandwidth=many.offload_bandwidth * 1.001)
    assert training_step(models.megatron_1t, H100, **quick, microbatches=32).exposed_between == 0


def test_words_are_looked_up_once_and_their_gradients_added():
    """On one device: rows read and activations written; gradients read, and rows read and written."""
    run = training_step(models.llama3_8b, H100, dp=8, microbatches=4, seq=8192)
    values = 8192 * run.hidden
    rate, launches = run.hbm_bandwidth * run.stream_reached, 2 * run.kernel_launch
    assert run.embedding_time == pytest.approx(launches + values * (2 + 2 + 2 + 2 * 4) / rate, rel=1e-6)
    assert run.step_head == pytest.approx(4 * (run.head_forward + run.head_backward + run.embedding_time))
    piped = training_step(models.llama3_8b, H100, pp=4, dp=2, microbatches=8, seq=8192)
    # More than the first stage's.
    assert piped.step_head == pytest.approx(8 * (piped.head_forward + piped.head_backward))


@pytest.mark.parametrize("sharding", ["zero1", "zero3"])
@pytest.mark.parametrize("schedule", ["1f1b", "zb_v", "dualpipe"])
def test_the_second_tier_is_split_as_the_first_for_every_stage(sharding, schedule):
    """With everything away: what was near, but for the places near that blocks pass through, lies there."""
    stage = np.arange(1.0, 9.0)
    letters = dict(tp=8, pp=8, dp=4, microbatches=32, seq=2048, sharding=sharding, schedule=schedule)
    away = dict(weight_offload=1, activation_offload=1, optimizer_offload=1)
    here, there = (training_step(models.megatron_1t, H100, **letters, **x, stage=stage) for x in ({}, away))
    kinds = ("weight", "gradient", "optimizer", "activation")
    for kind in kinds:
        assert there[f"{kind}_away"] == pytest.approx(np.broadcast_to(here[f"{kind}_memory"], 8))
    assert there.train_away == pytest.approx(sum(there[f"{kind}_away"] for kind in kinds))
    assert there.train_away[0] == pytest.approx(there.offload_memory)
    assert there.train_away.max() == pytest.approx(there.offload_memory)


def test_a_word_is_no_letter():
    assert not CHOICES.keys() & NOTATION.keys()


@pytest.mark.parametrize("name", ["mixtral_8x7b", "deepseek_v3"])
def test_whole_experts_are_dealt_out_as_megatron_does(name):
    """With etp 1 a device holds experts/ep of them, whole:
    counted by hand, and their state shared by tp dp/ep devices.
    """
    model = models[name]
    run = training_step(model, H100, tp=8, dp=8, ep=8, etp=1, microbatches=4, seq=4096, mtp_blocks=0)
    routed = model.moe_layers * 3 * model.hidden * model.expert_ffn * model.experts / 8
    assert run.routed_params == pytest.approx(routed) and run.routed_shards == 8
    state = (2 + 4 + 12 / 8) * (run.dense_params + routed)
    assert run.weight_memory + run.gradient_memory + run.optimizer_memory == pytest.approx(state)


def _dealt(kinds, pp, chunks):
    """Blocks with experts on the device that has the most, dealt out one by one; ends of uneven stages are short."""
    blocks = -(-len(kinds) // pp)
    size = blocks // chunks
    parts = [kinds[at : at + size] for at in range(0, pp * blocks, size)]
    return max(sum(map(sum, parts[device::pp])) for device in range(pp))


@pytest.mark.parametrize("layers", [1, 4, 7, 12, 24, 27, 31, 61])
@pytest.mark.parametrize("pp", [1, 2, 3, 4, 6, 16])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_blocks_with_experts_are_dealt_to_stages_whole(layers, pp, chunks):
    blocks = -(-layers // pp)
    last = layers - (pp - 1) * blocks
    if (pp - 2) * blocks >= layers or blocks % chunks or (chunks > 1 and last != blocks):
        return  # no stages, or no chunks
    at = dict(layers=layers, pp=pp, chunks=chunks, stage_blocks=blocks, last_blocks=max(0, last))
    for dense in range(layers):  # first dense blocks, then experts in all others
        if dense and layers % (layers - dense) == 0:
            continue  # every n-th block, as below
        kinds = [0] * dense + [1] * (layers - dense)
        assert stage_moe_blocks_whole(at, moe_layers=layers - dense) == _dealt(kinds, pp, chunks)
    for every in (n for n in (2, 3, 4) if layers % n == 0):
        kinds = ([0] * (every - 1) + [1]) * (layers // every)
        found, most = stage_moe_blocks_whole(at, moe_layers=layers // every), _dealt(kinds, pp, chunks)
        assert most <= found <= most + chunks


def test_a_stage_with_whole_blocks_of_experts_holds_more_and_takes_longer():
    """DeepSeek-V3's first three blocks are dense: in eight stages the fullest has eight blocks with experts."""
    knowns = models.deepseek_v3, accelerators.h100.at("bf16")
    given = dict(pp=8, ep=8, dp=8, microbatches=32, seq=4096, mtp_blocks=0)
    run = training_step(*knowns, **given)
    assert run.stage_blocks == run.stage_moe_blocks == 8
    mean = training_step(*knowns, **given, stage_moe_blocks=8 * 58 / 61)
    assert 1.02 < run.memory / mean.memory < 8 / mean.stage_moe_blocks and run.step_time > mean.step_time
    assert run.model_flops == pytest.approx(mean.model_flops)


def test_what_the_backward_pass_does_not_read_need_not_run_again():
    """Of a block run again whole the last product: with its kernels go its arithmetic and its collectives."""
    knowns = models.llama3_70b, accelerators.h100.at("bf16")
    letters = dict(tp=8, dp=8, microbatches=8, seq=4096, recompute="full")
    whole, read, half = (training_step(*knowns, **letters, unread_rerun=x) for x in (1, 0, 0.5))
    down = 2 * whole.batch * whole.seq * whole.hidden * whole.ffn / whole.tp
    assert whole.again_flops - read.again_flops == pytest.approx(down)
    assert read.tp_backward < whole.tp_backward and read.again_compute < whole.again_compute == whole.forward_compute
    assert half.step_time == pytest.approx((whole.step_time + read.step_time) / 2)
    assert training_step(*knowns, **letters).step_time == half.step_time  # no framework named: half-way
    assert read.memory == whole.memory and read.model_flops == whole.model_flops


class TestUnevenStages:
    """A first stage, or a last one, with fewer blocks than the others."""

    def of(self, **letters):
        asked = dict(tp=8, pp=16, dp=8, global_batch=256, seq=8192)
        return training_step(models.llama3_405b, accelerators.h100, **asked | letters)

    def test_the_same_numbers_of_blocks_give_the_same_step(self):
        whole, said = self.of(), self.of(first_blocks=8, last_blocks=6)
        for letter in ("step_time", "memory", "first_memory", "last_memory", "train_memory", "stage"):
            assert said[letter] == whole[letter]

    def test_a_shorter_first_stage_takes_less_memory_and_the_second_may_be_the_fullest(self):
        whole, fewer = self.of(), self.of(first_blocks=7, last_blocks=7)
        assert (fewer.stage_blocks, fewer.last_blocks, fewer.stage) == (8, 7, 2)
        assert fewer.first_memory < fewer.second_memory == fewer.memory == fewer.train_memory < whole.memory
        assert self.of(first_blocks=1).stage_blocks == 9 and self.of(first_blocks=1).step_time > whole.step_time
        assert self.of(last_blocks=6).step_time == whole.step_time
        parts = [x for x in fewer.why("train_memory").cell.inputs if x.endswith("_memory")]
        assert sum(fewer[x] for x in parts) == pytest.approx(fewer.memory)

    def test_flags_take_them(self):
        text = "--pipeline-model-parallel-size 16 --decoder-first-pipeline-num-layers 7"
        assert read(text).knowns["first_blocks"] == 7
        assert "first-pipeline-num-layers 7" in write(dict(pp=16, first_blocks=7))


def test_a_layer_without_an_indexer_computes_what_an_earlier_layer_picked():
    known = dict(dp=8, tp=8, pp=8, ep=8, microbatches=8, seq=131_072)
    all_pick, quarter_picks = (training_step(x, accelerators.h200, **known) for x in (models.glm_5, models.glm_5_2))
    assert quarter_picks.step_time < all_pick.step_time  # of one shape: fewer layers score all keys
