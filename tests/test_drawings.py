"""Drawings: readable on a phone, in both schemes, by those who do not see them; with the numbers of formulas."""

import re
from collections import Counter
from functools import cache
from importlib import import_module
from xml.etree import ElementTree

import numpy as np
import pytest
from scalebook.book.drawings.figures import COLOURS
from scalebook.book.drawings.schematic import LEAST, PHONE, SIZE, text_width

from scalebook import flags, inference, runs, tables, training_step
from scalebook.inference.step import decode_step
from scalebook.machine.tiles import tile_efficiency
from scalebook.machine.topologies import fat_tree_devices, switch_hops
from scalebook.pipeline import SCHEDULES, simulate
from scalebook.runs.costs import run_costs
from scalebook.tables import accelerators, models, ranges

from .support import A100, H100, ROOT, cases, each_case

FILES = ("mechanisms", "recompute", "attention", "run", "cluster", "serving", "fleet", "machine", "steps")
MODULES = {x: import_module(f"scalebook.book.drawings.{x}") for x in FILES}
basic, recompute, attention, run, cluster, serving, fleet, machine, steps = MODULES.values()
DRAWINGS = {name: getattr(module, name) for module in MODULES.values() for name in module.__all__}
SVG = "{http://www.w3.org/2000/svg}"
PIECES = [(1.0, 1.1, 1.0, 1.5), (1.2, 1.0, 1.05, 1.0), (1.0, 1.7, 1.1, 1.2)]
SITES = dict(sites=2, mfu=0.4, exchange_bits=16, site_bandwidth=1e10, site_distance=100, devices=512)
SHOWN = ["--num-virtual-stages-per-pipeline-rank", "--tp-comm-overlap", "--use-distributed-optimizer", "--lr"]


@cache
def megatron():
    return training_step(
        models.megatron_175b, A100, seq=2048, batch=1, dp=1, attention="unfused", tp=8, pp=8, sharding="replicated",
        chunks=3, microbatches=64, recompute="selective", sequence_parallel=True,
    )  # fmt: skip


@cache
def flagged():
    setup = flags.read(ROOT / "tests" / "scripts" / "drawn.sh", devices=64)
    return setup, training_step(models.llama3_70b, H100, **setup.knowns)


def costs(which="usual"):
    h100 = {x: accelerators.h100[x] for x in ("peak_flops", "tdp")}
    return run_costs(models.llama3_405b, h100, ranges[which], train_tokens=15.6e12, devices=16384)


# What a drawing is given where it is given something.
NAMES = dict(globals(), inference=inference, runs=runs, tables=tables)
GIVEN = cases("what a drawing is given", NAMES)


def drawn(name, **more):
    given = GIVEN.get(name, dict)()
    return DRAWINGS[name](**given | more) if isinstance(given, dict) else DRAWINGS[name](*given, **more)


def said(name, **more):
    return drawn(name, **more).description


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_seen_and_heard_by_everyone(name):
    scene = drawn(name)
    root = ElementTree.fromstring(scene.svg)
    is_well_formed_and_says_what_it_shows(scene, root)
    its_text_stays_on_it_and_is_large_enough_on_a_phone(root)
    has_the_colours_of_the_vocabulary_in_both_schemes(scene)
    assert scene._repr_html_() == drawn(name)._repr_html_(), "it is not the same every time"


def is_well_formed_and_says_what_it_shows(scene, root):
    title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title.text == scene.title and len(told.text) > 20 and root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [title.get("id"), told.get("id")]
    page = ElementTree.fromstring(scene._repr_html_())
    assert page.find("figcaption").text == scene.caption and len(scene.caption) > 60


