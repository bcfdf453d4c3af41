"""The search finds what pricing every strategy one by one finds, wherever it is run, within its memory and time."""

import itertools
import math
import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import Executor, Future

import numpy as np
import pytest
import sympy  # noqa: F401  (of cases.csv)
from dask.distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebook import search, training_step
from scalebook.language import Formula, symbol
from scalebook.language.interval import SPREADS
from scalebook.language.row import gather
from scalebook.search.plan import Block, Evaluated, Plan
from scalebook.search.space import divisors
from scalebook.tables import accelerators, frameworks, models
from scalebook.training.frameworks import settled
from scalebook.training.rules import reason

from .support import H100, ROOT, cases, each_case

SMALL = dict(devices=64, global_batch=64, seq=4096)
CHOICES = cases("the small space of a search", globals())
HOST = dict(host_capacity="6 GB")
NEAR = dict(hbm_capacity="24 GB")


def searched(*knowns, **asked):
    """The search for a training step of Llama 3 8B on H100s."""
    return search(training_step, models.llama3_8b, H100, *knowns, **asked)


def small(**changed):
    return searched(**(SMALL | HOST | NEAR | CHOICES | dict(best=50) | changed))


@pytest.fixture(scope="module")
def found():
    return small()


def one_by_one():
    """Every strategy of the small space: letters and words, and its row, or why it cannot run."""
    for values in itertools.product(*CHOICES.values()):
        own = dict(zip(CHOICES, values, strict=True))
        dp = 64 / (own["tp"] * own["pp"])
        live = dict(tp=own["tp"] > 1, pp=own["pp"] > 1, dp=dp > 1, room=math.ceil(32 / own["pp"]) >= 3)
        idle = dict(tp=("tp_overlap", "sequence_parallel"), pp=("schedule", "chunks"), dp=("dp_overlap", "sharding"))
        idle |= dict(room=("activation_offload", "optimizer_offload"))
        repeats = any(own[x] != CHOICES[x][0] for way, names in idle.items() if not live[way] for x in names)
        if not repeats and (own["schedule"], own["chunks"]) != ("interleaved", 1) and dp == int(dp):
            yield own | {"dp": dp}


def front(points):
    """Those of pairs that none is better than in both, rounding aside: less is better."""
    fastest = math.inf
    for time, memory in sorted(points, key=lambda x: x[::-1]):
        if time < fastest * (1 - 1e-9 * np.sign(fastest)):
            fastest = time
            yield time, memory


def test_it_finds_what_pricing_one_by_one_finds(found):
    priced, out, groups, most = [], Counter(), {}, 24e9 / SPREADS["memory"].high
    for own in one_by_one():
        words = {x: own[x] for x in ("recompute", "sharding", "sequence_parallel", "schedule")}
        groups.setdefault(tuple(words.items()), []).append(own | {"microbatches": 64 / (own["dp"] * own["batch"])})
    known = {**models.llama3_8b, **H100, **SMALL, "attention": "flash"}
    for words, members in groups.items():
        asked = SMALL | dict(words) | {"offload": True}
        sheet = training_step.plan((models.llama3_8b, H100), asked | members[0]).sheet
        fine = [m for m in members if not reason({**known, **m}, sheet)]
        if not fine:
            continue
        letters = {n: np.array([m[n] for m in fine], float) for n in fine[0].keys() - {x for x, _ in words}}
        row = training_step(models.llama3_8b, H100, **asked | letters)
        times, near, far = (np.broadcast_to(row[x], len(fine)) for x in ("step_time", "memory", "offload_memory"))
        out["memory <= hbm_capacity"] += (near > most).sum()
        out["offload_memory <= host_capacity"] += ((near <= most) & (far > 6e9)).sum()
        fits = (near <= most) & (far <= 6e9)
        priced += zip(times[fits], near[fits], strict=True)
    assert found.fitting == len(priced)
    assert found.count == len(priced) + sum(out.values())
    assert {n: found.rejected.get(n, 0) for n in out} == dict(out)
    times = sorted(time for time, _ in priced)
    assert [x.step_time for x in found.best] == pytest.approx(times[:50], rel=1e-9)
    assert sorted(x.memory for x in found.pareto) == pytest.approx(sorted(m for _, m in front(priced)), rel=1e-9)
    assert found.best[0].step_time == pytest.approx(min(x.step_time for x in found.pareto), rel=1e-12)


