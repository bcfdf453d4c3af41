"""The first answer of a training step and of a service: what it says holds when it is called."""

import json
from functools import cache
from importlib import resources

import jsonschema
import pytest

import scalebook.__main__ as shell
from scalebook import accelerators, decoding, models, training_step
from scalebook.answers import Answer, bill
from scalebook.answers.assumptions import cells_of, entry_of
from scalebook.answers.costs import inputs_of
from scalebook.inference import serve
from scalebook.language import NOTATION
from scalebook.language.interval import SPREADS
from scalebook.rl import rl_step  # noqa: F401  (of cases.csv)
from scalebook.search import search
from scalebook.tables import frameworks
from scalebook.training.strategy import WORDS

from .support import cases, each_case

SCHEMA = json.loads(resources.files("scalebook.answers").joinpath("schema.json").read_text("utf-8"))
DENSE = dict(tp=8, pp=4, dp=4, global_batch=128, seq=8192)
EXPERTS = dict(pp=16, ep=64, dp=128, microbatches=120, seq=4096)
CALLS = cases("calls that have an answer", globals())
PAGES = {(thing, "experts" in name): name for name, (thing, *_) in CALLS.items()}.values()  # one of each kind


@cache
def run(name):
    thing, model, device, framework, letters = CALLS[name]
    if thing is serve:
        letters = dict(users=64, prompt=1024, output=1024) | letters
    rows = (model, device, *([framework] if framework else []))
    return thing(*rows, **{n: x for n, x in letters.items() if x is not None})


each = pytest.mark.parametrize("name", CALLS)


@each
def test_an_answer_is_short_and_says_first_what_does_not_fit(name):
    said, row = repr(run(name)), run(name)
    assert len(said.splitlines()) <= 12 and (name not in PAGES or run(name)._repr_html_().count("<table>") > 1)
    too_much = row.get("memory", 0) > row.get("hbm_capacity", 1e99) or row.words.get("caches") == "lost"
    too_much |= row.get("offload_memory", 0) > row.get("host_capacity", 1e99)
    assert (said.splitlines()[1].startswith("does not fit")) == too_much == (run(name).answer.fits is False)
    assert run(name).call.thing.name in said.splitlines()[0]
    assert run(name).listing.startswith("does not fit: ") == too_much


@each
def test_the_change_that_fits_does_fit(name):
    answer = run(name).answer
    change = answer.nearest
    assert (change is None) == (answer.fits is not False or name.startswith("hopeless"))
    if change:
        assert change.run.answer.fits and change.said in repr(run(name))
    if change and "memory" in change.run:  # not of sessions
        again = run(name).call.again(*change.rows, **change.letters)
        assert again.interval("memory").high <= again.hbm_capacity or ", without margin: " in repr(run(name))
        assert again.memory <= again.hbm_capacity and again[answer.letter] == change.run[answer.letter]
        assert change.said in repr(run(name)) and again.get("host_filled", 0) <= 1
        own = change.letters.get("training", change.letters)
        for n in (n for n, x in own.items() if x is not None):
            left = {m: x for m, x in own.items() if m != n}
            fewer = run(name).call.again(*change.rows, **(left if own is change.letters else dict(training=left)))
            is_worse = fewer[answer.letter] > again[answer.letter] * (1 + 1e-9) or fewer.devices != again.devices
            assert is_worse or fewer.memory * SPREADS["memory"].high > fewer.hbm_capacity, n


@each
def test_assumptions_are_repeated_by_calling(name):
    found, data = run(name).answer.assumed, run(name).to_dict()["answer"]["assumed"]
    assert len(found) <= 6 and [x.moved for x in found] == sorted((x.moved for x in found), reverse=True)
    for x, said in zip(found, data, strict=True):
        assert x.letter not in run(name).call.letters and x.moved > 0.05 and x.source
        assert all(y.answer for y in x.ends) or name in ("near capacity", "two pools")  # which refuse what ranges hold
        assert x.source.startswith("assumed") == (x.letter in (own := cells_of(run(name))) and own[x.letter].is_assumed)
        for end in x.ends:
            again = run(name).call.again(**end.letters) if end.answer else {}
            assert again.get(run(name).answer.letter) == (end.answer and pytest.approx(end.answer, rel=1e-12))
            assert end.ttft in (None, again.get("ttft")) and end.letters == dict.fromkeys(said["letters"], end.value)


def test_a_letter_with_several_values_has_no_answer_even_if_it_does_not_count():
    known = models.llama3_8b, accelerators.h100
    assert not training_step(*known, devices=8, global_batch=64, unread_rerun=[1.0, 1.0]).answer


