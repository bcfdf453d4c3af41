"""Frameworks, libraries and clusters as rows: what a call takes from them; calibrated cells are found again."""

from dataclasses import replace

import numpy as np
import pytest

from scalebook import confront, search, training_step
from scalebook.flags import read
from scalebook.machine.collectives import all_gather, reduce_scatter
from scalebook.measurements.rows import read_rows
from scalebook.measurements.sets import stanzas
from scalebook.tables import accelerators, clusters, frameworks, libraries, models
from scalebook.training.frameworks import ENDS, FASTEST, SLOWEST
from scalebook.training.strategy import WORDS

from .support import ROOT, each_case

H100 = accelerators.h100.at("fp8")
LAYOUT = dict(tp=8, pp=8, cp=2, dp=16, chunks=8, batch=1, global_batch=1152, seq=8192)
DEEPSEEK = dict(pp=16, ep=64, dp=128, batch=1, global_batch=15360, seq=4096, schedule="dualpipe")


@pytest.mark.parametrize("key", [x for x in frameworks if x not in ENDS])
def test_a_framework_prices_a_step_and_every_cell_has_a_source(key):
    row = frameworks[key]
    asked = dict(tp=2, dp=8, global_batch=64, seq=8192)
    run = training_step(models.llama3_8b, H100, row, **asked)
    assert run.step_time == training_step(models.llama3_8b, H100, framework=key, **asked).step_time
    assert run.between is None and all(x.source for x in row.cells.values())
    assert {*row.words} <= {"libraries", "engine", "placement", "vendors", *WORDS}


def test_libraries_name_devices_of_the_table():
    for row in libraries.values():
        assert {*row.words["devices"].split()} <= {*accelerators}


def test_a_cluster_stands_before_the_device():
    device = accelerators.h100.at("bf16").on(clusters.hf_h100)
    assert device.far_efficiency == clusters.hf_h100.far_efficiency and device.peak_flops == 989.4e12


# A call without a framework


def test_a_call_without_a_framework_has_both_ends_and_says_what_decides():
    run = training_step(models.llama3_405b, H100, **LAYOUT)
    found = run.interval("step_time")
    fast, slow = (
        training_step(models.llama3_405b, H100, frameworks[x], **LAYOUT).step_time for x in (FASTEST, SLOWEST)
    )
    assert (found.low, found.high) == (pytest.approx(0.95 * fast), pytest.approx(1.05 * slow))
    assert found.ranked[0].letter == "tp_pieces" and "no framework named" in repr(found)
    named = training_step(models.llama3_405b, H100, frameworks.nemo, **LAYOUT)
    assert named.interval("step_time").width < found.width and "14.2 s" in named.interval("step_time")
    assert run.interval("memory").width < 0.5 and run.interval("mfu").low < run.mfu < run.interval("mfu").high


def test_deepseeks_own_run_is_inside_both():
    """180,000 device-hours for 10^12 tokens on 2,048 H800, a step of 15,360 sequences of 4,096: 19.9 s."""
    measured = 180e3 * 3600 / 2048 * 15360 * 4096 / 1e12
    assert measured == pytest.approx(19.9, abs=0.05)
    device = accelerators.h800.at("fp8")
    assert measured in training_step(models.deepseek_v3, device, **DEEPSEEK).interval("step_time")
    assert measured in training_step(models.deepseek_v3, device, frameworks.deepseek, **DEEPSEEK).interval("step_time")


def test_blocks_that_predict_further_tokens_follow_from_the_model():
    device, letters = accelerators.h800.at("fp8"), dict(ep=64, dp=128, batch=1, global_batch=1024, seq=4096)
    with_more = training_step(models.deepseek_v3, device, frameworks.deepseek, **letters)
    without = training_step(models.deepseek_v3, device, frameworks.deepseek, mtp_blocks=0, **letters)
    assert with_more.layers == 62 and without.layers == 61 and with_more.step_time > without.step_time


MODERN = """
    megatron_bridge mlperf_training mlperf_training_51 megatron_core llm_foundry torchtitan llama3 megascale
    nemo_long_context korthikanti_seconds narayanan_table1
"""


def without_framework(name):
    """Some rows of a set, called without the framework."""
    for row in confront(name).rows[::10][:4]:
        call = stanzas()[name].call(row)
        bare = replace(call, rows=tuple(x for x in call.rows if x[0] != "frameworks"))
        words = {n: x for n, x in frameworks[call.rows[-1][1]].words.items() if n in WORDS}
        words = {n: {"True": True, "False": False}.get(x, x) for n, x in words.items()}
        yield replace(bare, letters=words | bare.letters).runs[0]


def test_the_middle_of_a_call_without_a_framework_is_about_the_geometric_mean_of_its_ends():
    """How many measured steps both ends hold, test_training_coverage counts."""
    runs = [run for name in MODERN.split() for run in without_framework(name)]
    apart = [run.step_time / np.sqrt(np.prod([x.step_time for x in run.between.ends])) for run in runs]
    assert np.abs(np.log(apart)).max() < 0.12


# Search, flags and calibrated cells


def test_a_search_takes_a_framework_and_its_words_and_the_best_layout_differs():
    known = dict(devices=512, global_batch=1024, seq=8192, progress=False)
    device = accelerators.h100.at("bf16")
    nemo = search(training_step, models.llama3_70b, device, frameworks.nemo, **known).best[0]
    plain = search(training_step, models.llama3_70b, device, frameworks.plain, **known).best[0]
    assert (nemo.tp, nemo.pp) != (plain.tp, plain.pp)
    moved = training_step(models.llama3_70b, device, frameworks.nemo, **plain.knowns)
    assert moved.step_time > 1.02 * nemo.row.step_time


@each_case("flags that select a row", "text, key", globals())
def test_flags_select_the_row_and_agree_with_it(text, key):
    setup = read(text)
    assert setup.row is frameworks[key]
    said = setup.knowns
    assert said.get("dp_overlap", setup.row.dp_overlap) == setup.row.dp_overlap
    assert said.get("tp_beside", setup.row.tp_beside) == setup.row.tp_beside
    if "tp_overlap" in said:
        assert said["tp_overlap"] == pytest.approx(setup.row.tp_pieces * (1 - 1 / said["tp"]))


def test_the_network_fits_the_collectives_of_its_cluster():
    rows, _ = read_rows(ROOT / "scalebook/measurements/collectives_published.csv")
    rows = [x for x in rows if x["system"].startswith("HF H100") and x["op"] in ("all_gather", "reduce_scatter")]
    rows = [row for row in rows if float(row["n_gpus"]) > 8]
    kinds = {"all_gather": all_gather, "reduce_scatter": reduce_scatter}
    own = {x: clusters.hf_h100[x] for x in ("far_efficiency", "far_latency")}

    def error(**network):
        found = []
        for row in rows:
            ways, size = float(row["n_gpus"]), float(row["size_bytes"])
            time = kinds[row["op"]](accelerators.h100, collective_bytes=size, ways=ways, near_ways=8, **network)
            found.append(time / (size * (ways - 1) / ways / (float(row["busbw_gbs"]) * 1e9)))
        return np.abs(np.log(found)).mean()

    assert len(rows) >= 9
    assert error(**own) < 0.15
    for changed in ({"far_efficiency": 0.4}, {"far_efficiency": 0.8}, {"far_latency": 130e-6}, {"far_latency": 400e-6}):
        assert error(**own | changed) > error(**own)