def its_text_stays_on_it_and_is_large_enough_on_a_phone(root):
    _, _, width, height = map(float, root.get("viewBox").split())
    assert SIZE * PHONE / width >= LEAST
    for text in root.iter(f"{SVG}text"):
        wide = text_width(text.text, text.get("class") is not None)
        left = float(text.get("x")) - {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")] * wide
        assert left >= -0.1 and left + wide <= width + 0.1 and SIZE - 0.1 <= float(text.get("y")) <= height, text.text
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x")) + float(box.get("width")) <= width
        assert float(box.get("y")) + float(box.get("height")) <= height


def has_the_colours_of_the_vocabulary_in_both_schemes(scene):
    assert set(re.findall(r"#[0-9A-Fa-f]{3,8}\b", scene.svg)) == {x for pair in COLOURS.values() for x in pair}
    used = set(re.findall(r'class="(?:sb-line |sb-head )?sb-(\w+)"', scene.svg)) - {"drawing", "name"}
    assert used <= set(COLOURS) and used
    for scheme in ("html[data-theme=dark]", "[data-jp-theme-light=false]", "@media(prefers-color-scheme:dark)"):
        assert scheme in scene.svg
    assert not re.search(r'(fill|stroke)="', scene.svg), "a colour is the style's"


# What drawings say.  Korthikanti et al. print 34 bytes a token and unit of width, 5 a s / h for the scores, and 2.
@each_case("what a drawing says", "name, given, pattern, found", NAMES)
def test_a_drawing_says_these_numbers(name, given, pattern, found):
    assert re.findall(pattern, said(name, **given)) == found


@pytest.mark.parametrize("devices", [3, 4, 5])
def test_a_ring_ends_with_whole_sums_everywhere(devices):
    assert all(f"device {d + 1} has {[devices] * devices}" in said("ring", devices=devices) for d in range(devices))


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_drawn_whole(name):
    run = simulate(name, pp=4, microbatches=8, chunks=SCHEDULES[name].chunks or 2)
    root = ElementTree.fromstring(basic.pipeline_phases(run).svg)
    assert len(list(root.iter(f"{SVG}rect"))) == len(run.slots) + 4 + 3  # and a row each, and three phases


def test_numbers_of_attention_are_those_of_numpy():
    weights = np.exp(np.array(attention.QUERIES) @ np.array(attention.KEYS).T / np.sqrt(2))
    weights *= np.tri(len(attention.WORDS))
    weights /= weights.sum(1, keepdims=True)
    for row, made, word in zip(weights, weights @ np.array(attention.VALUES), attention.WORDS, strict=True):
        assert np.allclose(row[row > 0], list(attention.weights_of(word).values()))
        assert np.allclose(made, attention.result_of(word))
        assert " ".join(f"{x:.1f}" for x in made) in drawn("attention_weights").svg


@pytest.mark.parametrize("layout", [(8, 1, 1), (1, 8, 1), (4, 2, 1), (2, 2, 2), (1, 1, 8)])
def test_every_device_stands_once_in_a_layout(layout):
    numbers = re.findall(r">(\d)</text>", cluster.layouts_of_devices([layout]).svg)
    assert sorted(numbers) == list("12345678")


def test_the_kernels_that_are_drawn_are_nearly_the_whole_step_of_one_user():
    model, device = GIVEN["kernels_of_block"]().values()
    total = sum(sum(x.values()) for _, x in serving.block_pieces(model, device, 8, 1, 4096)) * model.layers
    assert 0.93 < total / decode_step(model, device, tp=8, batch=1, context=4096).pass_time <= 1


@pytest.mark.parametrize(("rows", "columns"), [(900, 700), (256, 128), (1, 1), (512, 175)])
def test_what_is_asked_of_tiles_is_their_efficiency(rows, columns):
    shares = fleet._asked(rows / 256, columns / 128)
    size = dict(rows=rows, columns=columns, copies=1, tile_rows=256, tile_columns=128)
    assert sum(shares) / len(shares) == pytest.approx(tile_efficiency(size))


def test_the_tree_uses_each_port_once_and_its_longest_way_has_as_many_switches_as_the_formula_says():
    radix, tiers = machine.RADIX, machine.TIERS
    devices = round(fat_tree_devices(switch_radix=radix, switch_tiers=tiers))
    joined = machine._links(devices, radix // 2)
    up = Counter((tier, child) for tier, child, *_ in joined)
    down = Counter((tier + 1, parent) for tier, _, _, parent, *_ in joined)
    assert all(up[x] + down[x] == (1 if x[0] == 0 else radix) for x in up | down)
    way = [x for x in joined if x[-1]]
    switches = {(t, c) for t, c, *_ in way if t} | {(t + 1, p) for t, _, _, p, *_ in way}
    assert len(switches) == switch_hops(switch_tiers=tiers)
    assert machine.fat_tree().title.startswith(f"{devices} devices")


def bars(scene, kind):
    found = [x for x in ElementTree.fromstring(scene.svg).iter(f"{SVG}rect") if x.get("class") == f"sb-{kind}"]
    return [tuple(float(x.get(y)) for y in ("x", "y", "width", "height")) for x in found]


@pytest.mark.parametrize("aspects", [(50, 400), (100, 200), (100, 800)])
def test_a_deep_and_a_wide_model_have_areas_as_equal_as_their_parameters(aspects):
    areas = Counter()
    for x, _, wide, high in bars(steps.deep_and_wide(1e12, aspects), "memory"):
        areas[x] += wide * high
    deep, wide = areas.values()
    assert abs(deep / wide - 1) < 0.05