def test_what_a_search_found_is_changed_within_its_limits():
    known = models.llama3_70b, accelerators.mi300x
    row = search(serve, *known, engine="vllm", users=200, prompt=1000, output=300, tpot="<50 ms").best[0].row
    assert row.call.again(users=400).tpot > 0.05 and "users=400" in str(row.call.again().answer.changes)
    assert row.answer.changes and all(x.run.tpot <= 0.05 for x in row.answer.changes)


def test_assumptions_of_a_service_at_a_rate_count_the_users_that_it_then_has():
    known = models.llama3_70b, accelerators.b200.at("fp8")
    row = serve(*known, engine="vllm", rate=200, prompt=1000, output=300, tp=1, replicas=26)
    assert "stream_efficiency" in {x.letter for x in row.answer.assumed}


@each
def test_changes_gain_what_they_say_and_the_free_ones_come_first(name):
    found = run(name).answer.changes
    assert len(repr(found).splitlines()) == max(len(found), 1)
    assert [x.is_free for x in found] == sorted((x.is_free for x in found), reverse=True)
    quick = [x for x in found if x.letters.get("recompute", "full") in WORDS["recompute"].values]  # modules take long
    said, is_free = dict(run(name).answer.lines()).get("next", ""), bool(quick) and quick[0].is_free
    assert said.startswith(str(quick[0]) if is_free and run(name).answer.fits is not False else "")
    for x in found[:3]:
        again = getattr(run(name), entry_of(run(name)).get("again", "call")).again(*x.rows, **x.letters)
        assert again[run(name).answer.letter] == x.run[run(name).answer.letter]
        assert again.answer.fits is not False and (x.gain > 0 or run(name).answer.fits is False)


@each
def test_what_is_data_follows_the_schema(name):
    found = json.loads(json.dumps(run(name).to_dict(), allow_nan=False))
    jsonschema.validate(found, SCHEMA)
    first, letters, listing = found["answer"]["letter"], found["letters"], run(name).listing
    assert letters[first]["low"] <= letters[first]["value"] <= letters[first]["high"] and letters[first]["unit"] == "s"
    assert [n for n in letters if f"{n}_low" in letters or f"{n}_low " in listing] == []  # one range of each
    own = {n for n in letters if f"{n}_low" in run(name) or run(name).at_ends()}
    assert [n for n in own if letters[n]["low"] not in (None, run(name).interval(n).low)] == []


@pytest.mark.parametrize("name", ["offline", "static", "two pools", "sessions"])
def test_a_function_of_a_service_carries_the_range_of_steps_through_its_formulas(name):
    row, low, high = run(name), *run(name).at_ends()
    for letter in [n for n in ("tpot", "ttft", "makespan", "end_to_end", "device_rate", "session_cost") if n in row]:
        found, (least, most) = row.interval(letter), sorted([low[letter], high[letter]])
        assert found.low <= least * (1 + 1e-12) < row[letter] < most * (1 - 1e-12) <= found.high
    assert 0.8 < low.tpot / row.tpot <= 0.88 + 1e-9 and 1.28 - 1e-9 <= high.tpot / row.tpot < 1.6
    assert [x.get("sessions", 60) for x in (low, high)] == pytest.approx([60, 60], rel=2e-3)


def test_any_row_is_data():
    row = decoding(models.llama3_8b, accelerators.h100, batch=[1, 2], context=8192, weight_bits=16, kv_bits=16)
    jsonschema.validate(row.to_dict(), SCHEMA)
    assert row.answer is None and repr(row) == row.listing
    several = training_step(models.llama3_8b, accelerators.h100, dp=[8, 16], global_batch=64, seq=[[8192], [512]])
    *lines, last = repr(several).splitlines()
    assert [x.split()[-1] for x in lines[2:]] == ["no", "no", "yes", "yes"] and not hasattr(several.answer, "fits")
    assert lines[1].split()[2:] == ["step_time", "low", "high", "mfu", "memory", "step_cost", "fits"]
    one = eval(last.partition("such as ")[2], {"run": several})
    assert one.fits is False and one.run.step_time == several.step_time[0, 0]
    said = several.to_dict()
    jsonschema.validate(said, SCHEMA)
    assert said["letters"]["step_time"]["low"] == several.interval("step_time").low.tolist()
    found = serve.capacity(models.llama3_8b, accelerators.h100, prompt=1000, output=200, tpot="<30 ms")
    jsonschema.validate(found.to_dict(), SCHEMA)


