"""The same question has the same answer in Python and in the shell, and a question of another sheet is refused."""

import inspect
import itertools
import json
import math
import re
import shlex
from functools import partial  # noqa: F401  (of cases.csv)
from urllib.parse import unquote

import numpy as np
import pytest

from scalebook.__main__ import _given, _rows, main
from scalebook.answers.costs import inputs_of
from scalebook.inference import decode_step, decoding, mixed_step, prefill_step, serve, simulate_serving  # noqa: F401  (of cases.csv)
from scalebook.language import NOTATION, Row, Sheet
from scalebook.language.row import quantity
from scalebook.machine.roofline import roofline
from scalebook.rl import rl_step
from scalebook.search import Search, search
from scalebook.shell.named import find, parts_of_serve, priced, read, things
from scalebook.tables import accelerators, engines, frameworks, models
from scalebook.training import training_step

from .every import every
from .support import ROOT, cases, each_case

M, A = models, accelerators
STEP, USERS = dict(devices=64, global_batch=128, seq=4096), dict(prompt=1000, output=200)
# What is asked in the shell, and in Python: a sheet or "search" and one, rows, and letters.
QUESTIONS = cases("questions in Python and in the shell", dict(globals(), roofline=roofline))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_one_answer_in_python_and_in_the_shell(question):
    sheet, rows, letters = QUESTIONS[question]
    words = shlex.split(question)
    if words[0] == "search":
        assert main(words) == repr(search(sheet, *rows, **letters))
        return
    thing, named, texts = _given(words)
    knowns, said = _rows(thing, named), read(thing, texts)[1]
    shell, python = (getattr(x, "row", x) for x in (priced(thing, knowns, said), sheet(*rows, **letters)))
    assert shell.name == python.name
    assert {n: float(x) for n, x in shell.items()} == {n: float(x) for n, x in python.items()}


def test_an_engine_that_nobody_named_is_said():
    row = serve(M.llama3_8b, A.h100, users=8, **USERS)
    assert "ideal engine" in row.name
    assert "ideal" not in serve(M.llama3_8b, A.h100, users=8, engine="vllm", **USERS).name


# Letters: each entry refuses what it does not use

LLAMA = M.llama3_8b, A.h100
AT_RATE, BATCHES = USERS | dict(rate=1, devices=4), dict(batch=[1, 2], context=8192, weight_bits=16, kv_bits=16)
ONE = dict(tp=[1], batch=[1], chunks=[1])
ENGINE = USERS | dict(users=4, base_time=0.01)
# A call of each entry.
CALLS = cases("a call of each entry", globals())
# Letters that a call takes and that its row does not have: margins and targets, and what only some models have.
SEARCHED = {"memory_margin", "mtp_blocks", "unread_rerun", "host_capacity", "offload_memory"}
OWN = cases("letters of a call that its row lacks", globals())


def used_by(result):
    """The letters of a result, of what its bill takes from the call, and of the results it is made of."""
    row = result.best[0].row if isinstance(result, Search) else getattr(result, "row", result)
    billed = {n for n, x in inputs_of(row, {}).items() if x.origin == "given"} if isinstance(row, Row) else set()
    return {*row}.union(billed, *(x for x, _ in row.made_of.values())) if isinstance(row, Row) else set()


