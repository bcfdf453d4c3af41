"""Serving of what does not read all that is cached, and of half batches in turn: limits, and simulations of both."""

from itertools import product

import numpy as np
import pytest

from scalebook import accelerators, inference, models
from scalebook.attention import picked_pairs
from scalebook.inference import PARTS, alternating_time, decode_step, prefill_step, serve

from .support import each_case

H200, H800 = (accelerators[x].at("fp8") for x in ("h200", "h800"))
GLM, QWEN, V3 = models.glm_5, models.qwen3_5_397b, models.deepseek_v3


# Picked keys


@pytest.mark.parametrize(("past", "seq"), [(0, 100), (0, 5000), (3000, 700), (1500, 1000)])
def test_picked_pairs_are_counted(past, seq):
    counted = sum(min(p, 2048) for p in range(past + 1, past + seq + 1))
    assert picked_pairs(seq=seq, context=past + seq, index_tokens=2048) == counted


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


# States


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


@each_case("kernels of an engine's own", "model, engine, letter, library", globals())
def test_an_engine_runs_its_own_kernels_on_a_device(model, engine, letter, library):
    """A step of each hybrid takes what `parts.toml` names, and a letter that is given comes first."""
    asked = dict(tp=8, batch=16, context=8000)
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