def test_a_bill_has_failures_rent_and_purchase():
    found = run("too large").answer.bill
    assert [x.kind for x in found.prices] == ["rented", "owned"] and found.prices[0].cost > found.prices[1].cost
    assert found.row.run_time == pytest.approx(run("too large").train_time / found.row.goodput)
    assert found.prices[0].cost == found.row.run_cost == pytest.approx(run("too large").train_cost / found.row.goodput)
    assert 0.005 < 1 - found.row.goodput < 0.05 and "failures and checkpoints" in repr(found)
    often = bill(run("too large"), device_mtbf=found.row.device_mtbf / 10)
    assert 1 - often.row.goodput > 2 * (1 - found.row.goodput)
    assert len(bill(run("too large"), device_mtbf="1 h").said) < 120  # a number of days with 180 digits is none to read
    named = {"MWh": "in MWh", "h": "Hours", "s": "econds", "$": "Dollars"}  # units, and the words that name them
    said = {n: x["description"] for n, x in SCHEMA["$defs"]["costs"]["properties"].items() if n in NOTATION}
    assert all(named.get(NOTATION[n].unit, "") in x for n, x in said.items())
    assert bill(run("dense")) is None and bill(run("vllm")) is None
    bought = bill(run("too large"), device_price="50000 $")
    assert bought.prices[1].cost > found.prices[1].cost


@pytest.mark.parametrize("letter", sorted(training_step.billed))
def test_a_letter_of_the_bill_is_taken_by_a_call(letter):
    for one in (run("too large"), run("vllm").call.again(device_price="40000 $")):
        if letter in one.call.thing.billed:
            other = one.call.again(**{letter: inputs_of(one, {})[letter].value / 2})
            assert [x.cost for x in other.answer.prices] != [x.cost for x in one.answer.prices]
    with pytest.raises(TypeError, match="give train_tokens"):
        run("dense").call.again(**{letter: 0.5})


@each_case("words of an answer", "name, words", globals())
def test_an_answer_says_what_it_rests_on_and_what_it_does_not_know(name, words):
    said = [repr(run(name)), *map(str, run(name).answer.assumed), repr(run(name).answer.changes)]
    assert words in "\n".join(said) and run("rate").answer.changes


def test_a_model_without_parameters_has_a_bill_without_failures():
    shape = models.shaped(layers=24, hidden=2048, heads=16, vocab=32000)
    found = training_step(shape, accelerators.h100, dp=8, global_batch=64, seq=2048, train_tokens=1e9).answer.bill
    assert found.row.goodput == 1 and "params are not known" in found.said
    one = training_step(models.llama3_8b, accelerators.h100, global_batch=8, seq=2048, train_tokens=1e6).answer.bill
    assert one.said.startswith("1 million tokens on 1 device: 106.7 s")


@pytest.mark.parametrize("letters", [dict(users=8, prompt=1024, output=1), dict(users=8, prompt=1024, output=2), {}])
def test_a_service_of_one_token_says_why_it_has_no_time_per_token(letters):
    found = serve(models.llama3_8b, accelerators.h100, **letters)
    said = repr(found)
    assert len(said.splitlines()) <= 12 and ("has no value here" in said or "needs" in said) == ("tpot" not in found)
    jsonschema.validate(found.to_dict(), SCHEMA)


def test_a_call_is_repeated():
    own = run("dense").call
    assert own.again().step_time == run("dense").step_time
    assert own.again(accelerators.h200).call.knowns[1] is accelerators.h200
    assert own.again(frameworks.megatron).call.knowns[2] is frameworks.megatron
    assert "tp" not in own.again(tp=None).call.letters
    assert own.thing is training_step and isinstance(run("dense").answer, Answer)


# The shell

STEP = ["training_step", "llama3_70b", "h100", "framework=nemo", "tp=8", "pp=4", "dp=4", "global_batch=128", "seq=8192"]


def test_the_shell_answers_first_and_has_the_rest():
    short = shell.main(STEP)
    assert len(short.splitlines()) <= 12 and "step_time" in short
    most = shell.main(["serve.capacity", "llama3_8b", "h100", "prompt=1000", "output=300", "tpot=20ms"]).splitlines()
    assert len(most) <= 12 and most[0].startswith("serve.capacity: ") and ", bound by tpot; Llama" in most[0]
    assert run("dense").listing in shell.main([*STEP, "--all"])
    found = json.loads(shell.main(["--json", *STEP]))
    jsonschema.validate(found, SCHEMA)
    assert found["letters"]["step_time"]["value"] == run("dense").step_time


@each_case("codes of the shell", "arguments, code", globals())
def test_the_shell_says_by_its_code_what_went_wrong(arguments, code, capsys):
    with pytest.raises(SystemExit) as stopped:
        shell.main(arguments)
    told = capsys.readouterr()
    assert stopped.value.code == code and not told.out and told.err.count("\n") == 1


def test_what_to_do_next_keeps_the_target_of_a_capacity():
    found = serve.capacity(models.llama3_70b, accelerators.h200.at("fp8"), tp=2, prompt=1024, output=512, tpot="30 ms")
    assert all(x.run.tpot <= 0.03 for x in found.answer.changes)