@pytest.mark.parametrize("place", [0, 7, 49])
def test_a_strategy_found_is_a_row_of_the_sheet(found, place):
    one = found.best[place]
    assert one.row.step_time == pytest.approx(one.step_time, rel=1e-12)
    assert one.row.memory == pytest.approx(one.memory, rel=1e-12)
    assert one.run is one.row and one.mfu == one.run.mfu and not hasattr(one, "tpot")
    assert one.tp == one.letters["tp"] and one.sharding in CHOICES["sharding"] and "training_step(..., " in one.call


def same(a, b):
    def of(x):
        return [(y.values, y.letters, y.words) for y in (*x.best, *x.pareto)], x.rejected, x.count

    return of(a) == of(b)


def test_a_dask_cluster_finds_the_same(found):
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        assert same(small(executor=executor), found)


def test_one_search_of_a_market_is_one_search_for_each_device_and_size():
    devices = [getattr(accelerators, x) for x in ("h100", "mi300x", "tpu_v5p")]
    programs = [frameworks.nemo, frameworks.torchtitan, frameworks.maxtext]
    asked = dict(global_batch=256, seq=8192, batch=[1, 4], progress=False)
    joined = search(training_step, models.llama3_70b, devices, programs, devices=[64, 256], **asked)
    alone = [
        search(training_step, models.llama3_70b, x, programs, devices=n, **asked) for x in devices for n in (64, 256)
    ]
    assert all(same(a, b) for a, b in zip(joined.searches, alone, strict=True))
    best = sorted((y for x in alone for y in x.best), key=lambda x: x.step_time)
    assert [(x.values, x.letters, x.words) for x in joined.best] == [(x.values, x.letters, x.words) for x in best[:10]]
    assert set(joined.to_dict()["device"]) <= {x.name for x in devices}


class Backwards(Executor):
    """Runs what it is given when it is asked for, through pickle."""

    def submit(self, function, *args):
        future = Future()
        function, args = pickle.loads(pickle.dumps((function, args)))
        future.set_result(function(*args))
        return future


@pytest.mark.parametrize("model", ["llama3_8b", "deepseek_v3"])
def test_calls_that_share_their_formulas_would_have_them_alone(model):
    for device, framework in itertools.product(accelerators.values(), frameworks.values()):
        letters = dict(tp=1.0, devices=8.0, global_batch=8.0, seq=4096.0, framework=framework, recompute="none")
        rows, defaults = settled((models[model], device), letters)
        key, sheet, usual, *names = training_step._shape(rows, dict(letters), defaults)
        alone = gather((*rows, usual), {own: letters[n] for own, n in names[0].items()} | names[1])
        shared = training_step.kind((models[model], device), letters)
        assert shared[:2] == (key, sheet) and shared[2].keys() == alone.keys()
        assert all(x.value == alone[n].value for n, x in shared[2].items())


def test_what_is_sent_is_small_and_order_does_not_matter(found, monkeypatch):
    sizes = []
    monkeypatch.setattr("concurrent.futures.as_completed", lambda futures: reversed(futures))
    send = pickle.dumps
    monkeypatch.setattr(pickle, "dumps", lambda x: sizes.append(len(send(x))) or send(x))
    assert same(small(executor=Backwards()), found)
    assert max(sizes) < 100_000


def test_blocks_and_slabs_do_not_matter(found, monkeypatch):
    monkeypatch.setattr("scalebook.search.pricing.BLOCK", 64)
    monkeypatch.setattr("scalebook.search.task.HELD", 1)
    monkeypatch.setattr("scalebook.search.problem.SLAB", 16)
    monkeypatch.setattr("scalebook.search.problem.CANDIDATES", 7)
    monkeypatch.setattr("scalebook.search.parts.PART", 2000)
    again = small()
    assert again.rejected == found.rejected and again.count == found.count
    assert [x.values for x in again.best] == [x.values for x in found.best]
    assert [x.letters for x in again.best] == [x.letters for x in found.best]


