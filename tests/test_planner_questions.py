"""A question has one answer in Python, in the shell and on the planner's page; its search and its next changes too.

The page asks about whole training steps and services, so of the twenty questions of `test_questions` it cannot pose
those about one step of decoding or reading, about a roofline, or about a search of another sheet.
"""

import json
import math
import re

import pytest
from scalebook.book.planner import planner

from scalebook.__main__ import _given
from scalebook.answers import all_changes, assumed, bill, fits, nearest_fit
from scalebook.inference import serve
from scalebook.inference.capacity import LONG
from scalebook.language.interval import range_of
from scalebook.language.row import Cell, Row
from scalebook.rl.update import programs, rl_step
from scalebook.search import NothingFits, search
from scalebook.search.arguments import margins
from scalebook.shell.named import read, value
from scalebook.shell.named import row as find_row
from scalebook.tables import Device, accelerators, frameworks, models
from scalebook.training import training_step

from .support import cases, each_case, printed
from .test_planner import assert_same_assumptions, near, page  # noqa: F401
from .test_questions import FIRST, LINKS, QUESTIONS, SECTIONS, words_of

JOBS = {training_step: "train", serve: "serve"}
POSED = {x: y for x, y in QUESTIONS.items() if y[0] in JOBS}
NONE = dict(letters={}, words={})


def plan_of(thing, rows, letters):
    """A call as a plan: what are words and what are numbers, and the devices of its ways."""
    model, device, *more = rows
    words = {n: x for n, x in letters.items() if isinstance(x, str)}
    said = {n: x for n, x in letters.items() if n not in words and n != "dp"}
    if "dp" in letters:
        said["devices"] = math.prod(letters.get(n, 1) for n in ("tp", "cp", "pp", "dp"))
    named = {("framework" if thing is training_step else "engine"): x.kin[0] for x in more}
    precision = device.words.get("precision", "bf16")
    plan = dict(job=JOBS[thing], model=model.kin[0], device=device.kin[0], precision=precision, letters=said)
    return plan | named | dict(words=words, targets={}, layout=NONE)


@pytest.mark.parametrize("question", [x for x in POSED if not x.startswith("search")])
def test_a_question_has_the_same_answer_on_the_page(page, question):  # noqa: F811
    thing, rows, letters = POSED[question]
    own, row = page("answer", plan_of(thing, rows, letters)), thing(*rows, **letters)
    assert own["why"] is None
    row = {**row, **bill(row).row} if "train_tokens" in letters else row  # a page's days are days with failures
    shared = own["values"].keys() & row.keys()
    assert {"step_time", "memory", "mfu"} <= shared or {"tpot", "ttft", "device_rate", "million_cost"} <= shared
    assert [n for n in sorted(shared) if not near(own["values"][n], row[n])] == []


# A page goes through its own values of what a search lists, and takes no limit but those of its boxes.
SEARCHED = [x for x in POSED if x.startswith("search") and not any(isinstance(y, list) for y in POSED[x][2].values())]


@pytest.mark.parametrize("question", SEARCHED)
def test_a_searched_question_has_the_same_answer_on_the_page(page, question):  # noqa: F811
    """The same count of strategies too.

    A call of `serve` that gives no `devices` takes the fewest that serve; a plan always says how many it may use, and
    is asked with that number.  A plan of several devices is a search of each.
    """
    thing, (model, several), letters = POSED[question]
    several = several if isinstance(several, list) else [several]
    first = search(thing, model, several, **letters, progress=False).best[0]
    if thing is serve:
        letters = letters | dict(devices=first.row.devices)
    python = search(thing, model, several, **letters, progress=False)
    targets = {n: x for n, x in letters.items() if n in serve.targets}
    asked = {n: x for n, x in letters.items() if n not in targets}
    engine = dict(engine=serve.engine) if thing is serve else {}
    own = [page("find", plan_of(thing, (model, x), asked) | engine | dict(targets=targets)) for x in several]
    assert sum(x["count"] for x in own) == python.count and sum(x["fitting"] for x in own) == python.fitting
    for found in (first, python.best[0]):
        aim, value = next(iter(found.values.items()))
        assert near(min(x["best"][0]["values"][aim] for x in own if x["best"]), value)


