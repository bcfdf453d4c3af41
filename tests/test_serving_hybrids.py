"""Serving of what does not read all that is cached, and of half batches in turn: limits, and simulations of both."""

from itertools import product

import numpy as np
import pytest

from scalebook import accelerators, inference, models
from scalebook.attention import delta_flops, picked_pairs
from scalebook.inference import PARTS, alternating_time, decode_step, prefill_step, serve, token_cache_indexed
from scalebook.memory import linear_memory

H200, H800 = (accelerators[x].at("fp8") for x in ("h200", "h800"))
GLM, QWEN, V3 = models.glm_5, models.qwen3_5_397b, models.deepseek_v3


# Picked keys


@pytest.mark.parametrize(
    ("past", "seq", "best"), [(0, 100, 2048), (0, 5000, 2048), (3000, 700, 2048), (1500, 1000, 2048)]
)
def test_picked_pairs_are_counted(past, seq, best):
    counted = sum(min(p, best) for p in range(past + 1, past + seq + 1))
    assert picked_pairs(seq=seq, context=past + seq, index_tokens=best) == counted


def test_attention_to_picked_keys_stops_growing_and_the_indexer_goes_on():
    asked = dict(tp=8, batch=32, kv_bits=16)
    contexts = np.array([512, 1024, 2048, 10_000, 20_000, 40_000, 80_000])
    time = decode_step(GLM, H200, **asked, context=contexts).cache_time
    assert (np.diff(time) > 0).all()
    steps = np.diff(time[3:]) / np.diff(contexts[3:])
    assert steps == pytest.approx(steps[0], rel=1e-6)  # the indexer's part, per token
    assert steps[0] < 0.3 * (time[1] - time[0]) / 512  # far less than attention to a token more
    dense = decode_step(models.deepseek_v3, H200, **asked, context=contexts[-1]).cache_time / 61
    assert time[-1] / 78 < dense


def test_prompts_of_picked_keys_cost_nearly_the_same_per_token_however_long():
    each = [prefill_step(GLM, H200, tp=8, read_chunk=n, kv_bits=16).reading_time / n for n in (4096, 8192, 32768)]
    picked = [picked_pairs(seq=n, context=n, index_tokens=2048) / n for n in (4096, 8192, 32768)]
    assert each[2] / each[0] < 1.3 * picked[2] / picked[0] < 2.2


def test_short_prompts_are_read_as_with_attention_to_all():
    asked = dict(tp=8, kv_bits=16)
    short, picked, longer = (
        prefill_step(GLM, H200, **asked, read_chunk=n, **more)
        for n, more in ((2048, {}), (2048, dict(dense_tokens=0)), (2049, {}))
    )
    assert 2 * short.reading_time < picked.reading_time == pytest.approx(longer.reading_time, rel=0.01)
    dense = prefill_step(models.deepseek_v3, H200, **asked, read_chunk=2048)
    sparse = prefill_step(models.deepseek_v3_2, H200, **asked, read_chunk=2048)
    assert sparse.reading_time == pytest.approx(dense.reading_time)


def test_few_heads_on_a_device_fill_no_tile():
    """Splitting 64 heads eight ways saves nothing of the kernel for prompts; a tile of eight heads would."""
    asked = dict(read_chunk=8192, kv_bits=8)
    one, eight = (prefill_step(GLM, H200, tp=n, **asked) for n in (1, 8))
    assert one.tiled_heads == eight.tiled_heads == 64
    assert prefill_step(GLM, H200, tp=8, **asked, head_tile=8).reading_time < 0.8 * eight.reading_time


def test_a_cached_token_of_an_indexer_is_a_latent_and_a_key():
    whole = token_cache_indexed(GLM, pp=1, kv_bits=16, index_bits=8)
    assert whole == 78 * (576 * 2 + 128)


# States


def test_a_state_costs_the_same_at_any_length():
    asked = dict(tp=8, batch=64)
    rows = [decode_step(QWEN, H200, **asked, linear_layers=60, context=n).cache_time for n in (1000, 100_000)]
    assert rows[0] == pytest.approx(rows[1], rel=1e-9)
    moved = 64 * 2 * linear_memory(QWEN) / 8 / (0.76 * H200.hbm_bandwidth)  # a state is read and written
    assert 0.98 * moved < rows[0] * 45 / 60 < 1.2 * moved  # and queries, keys, values, and a convolution


def test_a_hybrid_is_the_mean_of_its_kinds():
    """Its step is linear in the layers of each kind."""
    asked = dict(tp=8, batch=16, context=8000)
    times = [decode_step(QWEN, H200, **asked, linear_layers=n).pass_time for n in (15, 30, 45)]
    assert times[0] - times[1] == pytest.approx(times[1] - times[2], rel=1e-6)


def test_prompts_are_read_in_linear_time_by_linear_attention():
    work = [delta_flops(QWEN, batch=1, seq=n, delta_chunk=64) / n for n in (64, 6400)]
    assert work[0] == work[1]
    recurrent = 6 * QWEN.linear_value_heads * QWEN.linear_key_dim * QWEN.linear_value_dim
    assert delta_flops(QWEN, batch=1, seq=1, delta_chunk=1) == pytest.approx(recurrent, rel=0.02)
    assert recurrent < work[0] < 2 * recurrent


def test_room_for_states():
    """Short sequences find as much room as their states leave, long ones as their caches do."""
    asked = dict(tp=8, users=1, output=1 + 1e-9)
    short, long = (serve(QWEN, H200, **asked, prompt=n) for n in (16, 200_000))
    assert short.token_cache == 15 * 2 * 256
    assert short.max_users == pytest.approx(short.cache_room / short.sequence_state, rel=0.01)
    assert long.max_users < 0.03 * short.max_users
    at = serve(QWEN, H200, tp=8, users=long.max_users, prompt=200_000, output=1 + 1e-9)
    assert 0.99 < at.filled <= 1


