"""Batches, full load and decoding by traffic: what was calibrated on the rows it names, and rows by hand."""

import numpy as np
import pytest

from scalebook.inference import decode_step, mixed_step, prefill_step, serve
from scalebook.measurements import confront
from scalebook.tables import accelerators, engines, models

DENSE = models.llama2_70b, accelerators.h200.at("fp8")


def test_stages_instead_of_sums():
    """Eight H100 in stages are 1.2 times as fast as under tensor parallelism, as NVIDIA tells of it."""
    h100 = models.llama2_70b, accelerators.h100.at("fp8")

    def best(*layouts):
        return max(serve.offline(*h100, prompt=294, output=294, **x).device_rate for x in layouts)

    stages = best(*(dict(pp=x) for x in (2, 4, 8)))
    assert stages / best(*(dict(tp=x) for x in (2, 4, 8))) == pytest.approx(1.2, abs=0.04)
    result = confront("mlperf_offline")
    here = [r["round"] == "v5.1" and "H100-SXM" in r["accelerator"] for r in result.rows]
    assert sum(here) == 3 and np.abs(result.errors[here]).max() < 0.05


# By hand


def test_a_static_batch():
    """GPT-J on one H100: 64 prompts of 128 tokens read at once, then 127 more steps."""
    known = models.gptj_6b, accelerators.h100.at("fp8")
    run = serve.static(*known, engines.trtllm_0_5, batch=64, prompt=128, output=128)
    read = prefill_step(*known, prompts=64, read_chunk=128).pass_time + 28 * 79e-6
    assert run.ttft == pytest.approx(read)
    assert run.device_rate == pytest.approx(64 * 128 / (read + 127 * run.tpot))
    by_heads = 4 * 64 * 192 * 28 * 16 * 256 / (0.11 * 66.9e12)
    step = decode_step(*known, batch=64, context=192)
    assert run.tpot == pytest.approx(step.pass_time + max(0, by_heads - step.cache_time), rel=1e-3)


def test_groups_of_eight_query_heads_read_together_since_0_8():
    known = models.llama2_70b, accelerators.h200.at("fp8")
    old, new = (decode_step(*known, tp=8, batch=64, context=4096, engine=x) for x in ("trtllm_0_5", "trtllm_0_8"))
    assert old.cache_time > 3 * new.cache_time == 3 * decode_step(*known, tp=8, batch=64, context=4096).cache_time


def test_shorter_chunks_of_prompts_make_no_offline_batch_faster():
    spans = [serve.offline(*DENSE, prompt=1000, output=300, chunk_tokens=x).makespan for x in (8192, 2048, 512, 128)]
    assert spans == sorted(spans)
    without_reading = serve.offline(*DENSE, prompt=294, output=294, own_sum_rate=8)  # which steps hide
    assert without_reading.prompt_time == 0 and "in eight of ten cases" in repr(without_reading)


def test_requests_without_end():
    """One copy of Llama 2 70B in fp8 on each H200: as many prompts come to a step as answers end with one."""
    run = serve.offline(*DENSE, prompt=294, output=294)
    one = decode_step(*DENSE, batch=run.full_batch, context=441).pass_time
    ending = (run.full_batch - 1) / 293
    others = run.full_batch - ending
    both = mixed_step(*DENSE, batch=others, context=441, prompts=ending, read_chunk=294).pass_time
    each = one + run.full_batch / 294 * (both - one) / ending
    assert run.device_rate == pytest.approx(run.full_batch / each, rel=1e-3)


def test_generations_of_requests():
    """Two and a half times as many requests as have room: two full generations, and one of the rest."""
    full = serve.offline(*DENSE, prompt=1000, output=1000).full_batch
    run = serve.offline(*DENSE, requests=2.5 * full, prompt=1000, output=1000)
    assert (run.whole_generations, run.last_batch) == (2, full / 2)
    steps = 2 * run.full_time + run.last_time
    assert run.makespan == pytest.approx(1000 * steps + 2.5 * full * run.prompt_time)
    slower = serve.offline(*DENSE, requests=2.5 * full, prompt=1000, output=1000, sequence_overhead=1e-5)
    assert slower.makespan - run.makespan == pytest.approx(1000 * 2.5 * full * 1e-5)


def test_room_is_what_a_driver_reports():
    known = models.mixtral_8x7b, accelerators.h200.at("fp8")
    asked = dict(tp=2, prompt=100, output=50, weight_bits=8, kv_bits=8)
    reported = known[1].hbm_capacity * 2**30 / 1e9
    said = serve(*known, **asked, users=1, cache_share=0.9, hbm_capacity=reported).max_users
    assert serve.offline(*known, **asked, engine="vllm", batch_limit=10**6).full_batch == said
    kept = serve.offline(*known, **asked, engine="vllm", batch_limit=10**6, kept_output=1).full_batch
    assert kept == pytest.approx(said * 125 / 150, abs=1)
    l40s = models.llama3_8b, accelerators.l40s.at("fp8")
    assert serve.offline(*l40s, prompt=100, output=50).hbm_reported == 48.3e9


def test_a_limit_for_tokens_takes_the_largest_batch_that_keeps_to_it():
    asked = dict(prompt=294, output=294)
    run = serve.offline(*DENSE, **asked, tpot_p99="40 ms")
    assert run.tpot <= 0.04 / 1.6 < serve.offline(*DENSE, **asked, tpot="26 ms").tpot <= 0.026
    assert run.full_batch < serve.offline(*DENSE, **asked, tpot_p99="40 ms", tpot_tail=1.2).full_batch
