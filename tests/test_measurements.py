"""The formulas against published measurements: how far apart they are, and what the calibrated numbers rest on."""

import csv
import gzip
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scalebook.book.measured.record import recorded, worse_than_recorded
from scalebook.book.measured.serving import served_rows

import scalebook.measurements as measurements
from scalebook.inference import serve
from scalebook.language import Formula, symbol
from scalebook.measurements import CONFRONTATIONS, confront
from scalebook.measurements.__main__ import main
from scalebook.measurements.calls import row_of
from scalebook.measurements.confrontation import SHOWN, best_share
from scalebook.measurements.rows import read_rows
from scalebook.measurements.sets import stanzas
from scalebook.tables import SOURCES, accelerators, models

from .support import cases, each_case, refuses, written

FOLDER = Path(measurements.__file__).parent
KEYS = {"rows", "mean", "median", "p90", "worst", "bias", "single"}
NAMES = list(CONFRONTATIONS)

# A row of each kind that is faster than its device can be: a time, a rate, a share of the links.
TOO_FAST = cases("values faster than any device", globals())
# A value with a wrong prefix is a thousand times its prediction. Rows that are nearly so far away, and why.
FAR, REASONS = 40, cases("measured rows far from their formula", globals())


@pytest.mark.parametrize("name", TOO_FAST)
def test_a_row_faster_than_the_peak_of_its_device_is_refused_by_its_name(name, tmp_path):
    own, measured = confront(name), CONFRONTATIONS[name].measured
    rows = [dict(row) for row in own.rows[:3]]
    rows[1] |= {measured: TOO_FAST[name], "row_id": "too_fast"}
    path = written(tmp_path, rows)
    found = confront(name, path)
    assert len(found.rows) == 2 and "too_fast" not in {row["row_id"] for row in found.rows}
    assert [reason for reason in found.left_out if "faster than the peak" in reason and "too_fast" in reason]


def test_no_row_of_ours_is_faster_than_the_peak_of_its_device_unless_it_is_refused():
    fast = {name: [x for x in confront(name).left_out if "faster than the peak" in x] for name in TOO_FAST}
    assert not any(fast.values())
    assert any("000251" in reason for reason in confront("moe_gemm").left_out)


def test_an_empty_cell_of_one_table_leaves_a_row_out_and_no_batch_grows(tmp_path):
    rows = [dict(row) for row in confront("nemo_long_context_without").rows[-2:]]
    rows[0]["tflops_gpu_best_without_cp"] = ""
    path = written(tmp_path, rows)
    found = confront("nemo_long_context_without", path)
    assert len(found.rows) == 1 and list(found.left_out) == ["without a figure: the table's cell is empty"]
    assert len(confront("nemo_long_context", path).rows) == 2


def test_one_number_is_the_best_for_the_other_rows():
    random = np.random.default_rng(0)
    for rows in (2, 3, 8, 21):
        x = random.lognormal(size=rows)
        for i, found in enumerate(best_share(x)):
            others = np.delete(x, i)
            least = min(np.abs(others / y - 1).mean() for y in others)
            assert np.abs(found * others - 1).mean() == pytest.approx(least)


def test_the_skill_says_where_one_number_is_nearer():
    assert confront("gemm").skill.startswith("One share of the roofline for all rows, the best for the others, is ")
    assert confront("nanotron_memory").skill.startswith("One value for all rows")
    assert confront("batch1_floor").skill.startswith("We lose: ")
    assert confront("gemm").summary["single"] > 3 * confront("gemm").summary["mean"]


@pytest.mark.parametrize("name", ["nanotron", "nanotron_memory"])
def test_rows_that_do_not_say_all_show_how_far_the_nearest_reading_is_off(name):
    result = confront(name)
    unseen = ~result.fitted
    read = result.confrontation.readings([row for row, x in zip(result.rows, unseen, strict=True) if x])
    nearest = np.abs(read.predicted / result.measured[unseen] - 1).min(axis=0).mean()
    assert nearest < 0.75 * result.summary["mean"]  # nanotron 0.72: columns tell most of its first series
    for shown in (repr(result), result._repr_html_()):
        assert f"one of {len(read.predicted)} things" in shown and f"the nearest is {nearest:.1%} off" in shown
    assert not confront("streams").ambiguity


def text(path):
    return (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="").read()


def test_no_two_confrontations_of_one_name():
    modules = (measurements.calculon,)
    assert len(CONFRONTATIONS) == len(stanzas()) + sum(len(module.CONFRONTATIONS) for module in modules)


@pytest.mark.parametrize("name", NAMES)
def test_every_set(name, tmp_path):
    """One test of each, since pytest's own work on a test is more than most of these take."""
    has_finite_errors_and_all_figures(name)
    accounts_for_every_row(name)
    shows_its_worst_rows_first(name)
    shows_a_table(name)
    has_no_value_a_thousand_times_its_prediction(name)
    is_no_worse_than_recorded(name)
    its_sources_are_known(name)
    rows_of_another_file_are_predicted_alike_and_all_a_test(name, tmp_path)
    the_command_says_them(name)


