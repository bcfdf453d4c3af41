"""The planner: its page's JavaScript gives what Python gives, and nothing that is pasted or linked does harm."""

import contextlib
import gzip
import json
import math
import random
import subprocess
from urllib.parse import quote, unquote

import jsonschema
import numpy as np
import pytest
from py_mini_racer import MiniRacer
from scalebook.book.planner import planner, planner_parts, planner_script, planner_style
from scalebook.book.planner import widget as made
from scalebook.book.planner.sheets import kind_of, listed_models
from sympy import sympify

from scalebook import search, training_step
from scalebook.answers import assumed, assumptions, bill, nearest_fit
from scalebook.flags import SERVERS, server_flags, write
from scalebook.inference import serve
from scalebook.inference.rules import BEYOND
from scalebook.inference.rules import reason as serving_reason
from scalebook.inference.session_search import STACKS
from scalebook.language.interval import range_of
from scalebook.language.notation import nearest
from scalebook.tables import accelerators, drafts, engines, frameworks, models, precisions
from scalebook.tables.huggingface import TYPES
from scalebook.training.frameworks import UNNAMED
from scalebook.training.rules import reason

from .browser import READY, open_page, script
from .browser import serve as web
from .conftest import plan as planned_text
from .support import ROOT, cases, each_case, printed
from .test_answers import SCHEMA
from .test_configurations import ROWS
from .test_huggingface import CONFIGS
from .test_serving_rules import refused as refusal  # noqa: F401  (of cases.csv)

NEAR = 1e-9
ASK = script("planner")
PAGE, LAB = (ROOT / "tests" / "scripts" / x for x in ("planner.html", "lab.html"))


@pytest.fixture(scope="module")
def page(planned):
    """The page's functions, as `page(name, argument)`."""
    context = MiniRacer()
    context.eval(f"{made._scripts()}\nconst data = {planned};\n{ASK}")
    return lambda name, said: json.loads(context.call("ask", name, json.dumps(said)))


@pytest.fixture(scope="module")
def whole_page():
    """The page's functions with its second file, which has the models with a list of parts."""
    context = MiniRacer()
    context.eval(f"{made._scripts()}\nconst data = {planned_text(parts=True)};\n{ASK}")
    return lambda name, said: json.loads(context.call("ask", name, json.dumps(said)))


def near(a, b):
    return abs(a - b) <= NEAR * max(abs(a), abs(b))


# Answers

SERVED = [*cases("services of the planner", globals()).values()]


def drawn(rng, model, words):
    """Letters of a training step, most of which can run."""
    tp, pp, cp, dp = (rng.choice(x) for x in ((1, 2, 4, 8), (1, 2, 4), (1, 2), (1, 2, 4, 8)))
    batch, share = rng.choice((1, 2)), 2 * pp * rng.choice((1, 2, 4))
    chunks = rng.choice((1, 2)) if words["schedule"] == "interleaved" else 1
    ep = rng.choice((1, 2, 4)) if models[model].experts else 1
    said = dict(devices=tp * pp * cp * dp, global_batch=dp * batch * share, seq=rng.choice((4096, 8192, 12288)))
    return said | dict(tp=tp, pp=pp, cp=cp, ep=ep, batch=batch, chunks=chunks)


def held(page, job, model, device, precision, several, more=None, **words):
    """Each plan by itself on the page, and all together in Python, where `more` is said besides."""
    call = {"train": training_step, "serve": serve}[job]
    named = {x: words.pop(x) for x in ("engine", "framework") if x in words}
    rest = dict(words=words, layout=dict(letters={}, words={})) | named
    plans = [dict(rest, job=job, model=model, device=device, precision=precision, letters=x) for x in several]
    said = [page("answer", x) for x in plans]
    fine = [i for i, x in enumerate(said) if x["why"] is None]
    columns = {n: np.array([several[i][n] for i in fine], float) for n in several[0]}
    row = call(models[model], accelerators[device].at(precision), **columns, **named, **words, **(more or {}))
    for letter in ("step_time", "memory", "mfu") if job == "train" else ("tpot", "ttft", "device_rate", "filled"):
        for i, value in zip(fine, np.broadcast_to(row[letter], len(fine)), strict=True):
            assert near(said[i]["values"][letter], value), (letter, plans[i])
    for i in sorted({*range(len(several))} - {*fine}):
        known = {**models[model], **accelerators[device].at(precision), **several[i]}
        python = reason(known | words, lifted=("tp within scaleup_size",)) if job == "train" else serving_reason(known)
        assert python == said[i]["why"] or python is None, plans[i]
    return len(fine)


@each_case("steps of the planner", "model, device, precision, words", globals())
def test_a_training_step_is_the_same_in_the_page(page, model, device, precision, words):
    rng = random.Random(model)
    several = [drawn(rng, model, words) for _ in range(60)]
    assert held(page, "train", model, device, precision, several, **words) > 15


@pytest.mark.parametrize("model", [x for x in models if "blocks" in models[x].words])
def test_a_model_with_a_list_of_parts_is_the_same_in_the_page(whole_page, model):
    rng = random.Random(model)
    for recompute in ("none", "full"):
        words = dict(schedule="1f1b", sharding="zero1", recompute=recompute)
        several = [drawn(rng, model, words) | dict(cp=1) for _ in range(12)]
        assert held(whole_page, "train", model, "h200", "fp8", several, **words) > 2
    several = [
        dict(tp=tp, users=users, prompt=3000, output=500, hbm_capacity=1e13) for tp in (1, 2) for users in (1, 64)
    ]
    assert held(whole_page, "serve", model, "h200", "fp8", several, engine="vllm", exchange="all_reduce") == 4


PASTED = cases("lists of parts that are pasted", globals())


@pytest.mark.parametrize("name", PASTED)
def test_a_list_of_parts_of_the_menu_with_other_numbers_can_be_pasted(whole_page, name):
    """Its letters and its prices are those of Python, also from a link, which says the list."""
    config = ROWS[name]["config"]
    config = config.get("text_config", config) | PASTED[name]
    row, own = models.read(config), whole_page("config", json.dumps(config))["is"]
    assert (own["words"]["blocks"], own["letters"]) == (row.words["blocks"], pytest.approx(without_counts(row)))
    plan = dict(layout=dict(letters={}, words={}), model=own, device="h200", precision="fp8")
    said = dict(devices=16, global_batch=64, seq=4096, tp=2)
    words = dict(schedule="1f1b", sharding="zero1", recompute="full")
    steps = whole_page("answer", plan | dict(job="train", letters=said, words=words))["values"]
    step = training_step(row, accelerators.h200.at("fp8"), **said, **words)
    assert all(near(steps[x], step[x]) for x in ("step_time", "memory", "mfu"))
    said = dict(tp=2, users=16, prompt=3000, output=500, hbm_capacity=1e13)
    words = dict(exchange="all_reduce")
    served = whole_page("answer", plan | dict(job="serve", engine="vllm", letters=said, words=words))["values"]
    service = serve(row, accelerators.h200.at("fp8"), **said, **words, engine="vllm")
    assert all(near(served[x], service[x]) for x in ("tpot", "ttft", "filled"))
    link = f"#plan={quote(json.dumps(planner().plan | dict(model={x: own[x] for x in ('name', 'letters', 'words')})))}"
    read = whole_page("link", link)["is"]["model"]
    assert (read["words"], read["letters"]) == (own["words"], own["letters"])