# The plans of the links on the page of ten questions, and what the planner asks before its reader does

PLANS = [y for x in LINKS.values() for y in (x, *x["beside"])] + [planner(x).plan for x in ("train", "serve")]
PLANS += [PLANS[0] | dict(fixed=dict(recompute="best"))]
BY_NAME = {
    f"{x['job']} {x['model']!s:.20} on {x['letters']['devices']:g} {x['device']} {[*x['fixed']]}": x for x in PLANS
}


def searched(p):
    """The search of a plan in Python, or None if nothing fits."""
    own = p["model"]
    pasted = isinstance(own, dict) and Row(own["name"], {n: Cell(x) for n, x in own["letters"].items()}, own["words"])
    rows = [pasted or models[own], accelerators[p["device"]].at(p["precision"])]
    words = p["fixed"] | (dict(trained=p["trained"]) if "trained" in p else {})
    if words.get("recompute") == "best":
        words["recompute"] = ["none", "layernorm", "mlp", "full"]  # those that the menu has for a dense model
    if p["job"] == "serve":
        words |= p["targets"] | {n: p[n] for n in ["engine"] if p[n] != serve.engine}
    elif p["framework"] != "unnamed":
        rows.append(frameworks[p["framework"]])
    try:
        return search(training_step if p["job"] == "train" else serve, *rows, **p["letters"], **words, progress=False)
    except NothingFits:
        return None


@pytest.mark.parametrize("name", BY_NAME)
def test_a_linked_plan_is_searched_as_in_python(page, name):  # noqa: F811
    """With the same assumptions: a plan gives neither what its framework says nor the engine that it begins with."""
    plan = BY_NAME[name]
    own, python = page("find", plan), searched(plan)
    if python is None:
        assert not own["best"]
        return
    assert (own["count"], own["fitting"]) == (python.count, python.fitting)
    assert all(near(own["best"][0]["values"][n], x) for n, x in python.best[0].values.items())
    usual = frameworks[plan["framework"]].words if "framework" in plan else {}
    unsaid = {"recompute", "sharding"} & {*usual} - {*plan["fixed"]}
    run = python.best[0].row.call.again(**dict.fromkeys(unsaid))
    assert_same_assumptions(page("assumed", [plan, own["best"][0]]), assumed(run))


@pytest.mark.parametrize("name", LINKS)
def test_the_link_of_a_question_asks_what_its_command_asks(page, name, tmp_path, monkeypatch):  # noqa: F811
    """The same letters of a search.  Of one layout the same answer, which the targets of the plan leave as it is."""
    plan, (first, *rest) = LINKS[name], words_of(name)
    if config := re.search(r"read\([^{]*(.*?})", SECTIONS[name], re.S):
        (tmp_path / "config.json").write_text(json.dumps(eval(config[1].replace("...", ""))), "utf-8")
        monkeypatch.chdir(tmp_path)
    thing, rows, texts = _given(rest if first == "search" else [first, *rest])
    texts = {n: str(x) for n, x in plan["letters"].items() if n == "train_tokens"} | texts  # which a plan always says
    several = rows["device"].split(",")
    said = {n: value(thing, n, x.lstrip("<")) for n, x in texts.items()}
    assert page("link", page("write", plan)) == {"is": plan, "dropped": []} and JOBS[thing] == plan["job"]
    if first == "search":
        own = {n: plan[n] for n in ("framework", "engine") if n in plan} | plan["letters"] | plan["fixed"]
        devices = [f"{x['device']}@{x['precision']}" for x in (plan, *plan["beside"])]
        assert own | plan["targets"] == said and rows["model"] == plan["model"]
        assert {find_row(x).name.removesuffix(" at bf16") for x in devices} == {find_row(x).name for x in several}
    else:
        row, found = thing(*read(thing, {}, **rows)[0], **said), searched(plan)
        said = (repr(x).replace(" by default", "").replace(" at bf16", "") for x in (row, found.best[0].row))
        own, others = (x.replace(": llama,", ": mine,").splitlines() for x in said)  # the shell has a file's type alone
        # but for what is assumed and tried, because a plan says all its options
        assert [x for x in own if x[:4] not in ("assu", "next")] == [x for x in others if x[:4] not in ("assu", "next")]
        assert repr(found).startswith("1 strategy,")
    for other in plan["beside"] if first != "search" else ():
        assert FIRST.search(repr(searched(other).best[0].row))[0] in SECTIONS[name]


