"""Calculon's model in our letters against its own outputs, run by run, and what its readers refuse."""

import json
from pathlib import Path

import numpy as np
import pytest
from sympy import expand

from scalebook.block import GPT, flash, sequence_parallel, tensor_parallel, unbiased
from scalebook.calculon import (
    QUIRKS,
    Choices,
    application,
    calculon_step,
    execution,
    library,
    priced,
    step_sheet,
    system,
)
from scalebook.calculon.block import block_formulas
from scalebook.calculon.equations import capacity, gradients, stages, totals
from scalebook.calculon.operations import operations
from scalebook.language import Formula, symbol
from scalebook.language.units import check
from scalebook.measurements import calculon, confront
from scalebook.measurements.calculon import OUTPUTS

from .every import every
from .support import ROOT, cases, csv_rows, each_case, refuses, written

ROWS = {row["row_id"]: row for row in csv_rows(ROOT / "scalebook" / "measurements" / "calculon.csv")}
FINE = [name for name, row in ROWS.items() if not row["error"]]
REFUSED = cases("runs that Calculon refuses", globals())
MODEL, EXAMPLE, MACHINE = library.models["gpt3-175B"], library.example, library.systems["a100_80e"]


@every(FINE)
def test_every_output_of_a_run(name):
    row = ROWS[name]
    ours = calculon.priced(row)
    assert not isinstance(ours, str), ours
    for letters in OUTPUTS.values():
        for letter, column in letters.items():
            if row[column] not in ("", "None"):
                assert ours[letter] == pytest.approx(float(row[column]), rel=1e-9, abs=0), (letter, column)


def test_all_outputs_are_compared():
    columns = list(ROWS[FINE[0]])
    known = {column for letters in OUTPUTS.values() for column in letters.values()}
    given = {"row_id", "tag", "model", "system", "error", *EXAMPLE}
    assert set(columns) - given == known
    assert len(known) == 96


@pytest.mark.parametrize("name", [name for name in ROWS if name not in FINE])
def test_a_run_that_cannot_be_is_refused_in_one_sentence(name):
    row = ROWS[name]
    with pytest.raises(ValueError, match=REFUSED[name][0]):
        calculon_step(library.models[row["model"]], calculon._strategy(row), library.systems[row["system"]])


# The block


@pytest.mark.parametrize("exchange", ["ar", "rs_ag"])
@pytest.mark.parametrize("split", [False, True])
def test_matrix_flops_and_weights_are_those_of_our_block(exchange, split):
    block = unbiased(GPT)
    block = tensor_parallel(block) if split else block
    block = sequence_parallel(block) if split and exchange == "rs_ag" else block
    same = {symbol("kv_heads"): symbol("heads"), symbol("context"): symbol("seq")}
    costs = operations(Choices(exchange=exchange, split=split))
    flops = sum(c.flops.get("forward", 0) for c in costs if c.engine == "matrix")
    assert expand(flops - block.flops.subs(same)) == 0
    assert expand(sum(c.weights for c in costs) - block.params.subs(same)) == 0


def test_what_is_kept_is_what_our_block_saves():
    same = {symbol("kv_heads"): symbol("heads"), symbol("context"): symbol("seq")}
    stored = sum(c.stored for c in operations(Choices(split=False)))
    assert expand(stored - unbiased(GPT).saved.subs(same)) == 0
    assert expand(stored - flash(unbiased(GPT)).saved.subs(same)) != 0


@every(lambda: block_formulas(Choices(), MACHINE.tables(library.sample)), name=lambda f: f.letter)
def test_units_of_what_a_block_holds_and_sends(f):
    """Step tables aside, whose steps are in FLOPs and bytes; so is the width of fp32, four bytes."""
    rates = {"hbm_bandwidth", "peak_flops", "peak_vector"}
    if f.inputs and not rates & set(f.inputs) and f.letter != "block_whole_gradients":
        check(f)


@every([f for group in (stages, capacity, totals, gradients) for f in vars(group).values()], name=lambda f: f.name)
def test_worked_number_of_an_equation(f):
    call, value = f.__doc__.partition(">>> ")[2].split("\n")
    assert eval(call, {f.name: f}) == pytest.approx(float(value), rel=1e-10, abs=0)


# The sheet


def test_one_sheet_says_the_same_as_its_halves():
    run = calculon_step(MODEL, EXAMPLE, MACHINE)
    strategy = library.sample
    whole = step_sheet(strategy.choices, MACHINE.tables(strategy))(application(MODEL), strategy, MACHINE.row(strategy))
    assert set(run) == set(whole)
    assert all(run[x] == pytest.approx(whole[x], rel=1e-12) for x in run)