def has_finite_errors_and_all_figures(name):
    result = confront(name)
    assert set(result.summary) == KEYS if len(result.rows) > 1 else KEYS - {"single"}
    assert all(np.isfinite(x) for group in [result.summary, *result.groups.values()] for x in group.values())
    assert len(result.rows) == len(result.predicted) == len(result.measured)
    assert CONFRONTATIONS[name].first == result.rows[0]
    assert sum(g["rows"] for g in result.groups.values()) == len(result.rows)
    assert result.summary["rows"] == len(result.rows) - result.fitted.sum()
    assert bool(result.confrontation.calibrated) == bool(result.fitted.any())


def accounts_for_every_row(name):
    result = confront(name)
    rows = list(csv.DictReader(text(FOLDER / result.confrontation.file).splitlines()))
    assert len(result.rows) + sum(result.left_out.values()) == len(rows)
    assert len({row.get("row_id", place) for place, row in enumerate(rows)}) == len(rows)
    assert all(row.get("source", "in the README") for row in rows)


def shows_its_worst_rows_first(name):
    worst = confront(name).worst(4)
    assert len(worst) == min(4, len(confront(name).rows))
    assert [abs(row["error"]) for row in worst] == sorted((abs(row["error"]) for row in worst), reverse=True)
    assert abs(worst[0]["error"]) == np.abs(confront(name).errors).max()


def shows_a_table(name):
    result = confront(name)
    shown = result._repr_html_()
    assert shown.count('<tr><th scope="row">') == 1 + len(result.groups)
    assert ("<summary>Show the" in shown) == (1 + len(result.groups) > SHOWN)
    assert all(str(g["rows"]) in shown for g in result.groups.values())
    assert result.skill in repr(result)
    assert not re.search(r"\b(nan|inf)\b", shown + repr(result))  # numbers, not the words around them


def is_no_worse_than_recorded(name):
    """`make confront` writes the record anew: do so where a change is meant, and look at what it changes."""
    assert name in recorded()["sets"], f"{name} is not in the record: run `make confront`"
    assert not worse_than_recorded(name)


def its_sources_are_known(name):
    assert all(key in SOURCES for key in CONFRONTATIONS[name].sources)


def has_no_value_a_thousand_times_its_prediction(name):
    result = confront(name)
    apart = np.exp(np.abs(np.log(result.predicted / result.measured)))
    far = [row["row_id"] for row, x in zip(result.rows, apart, strict=True) if x > FAR and row["row_id"] not in REASONS]
    assert not far, f"{name}, row {far[0]}: a unit or zeros are wrong, or cases.csv must say why it is so far off"


