"""Layouts of a service: what a search by columns finds is what calls one by one find, and it keeps what it promises."""

import itertools
from functools import cache

import numpy as np
import pytest

from scalebook import accelerators, models, search
from scalebook.inference import serve
from scalebook.inference.layouts import first_whole
from scalebook.inference.rules import BEYOND, reason

from .support import cases, each_case

H100, H200, B200 = (accelerators[x] for x in ("h100", "h200", "b200"))
ASKED = dict(prompt=1000, output=300, progress=False)
LLAMA, DEEPSEEK = models.llama3_70b, models.deepseek_v3
CASES = cases("services that are laid out", globals())


def one_by_one(model, devices, asked):
    """Every layout within the targets: what it costs, its time per token, and all about it."""
    asked = {n: x for n, x in asked.items() if n != "progress"} | ASKED
    asked.pop("progress")
    most, tpot, ttft = asked.pop("devices"), asked.pop("tpot", "1 h"), asked.pop("ttft", "1 h")
    powers = [2**x for x in range(int(np.log2(most)) + 1)]
    has_experts = model.experts > 0 if "experts" in model else False
    lists = {"tp": powers, "replicas": range(1, most + 1)}
    if has_experts:
        lists |= {"ep": powers, "attention_dp": powers, "exchange": ["all_reduce", "all_to_all", "gather"]}
    lists |= {n: asked.pop(n) for n in lists if n in asked}
    limit = {n: float(str(x).removesuffix(" ms").removesuffix(" h")) * (1e-3 if "ms" in str(x) else 3600)
             for n, x in (("tpot", tpot), ("ttft", ttft))}  # fmt: skip
    for device, values in itertools.product(devices, itertools.product(*lists.values())):
        own = dict(zip(lists, values, strict=True))
        if own["tp"] * own["replicas"] * own.get("attention_dp", 1) > most or reason({**model, **own}):
            continue
        if own["tp"] * own.get("attention_dp", 1) == 1 and own.get("exchange", "all_reduce") != "all_reduce":
            continue  # of one device no exchange is said
        try:
            row = serve(model, device, **asked, **own)
        except ValueError:  # no room
            continue
        if row.tpot <= limit["tpot"] and row.ttft <= limit["ttft"]:
            yield row.million_cost, row.tpot, device.name, own, row


@cache
def laid_out(case):
    model, devices, asked = CASES[case]
    return search(serve, model, devices, **asked, **ASKED)


@pytest.mark.parametrize("case", CASES)
def test_it_finds_what_calls_one_by_one_find(case):
    model, devices, asked = CASES[case]
    found = laid_out(case)
    rows = sorted(one_by_one(model, devices, asked), key=lambda x: x[:2])
    assert found.fitting == len(rows) > 2
    best = found.best[0]
    assert (best.million_cost, best.tpot) == pytest.approx(rows[0][:2], rel=1e-12)
    front, least = [], np.inf
    for cost, tpot, *_ in rows:
        if tpot < least * (1 - 1e-12):
            front, least = [*front, (cost, tpot)], tpot
    assert [(x.million_cost, x.tpot) for x in found.best] == [pytest.approx(x, rel=1e-12) for x in front[:10]]


@pytest.mark.parametrize("case", CASES)
def test_a_layout_found_is_a_row_of_serve_within_what_was_asked(case):
    model, devices, asked = CASES[case]
    found = laid_out(case)
    limits = {n: float(asked[n].split()[0]) / 1e3 for n in ("tpot", "ttft") if n in asked}
    for one in found.best:
        device = next(x for x in devices if len(devices) == 1 or x.name == one.device)
        again = serve(model, device, **one.knowns)
        assert (again.million_cost, again.tpot) == pytest.approx((one.million_cost, one.tpot), rel=1e-12)
        assert all(again[n] <= x for n, x in limits.items())
        assert again.devices <= asked["devices"] and again.request_rate >= asked["rate"] == again.rate
        assert again.million_cost == pytest.approx(
            again.devices * again.price_hour / 3600 / (again.rate * again.output) * 1e6
        )
        if again.users > 1:  # Little's law: one fewer would ask for less
            fewer = serve.priced(model, device, **{**one.knowns, "users": again.users - 1})
            assert fewer.request_rate < asked["rate"] * (1 + 1e-9)


def test_users_of_a_rate_are_those_of_littles_law():
    asked = dict(tp=4, replicas=7, prompt=1000, output=300)
    row = serve(LLAMA, H200, rate=50, **asked)
    assert row.rate * row.end_to_end <= row.users < row.rate * row.end_to_end + 1.01
    assert serve(LLAMA, H200, users=row.users, generations=1e6, **asked).tpot == row.tpot