# Kernels of an engine


def test_an_engine_runs_its_own_kernels_on_a_device():
    """A step of each hybrid takes what `parts.toml` names, and a letter that is given comes first."""
    asked = dict(tp=8, batch=16, context=8000)
    for model, engine, letter, library in (
        (QWEN, "trtllm", "state_launch_steps", "state_decode"),
        (GLM, "sglang", "picked_efficiency", "sglang_indexed_steps"),
        (models.deepseek_v4_flash, "vllm", "index_efficiency_steps", "vllm_compressed_steps"),
        (models.minimax_m3, "vllm", "small_passes_steps", "vllm_block_steps"),
    ):
        row = decode_step(model, accelerators.h200.at("fp8"), engine=engine, **asked)
        assert row.cells[letter].origin.startswith(library)
        assert decode_step(model, H200, engine=engine, **asked, **{letter: 0.5})[letter] == 0.5
        there = {x.origin for n, x in decode_step(model, H200, **asked).cells.items() if n == letter}
        assert not any(x.startswith(library) for x in there)


# Half batches


def simulated(stretches, blocks):
    """Two halves go through blocks on a device and its links: each half in order, whoever is ready first in turn."""
    free, ready, order = {0: 0.0, 1: 0.0}, [0.0, 0.0], list(product(range(4 * blocks), range(2)))
    for place, half in order:  # the halves take turns
        machine = place % 2
        start = max(free[machine], ready[half])
        free[machine] = ready[half] = start + stretches[place % 4]
    return max(ready)


@pytest.mark.parametrize("seed", range(20))
def test_halves_in_turn_are_what_a_simulation_finds(seed):
    stretches = np.random.default_rng(seed).uniform(0, 1, 4)
    names = ("attention_stretch", "attention_messages", "experts_stretch", "experts_messages")
    known = dict(zip(names, stretches, strict=True))
    blocks = 30
    said = blocks * alternating_time(known) + inference.alternating_end({n: known[n] for n in (names[0], names[3])})
    found = simulated(stretches, blocks)
    assert found <= said * (1 + 1e-12)
    assert found == pytest.approx(said, rel=2 / blocks)
    more = simulated(stretches, 2 * blocks) - found  # of further blocks, whatever the ends are
    assert more == pytest.approx(blocks * alternating_time(known), rel=1e-9)
    assert said >= 2 * blocks * max(stretches[0] + stretches[2], stretches[1] + stretches[3])


WIDE = dict(attention_dp=128, ep=128, batch=128, context=4096, kv_bits=16)


def test_half_batches_hide_messages_and_read_weights_twice():
    none, halves = (decode_step(V3, H800, **WIDE, overlap=x) for x in ("none", "half_batches"))
    assert halves.weights_time == pytest.approx(2 * none.weights_time)
    assert halves.device_batch == none.device_batch / 2
    assert halves.cache_time == pytest.approx(none.cache_time, rel=0.05)
    assert halves.exchange_time < 0.3 * none.exchange_time and halves.messages_time > none.exchange_time
    assert halves.pass_time < none.pass_time
    computing = sum(halves[x] for x in PARTS if x != "exchange_time")
    assert halves.pass_time >= max(computing, halves.messages_time)
    assert halves.pass_time <= computing + halves.messages_time
    free = decode_step(V3, H800, **WIDE, overlap="half_batches", scaleout_bandwidth="500 TB/s", far_latency=0)
    assert free.exchange_time < 0.05 * free.pass_time


def test_small_batches_lose_by_halves():
    asked = dict(tp=8, batch=4, context=2000)
    none, halves = (decode_step(models.llama3_70b, H200, **asked, overlap=x) for x in ("none", "half_batches"))
    assert halves.pass_time > none.pass_time


def test_cores_that_send_prompts_are_lacking():
    asked = dict(attention_dp=32, ep=32, prompts=4, read_chunk=4096, overlap="half_batches")
    usual, none = (prefill_step(V3, H800, **asked, **x) for x in ({}, dict(exchange_cores=0)))
    assert none.pass_time < usual.pass_time < none.pass_time * 132 / 112


def test_a_service_of_half_batches_has_the_step_of_its_sequences():
    asked = dict(attention_dp=8, ep=8, overlap="half_batches")
    row = serve(V3, H200, **asked, users=512, prompt=2000, output=500)
    step = decode_step(V3, H200, **asked, engine="ideal", batch=64, context=2250)  # engines scale by block
    assert row.pass_time == pytest.approx(step.pass_time)
    assert row.mixed_time > row.pass_time


@pytest.mark.parametrize("key", [x for x in models if "linear_state" in models[x]])
def test_devices_that_share_a_model_with_states_hold_as_many_sequences_as_fit(key):
    """One device holds as many as `decoding` says. More hold more: each a part of every state, and of some caches."""
    known = dict(context=8192, weight_bits=8, kv_bits=8, hbm_capacity=1e13)
    one = inference.decoding(models[key], H200, **known, batch=64)
    alone, shared = (inference.sharing(models[key], H200, **known, batch=64, tp=x) for x in (1, 8))
    assert (alone.max_batch, alone.token_time) == (one.max_batch, one.token_time)
    assert shared.max_batch > alone.max_batch and shared.token_time < alone.token_time
    for batch, fits in ((shared.max_batch, True), (shared.max_batch + 1, False)):
        held = inference.device_memory(models[key], H200, **{x: y for x, y in known.items() if x != "hbm_capacity"},
                                       batch=batch, tp=8)  # fmt: skip
        assert (held <= 1e13) == fits