def rows_of_another_file_are_predicted_alike_and_all_a_test(name, tmp_path):
    other = tmp_path / "other.csv"
    own = dict(zip((row["row_id"] for row in confront(name).rows), confront(name).predicted, strict=True))
    head, *rows = text(FOLDER / CONFRONTATIONS[name].file).splitlines()
    rows = [x for x in rows if x.partition(",")[0] in own]
    other.write_text("\n".join([head, *("new_" + x for x in rows[:: 1 + len(rows) // 8])]))  # eight say it as well
    found = confront(name, other)
    assert {row["row_id"].removeprefix("new_") for row in found.rows} <= own.keys()
    assert list(found.predicted) == [own[row["row_id"].removeprefix("new_")] for row in found.rows]
    assert not found.fitted.any()


def the_command_says_them(name):
    said = main([name])
    assert said.startswith(f"{name}: ")
    assert said.count("predicted ") == min(5, len(confront(name).rows))


def test_no_prediction_falls_below_what_amd_accepts_of_a_cluster():
    result = stanzas(bound=True)["amd_thresholds"].confrontation()()
    assert len(result.rows) == 25 and (result.predicted >= result.measured).all()


def test_nothing_is_faster_than_the_floor():
    rates, times = confront("batch1_floor"), confront("batch_floor_mi300x")
    assert (rates.measured < rates.predicted).all()
    assert (times.measured > times.predicted).all()
    assert (rates.measured / rates.predicted).max() == pytest.approx(0.87, abs=0.01)


def test_every_file_has_its_source_and_licence():
    said = (FOLDER / "README.md").read_text().split("\n## ")[1:]
    assert {part.split("\n")[0] for part in said} == {path.name for path in FOLDER.glob("*.csv*")}
    # What another tool predicts, bounds, of which no error can be told, and a trace that a set replays.
    others = {"serving_peers.csv", "training_amd_thresholds.csv", "trace_conversation.csv.gz"}
    assert {c.file for c in CONFRONTATIONS.values()} | others == {path.name for path in FOLDER.glob("*.csv*")}
    assert all(part.count("\n- Source: ") == part.count("\n- Licence: ") == 1 for part in said)


def test_the_command_lists_the_names():
    done = subprocess.run([sys.executable, "-m", "scalebook.measurements"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES


HEADER = "row_id,engine,model,quant,gpu,n_gpus,phase,batch,tok_s,spec_bw_gbs,source\n"
ROW = "x-1,llama cpp,Llama2-7B,FP16,RTX 4090,1,decode,1,{},1008.0,mine\n"


@each_case("what the command of measurements refuses", "arguments, text, said", globals())
def test_the_command_says_what_is_wrong(arguments, text, said, tmp_path, capsys):
    if text is not None:
        (tmp_path / "given.csv").write_text(text)
        arguments = [*arguments, "--csv", str(tmp_path / "given.csv")]
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["batch1_floor", "calculon"])
def test_errors_are_written_to_a_file(name, tmp_path, capsys):
    """Those of other rows too, which is how kept rows are checked; one that cannot be written is a sentence."""
    file, rows = tmp_path / "out.json", files("scalebook.measurements") / CONFRONTATIONS[name].file
    main([name, "--csv", str(rows), "--json", str(file)])
    assert confront(name).summary.items() <= json.loads(file.read_text())[name].items()
    refuses(SystemExit, "2", main, [name, "--json", "/none/x.json"])
    shown, said = capsys.readouterr(), "/none/x.json could not be written: No such file or directory"
    assert said in shown.err and shown.out.strip().endswith(main([name]))  # what was computed is not lost


def test_a_row_by_hand(tmp_path):
    """Llama 2 7B in FP16: 2 bytes for all but the input embedding, and for 8,192 values in 32 layers for 72 tokens."""
    (tmp_path / "one.csv").write_text(HEADER + ROW.format(50))
    [predicted] = confront("batch1_floor", tmp_path / "one.csv").predicted
    traffic = 2 * (6.738e9 - 32000 * 4096) + 2 * 32 * 8192 * 72
    assert predicted == pytest.approx(1008e9 / traffic)


@pytest.fixture(scope="module")
def served():
    """A run of a dense model and one of a mixture, as the file has them."""
    found, (rows, _) = {}, read_rows(FOLDER / CONFRONTATIONS["serving_tpot"].file)
    for row in rows:
        if row["mode"] == "agg" and row["tp_size"] == "8.0" and row["moe_ep_size"] == "1.0" and row["isl"] == "1024":
            found.setdefault((row["model_path"], row["system"]), row)
    kinds = ("meta-llama/Llama-3.1-70B", "h200_sxm"), ("deepseek-ai/DeepSeek-V3", "b200_sxm")
    return [found[kind] for kind in kinds]


def test_rows_of_serving_with_other_letters_and_formulas(served):
    """As ablations do: letters for all rows or for each, and formulas, stand before what the rows say."""
    all_read = Formula("all_read", "visited_experts", symbol("experts"), ("shazeer2017 §2.1",), "All of them.")
    parts = ("pass_time", "launches_time", "experts_time")
    plain = served_rows(served, *parts)
    freed = served_rows(served, *parts, kernel_launch=1e-15, read_launch=1e-15)
    assert freed["launches_time"] == pytest.approx(0, abs=1e-9)
    assert freed["pass_time"] == pytest.approx(plain["pass_time"] - plain["launches_time"])
    each = served_rows(served, *parts, kernel_launch=[1e-6, 2e-6])
    for i, launch in enumerate((1e-6, 2e-6)):
        assert each["pass_time"][i] == served_rows(served[i : i + 1], *parts, kernel_launch=launch)["pass_time"][0]
    every = served_rows(served, *parts, using=[all_read])
    assert every["pass_time"][0] == plain["pass_time"][0]
    assert every["experts_time"][1] > plain["experts_time"][1] > 0


def test_rows_of_serving_are_priced_as_serve_does(served):
    """A device's own measured shares stand before typical ones, here as there."""
    row = served[0]
    letters = dict(tp=8, attention_dp=1, pp=1, weight_bits=8, kv_bits=8, activation_bits=8)
    letters |= dict(users=float(row["concurrency"]), prompt=0.9 * 1024, output=0.9 * float(row["osl"]))
    alone = serve(models.llama3_70b, accelerators.h200.at("fp8"), **letters, engine=row["backend"])
    assert served_rows([row], "tpot")["tpot"][0] == pytest.approx(alone.tpot)


@pytest.mark.parametrize("node", ["a100_dgx", "h100_dgx", "a100_pairwise_nvlink", "h100_pairwise_nvlink"])
@pytest.mark.parametrize("op", ["all_reduce", "send_recv"])
def test_small_collectives_take_as_long_as_their_host(node, op):
    said = stanzas()["network_vidur"]
    rows = [x for x in confront("network_vidur").rows if (x["node"], x["op"]) == (node, op)]
    rows = [x for x in rows if x["nodes"] == "1" and float(x["size_raw"]) < 2**20]
    first, others = (
        np.median([float(x["time_ms_median"]) for x in rows if said.calibrates(x) is half]) / 1e3
        for half in (True, False)
    )
    issue_time = row_of(said.call(rows[0]).rows[0]).issue_time
    assert issue_time == pytest.approx(first, rel=0.01)
    assert others == pytest.approx(first, rel=0.2)