def test_limits_rules_and_lifting():
    plain = searched(**SMALL)
    tight = searched(**SMALL, subject_to=["memory <= 30 GB", "mfu >= 0.2", "tp <= 4"])
    assert all(x.memory <= 30e9 and x.tp <= 4 and x.row.mfu >= 0.2 for x in tight.best)
    assert tight.rejected["memory <= 30 GB"] and tight.fitting < plain.fitting
    lifted = searched(**SMALL, lift=["tp within scaleup_size", "memory <= hbm_capacity"])
    assert lifted.fitting == lifted.count > plain.count and "tp within scaleup_size" not in lifted.rejected


def test_a_margin_of_memory_is_kept_and_said():
    asked = SMALL | dict(tp=[1, 2], pp=[1, 2], best=1000, hbm_capacity="60 GB")
    every = searched(**asked, lift="memory <= hbm_capacity").best
    for margin, factor in ((None, SPREADS["memory"].high), (0, 1), (0.1, 1.1), ("25 %", 1.25)):
        said = {} if margin is None else {"memory_margin": margin}
        found = searched(**asked, **said)
        assert {repr(x) for x in found.best} == {repr(x) for x in every if x.memory * factor <= 60e9}
        assert ("memory with a margin of" in repr(found)) == (factor > 1)
        assert len(found.best) < len(every)
    # what the caller limits is limited as it is said
    bound = searched(**asked, subject_to=f"memory <= {found.best[0].memory!r} B")
    assert found.best[0].memory in {x.memory for x in bound.best}


def test_numbers_are_kept():
    one = searched(**SMALL, dp=8, batch=2, tp=[2, 4, 8])
    assert {x.dp for x in one.best} == {8.0} and all(x.row.batch == 2 for x in one.best)
    known = dict(devices=1024, global_batch=1024, seq=2048, host_capacity="1 TB")
    near = search(training_step, models.megatron_1t, H100, **known, optimizer_offload=1)
    assert near.rejected["offload has near_blocks"] and all(x.pp <= 32 for x in near.best)
    assert near.best[0].row.optimizer_offload == 1
    assert near.best[0].row.step_time == pytest.approx(near.best[0].step_time)


def test_a_letter_that_rules_speak_of_can_be_searched():
    some = dict(devices=64, minimize="step_cost", best=5000)
    both = searched(**some, global_batch=[64, 128], seq=[2048, 4096])
    assert {x.seq for x in both.best} == {2048.0, 4096.0}
    one = searched(**some, global_batch=128, seq=4096)
    of = [x.step_cost for x in both.best if (x.seq, x.global_batch) == (4096, 128)]
    assert of == pytest.approx([x.step_cost for x in one.best], rel=1e-12)


def test_a_formula_can_be_swapped():
    slow = Formula(
        "slow", "optimizer_time", symbol("params") / 1e8, ["kingma2014 algorithm 1"], "A very slow optimizer."
    )
    plain = searched(**SMALL)
    swapped = searched(slow, **SMALL)
    assert swapped.best[0].step_time > plain.best[0].step_time + 79
    assert swapped.best[0].row.step_time == pytest.approx(swapped.best[0].step_time)


def test_neighbours_say_why(found):
    near = found.neighbours()
    values = [x for _, x, _ in near.steps if x is not None]
    assert values == sorted(values) and min(values) >= found.best[0].step_time * (1 - 1e-12)
    assert any("would do" in why or "is above" in why for _, x, why in near.steps if x is None)
    assert all(why for _, _, why in near.steps)
    assert "<table" in near._repr_html_() and "→" in repr(near)


def count(**more):
    return searched(**SMALL | HOST, tp=8, pp=1, batch=1, recompute="full", **more).count


