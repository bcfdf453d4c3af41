"""Devices that share a model: what each holds and reads, against the listing, the search by hand and the limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook import accelerators, inference, memory, models
from scalebook.block import LLAMA, MLA_ABSORBED, cached, tensor_parallel
from scalebook.inference import shared
from scalebook.language import symbol

from .every import every

DEVICES = list(accelerators[["v100", "h100", "h200", "mi300x", "mi325x", "gb200"]].values())
DENSE = list(models[["llama2_7b", "llama3_8b", "llama3_70b", "llama3_405b"]].values())
LATENT = list(models[["deepseek_v2", "deepseek_v3", "kimi_k2"]].values())
devices, dense = st.sampled_from(DEVICES), st.sampled_from(DENSE)
ways = st.sampled_from([1, 2, 4, 8, 16, 32])
KNOWN = dict(weight_bits=8, kv_bits=16)


@every([row for row in models.values() if "cache_heads" in row], name=lambda row: row.name)
def test_a_cache_splits_by_its_heads(row):
    assert row.cache_heads == row.get("kv_heads", 1)
    assert shared.cache_ways(row, tp=1) == 1
    assert shared.cache_ways(row, tp=4096) == row.cache_heads


@given(st.sampled_from(DENSE + LATENT), st.sampled_from([2, 4, 8]), st.integers(1, 100), st.integers(1, 10**5))
def test_a_device_holds_what_the_listing_says(row, tp, batch, context):
    block = (MLA_ABSORBED if row in LATENT else LLAMA).then(tensor_parallel, cached)
    letters = {x: row[x] for x in ("head_dim", "kv_heads", "kv_rank", "rope_dim") if x in row}
    letters |= dict(tp=tp, batch=batch, context=context, kv_bits=16)
    expected = row.layers * block.cache.subs({symbol(k): v for k, v in letters.items()})
    whole = memory.kv_cache(row, batch=batch, context=context, kv_bits=16)
    assert whole / shared.cache_ways(row, tp=tp) == pytest.approx(float(expected), rel=1e-12)


@given(devices, dense, ways, st.integers(100, 10**5))
def test_the_largest_batch_fits_and_one_more_does_not(device, row, tp, context):
    most = shared.max_batch_shared(row, device, tp=tp, context=context, **KNOWN)

    def held(batch):
        return shared.device_memory(row, tp=tp, batch=batch, context=context, **KNOWN)

    if most:
        assert held(most) <= device.hbm_capacity * (1 + 1e-12)
    assert held(most + 1) > device.hbm_capacity * (1 - 1e-12)


@given(devices, dense, st.integers(100, 10**5))
def test_one_device_alone_is_the_chapter_before(device, row, context):
    known = dict(batch=7, context=context, **KNOWN)
    one, alone = shared.sharing(row, device, tp=1, **known), inference.decoding(row, device, **known)
    fits = one.device_memory <= device.hbm_capacity
    letters = ["max_batch", "latency_floor", "memory_time", "compute_time"]
    letters += ["token_time", "decode_rate"] if fits else []
    for letter in letters:
        assert one[letter] == pytest.approx(alone[letter], rel=1e-12)
    assert ("token_time" in one) == ("token_time" in alone) == fits
    assert one.device_memory == pytest.approx(alone.decode_memory, rel=1e-12)


def test_what_does_not_fit_has_no_time_but_the_smallest_change_that_would_do():
    known = dict(batch=32, context=8192, weight_bits=8, kv_bits=16)
    row = shared.sharing(models.deepseek_v3, accelerators.h100.at("fp8"), tp=8, **known)
    assert row.max_batch == 0 and "token_time" not in row and "decode_rate" not in row and "memory_time" in row
    assert row.missing["token_time"].endswith("102.3 GB, hbm_capacity=80 GB; tp=16 or weight_bits=4 bit would do")
    for change in (dict(tp=16), dict(known, tp=8, weight_bits=4)):
        assert shared.sharing(models.deepseek_v3, accelerators.h100.at("fp8"), **{**known, **change}).token_time > 0
    dense = (models.llama3_70b, accelerators.h100, dict(tp=8, context=8192, weight_bits=16, kv_bits=16))
    assert "batch=185" in shared.sharing(*dense, batch=186).missing["token_time"]
    assert "not in 1 of 2 rows" in shared.sharing(*dense, batch=[1, 186]).missing["token_time"]
    endless = shared.sharing.using(inference.token_time)(*dense, batch=[1, 186])
    assert len(endless.token_time) == 2  # as if it fitted
