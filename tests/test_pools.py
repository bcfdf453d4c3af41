"""Two pools: the cheapest pair of layouts, found by columns, is the one that calls one by one find."""

import itertools

import numpy as np
import pytest

from scalebook.inference import disaggregating, serve
from scalebook.memory.serving import kv_cache_per_token
from scalebook.tables import accelerators, models

from .support import cases

H100, H200, B200 = (accelerators[x].at("fp8") for x in ("h100", "h200", "b200"))
LLAMA, DEEPSEEK = models.llama3_70b, models.deepseek_v3
ASKED = dict(devices=16, rate=6, prompt=4000, output=300)
TARGETS = dict(ttft=0.8, tpot=0.02)


def one_by_one(model, devices, ttft, tpot):
    """What every pair of pools with every number of copies costs that keeps to the targets, of a dense model."""
    own = dict(prompt=4000, output=300)
    ways = list(itertools.product(devices, (1, 2, 4, 8), range(1, 17)))
    reads, writes = [], []
    for device, tp, copies in ways:
        if tp * copies > 16:
            continue
        try:
            alone = serve(model, device, tp=tp, users=1, **own)
        except ValueError:
            continue
        time = alone.chunks_of_prompt * alone.mixed_time
        if (load := 6 * time / copies) < 1:
            link = tp * device.scaleout_bandwidth * device.far_efficiency
            reads.append((device.price_hour * tp * copies, tp * copies, time, load, link))
        for users in range(1, int(alone.max_users * copies) + 1):
            row = serve(model, device, tp=tp, replicas=copies, users=users, **own)
            if row.token_time > tpot or users >= 6 * 300 * row.token_time:
                break
        if row.token_time <= tpot and users >= 6 * 300 * row.token_time:
            writes.append((device.price_hour * tp * copies, tp * copies, row.token_time, link_of(device, tp)))
    sent = 4000 * kv_cache_per_token(model, kv_bits=8)
    for (price, used, time, load, link), (more, others, step, other) in itertools.product(reads, writes):
        wait = load * time / (2 * (1 - load))
        if used + others <= 16 and wait + time + sent / min(link, other) <= ttft:
            yield (price + more) / 3600 / (6 * 300) * 1e6, step


def link_of(device, tp):
    return tp * device.scaleout_bandwidth * device.far_efficiency


def test_the_cheapest_pair_is_found():
    found = serve.apart(LLAMA, [H100, B200], **ASKED, **TARGETS)
    best = min(one_by_one(LLAMA, [H100, B200], **TARGETS))
    assert (found.row.million_cost, found.row.token_time) == pytest.approx(best, rel=1e-9)


CASES = cases("pools that are searched", globals())


@pytest.mark.parametrize("case", CASES)
def test_pools_do_what_their_row_says(case):
    model, devices, asked = CASES[case]
    found = serve.apart(model, devices, **asked)
    row = found.row
    of = {x.name: x for x in (devices if isinstance(devices, list) else [devices])}
    words = {"engine": asked["engine"]} if "engine" in asked else {}
    own = dict(prompt=4000, output=300, **words)
    pools = found.prefill, found.decode
    assert all(x.devices == x.letters["tp"] * x.letters["attention_dp"] * x.letters["replicas"] for x in pools)
    ways = [x.letters | ({"exchange": x.exchange} if x.exchange else {}) for x in pools]
    users = np.ceil(asked["rate"] * 300 * row.token_time)
    alone = serve(model, of[found.prefill.device], **ways[0] | {"replicas": 1}, users=ways[0]["attention_dp"], **own)
    assert alone.chunks_of_prompt * alone.mixed_time == pytest.approx(row.prompt_time, rel=1e-12)
    after = serve(model, of[found.decode.device], **ways[1], users=users, **own)
    assert after.token_time == pytest.approx(row.token_time, rel=2e-3) and users <= after.max_users
    assert row.devices == found.prefill.devices + found.decode.devices <= asked["devices"]
    assert row.ttft <= {"dense": 0.8, "of an engine": 0.9, "experts": 1}.get(case, np.inf)
    assert row.tpot == row.token_time <= {"experts": 0.025, "without targets": np.inf}.get(case, 0.02)
    assert row.load < 1 and row.handover_time <= row.prompt_time
    same = disaggregating(prompt_time=row.prompt_time, rate=asked["rate"], load=row.load)
    groups = ways[0]["attention_dp"] * ways[0]["replicas"]
    assert same.prefill_devices == pytest.approx(groups)  # the closed form counts what reads one prompt at a time
    assert f", {row.devices:g} devices\n" in repr(found) and f"decode    {found.decode}\n" in repr(found)


def test_more_to_choose_from_is_never_dearer():
    costs = [
        serve.apart(LLAMA, x, **ASKED, **TARGETS).row.million_cost for x in ([H200], [H200, B200], [H100, H200, B200])
    ]
    assert costs == sorted(costs, reverse=True)
    loose = [serve.apart(LLAMA, H200, **ASKED, tpot=x, ttft=1).row.million_cost for x in (0.015, 0.02, 0.04)]
    assert loose == sorted(loose, reverse=True)


@pytest.mark.parametrize("shape", [dict(kv_heads=4), dict(head_dim=64)])
def test_caches_of_a_changed_shape_are_sent(shape):
    row = serve.apart(models.llama3_8b, H200, devices=8, rate=4, prompt=1000, output=200, **shape).row
    assert row.kv_width == models.llama3_8b.kv_width / 2


def test_half_batches_are_of_two_sequences_and_of_devices_that_send():
    asked = dict(devices=16, rate=1, prompt=1000, output=300)
    halves = serve.apart(models.llama3_8b, H200, **asked, overlap="half_batches")
    assert all(pool.letters["tp"] > 1 for pool in (halves.prefill, halves.decode))  # one device sends nothing to hide
    assert halves.row.tpot > serve.apart(models.llama3_8b, H200, **asked, tp=halves.decode.letters["tp"]).row.tpot / 2


def test_of_two_loads_the_pools_take_the_one_that_meets_the_target():
    asked = dict(devices=64, rate=10, prompt=2000, output=300, ttft=1, tpot=0.04, engine="vllm")
    found = serve.apart(models.llama3_70b, accelerators.mi300x.at("fp8"), **asked)
    assert found.call.again().tpot == found.tpot <= 0.04