# Updates of reinforcement learning

UPDATES = cases("updates of a program", globals())


@pytest.mark.parametrize("program", programs())
def test_an_update_is_the_same_on_the_page(page, program):  # noqa: F811
    """Its letters, its range, what it assumes, its code and its link."""
    plan, none = planner("rl", framework=program, **{"age": 0} | UPDATES[program]).plan, dict(letters={}, words={})
    letters = dict(plan["letters"])
    if share := letters.pop("rollout_share", None):
        letters["share"] = share
    rows = models[plan["model"]], accelerators[plan["device"]].at(plan["precision"]), frameworks[program]
    row = rl_step(*rows, **letters, rollout=plan["rollout"], training=plan["training"])
    own = page("answer", plan | dict(words={}))
    assert own["why"] is None and {*row} <= {*own["values"]}
    assert [n for n in row if not near(own["values"][n], row[n])] == []
    assert page("ranges", [plan, none, ["update_time"]])["update_time"] == pytest.approx(range_of(row, "update_time"))
    assert_same_assumptions(page("assumed", [plan, none]), assumed(row))
    said = printed(page("python", [plan, none]))
    assert float(said.split()[0]) == pytest.approx(row.update_time, rel=1e-9)
    assert page("link", page("write", plan))["is"] == plan
    for wrong in (dict(framework="megatron"), dict(rollout=dict(tp=0.5)), dict(training=dict(dp=2)), dict(any=True)):
        assert "error" in page("link", page("write", plan | wrong))


def test_changes_of_an_update_are_priced_as_plans(page):  # noqa: F811
    plan = planner("rl", training=dict(tp=2)).plan
    found = page("updates", plan)
    assert [x for x, _ in found["together"]] == [16, 32, 64, 128, 256, 512, 1024, 2048] and found["apart"]
    for x in found["changes"]:
        other = plan | x["change"] | dict(words={}, letters=plan["letters"] | x["change"].get("letters", {}))
        assert page("answer", other)["values"] == x["values"]
    assert {x["why"][:23] for x in found["changes"] if x["why"]} == {"the learners would hold"}


@each_case("updates that cannot run", "change, says", globals())
def test_an_update_that_cannot_run_says_why(page, change, says):  # noqa: F811
    assert says in page("answer", planner("rl", **change).plan | dict(words={}))["why"]


# What binds


def called(page, plan, chosen):  # noqa: F811
    """The call that the page prints for a layout, as a row.  Its blocks all have sequence parallelism."""
    names = {}
    exec(page("python", [plan, chosen]).replace("print(", "len(repr(").replace("\nlen(repr(", "\n#"), names)
    row = names["row"]
    if "rate" in plan["letters"]:  # at a rate a device's tokens follow from it: as many users as wait are asked for
        row = row.call.again(rate=None, users=row.users, generations=LONG)
    return row.call.again(sequence_parallel=True) if plan["job"] == "train" else row


def python_key(change):
    """What a change sets: names with values, whichever of them are rows in Python."""
    said = {n: x for n, x in change.letters.items() if x is not None}
    for row in change.rows:
        said |= dict(precision=row.words["precision"]) if isinstance(row, Device) else dict(framework=row.kin[0])
    return frozenset(said.items())


def page_key(change):
    named = {n: change[n] for n in ("precision", "framework", "engine") if n in change}
    return frozenset((change.get("letters", {}) | change.get("words", {}) | named).items())


def keeps(plan, run):
    """Whether a run keeps to the limits of a plan: a search's margin of memory, and the targets of a service."""
    if plan["job"] == "serve":
        return all(run[n] <= x for n, x in plan["targets"].items())
    margin = plan["letters"].get("memory_margin", margins(training_step)["memory"])
    return fits(run) and run.memory * (1 + margin) <= run.hbm_capacity