@pytest.fixture(scope="module")
def used():
    """The letters of each entry's result, and a few letters of each kind: those that the same results have."""
    found, kinds = {n: used_by(call(*LLAMA, **letters)) for n, (call, letters) in CALLS.items()}, {}
    for name in NOTATION:
        kinds.setdefault(tuple(name in x for x in found.values()), []).append(name)
    return found, {name for names in kinds.values() for name in names[:: -(-len(names) // 8)]}


def answered(call, *knowns, **letters):
    """What a call gives, or None if it is refused in a sentence."""
    try:
        return call(*knowns, **letters)
    except (TypeError, ValueError) as error:
        assert " " in str(error)


@pytest.mark.parametrize("entry", CALLS)
def test_a_letter_that_an_entry_does_not_use_is_refused(entry, used):
    """All letters of a step and a service, and some of each kind of what is made of them."""
    (call, letters), (found, some) = CALLS[entry], used
    asked = {*NOTATION} if entry in ("training_step", "serve") else some
    given = {n: 0.3 if NOTATION[n].sign == "share" else 7.0 for n in asked - {*letters} - OWN.get(entry, set())}
    taken = ((n, answered(call, *LLAMA, **letters, **{n: x})) for n, x in given.items() if n not in found[entry])
    assert not [n for n, x in taken if x is not None and n not in used_by(x)]


KINDS = [M[x] for x in ("deepseek_v3", "mixtral_8x7b", "qwen3_5_35b_a3b", "gemma3_27b", "gpt_oss_120b")]
H200, SERVED = A.h200.at("fp8"), USERS | dict(tp=8, users=8)
ASKED = cases("a call whose letters are moved", globals())
UNMOVED = cases("letters that may leave an answer as it is", globals())  # with the reasons


@pytest.mark.parametrize(("entry", "letters"), ASKED.values(), ids=ASKED)
def test_a_letter_of_a_call_moves_the_answer_or_has_a_reason_not_to_and_never_removes_it(entry, letters):
    for model in KINDS:
        row = entry(model, H200, **letters)
        for name in {*entry.takes, *model, *H200} & {*NOTATION} - entry.billed:
            share = 0.3 if row.get(name) != 0.3 else 0.4
            value = share if NOTATION[name].sign == "share" else 2 * row.get(name, 0) or 7
            other = answered(entry, model, H200, **letters | {name: value})
            if other is not None:
                assert row.answer.letter in other, (name, model.name)
                is_moved = {**row, name: value} != {**other, name: value}
                assert is_moved or f"{entry.name}.{name}" in UNMOVED, (name, model.name)


@pytest.mark.parametrize("model", KINDS, ids=lambda x: x.name)
def test_every_engine_serves_a_model_or_says_in_a_sentence_why_not(model):
    asked = SERVED | dict(batch=4, devices=64, rate=1, turns=3, appended=200, pause=5, sessions=4)
    for part, engine in itertools.product((serve, *parts_of_serve().values()), engines.values()):
        own = {*SERVED} if part is serve else {*part.own, *USERS, "tp"} - {*part.without}
        found = answered(part, model, H200, engine=engine, **{n: x for n, x in asked.items() if n in own})
        assert found is None or "needs" not in getattr(found, "row", found).missing.get("tpot", "")
    found = search(serve, model, H200, engines, devices=8, **SERVED | dict(tp=[8]))
    able, said = {x.name for x in engines.values() if x.is_program and "NVIDIA" in x.words["vendors"]}, repr(found)
    assert {engines[x].name for x in found.problem.words["engine"]} | {*found.unable} == able
    assert all(x in said for x in found.unable.values()) and len(found.unable) == 2 * ("kv_rank" in model)


@pytest.mark.parametrize("name", [n for n, x in things().items() if isinstance(x, Sheet)])
def test_every_letter_of_a_sheet_is_used_and_shown(name):
    sheet = find(name)
    used = {i for f in sheet.formulas.values() for i in f.inputs}
    assert {*sheet.inputs} <= used
    assert sheet.letters == used | {*sheet.formulas}
    text = sheet.__doc__
    assert all(f"    {n} " in text for n in sheet.letters)
    assert {*inspect.signature(sheet).parameters} == {"knowns", "letters", *sheet.inputs}


SHOWN = {n: x for n, x in CALLS.items() if x[0] in things().values()} | cases("a call of what gives a row", globals())


@pytest.mark.parametrize("entry", SHOWN)
def test_only_letters_of_a_call_are_given_and_defaults_are_what_is_used(entry):
    call, letters = SHOWN[entry]
    results = call(*LLAMA, **letters), call(*LLAMA, **letters, **_usual(call, call.choices, letters))
    row, again = (getattr(x, "row", x) for x in results)
    assert {n for n, x in row.to_dict()["letters"].items() if x["source"] == "given"} <= {*letters}
    assert "[given]" not in f"{row.why('price_hour') if 'price_hour' in row else ''}" and {**row} == {**again}
    said_otherwise = {"generations", "load", "pause_spread"}  # at a rate; of the queue that was found; the least
    usual = _usual(call, {*call.takes} & {*row} - said_otherwise, letters)
    assert usual == {n: row[n] for n in usual}


def _usual(call, names, letters):
    shown = inspect.signature(call).parameters
    return {n: shown[n].default for n in {*names} & {*shown} - {*letters} if shown[n].default is not None}


METHODS = [serve.sessions, serve.apart, serve.capacity, serve.offline, serve.static]
ENTRIES = [training_step, serve, rl_step, decode_step, prefill_step, mixed_step, search, *METHODS]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda x: x.name)
def test_what_an_entry_takes_is_shown_with_units_and_defaults(entry):
    text, parameters = entry.__doc__, inspect.signature(entry).parameters
    name, default = {rl_step: ("devices", 128), search: ("memory_margin", None)}.get(entry, ("tp", 1))
    assert {name, *entry.choices} <= {*parameters} and parameters[name].default == default
    assert entry in (search, *METHODS) or {*entry.gives} <= entry.letters
    assert NOTATION[name].meaning + (f"; by default {default}" if default else "") in text
    assert all(f"    {n} " in text for n in (*entry.takes, *entry.gives, *entry.choices))
    assert type(entry).__doc__ and "It gives" not in type(entry).__doc__


# Results as tables


def test_a_search_is_a_table(tmp_path, monkeypatch):
    asked = STEP | dict(train_tokens=1e12, best=4)
    found = search(training_step, M.llama3_8b, [A.h100, A.h200], **asked)
    columns = found.to_dict()
    assert {len(x) for x in columns.values()} == {4}
    assert columns["device"] == [x.device for x in found.best] and columns["step_time"][0] == found.best[0].step_time
    bill = found.best[0].row.answer.bill.row  # with failures, as the answer and the planner say it
    assert " train_rate " in repr(found) and " device_rate\n" in repr(found)
    for name in ("run_time", "run_cost", "run_energy"):
        aimed = search(training_step, M.llama3_8b, [A.h100, A.h200], minimize=name, run_cost="< 1e6", **asked)
        first, step = aimed.best[0], aimed.neighbours().steps[0]
        assert first.values[name] == pytest.approx(first.billed[name]) and step[1] and aimed.rejected["run_cost <= 1e6"]
        assert columns[name][0] == bill[name] == getattr(found.best[0], name) and name in repr(found)
    assert columns["device_rate"][0] == columns["train_rate"][0] / found.best[0].devices
    assert columns["train_rate"][0] == found.best[0].row.train_rate > 1e12 / columns["run_time"][0]
    text = found.to_csv(tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_text() == text and text.splitlines()[0] == ",".join(columns)
    assert float(text.splitlines()[1].split(",")[1]) == columns["step_time"][0]
    assert "run_time" not in search(training_step, M.llama3_8b, A.h100, **STEP).to_dict()

    class Columns(dict):
        def __arrow_c_stream__(self, requested_schema):
            return self, requested_schema

        __dataframe__ = dict.get  # any function of two values

    class Pandas:
        DataFrame = Columns

    with pytest.raises(ImportError, match="to_dict and to_csv need neither"):
        monkeypatch.setitem(__import__("sys").modules, "pandas", None)
        monkeypatch.setitem(__import__("sys").modules, "polars", None)
        found.to_frame()
    monkeypatch.setitem(__import__("sys").modules, "polars", Pandas)
    assert found.to_frame() == columns == found.to_frame("polars")
    assert found.__arrow_c_stream__() == (columns, None) and found.__dataframe__(allow_copy=False) is False


def test_a_row_of_a_search_is_called_again():
    one = search(training_step, M.llama3_8b, A.h100, **STEP).best[0]
    assert one().step_time == one.row.step_time and one(seq=8192).step_time > one.row.step_time


# The whole market


def test_whole_tables_are_searched_and_what_lacks_a_cell_is_named():
    lame = A.h100._with("lame", {n: c for n, c in A.h100.cells.items() if n != "scaleup_bandwidth"}, A.h100.words)
    known = dict(global_batch=64, seq=4096, tp=[1, 2], batch=[1], chunks=[1])
    found = search(training_step, M.llama3_8b, [A.h100, lame, A.h200], devices=[16, 32], **known)
    assert found.without == {"lame": "needs scaleup_bandwidth"} and "lame (needs scaleup_bandwidth)" in repr(found)
    assert [(x.device, x.problem.values["devices"]) for x in found.searches] == [
        (d.name, n) for d in (A.h100, A.h200) for n in (16, 32)
    ]
    each = [search(training_step, M.llama3_8b, d, devices=n, **known) for d in (A.h100, A.h200) for n in (16, 32)]
    assert found.count == sum(x.count for x in each)
    assert found.best[0].step_time == min(x.best[0].step_time for x in each) and found.best[0].devices == 32
    with pytest.raises(TypeError, match="lame: this search needs scaleup_bandwidth"):
        search(training_step, M.llama3_8b, [lame], devices=16, **known)


def test_tables_of_frameworks_and_engines_are_choices():
    asked = STEP | dict(tp=[1], batch=[1], chunks=[1])
    some = search(training_step, M.llama3_8b, A.h100, frameworks[["nemo", "torchtitan"]], **asked)
    assert {x.framework for x in some.best} == {"nemo", "torchtitan"}
    whole = search(training_step, M.llama3_8b, A.h100, frameworks, **asked)
    able = {x for x, row in frameworks.items() if row.is_program and "NVIDIA" in row.words["vendors"]}
    assert {*whole.problem.words["framework"]} == able > {"nemo", "deepspeed"}
    served = search(serve, M.llama3_8b, A.h100, engines[["vllm", "sglang"]], rate=5, devices=4, **USERS)
    assert {*served.problem.words["engine"]} == {"vllm", "sglang"}


# A service without a number of devices


@each_case("services without a number of devices", "asked", globals())
def test_a_service_takes_the_fewest_devices_that_serve(asked):
    found = search(serve, M.llama3_70b, A.h100, **asked, **USERS)
    few = min(x.row.devices for x in found.best)
    with pytest.raises(ValueError):  # no layout of fewer devices serves
        search(serve, M.llama3_70b, A.h100, devices=few - 1, **asked, **USERS)
    assert found.best[0].row.devices == few and math.isfinite(found.best[0].tpot)
    if "tpot" in asked:
        assert all(x.tpot <= quantity("tpot", asked["tpot"][2:]) for x in found.best)
    if "users" in asked:
        assert all(x.row.users == asked["users"] for x in found.best)


def test_a_limit_and_a_range_are_typed_as_they_are_said():
    asked = STEP | dict(tp=[1, 2, 4], batch="1..2")
    found = search(training_step, M.llama3_8b, A.h100, memory="<= 40 GB", mfu="> 30 %", **asked)
    asked |= dict(subject_to=["memory < 40 GB", "mfu≥30 %"], batch=[1, 2])
    other = search(training_step, M.llama3_8b, A.h100, **asked)
    assert repr(found) == repr(other) and np.all([x.memory <= 40e9 for x in found.best])


PAGE = (ROOT / "book" / "questions.md").read_text("utf-8")
SECTIONS = {x.partition("\n")[0]: x for x in re.split(r"^## ", PAGE, flags=re.M)[1:]}
COMMANDS = {n: re.findall(r"^```\n((?:scalebook|python) .*?)\n```", x, re.M | re.S) for n, x in SECTIONS.items()}
LINK = re.compile(r"planner\.html#plan=([^\"]*)")
LINKS = {n: json.loads(unquote(x[1])) for n, text in SECTIONS.items() if (x := LINK.search(text))}
FIRST = re.compile(r"^(?:step_time|tpot|million_cost|rented) +([\d.]+ \S+?)[, ]|: ([\d.]+ s) at", re.M)


def test_the_page_has_ten_questions_each_with_a_command_and_a_link():
    assert len(SECTIONS) == len(LINKS) == 10 and all(len(x) == 1 for x in COMMANDS.values())


@every(n for n, [x] in COMMANDS.items() if "config.json" not in x and ".csv" not in x)
def test_the_command_of_a_question_says_what_its_python_says(name):
    said = main(words_of(name))
    assert any(x in said for found in FIRST.findall(SECTIONS[name]) for x in found if x)


def words_of(name):
    """The words of a question's command, without the program's name; of a row of a file, those of its call."""
    if ".csv" not in COMMANDS[name][0]:
        return shlex.split(COMMANDS[name][0].replace("\\\n", " "))[1:]
    letters, row = (x.split(",") for x in re.findall(r"^.{4}(?:runs.*\"{3})?(\w+,.*)", SECTIONS[name], re.M))
    return ["training_step", *(f"{n}={x}" for n, x in zip(letters, row, strict=True) if n != "step_time")]