def test_a_list_of_parts_that_the_menu_lacks_is_left_to_python(page, whole_page):
    jamba, nano = (json.dumps(ROWS[x]["config"]) for x in ("jamba", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"))
    assert "28 mamba + 16 feed" in (said := whole_page("config", jamba)["error"]) and "models.read" in said
    assert page("config", nano)["is"]["elsewhere"] and page("config", jamba)["is"]["elsewhere"]  # the second file says


@each_case("frameworks of the planner", "model, device, precision, framework", globals())
def test_a_framework_s_step_is_the_same_in_the_page(page, model, device, precision, framework):
    rng, words = random.Random(framework), dict(schedule="1f1b", sharding="zero2", recompute="full")
    several = [drawn(rng, model, words) for _ in range(15)]
    more = dict(sequence_parallel=True)
    assert held(page, "train", model, device, precision, several, more, framework=framework, **words)


@each_case("blocks that the planner lacks", "change, says", globals())
def test_blocks_that_the_page_lacks_are_named(page, change, says):
    plan = SEARCHED[0] | dict(words={}, layout=dict(letters={}, words={})) | change
    assert says in page("tried", plan)["error"]


@pytest.mark.parametrize(("model", "device", "precision", "engine"), SERVED)
def test_a_service_is_the_same_in_the_page(page, model, device, precision, engine):
    rng, experts = random.Random(model), (1, 2, 4) if models[model].experts else (1,)
    several = [
        dict(users=rng.randint(1, 24), prompt=rng.randint(64, 4000), output=rng.randint(2, 1000), pp=1, attention_dp=1,
             tp=rng.choice((4, 8)), replicas=rng.choice((1, 2)), ep=rng.choice(experts))
        for _ in range(60)
    ]  # fmt: skip
    assert held(page, "serve", model, device, precision, several, engine=engine) > 40


@pytest.mark.parametrize("job", ["train", "serve"])
def test_a_plan_that_names_no_engine_or_framework_has_the_defaults_of_python(page, job):
    letters, layout = dict(devices=8), dict(letters=dict(tp=4, pp=1, replicas=2, attention_dp=1, ep=1), words={})
    letters |= dict(users=16, prompt=1000, output=200) if job == "serve" else dict(global_batch=64, seq=4096)
    layout["letters"] = layout["letters"] if job == "serve" else dict(tp=4, pp=1, cp=1, ep=1, dp=2, batch=1, chunks=1)
    plan = dict(job=job, model="llama3_8b", device="h100", precision="bf16", letters=letters, words={}, layout=layout)
    own = page("answer", plan)["values"]
    known = {n: x for n, x in (letters | layout["letters"]).items() if n != "ep"}
    known = {n: x for n, x in known.items() if job == "train" or n != "devices"}
    row = (training_step if job == "train" else serve)(models.llama3_8b, accelerators.h100.at("bf16"), **known)
    assert all(near(own[n], row[n]) for n in (("step_time", "memory") if job == "train" else ("ttft", "tpot")))
    start = made.DEFAULT_PLANS
    assert start["serve"]["engine"] == serve.engine and start["train"]["framework"] == UNNAMED


@each_case("ranges of the planner", "job, model, device, precision, layout, schedule", globals())
def test_ranges_are_the_intervals_of_the_package(page, job, model, device, precision, layout, schedule):
    state = json.loads(json.dumps(made.DEFAULT_PLANS[job]))
    state |= dict(model=model, device=device, precision=precision, fixed={})
    rows = models[model], accelerators[device].at(precision)
    if job == "train":
        state["letters"] |= dict(devices=math.prod(layout[x] for x in ("tp", "pp", "cp", "dp")))
        words = dict(schedule=schedule, sharding="zero1", recompute="none")
        letters = ("step_time", "mfu", "memory")
        row = training_step(*rows, **state["letters"], **{x: y for x, y in layout.items() if x != "dp"}, **words)
    else:
        words, letters = {}, ("ttft", "tpot", "device_rate", "max_users")
        asked = {x: y for x, y in state["letters"].items() if x != "devices"}
        layout_ = {x: y for x, y in layout.items() if x != "ep" or models[model].experts}
        row = serve(*rows, **asked, **layout_)
    found = page("ranges", [state, dict(letters=layout, words=words), letters])
    for letter in letters:
        low, high = range_of(row, letter)
        assert low < row[letter] < high or letter == "max_users", letter
        assert near(found[letter][0], low) and near(found[letter][1], high), letter
        shown = [page("shown", [letter, x, side]) for x, side in zip(found[letter], (-1, 1), strict=True)]
        assert 0.99 * low < shown[0] <= found[letter][0] <= found[letter][1] <= shown[1] < 1.02 * high, letter
    if job == "serve":
        found = page("ranges", [state | dict(engine="vllm"), dict(letters=layout, words=words), ["ttft"]])
        low, high = range_of(serve(*rows, **asked, **layout_, engine="vllm"), "ttft")
        assert near(found["ttft"][0], low) and near(found["ttft"][1], high)


# Choices with names, days and dollars, and what is assumed


@each_case("choices of the planner", "model, device, precision, letters, words, framework", globals())
def test_a_choice_is_the_same_in_the_page(page, model, device, precision, letters, words, framework):
    layout = dict(devices=64, global_batch=64, seq=4096, tp=4, pp=2, batch=1)
    plan = dict(job="train", model=model, device=device, precision=precision, framework=framework, words=words,
                letters=layout | letters, layout=dict(letters={}, words={}))  # fmt: skip
    row = training_step(
        models[model], accelerators[device].at(precision), frameworks[framework], sequence_parallel=True,
        **layout, **letters, **words,
    )  # fmt: skip
    values = page("answer", plan)["values"]
    assert all(near(values[x], row[x]) for x in ("step_time", "memory", "mfu", "model_flops"))


def test_a_name_stands_for_letters_and_is_known_again(page):
    state = made.DEFAULT_PLANS["train"]
    hidden = page("chosen", [state, "overlap", "nothing hidden"])
    assert hidden["is"] == "nothing hidden" and {*hidden["letters"].values()} == {0}
    assert {*assumptions.TRIED["overlaps"]} < {*hidden["letters"]}  # or else some would still be advised
    for said, number in (("nothing", 0), ("optimizer state and activations", 2)):
        off = page("chosen", [state, "offload", said])
        assert off["is"] == said and number == sum(n.partition("_")[0] in said for n in off["letters"])
    assert page("chosen", [state, "overlap", "as the framework"])["letters"] == {}
    lora = planner().plan | dict(trained="lora", letters=state["letters"] | dict(lora_rank=8, memory_margin=0.1))
    assert page("link", page("write", lora))["is"] == lora
    assert "error" in page("link", page("write", lora | dict(trained="<b>")))


def test_days_and_dollars_are_the_bill_of_python(page):
    layout = dict(tp=8, pp=16, cp=2, batch=1, chunks=4, schedule="interleaved")
    asked = dict(devices=1024, global_batch=1024, seq=8192, train_tokens=15.6e12)
    row = training_step(models.llama3_405b, accelerators.h100.at("bf16"), **asked, **layout)
    for more in ({}, dict(device_mtbf=1e7, restart_time=600.0), dict(device_price=20_000.0)):
        words = dict(recompute="none", sharding="zero1", schedule="interleaved")
        plan = planner().plan | dict(letters=asked | {x: y for x, y in layout.items() if x != "schedule"} | more)
        values = page("answer", plan | dict(words=words, layout=dict(letters={}, words={})))["values"]
        own = bill(row, **more)
        assert all(near(values[x], own.row[x]) for x in ("run_time", "run_cost", "goodput", "run_energy"))
        assert all(near(values[x], row[x]) for x in ("train_time", "train_cost"))
        prices = page("prices", [plan, dict(letters={}, words=words)])
        assert [x["kind"] for x in prices] == [x.kind for x in own.prices]
        assert all(near(x["cost"], y.cost) for x, y in zip(prices, own.prices, strict=True))
        plan["letters"] |= dict(memory_margin=0.1, ep_overlap=0)  # of a search, and of a model with experts
        said = printed(page("python", [plan, dict(letters={}, words=words)]))
        assert said.endswith(f"{own}\n" if more else "\n") and f"{row.step_time}"[:12] in said


def assert_same_assumptions(own, python):
    assert [x["letter"] for x in own] == [x.letter for x in python] != []
    assert [sorted(x["letters"]) for x in own] == [sorted(x.ends[0].letters) for x in python]
    for x, y in zip(own, python, strict=True):
        for one, other in ((x, y), *zip(x["ends"], y.ends, strict=True)):
            names = {"value", "source", "moved", "answer", "ttft"} & {*other._fields}
            assert all(one.get(n) == getattr(other, n) or near(one[n], getattr(other, n)) for n in names)


@each_case("plans of which cells are assumed", "job, device, framework", globals())
def test_what_is_assumed_is_what_python_says(page, job, device, framework):
    device, precision = f"{device}@bf16".split("@")[:2]
    plan = planner(job, model="llama3_70b", device=device, precision=precision, framework=framework).plan
    layout = dict(tp=8, pp=4, batch=1) if job == "train" else dict(tp=8)
    words = dict(schedule="1f1b", sharding="zero1", recompute="none") if job == "train" else {}
    rows = models.llama3_70b, accelerators[device].at(precision)
    if job == "train":
        rows += (frameworks[framework],) if framework != "unnamed" else ()
        row = training_step(*rows, **plan["letters"], **layout, **words, sequence_parallel=True)
    else:
        del plan["letters"]["devices"]
        row = serve(*rows, **plan["letters"], **layout)  # with no engine, as the plan begins
    assert_same_assumptions(page("assumed", [plan, dict(letters=layout, words=words)]), assumed(row))


# Searches

SEARCHED = [*cases("searches of the planner", globals()).values()]
ASKED = [*cases("services at a rate of the planner", globals()).values()]  # and not by users


def searched(p):
    """The same question in Python, with its own defaults."""
    knowns = models[p["model"]], accelerators[p["device"]].at(p["precision"])
    if p["job"] == "train":
        return search(training_step, *knowns, **p["letters"], progress=False)
    return search(serve, *knowns, **p["letters"], **p.get("targets", {}), engine=p["engine"], progress=False)


@pytest.mark.parametrize("plan", SEARCHED, ids=lambda p: p["model"])
def test_a_search_and_its_neighbours_are_the_same(page, plan):
    own, python = page("find", plan), searched(plan)
    assert (own["count"], own["fitting"]) == (python.count, python.fitting)
    for a, b in zip(own["best"], python.best, strict=True):
        assert all(near(a["values"][x], b.values[x]) for x in b.values)
    assert own["best"][0]["letters"].items() >= python.best[0].letters.items()
    assert len(own["front"]) == len(python.pareto)
    steps = python.neighbours().steps
    assert [x["said"] for x in own["near"]] == [said for said, _, _ in steps]
    for x, (_, value, why) in zip(own["near"], steps, strict=True):
        assert (x["value"] is None) == (value is None) and (value is None or near(x["value"], value))
        assert "why" not in x or x["why"] == why


@pytest.mark.parametrize("plan", ASKED, ids=lambda p: p["model"])
def test_a_rate_is_served_by_the_users_that_python_finds(page, plan):
    own, python = page("find", plan), searched(plan)
    assert (own["count"], own["fitting"]) == (python.count, python.fitting)
    assert len(own["front"]) == len(python.pareto) and len(own["best"]) == len(python.best)
    for a, b in zip(own["best"], python.best, strict=True):
        assert all(near(a["values"][x], b.values[x]) for x in b.values)
        assert {x: a["letters"][x] for x in b.letters} == b.letters
        answer = page("answer", plan | dict(layout=a))
        assert answer["why"] is None and answer["values"]["users"] == b.row.users
        assert all(near(answer["values"][x], b.row[x]) for x in ("ttft", "tpot", "device_rate", "million_cost"))
    more = page("answer", plan | dict(layout=own["best"][0], letters=plan["letters"] | dict(rate=1e4)))
    assert "more than such a layout serves" in more["why"]


@pytest.mark.parametrize(("model", "device", "precision", "engine"), SERVED)
def test_a_layout_at_a_rate_is_the_same_in_the_page(page, model, device, precision, engine):
    rng, refused = random.Random(device), 0
    for _ in range(12):
        layout = dict(tp=rng.choice((4, 8)), replicas=rng.randint(1, 9))
        asked = dict(prompt=rng.randint(64, 4000), output=rng.randint(2, 1000), rate=10 ** rng.uniform(-1, 2.5))
        asked |= rng.choice(({}, dict(drafted=3, acceptance=0.8)))
        plan = dict(job="serve", model=model, device=device, precision=precision, engine=engine)
        said = page("answer", plan | dict(letters=asked, words={}, layout=dict(letters=layout, words={})))
        try:
            row = serve(models[model], accelerators[device].at(precision), **asked, **layout, engine=engine)
        except ValueError as error:
            refused += 1
            assert "is more than" in str(error) and "more than such a layout serves" in said["why"]
        else:
            assert said["why"] is None and said["values"]["users"] == row.users, asked
            for letter in ("tpot", "ttft", "device_rate", "million_cost"):
                assert near(said["values"][letter], row[letter]), (letter, asked)
    assert refused < 9


@pytest.mark.parametrize("plan", ASKED, ids=lambda p: p["model"])
def test_two_pools_are_those_of_python(page, plan):
    rows = models[plan["model"]], accelerators[plan["device"]].at(plan["precision"])
    asked = plan["letters"] | plan["targets"] | dict(engine=plan["engine"])
    for ttft in (None, 2.0):
        own = page("pools", plan | dict(targets=plan["targets"] | (dict(ttft=ttft) if ttft else {})))
        python = serve.apart(*rows, **asked | (dict(ttft=ttft) if ttft else {}))
        for name, pool in (("prefill", python.prefill), ("decode", python.decode)):
            assert own[name]["letters"] == pool.letters and own[name]["words"].get("exchange", "") == pool.exchange
        for letter in ("ttft", "tpot", "devices", "million_cost", "queue_time", "handover_time"):
            assert near(own["values"][letter], python.row[letter])
    few = plan | dict(letters=plan["letters"] | dict(devices=1))
    assert "devices or more" in page("pools", few)["why"] or "fit on no layout" in page("pools", few)["why"]


@pytest.mark.parametrize("plan", ASKED, ids=lambda p: p["model"])
def test_two_pools_that_are_chosen_are_priced_as_those_that_are_found(page, plan):
    found = page("pools", plan)
    pools = page("pooled", found)
    assert page("pools", plan | dict(pools=pools)) == found
    slower = pools | dict(decode=pools["prefill"], prefill=pools["decode"])
    other = page("pools", plan | dict(pools=slower))
    if "why" not in other:
        assert all(other["decode"]["letters"][x] == pools["prefill"][x] for x in ("tp", "ep", "attention_dp"))
        assert other["values"]["million_cost"] >= found["values"]["million_cost"]
    link = page("write", dict(planner("serve", rate=12.5).plan, pools=pools))
    assert page("link", link)["is"]["pools"] == pools
    for wrong in ({"prefill": {}}, [], {**pools, "decode": {**pools["decode"], "tp": 0.5}}):
        assert "two pools" in page("link", page("write", dict(planner("serve", rate=12.5).plan, pools=wrong)))["error"]
    assert "two pools" in page("link", page("write", dict(planner("serve").plan, pools=pools)))["error"]


@each_case("agents of the planner", "model, device, draft, spreads", globals())
def test_sessions_of_agents_are_those_of_python(page, model, device, draft, spreads):
    plan = planner("agents", model=model, device=device, engine="vllm", sessions=300, **spreads).plan
    rows = models[model], accelerators[device].at("fp8")
    letters = plan["letters"] | plan["targets"] | dict(engine="vllm") | dict(drafts.get(draft, {}))
    found = page("agents", plan | dict(fixed=dict(drafts=draft)))
    python = search(serve.sessions, *rows, **letters, tiers=[*STACKS], best=99)
    fitting = [x for x in found["services"] if "why" not in x]
    for own, row, choice in zip(fitting, python.best, python.choices, strict=True):
        assert own["words"]["tiers"] == choice["tiers"] and own["caches"] == row.caches
        assert own["letters"] == dict(tp=choice.get("tp", own["letters"]["tp"]), replicas=row.replicas)
        for letter in ("session_cost", "tpot", "ttft", "ttft_p95", "hit_share", "pool_ratio", "sessions_most"):
            assert own["values"][letter] == pytest.approx(row[letter], rel=1e-7)
    assert found["engines"][0]["cost"] <= found["engines"][-1]["cost"]
    own = fitting[0]
    for letter in (f"{x}_p{n}" for x in ("ttft", "tpot", "end_to_end") for n in (50, 95, 99)):
        assert own["values"][letter] == pytest.approx(python.best[0][letter], rel=1e-7)
    said = printed(page("python", [plan, dict(letters=own["letters"], words=own["words"])]))
    told = [own["values"][x] for x in ("sessions_most", "session_cost", "ttft", "ttft_p95", "tpot")]
    assert [float(x) for x in said.split()] == pytest.approx(told, rel=1e-6)
    state = plan | dict(fixed=dict(tp=8, tiers="pool", drafts=draft))
    assert page("link", page("write", state))["is"]["fixed"] == state["fixed"]
    few = page("agents", plan | dict(letters=plan["letters"] | dict(devices=1)))["services"]
    assert all("do not fit" in x["why"] or "does not fit" in x["why"] or "more than 1 dev" in x["why"] for x in few)


@pytest.mark.parametrize("device", ["mi300a", "h100_pcie", "h100_nvl", "rtx_4090", "mi250x"])
def test_a_network_that_is_not_known_is_not_lent(page, device):
    """Beyond its scale-up domain such a device prices no layout: `serve` refuses it."""
    load = dict(users=16, prompt=1024, output=1024)
    published = accelerators[device].published  # without what is assumed of it
    own = dict(name=device, words={}, letters=dict(published), source="", sources={})
    plan = dict(job="serve", model="llama3_8b", device=own, precision="bf16", engine="vllm", words={})
    plan |= dict(letters=load | dict(devices=8))
    found = page("find", plan | dict(targets=dict(ttft=5, tpot=0.2)))
    best, size = found["best"], published.get("scaleup_size", 1)
    assert best and (BEYOND in found["rejected"]) == (size < 8)
    for one in best:
        assert math.prod(one["letters"][x] for x in ("tp", "pp", "attention_dp")) <= size
        row = serve(models.llama3_8b, published.at("bf16"), engine="vllm", **load | one["letters"])
        assert near(one["values"]["tpot"], row.tpot)


@pytest.mark.parametrize("job", ["train", "serve"])
def test_no_cell_that_a_data_sheet_leaves_out_stops_an_answer(page, job):
    plans = [planner(job, model="llama3_8b", device=key).plan | dict(words={}) for key in accelerators]
    assert [page("lacking", plan) for plan in plans] == [[]] * len(accelerators)


LONG = SEARCHED[0] | dict(letters=SEARCHED[0]["letters"] | dict(train_tokens=1e12))


@pytest.mark.parametrize("plan", [SEARCHED[2], ASKED[2] | dict(model="llama3_8b"), LONG], ids=lambda p: p["job"])
def test_any_device_is_the_best_of_each(page, plan):
    found = page("market", plan)
    rows = {x["device"]: x for x in found["rows"] if "chosen" in x}
    costs = [x["cost"] for x in rows.values() if "cost" in x]
    assert costs == sorted(costs) and len(rows) > 8
    able = engines[plan["engine"]].words.get("vendors", "") if plan["job"] == "serve" else ""
    having = [k for k, x in accelerators.items() if f"peak_{plan['precision']}" in x]
    having = [k for k in having if not able or accelerators[k].words["vendor"] in able.split()]
    assert sorted(x["device"] for x in found["rows"]) == sorted(having)
    left = [n for _, some in found["left"] for n in some]
    assert sorted([*left, *(accelerators[x].name for x in having)]) == sorted(x.name for x in accelerators.values())
    for device in [plan["device"], next(iter(rows))]:
        best, own = searched(plan | dict(device=device)).best[0], rows[device]
        assert own["chosen"]["letters"].items() >= best.letters.items()
        cost = bill(best.row).row.run_cost if plan["job"] == "train" else best.row.million_cost
        assert near(own["cost"], cost)
        rests = "step_time" if plan["job"] == "train" else "tpot"
        assert own["assumed"][1] == (rests in best.assumed)


# What is pasted


def without_counts(row):
    """The letters that the page reads: it has no encoders, and no use for the parameters that a token meets."""
    return {x: y for x, y in row.items() if x != "active_params" and not x.startswith("encoder_")}


@pytest.mark.parametrize("key", CONFIGS)
def test_a_configuration_is_read_as_python_reads_it(page, key):
    row = models.read(CONFIGS[key], name=models[key].name)
    own = page("config", json.dumps(CONFIGS[key]))["is"]
    assert own["letters"] == without_counts(row)
    assert own["words"] == {x: y for x, y in row.words.items() if x in ("norm", "windows", "family")}


WRONG = cases("what no field of a plan may be", globals())["all"]


def hostile_configs():
    rng, found = random.Random(0), []
    for _ in range(200):
        config = json.loads(json.dumps(CONFIGS[rng.choice(sorted(CONFIGS))]))
        inner = config.get("text_config", config) if rng.random() < 0.8 else config
        field = rng.choice(sorted(inner))
        if rng.random() < 0.3:
            inner.pop(field)
        else:
            inner[field] = rng.choice(WRONG)
        found.append(config)
    return found


def test_hostile_configurations_are_refused_where_python_refuses_them(page):
    refused = 0
    for config in hostile_configs():
        own = page("config", json.dumps(config))
        try:
            row = models.read(config, name="x")
        except (ValueError, TypeError):
            refused += 1
            assert "error" in own and 10 < len(own["error"]) < 400, config
        else:
            is_known = "params" not in row or "is not known" not in row.cells["params"].note  # the page reads no others
            assert own["is"]["letters"] == without_counts(row) if is_known else "error" in own, config
    assert refused > 50
    for text in ("", "{", "[1]", "null", '{"model_type": 7}', '{"model_type": "__proto__"}', "9" * 10_000):
        assert "error" in page("config", text)


def hostile_links():
    rng = random.Random(1)
    start = {"train": planner().plan, "serve": planner("serve").plan}
    for _ in range(200):
        said = json.loads(json.dumps(start[rng.choice(("train", "serve"))]))
        place = said if rng.random() < 0.6 else said[rng.choice(("letters", "targets", "fixed"))]
        name = rng.choice([*place, "tp", "__proto__", "constructor", "x"])
        place[name] = rng.choice([*WRONG, "alert(1)", "javascript:alert(1)"])
        yield "#plan=" + quote(json.dumps(said))
    yield from ("#plan=", "#plan=%", "#plan=%7B", "#plan=null", "#plan=[]", "#plan=1", "#plan=" + "a" * 70_000)


def test_hostile_links_are_refused_in_one_sentence_or_harmless(page):
    kept = 0
    for link in hostile_links():
        own = page("link", link)
        if "error" in own:
            assert own["error"].startswith("This link cannot be read (") and len(own["error"]) < 200
        else:
            kept += 1
            state = json.dumps(own["is"])
            assert "<" not in state and "alert" not in state and "__proto__" not in state
    assert kept < 120


def test_a_link_with_a_name_that_is_gone_keeps_the_rest(page):
    plan = planner("serve", users=7, ttft=2).plan
    for what in ("device", "model", "engine"):
        own = page("link", page("write", plan | {what: "gone_9"}))
        [said] = own["dropped"]
        assert said.startswith(f"no {what} gone_9 is known any more")
        assert own["is"] == plan | {what: made.DEFAULT_PLANS["serve"][what]}
    both = page("link", page("write", planner().plan | dict(framework="gone", device="gone", precision="fp8")))
    assert len(both["dropped"]) == 2 and both["is"]["precision"] == "fp8"
    v100 = planner("train", device="v100").plan
    assert v100["precision"] == "fp16"
    v100 |= dict(device="gone")
    assert page("link", page("write", v100))["is"]["precision"] == "fp16"  # which the usual device has too
    _, said = page("link", page("write", v100 | dict(precision="fp4")))["dropped"]
    assert said == "fp4 is none of its precisions, and bf16 stands in its place"
    beside = page("link", page("write", plan | dict(beside=[plan | dict(device="gone_9")])))
    assert len(beside["dropped"]) == 1 and len(beside["is"]["beside"]) == 1
    for wrong in ("constructor", "<b>", "A" * 80, 7, None, ["h100"], {"letters": {}}):
        assert "error" in page("link", page("write", plan | dict(device=wrong))), wrong


def test_a_link_opens_as_it_was_written(page):
    for plan in (planner().plan, planner("serve").plan, planner("serve", rate=12.5).plan):
        plan = plan | dict(model=page("config", json.dumps(CONFIGS["llama3_8b"]))["is"])
        link = page("again", "#plan=" + quote(json.dumps(plan)))
        assert page("again", link) == link and page("link", link)["is"]["letters"] == plan["letters"]


def test_a_device_is_read_from_its_cells(page):
    cells = 'hbm_capacity = "192 GB"\nhbm_bandwidth = {value = "8 TB/s", note = "seen"}\npeak_bf16 = "2 PFLOP/s"'
    own = page("device", f'[mine]\nname = "Mine"  # ours\n{cells}')
    assert own["is"]["letters"]["hbm_bandwidth"] == 8e12 and own["is"]["name"] == "Mine"
    measured = (ROOT / "scalebook" / "measure" / "own.toml").read_text("utf-8")  # what `scalebook.measure` wrote
    own = page("device", measured)["is"]
    assert own["letters"]["matmul_fp32"] == 0.9034 and own["ends"]["matmul_fp32"][0] == pytest.approx(0.8647 / 0.9034)
    for text in cases("texts that are no device", globals())["all"]:
        assert "error" in page("device", text)


def test_an_unknown_word_is_answered_as_in_python(page, planned):
    for word in ("lama", "QWEN-3", "deepseekv3", "gptoss", "kimi", "hunyuan", "mixtrl"):
        assert page("config", json.dumps({"model_type": word}))["error"].endswith(nearest(word, TYPES))
    for word in ("hbm_bandwith", "hbm_capcity", "peak_bf61", "prise", "scaleupsize"):
        assert page("device", f"{word} = 1")["error"].endswith(nearest(word, json.loads(planned)["letters"]))


@each_case("numbers typed into the planner", "text, unit, like, value", globals())
def test_a_bare_number_is_in_the_unit_that_is_shown(page, text, unit, like, value):
    found = page("read", [text, unit, like])
    assert found is None if value is None else near(found, value)


# What is copied


MINE = (PAGE.parent / "device.toml").read_text("utf-8")


@pytest.mark.parametrize("is_pasted", [False, True])
@pytest.mark.parametrize("plan", [*SEARCHED[1:4], ASKED[2], SEARCHED[0] | dict(framework="megatron")],
                         ids=lambda p: p["model"])  # fmt: skip
def test_the_call_prints_the_same_answer(page, plan, is_pasted):
    if is_pasted:
        model, device = page("config", json.dumps(CONFIGS["llama3_8b"]))["is"], page("device", MINE)["is"]
        plan = plan | dict(model=model, device=device, precision="bf16")
    state, best = plan | dict(fixed={}, beside=[]), page("find", plan)["best"][0]
    answer = page("answer", plan | dict(layout=best))["values"]
    said = printed(page("python", [state, best]))
    letters = ("step_time", "mfu", "memory") if plan["job"] == "train" else ("ttft", "tpot", "device_rate")
    for letter, value in zip(letters, said.split(), strict=True):
        assert near(answer[letter], float(value))
    assert f"\n{letters[0]},{answer[letters[0]]}"[:14] in page("csv", [state, best])
    found = json.loads(page("json", [state, best]))["letters"]
    assert {n for n, x in found.items() if x["source"] == "given"} <= {*plan["letters"]}
    known, text = {n: x["value"] for n, x in found.items()}, {n: f"{x['formula']}" for n, x in found.items()}
    some = [n for n, x in text.items() if x != "None" and len(x) < 999][is_pasted::16]  # SymPy takes long to read all
    assert some and all(near(sympify(text[n]).subs(known), known[n]) for n in some)


def test_flags_are_those_of_the_package(page):
    best = page("find", SEARCHED[1])["best"][0]
    known = SEARCHED[1]["letters"] | {x: int(y) for x, y in best["letters"].items() if x != "dp"}
    words = {x: best["words"][x] for x in ("recompute", "sharding", "schedule")}
    known = {x: y for x, y in known.items() if x not in ("devices", "cp", "ep", "chunks") or (y > 1 and x != "devices")}
    python = write(known | words | dict(precision="bf16", sequence_parallel=True), "megatron")
    assert sorted(page("flags", [SEARCHED[1], best, "megatron"]).split()) == sorted(python.split())


@pytest.mark.parametrize("engine", SERVERS)
@each_case("layouts that flags of servers say", "layout, words", globals())
def test_flags_of_servers_are_those_of_python(page, engine, layout, words):
    state = json.loads(json.dumps(made.DEFAULT_PLANS["serve"]))
    asked = state["letters"] | layout | words | dict(kv_bits=precisions.fp8.kv_bits)
    del asked["devices"]  # the most of a search
    assert page("flags", [state, dict(letters=layout, words=words), engine]) == server_flags(engine, **asked)


# The graph


def test_kinds_of_blocks_are_told_apart_in_the_page_as_here(planned):
    assert kind_of(models.deepseek_v3) == "latent gate some shared"
    kinds = {x.split("|")[0] for x in json.loads(planned)["serve"]["sheets"]}
    assert {kind_of(row) for row in listed_models().values()} <= kinds


# In a browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory, planned):
    """The planner on a bare page."""
    place = tmp_path_factory.mktemp("planner")
    (place / "planner.js").write_text(planner_script(), "utf-8")
    (place / "planner-parts.js").write_text(planner_parts(), "utf-8")
    (place / "index.html").write_text(PAGE.read_text("utf-8").replace("STYLE", planner_style()), "utf-8")
    (place / "widget.js").write_text(made.Planner._esm, "utf-8")
    (place / "data.json").write_text(planned, "utf-8")
    plan = json.dumps(planner("serve", model="llama3_70b", device="h200", devices=4).plan)
    (place / "lab.html").write_text(LAB.read_text("utf-8").replace("PLAN", plan), "utf-8")
    with web(place) as address:
        yield address


QUESTION = "train, serve, run agents or train by reinforcement"


@contextlib.contextmanager
def opened(chromium, address, width=1300, plan=None, color_scheme="light"):
    """The planner in a browser, at a plan: in the end nothing was wider than the window, and nothing went wrong."""
    with open_page(chromium, viewport={"width": width, "height": 900}, color_scheme=color_scheme) as page:
        page.goto(address + (f"#plan={quote(json.dumps(plan))}" if plan else ""))
        page.wait_for_function(READY)
        yield page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (page.outside, page.errors, page.missing) == ([], [], [])


def entered(page, label, text):
    page.locator(f"input[aria-label{label}]").fill(text)
    page.locator(f"input[aria-label{label}]").press("Enter")


def copied(page):
    """What the page copies as JSON, which follows the schema."""
    page.get_by_role("button", name="JSON").click()
    found = json.loads(page.locator("dialog[open] pre").inner_text())
    jsonschema.validate(found, SCHEMA)
    page.keyboard.press("Escape")
    return found


def test_a_run_is_planned_in_a_browser(chromium, folder):
    """On a phone, in the dark; `test_visit` has the rest: a second device, a number's why, the link, both widths."""
    with opened(chromium, folder, 390, color_scheme="dark") as page:
        first = page.locator(".pl-num[data-letter=step_time]").inner_text()
        page.locator(".pl-pill").first.click()  # a model of one's own
        page.locator(".pl-own textarea").fill('{"model_type": "<img src=x onerror=alert(1)>"}')
        page.get_by_text("use this config.json").click()
        assert "is not one that can be read" in page.locator(".pl-wrong").inner_text()
        page.locator(".pl-own textarea").fill(json.dumps(CONFIGS["llama3_8b"]))
        page.get_by_text("use this config.json").click()
        entered(page, "=devices", "64")
        page.wait_for_function("(old) => document.querySelector('.pl-num')?.innerText !== old", arg=first)
        page.wait_for_function(READY)
        asked = dict(devices=64, global_batch=1024, seq=8192)
        found = search(training_step, models.llama3_8b, accelerators.h100.at("bf16"), **asked, progress=False)
        own = page.evaluate("document.querySelector('.pl-num').getAttribute('aria-label')")
        assert f"{found.best[0].row.step_time:.4g} s" in own
        entered(page, "=target", "3 s")
        assert page.locator(".pl-solved").inner_text()
        page.goto("about:blank")
        page.goto(f"{folder}#plan={quote('<img src=x onerror=alert(1)>')}")
        page.wait_for_function(READY)
        assert "This link cannot be read" in page.locator(".pl-said").inner_text()
        page.select_option("select[aria-label^='train, serve']", "serve")
        page.locator(".pl-num[data-letter=tpot]").wait_for()
        page.wait_for_function(READY)
        page.select_option("select[aria-label='users or requests a second']", "rate")
        page.wait_for_function("document.querySelector('.pl-verdict').innerText.includes('users at a time')")
        assert page.locator("input[aria-label='requests a second']").input_value() and "rate" in page.url
        assert page.locator("img").count() == 0


def test_a_model_with_a_list_of_parts_is_in_the_menu_in_links_and_pasted(chromium, folder):
    """Its formulas are in the second file, which the page loads, also for a pasted model before they are there."""
    with opened(chromium, f"{folder}/index.html", plan=planner(model="llama3_8b", devices=8).plan) as page:
        fresh = page.url
        page.click("button[aria-label^='model:']")
        page.fill(".pl-filter", "kimi linear")
        page.locator(".pl-list button").click()
        for _ in range(2):  # chosen, and from the link that is then in the address
            page.wait_for_selector("button[aria-label='model: Kimi Linear 48B-A3B']")
            page.wait_for_function(READY)
            page.reload()
        page.goto("about:blank")
        page.goto(fresh)
        page.wait_for_function(READY)
        page.click("button[aria-label^='model:']")
        page.fill(".pl-own textarea", json.dumps(ROWS["nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]["config"]))
        page.click("text=use this config.json")
        page.wait_for_selector("button[aria-label='model: nemotron_h']")
        page.wait_for_function(READY)


def test_choices_have_names_and_any_device_is_one(chromium, folder):
    """On a phone, in the dark: each choice changes the answer, and what is copied says it."""
    plan = planner(model="llama3_8b", devices=16, global_batch=64, train_tokens=1e12).plan
    with opened(chromium, folder, 390, plan | dict(device="gone"), color_scheme="dark") as page:
        assert "no device gone is known any more" in page.locator(".pl-said").inner_text()
        assert "GB of 80 GB on each device" in page.locator(".pl-verdict").inner_text()
        page.locator(".pl-options summary").click()
        for framework, again in (("deepseek", "its framework’s default"), ("unnamed", "recomputation searched")):
            page.locator("select[aria-label='framework']").select_option(framework)
            page.wait_for_function(f"document.querySelector('.pl-options summary').innerText.includes('{again}')")
        for name, value in (("overlap", "nothing hidden"), ("trained weights", "lora"), ("offload", "optimizer state")):
            page.locator(f".pl-options select[aria-label='{name}']").select_option(value)
            page.wait_for_function(READY)
        entered(page, "='margin of memory'", "20 %")
        page.wait_for_function("document.querySelector('.pl-options summary').innerText.includes('20 % of memory')")
        page.wait_for_function(READY)
        said = page.locator(".pl-options summary").inner_text()
        assert "nothing hidden" in said and "optimizer state offloaded, adapters trained" in said
        assert "Chosen here: none of the data-parallel and none" in page.locator(".pl-verdict").inner_text()
        entered(page, "^='mean time between failures of one device'", "10 days")
        page.wait_for_function("document.querySelector('.pl-costs').innerText.includes('failures')")
        page.wait_for_function(READY)
        for typed, shown in (("3 years", "3 years"), ("0", "3 years")):
            entered(page, "^='depreciation'", typed)
            page.wait_for_function(READY)
            assert page.locator("input[aria-label^='depreciation']").input_value() == shown
        assert "type a quantity such as 3 years, not “0 years”" in page.locator(".pl-said").inner_text()
        found = copied(page)
        assert found["letters"]["dp_overlap"]["value"] == 0 and found["letters"]["device_mtbf"]["value"] == 864000
        assert found["answer"]["costs"]["goodput"] < 1 and len(found["answer"]["costs"]["prices"]) == 2
        page.locator(".pl-pill").nth(1).click()
        page.get_by_text("any device", exact=True).click()
        page.locator(".pl-pairs .pl-me").wait_for()
        page.wait_for_function(READY)
        assert page.locator(".pl-pill").nth(1).inner_text() == "any device" and "%22any%22%3Atrue" in page.url
        bars = copied(page)["answer"]["devices"]
        assert page.locator(".pl-pairs button").first.inner_text() == bars[0]["device"] and bars[0]["assumed"]
        page.get_by_role("button", name="CSV").click()
        text = page.locator("dialog[open] pre").inner_text()
        assert "\nfits,yes," in text and "\nowned," in text and f", on {bars[0]['device']}" in text
        page.keyboard.press("Escape")
        page.locator(".pl-pairs button").nth(2).click()
        page.wait_for_function(READY)
        assert page.locator(".pl-pill").nth(1).inner_text() == page.locator(".pl-pairs .pl-me button").inner_text()


def focused(page):
    return page.evaluate("(document.activeElement.getAttribute('aria-label') ?? '').split(':')[0]")


def tab_to(page, label):
    for _ in range(80):
        page.keyboard.press("Tab")
        if focused(page) == label:
            return
    raise AssertionError(f"{label} is not reached by the keyboard")


def test_the_keyboard_alone_plans_a_service(chromium, folder):
    """And what it has changed it still stands on."""
    with opened(chromium, folder) as page:
        ready = lambda: page.wait_for_function(READY)  # noqa: E731
        tab_to(page, QUESTION)
        page.keyboard.press("ArrowDown")
        page.locator(".pl-num[data-letter=tpot]").wait_for()
        assert focused(page) == QUESTION
        for pill, words, name in (("model", "llama 70b", "Llama 3.1 70B"), ("device", "h100@fp8", "NVIDIA H100 SXM")):
            tab_to(page, pill)
            page.keyboard.press("Enter")
            assert focused(page) == f"find a {pill}"
            page.keyboard.type(words)
            page.keyboard.press("Enter")
            ready()
            assert focused(page) == pill and page.locator(".pl-pill", has_text=name).count() == 1
        page.locator("input[aria-label=users]").focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("200")
        page.keyboard.press("Enter")
        ready()
        assert focused(page) == "users" and "%22users%22%3A200" in page.url


def test_what_does_not_fit_is_copied_with_the_change_that_does(chromium, folder):
    """The page shows it, JSON says it, and Python finds the same."""
    plan = planner(model="llama3_70b", devices=8, global_batch=64, framework="megatron").plan
    with opened(chromium, folder, plan=plan) as page:
        shown = page.locator(".pl-binds b button")
        shown.wait_for()
        page.locator(".pl-rests li").first.wait_for()
        found = copied(page)
        page.get_by_role("button", name="Python").click()
        names = {}
        exec(page.locator("dialog[open] pre").inner_text(), names)
        own, said = nearest_fit(names["row"]), found["answer"]
        assert_same_assumptions(said["assumed"], assumed(names["row"]))
        assert page.locator(".pl-rests li:visible").count() == min(3, len(said["assumed"])) > 0
        assert not said["fits"] and said["letter"] == "step_time" and found["letters"]["step_time"]["low"]
        assert said["nearest"]["said"] == shown.inner_text() and said["call"] == names["row"].answer.title
        assert near(said["nearest"]["gain"], own.gain) and near(said["nearest"]["memory"], own.run.memory)


def test_figures_say_what_is_assumed_and_in_which_unit(chromium, folder):
    plans = [planner("serve", model="llama3_70b", device=x).plan | dict(targets={}) for x in ("trainium2", "tpu_v6e")]
    with opened(chromium, folder, 390, plans[0] | dict(beside=plans[1:]), color_scheme="dark") as page:
        page.locator(".pl-beside td + td", has_text="$").wait_for()
        *_, cost, share = page.locator(".pl-beside tr").all_inner_texts()
        assert cost.count("≈\xa0$") == 2 and share.count(" %") == 2
        assert page.locator(".pl-figures, .pl-costs").filter(has_text="≈\xa0$").count() == 2
        assert "not for sale: Amazon rents its devices out" in page.locator(".pl-costs").inner_text()
        entered(page, "^='depreciation'", "3")
        page.wait_for_function("document.querySelector('[aria-label^=depreciation]').value === '3 years'")
        assert "service_life%22%3A26280" in page.url
        assert all(x.count("(") == x.count(")") for x in page.locator("[aria-label=along] option").all_inner_texts())


@each_case("verdicts of the planner", "plan, says", globals())
def test_a_verdict_has_the_numbers_of_python(chromium, folder, plan, says):
    """And can be printed.  What is short of its margin alone fits, in words and as data."""
    with opened(chromium, folder, 390) as page:
        page.evaluate("(x) => { print = () => (document.title = x); location.hash = x; }", f"plan={json.dumps(plan)}")
        page.locator(".pl-verdict", has_text=says()).wait_for()
        page.get_by_role("button", name="report").click()
        assert page.title().startswith("plan=")
        if "trained" in plan:  # it is short of its margin
            page.locator(".pl-rests li").first.wait_for()
            found = copied(page)["answer"]
            assert (found["fits"], found["nearest"]) == (True, None) and found["assumed"] and found["costs"]["prices"]


@each_case("curves of the planner", "plan", globals())
def test_what_a_curve_promises_is_what_a_click_gives(chromium, folder, plan):
    with opened(chromium, folder, plan=plan) as page:
        page.locator(".pl-solved button").wait_for()
        promised, target, given, there = page.evaluate(script("taken"))
        assert given <= target and promised == there


def test_a_change_is_taken_by_a_key_and_stages_have_their_own_blocks(chromium, folder):
    """What binds says each gain in words; what is taken stands in the sentence and in what is copied."""
    plan = planner(model="llama3_70b", devices=128, global_batch=256, framework="megatron").plan
    with opened(chromium, folder, 390, plan, color_scheme="dark") as page:
        assert "tokens/s, " in page.locator(".pl-figures").inner_text()
        assert page.locator(".pl-wide > span", has_text=frameworks.megatron.name).bounding_box()["width"] < 380
        change = page.locator(".pl-binds button", has_text="precision bf16")
        change.wait_for()
        page.wait_for_function(READY)
        said = change.get_attribute("aria-label")
        assert "% more tokens a second from each device, " in said and said.endswith("; take it")
        change.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('select[aria-label=precision]').value === 'fp8'")
        assert page.evaluate("document.activeElement.className") == "pl-binds"
        change.wait_for(state="detached")
        page.wait_for_function(READY)
        page.locator(".pl-binds button", has_text="NeMo").wait_for()
        found = copied(page)
        assert any("NeMo" in x["said"] and x["is_free"] for x in found["answer"]["changes"])
        page.locator(".pl-laid summary").click()
        first = page.locator("input[aria-label='blocks of the first pipeline stage']")
        first.fill("half")
        first.press("Enter")
        assert "type a whole number" in page.locator(".pl-said").inner_text()
        first.fill("6")
        first.press("Enter")
        page.wait_for_function("location.hash.includes('first_blocks')")
        page.wait_for_function(READY)
        page.get_by_role("button", name="Python").click()
        assert "first_blocks=6," in page.locator("dialog[open] pre").inner_text()


def test_a_device_that_lacks_cells_is_not_said_to_be_too_small(chromium, folder):
    plan = planner("serve", model="llama3_8b", device="h100", precision="bf16", users=8).plan
    with opened(chromium, folder, 390, plan) as page:
        page.locator(".pl-pill").nth(1).click()
        page.locator(".pl-own textarea").fill(MINE.partition("peak_vector")[0])
        page.get_by_text("use this device").click()
        said = page.locator(".pl-verdict", has_text="It cannot be said")
        said.wait_for()
        assert "(peak_vector)" in said.inner_text() and "fit" not in said.inner_text()
        page.get_by_text("take it from NVIDIA H100 SXM").click()
        page.wait_for_function(READY)
        page.locator(".pl-verdict", has_text="over several devices are left out").wait_for()  # no network is known


def test_two_pools_are_put_beside_and_linked(chromium, folder):
    plan = planner("serve", model="llama3_70b", device="h200", devices=64, rate=20, prompt=4000, output=300).plan
    with opened(chromium, folder, plan=plan) as page:
        page.locator(".pl-pools").get_by_text("side by side").click()
        cell = page.locator(".pl-beside td", has_text="prompts: ")
        cell.wait_for()
        beside = cell.inner_text()
        page.wait_for_function(READY)
        page.select_option("select[aria-label=along]", "prompt")
        page.locator(".pl-pools").get_by_text("link to these pools").click()
        link = page.locator("dialog[open] pre").inner_text()
        page.goto("about:blank")
        page.goto(link)
        page.locator(".pl-pools").get_by_text("search all pools again").wait_for()
        cell.wait_for()
        assert cell.inner_text() == beside
        assert page.locator("select[aria-label=along]").input_value() == "prompt"


def test_agents_and_updates_are_planned_in_a_browser(chromium, folder):
    with opened(chromium, f"{folder}/index.html", 390) as page:
        page.select_option("select[aria-label^='train, serve']", "agents")
        page.locator(".pl-num[data-letter=sessions_most]").wait_for()
        page.wait_for_function(READY)
        page.locator(".pl-table button", has_text="tp 8, Host memory").click()
        page.locator(".pl-verdict b", has_text="tp 8, Host memory").wait_for()
        assert "host_memory" in page.evaluate("location.hash") and copied(page)["answer"] is None
        page.select_option("select[aria-label^='train, serve']", "rl")
        page.locator(".pl-table button", has_text="learnt from an update later").click()
        page.locator(".pl-verdict", has_text="no device waits").wait_for()
        page.locator(".pl-curve .pl-second").wait_for()
        assert '"age":1' in unquote(page.evaluate("location.hash"))
    with opened(chromium, folder, plan=planner("rl", model="llama3_70b", training=dict(tp=1)).plan) as page:
        page.locator(".pl-verdict", has_text="they do not fit").wait_for()
        assert copied(page)["answer"]["fits"] is False


def test_a_notebook_has_the_same_planner(chromium, folder):
    """The widget's own module, given what JupyterLab gives it."""
    with opened(chromium, f"{folder}/lab.html", 900) as page:
        asked = dict(devices=4, users=64, prompt=1024, output=1024, ttft="1 s", tpot="30 ms", progress=False)
        best = search(serve, models.llama3_70b, accelerators.h200.at("fp8"), **asked).best[0]
        said = page.locator(".pl-num[data-letter=tpot]").get_attribute("aria-label")
        assert f"{best.values['tpot'] * 1e3:.4g} ms" in said


def test_what_the_page_loads_is_small(planned):
    """Formulas and sheets of training and serving together, and with them all tables, sources and measured runs.

    Rows of frameworks and libraries, a source for every cell, are 3 kB of it; the differences of eager blocks 3 kB,
    adapters, modules that run again and the bill of a run 9 kB, memory with a first stage of its own size 3 kB, the
    rules that read 150 types of model 7 kB, agents with their drafts and tiers 5 kB, reinforcement learning 4 kB,
    pairs that MFU does not count .3 kB, and the share of host memory .1 kB.
    """
    data = json.loads(planned)
    own = json.dumps({x: data[x] for x in ("formulas", "train", "serve", "rules", "letters")})
    assert len(gzip.compress(own.encode())) < 84_100
    assert len(gzip.compress(planned.encode())) < 147_000


def test_the_page_itself_is_small():
    """As the site has it: shortened by esbuild, compressed as its server does."""
    esbuild = ROOT / "book" / "js" / "node_modules" / ".bin" / "esbuild"
    if not esbuild.exists():
        pytest.skip("no esbuild: npm ci --prefix book/js")
    small = lambda x: subprocess.run([esbuild, "--minify"], input=x, capture_output=True, text=True, check=True).stdout  # noqa: E731
    assert len(gzip.compress(planner_script(small).encode())) < 227_000