TIGHT = dict(devices=32, global_batch=32, seq=8192)
CHANGED = BY_NAME | {
    "at a rate": planner("serve", model="llama3_70b", device="h200", rate=4, devices=8).plan,
    "AMD": planner(model="llama3_70b", device="mi300x", precision="bf16", framework="primus", **TIGHT).plan,
    "experts": planner(model="mixtral_8x7b", device="h100", precision="bf16", framework="megatron", **TIGHT).plan,
    "experts served": planner("serve", model="mixtral_8x22b", device="h200", users=64, devices=8).plan,
}


# No sheet of the page runs a step in two halves, and a plan has a rate or users.
def is_absent(plan, key):
    return ("overlap", "half_batches") in key or ("rate" in plan["letters"] and "users" in dict(key))


@pytest.mark.parametrize("name", CHANGED)
def test_what_binds_is_what_python_lists(page, name):  # noqa: F811
    plan = CHANGED[name]
    chosen = page("best", plan)
    if not chosen:
        return
    run, own = called(page, plan, chosen[0]), page("changes", [plan, chosen[0]])
    python = [x for x in all_changes(run) if keeps(plan, x.run) and not is_absent(plan, python_key(x))]
    assert {page_key(x): x["gain"] for x in own["list"]} == {python_key(x): pytest.approx(x.gain) for x in python}
    assert [x["isFree"] for x in own["list"]] == [x.is_free for x in python] and own["nearest"] is None
    assert [x["gain"] for x in own["list"]] == pytest.approx([x.gain for x in python])
    assert [x for x in own["list"] if not page("granted", [plan, chosen[0], x])] == []


@each_case("plans that do not fit", "model, layout", globals())
def test_the_nearest_change_that_fits_is_that_of_python(page, model, layout):  # noqa: F811
    plan = planner(model=model, devices=128, global_batch=128, framework="nemo").plan
    chosen = dict(letters=layout, words=dict(recompute="none", sharding="zero1", schedule="1f1b", attention="flash"))
    run, own = called(page, plan, chosen), page("changes", [plan, chosen])
    python = nearest_fit(run)
    assert fits(run) is False and page_key(own["nearest"]) == python_key(python)
    assert near(own["nearest"]["memory"], python.run.memory) and near(own["nearest"]["time"], python.run.step_time)
    assert {page_key(x) for x in own["list"]} == {python_key(x) for x in all_changes(run)}
    assert [x for x in (own["nearest"], *own["list"]) if not page("granted", [plan, chosen, x])] == []


# Stages of unequal size


ENDS = [*cases("stages of unequal size", globals()).values()]


@pytest.mark.parametrize("ends", ENDS)
def test_uneven_stages_are_those_of_python(page, ends):  # noqa: F811
    asked = dict(devices=64, global_batch=64, seq=8192, tp=4, pp=8, batch=1)
    for schedule, sharding, more in cases("words of uneven stages", {}).values():
        words, letters = dict(schedule=schedule, sharding=sharding, recompute="none"), asked | more | ends
        plan = plan_of(training_step, (models.llama3_70b, accelerators.h100), letters | words)
        own = page("tried", plan)
        try:
            row = training_step(models.llama3_70b, accelerators.h100, **letters, **words)
        except ValueError as error:
            assert own["is"]["why"] == str(error)
            continue
        assert own["is"]["why"] is None
        values = own["is"]["values"]
        assert all(near(values[n], row[n]) for n in ("step_time", "memory", "stage", "stage_blocks", "last_blocks"))
    wrong = plan_of(training_step, (models.llama3_70b, accelerators.h100), asked | ends | dict(schedule="zb_v"))
    assert ("error" in page("tried", wrong)) == ("first_blocks" in ends)


@pytest.mark.parametrize("ends", ENDS[::2])
def test_a_search_of_uneven_stages_is_that_of_python(page, ends):  # noqa: F811
    asked = dict(devices=32, global_batch=64, seq=8192) | ends
    own = page("find", plan_of(training_step, (models.llama3_70b, accelerators.h100), asked))
    python = search(training_step, models.llama3_70b, accelerators.h100, **asked, progress=False)
    assert (own["count"], own["fitting"]) == (python.count, python.fitting)
    assert all(near(own["best"][0]["values"][n], x) for n, x in python.best[0].values.items())