def test_letters_that_say_nothing_are_not_counted_twice():
    """A group of devices that shard says something of hybrid sharding alone, blocks near where something is away."""
    one, hybrid = count(sharding="zero1"), count(sharding="hybrid", shard_group=2)
    assert count(sharding=["zero1", "hybrid"], shard_group=[2, 4]) == one + 2 * hybrid
    alone = count(sharding="zero1", optimizer_offload=[0, 1])
    assert count(sharding="zero1", optimizer_offload=[0, 1], near_blocks=[3, 4, 5]) == 3 * alone - 2 * one


def test_options_with_equal_results_count_once():
    asked = dict(devices=8, global_batch=64, seq=4096)
    found = searched(frameworks, **asked)
    kinds = {(*x.values.values(), *x.letters.values()) for x in found.best}
    assert len(kinds) == len(found.best) == 10 and "alike: further combinations of" in repr(found)
    for one in [*found.best[:3], *found.pareto[:3]]:
        others = (one(framework=x) for x in frameworks if x != one.framework)
        assert one.alike == sum((x.step_time, x.memory) == (one.step_time, one.memory) for x in others)
    assert not any("alike" in x for x in searched(**asked).records())


def test_what_is_said_to_say_nothing_says_nothing():
    """With one device a way, a strategy costs the same whatever the words about that way;
    where it does not, it is searched.
    """
    knowns = dict(
        devices=16, global_batch=32, seq=4096, tp=[1, 2], pp=[1], cp=[1, 2], ep=1, batch=1, recompute="none",
        best=10_000,
    )  # fmt: skip
    both = searched(**knowns, context_exchange=["gather", "all_to_all"])
    one = searched(**knowns, context_exchange="gather")
    assert {x.context_exchange for x in both.best if x.cp == 1} == {"gather"}
    assert {x.context_exchange for x in both.best} == {"gather", "all_to_all"}
    assert [x.values for x in both.best if x.cp == 1] == [x.values for x in one.best if x.cp == 1]
    alone = dict(devices=8, global_batch=32, seq=4096, tp=8, pp=1, batch=1, recompute="none")  # nothing to be gathered
    assert searched(**alone, sharding=["zero3", "zero1"]).best[0].sharding == "zero1"


def test_neighbours_leave_out_steps_that_change_nothing():
    near = searched(**SMALL, tp=[1, 8], pp=[1, 2], dp_overlap=1).neighbours()
    assert near.found.pp == near.found.tp == 1
    said = [x for x, _, _ in near.steps]
    assert not [x for x in said if x.startswith(("schedule", "chunks", "sequence_parallel"))]
    assert any("pp 1 → 2" in x for x in said)


# Parts

x, y, z = (symbol(n) for n in ("tp", "pp", "dp"))


@each_case("expressions of a plan", "expr", globals())
@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(*[st.integers(1, 9)] * 2), min_size=1, max_size=20),
    axis=st.lists(st.integers(1, 9), min_size=1, max_size=3),
)
def test_a_plan_evaluates_as_formulas_do(expr, rows, axis):
    f = Formula("f", "step_time", expr)
    own = {"tp": np.array([r[0] for r in rows], float), "pp": np.array([r[1] for r in rows], float)}
    plan = Plan(["tp", "pp"], {"dp": tuple(axis)})
    place = plan.add(expr, plan.letters)
    got = Block(Evaluated(plan, own, np.ones(len(rows), bool)), np.arange(len(rows))).value(place)
    arrays = np.broadcast_arrays(*own.values(), np.array(axis, float)[:, None])
    known = dict(zip(("tp", "pp", "dp"), arrays, strict=True))
    expected = f.numpy(*(known[n] for n in f.inputs)) if f.inputs else float(expr)
    shape = len(axis), len(rows)
    np.testing.assert_allclose(np.broadcast_to(got, shape), np.broadcast_to(expected, shape), rtol=1e-13)


@given(st.integers(1, 5000))
def test_divisors(number):
    assert list(divisors(number)) == [x for x in range(1, number + 1) if number % x == 0]


# The kernel's own account of a process since its start: getrusage would count the worker that started it.
MEMORY = (ROOT / "tests" / "scripts" / "much.txt").read_text("utf-8")


def test_memory_is_bounded_whatever_the_space():
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout.split()
    assert int(run[0]) > 4_000_000 and float(run[1]) < 1.0