def test_arrays_of_strategies():
    strategy = library.sample
    sheet = step_sheet(strategy.choices, MACHINE.tables(strategy))
    pp = np.array([8, 16, 32, 64])
    many = sheet(application(MODEL), strategy, MACHINE.row(strategy), pp=pp, dp=768 / pp, microbatches=pp)
    for i, p in enumerate(pp):
        document = {**EXAMPLE, "pipeline_par": int(p), "data_par": int(768 // p)}
        assert many.step_time[i] == pytest.approx(priced(MODEL, document, MACHINE).step_time, rel=1e-12)


def test_an_assumption_is_swapped():
    run = calculon_step(MODEL, EXAMPLE, MACHINE)
    none = Formula("no_bubble", "bubble_time", 0)
    swapped = calculon_step(MODEL, EXAMPLE, MACHINE, none)
    assert swapped.step_time == pytest.approx(run.step_time - run.bubble_time)


# Quirks


def test_a_quirk_changes_what_it_concerns():
    changed = dict.fromkeys(QUIRKS, 0)
    rows = [ROWS[f"calculon-{name}"] for name in ("017", "043", "048", "051", "053", "069", "138")]
    runs = [(library.models[r["model"]], calculon._strategy(r), library.systems[r["system"]]) for r in rows]
    for run in [(MODEL, {**EXAMPLE, "tensor_par_overlap": "pipe"}, MACHINE), *runs]:
        found = worth(*run)
        assert set(found) == {x for x in QUIRKS if QUIRKS[x].concerns(execution(run[1]).choices)}
        for name, changes in found.items():
            changed[name] += any(abs(x) > 1e-6 for x in changes)
    assert all(changed.values()), changed


def worth(model, strategy, machine):
    """How much step time and memory change if one quirk is left out, by quirk that affects the run."""
    run, found = priced(model, strategy, machine), {}
    for name in (x for x in QUIRKS if QUIRKS[x].concerns(execution(strategy).choices)):
        other = priced(model, strategy, machine, mended=[name])
        found[name] = (other.step_time / run.step_time - 1, other.train_memory / run.train_memory - 1)
    return found


def test_the_running_totals_of_the_lamda_run():
    """The worst case known: nearly 5 % of the step time (the report of the reference runs)."""
    row = ROWS["calculon-138"]
    found = worth(library.models["lamda"], calculon._strategy(row), library.systems[row["system"]])
    assert -0.055 < found["running_totals"][0] < -0.04


def test_without_its_quirks_the_time_is_near():
    groups = confront("calculon_mended").groups
    assert groups["no quirk"]["worst"] < 1e-12
    named = {name for group in groups for name in group.split(", ")} - {"no quirk"}
    assert named <= set(QUIRKS)
    assert confront("calculon_mended").summary["worst"] < 0.13


# The confrontation


def test_the_original_columns_are_accepted(tmp_path):
    rows = [dict(row) for row in list(ROWS.values())[40:50]]
    for row in rows:
        row["id"] = row.pop("row_id").removeprefix("calculon-")
        row |= {"seconds_silent_logger": "0.004", "seconds_own_search_logger": "0.03"}
    result = confront("calculon", written(tmp_path, rows))
    assert result.summary["rows"] == 9 and result.summary["worst"] < 1e-12
    assert all(x["worst"] < 1e-9 for x in result.outputs.values())
    assert result.left_out == {"refused by Calculon and us (tp)": 1}
    assert "times of a step" in repr(result) and "outputs" in result.record()


def test_a_wrong_output_is_seen(tmp_path):
    row = dict(ROWS["calculon-010"], proc_mem_tier1_cap_req="1e9", recompute_time="0")
    outputs = confront("calculon", written(tmp_path, [row])).outputs
    assert outputs["memory of a device"]["worst"] > 1 and outputs["times of a step"]["worst"] == 1
    assert outputs["sizes of exchanges"]["worst"] == 0


@each_case("runs of Calculon that are left out", "changes, said", globals())
def test_rows_left_out_say_why(changes, said, tmp_path):
    rows = [ROWS["calculon-010"], {**ROWS["calculon-011"], **changes}]
    assert confront("calculon", written(tmp_path, rows)).left_out == {said: 1}


# The documents


def test_documents_are_read_from_files(tmp_path):
    for name, document in {"model": MODEL, "strategy": EXAMPLE}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    machines = json.loads((Path(library.__file__).parent / "systems.json").read_text())
    (tmp_path / "machine.json").write_text(json.dumps(machines["a100_80e"]))
    run = calculon_step(tmp_path / "model.json", str(tmp_path / "strategy.json"), tmp_path / "machine.json")
    assert run.step_time == calculon_step(MODEL, EXAMPLE, MACHINE).step_time


def machine(**changes):
    document = json.loads((Path(library.__file__).parent / "systems.json").read_text())["h100_80g_nvl8"]
    for path, value in changes.items():
        *where, last = path.split("__")
        part = document
        for key in where:
            part = part[int(key)] if key.isdigit() else part[key]
        part[last] = value
    return document


def test_what_is_no_document_is_refused(tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match="an application is an object of fields, not a list"):
        application(tmp_path / "list.json")
    (tmp_path / "broken.json").write_text("{")
    refuses(ValueError, "is not JSON, as a system is", lambda: system(tmp_path / "broken.json"))