@pytest.mark.parametrize("bend", [lambda x: x, lambda x: x**2 / 1e4, np.sqrt, lambda x: x + 50 * (x // 128)])
def test_the_least_whole_number_is_found(bend):
    rng = np.random.default_rng(0)
    most, aims = rng.integers(1, 10_000, 500).astype(float), rng.uniform(0, 8_000, 500)
    found = first_whole(lambda x, rows: bend(x) - aims[rows], most)
    for top, aim, own in zip(most, aims, found, strict=True):
        fine = np.flatnonzero(bend(np.arange(1, top + 1)) >= aim)
        assert own == (fine[0] + 1 if len(fine) else top + 1)


@pytest.mark.parametrize("case", CASES)
def test_a_better_device_is_never_dearer(case):
    model, devices, asked = CASES[case]
    device = devices[-1]
    here = search(serve, model, device, **asked, **ASKED).best[0].million_cost
    better = dict(price_hour=0.7, hbm_bandwidth=1.3, hbm_capacity=1.5, scaleup_bandwidth=2)
    for letter, factor in better.items():
        found = search(serve, model, device, **asked, **ASKED, **{letter: device[letter] * factor}).best[0]
        assert found.million_cost <= here * (1 + 1e-9)
    both = search(serve, model, [*devices, *devices[:0], H200.at("fp8")], **asked, **ASKED).best[0]
    assert both.million_cost <= here * (1 + 1e-9)


def test_a_looser_target_is_never_dearer_and_a_higher_rate_never_takes_fewer_devices():
    costs = [search(serve, LLAMA, [H200, B200], devices=32, rate=30, tpot=x, **ASKED).best[0].million_cost
             for x in (0.015, 0.02, 0.03, 0.05)]  # fmt: skip
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1]
    used = [search(serve, LLAMA, H200, devices=64, rate=x, tpot=0.03, **ASKED).best[0].row.devices for x in (5, 20, 60)]
    assert used == sorted(used) and used[0] < used[-1]


def test_where_a_price_is_not_known_devices_are_counted():
    unpriced = accelerators.h800.published
    found = search(serve, LLAMA, [H200, unpriced], devices=32, rate=10, tpot="50 ms", **ASKED)
    assert "price_hour" not in unpriced and list(found.best[0].values) == ["devices", "tpot"]
    assert [x.devices for x in found.best] == sorted(x.devices for x in found.best)
    known = search(serve, LLAMA, unpriced, devices=32, rate=10, tpot="50 ms", price_hour=2, **ASKED)
    assert list(known.best[0].values) == ["million_cost", "tpot"]


@each_case("devices without a network", "key, most, asked", globals())
def test_layouts_that_need_a_network_which_is_not_known_are_left_out_and_said(key, most, asked):
    """Copies of a model need none; each layout found is one that a call prices alike."""
    asked = dict(asked, prompt=1000, output=300, devices=8, progress=False)
    device = accelerators[key].published
    for model in (models.llama3_8b, *([] if key == "rtx_4090" else [models.gpt_oss_20b])):  # which does not fit there
        found = search(serve, model, device, **asked)
        for x in found.best:
            assert x.tp * getattr(x, "attention_dp", 1) <= most and x.row.tpot == pytest.approx(x.values["tpot"])
        assert (BEYOND in found.rejected) == (most < 8) == bool(found.remark)
        if most < 8:
            assert f"since {device.name} has no sca" in repr(found)
    with_h100 = search(serve, model, [device, accelerators.h100], **asked)
    assert found.remark in repr(with_h100) and "NVIDIA H100 SXM has no" not in repr(with_h100)
    given = search(serve, model, device, **asked, scaleup_size=8, scaleout_bandwidth="50 GB/s")
    assert BEYOND not in given.rejected and not given.remark


def test_without_a_rate_devices_are_as_full_as_targets_let_them():
    found = search(serve, LLAMA, H200, devices=8, tpot="20 ms", **ASKED)
    best = found.best[0]
    most = serve.capacity(LLAMA, H200, tp=best.tp, tpot="20 ms", prompt=1000, output=300)
    assert best.row.users == most.users and best.row.request_rate == pytest.approx(most.rate)
    assert "users=" in best.call
    assert "neither users nor rate is given: users are the most that have room within the targets" in repr(found)
    given = search(serve, LLAMA, H200, users=range(1, 400), tp=[2, 4, 8], tpot="20 ms", **ASKED)
    assert given.best[0].users == most.users and given.best[0].tp == best.tp


def test_it_is_shown_with_its_neighbours():
    found = laid_out("dense")
    heads = repr(found).split("\n\n")[1].splitlines()[0].split()
    assert heads == ["million_cost", "tpot", "device", "tp", "replicas", "devices", "users", "ttft"]
    assert "<table" in found._repr_html_() and found.best[0].device in repr(found.best[0])
    steps = found.neighbours().steps
    assert any("replicas" in said and "devices +" in why for said, _, why in steps)
    assert all(value is None or value >= found.best[0].million_cost * (1 - 1e-9) for _, value, _ in steps)


def test_a_device_that_holds_nothing_is_left_out_and_said():
    found = search(serve, DEEPSEEK, [H100.at("fp8"), B200.at("fp8")], devices=8, rate=1, tp=[8], **ASKED)
    assert "without NVIDIA H100 SXM at fp8 (what leaves out most: weights fit" in repr(found) and found.is_whole
    assert {x.device for x in found.best} == {"NVIDIA B200 at fp8"}


@pytest.mark.parametrize("asked", [dict(rate=20, tpot="<30 ms"), dict(users=64, tpot="<50 ms")])
def test_each_device_has_its_own_limit_as_if_it_were_searched_alone(asked):
    devices = [accelerators.l40s, accelerators.h200, accelerators.b200]
    together = search(serve, models.llama3_70b, devices, **asked, **ASKED)
    for device, one in zip(devices, together.searches, strict=True):
        alone = search(serve, models.llama3_70b, device, **asked, **ASKED)
        assert one.count == alone.count and one.rejected == alone.rejected
        assert [x.values | x.letters for x in one.best] == [x.values | x.letters for x in alone.best]
