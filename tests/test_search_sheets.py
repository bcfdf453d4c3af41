"""A sheet is searched over its letters, what a search asks of a thing is one protocol, and nothing priced is lost."""

import itertools
import math
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from scalebook import models, training_step
from scalebook.inference.shared import sharing
from scalebook.inference.tokens import decoding, token_time_overhead
from scalebook.language import Formula, Row, Sheet, symbol
from scalebook.language.domain import Condition
from scalebook.memory.serving import full_attention, kv_cache
from scalebook.search import Searchable, Space, search, task
from scalebook.search.arguments import problem_of
from scalebook.search.problem import about, layouts, word_combinations

from .support import H100, cases, refuses
from .test_search import SMALL, front, searched

BATCHES = [1, 2, 4, 16, 64, 256]
CASES = cases("sheets that are searched", globals())


def one_by_one(sheet, model, letters, wanted):
    """Each combination of the letters with the sheet's row, where it has values of all that is wanted."""
    several = {n: x for n, x in letters.items() if isinstance(x, list)}
    for values in itertools.product(*several.values()):
        own = letters | dict(zip(several, values, strict=True))
        row = sheet(model, H100, **own)
        if all(n in row for n in wanted):
            yield own, row


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "aim, name, against", [("minimize", "token_time", "held"), ("maximize", "decode_rate", "token_time")]
)
def test_a_sheet_is_searched_as_pricing_one_by_one_does(case, aim, name, against):
    sheet, model, held, letters = CASES[case]
    against = held if against == "held" else against
    found = search(sheet, model, H100, **letters, **{aim: name}, against=against, best=10_000)
    rows = [x for x in one_by_one(sheet, model, letters, (name, against, held)) if x[1][held] <= H100.hbm_capacity]
    sign = 1 if aim == "minimize" else -1
    assert found.fitting == len(found.best) == len(rows) > 10
    assert [x.values[name] for x in found.best] == pytest.approx(
        sorted((r[name] for _, r in rows), key=lambda x: sign * x), rel=1e-12
    )
    best = [sign * x for x, _ in front((sign * r[name], r[against]) for _, r in rows)]
    assert sorted(x.values[name] for x in found.pareto) == pytest.approx(sorted(best), rel=1e-12)
    for one in found.best[:: len(found.best) // 5]:
        assert one.row[name] == pytest.approx(one.values[name], rel=1e-12)
        assert one.call.startswith(f"{sheet.name}(..., ") and f"batch={one.batch:g}" in one.call
    number = math.prod(len(x) for x in letters.values() if isinstance(x, list))
    assert found.rejected and found.fitting + sum(found.rejected.values()) == number
    lifted = search(sheet, model, H100, **letters, **{aim: name}, lift=f"{held} <= hbm_capacity", best=10_000)
    assert lifted.fitting == len(list(one_by_one(sheet, model, letters, (name,))))


def test_the_largest_batch_within_a_time():
    known = dict(context=8192, kv_bits=16, tp=[2, 4, 8], weight_bits=[16, 8, 4], batch=list(range(1, 201, 9)))
    found = search(sharing, models.llama3_70b, H100, **known, maximize="batch", subject_to="token_time <= 15 ms")
    priced = one_by_one(sharing, models.llama3_70b, known, ("token_time",))
    fits = [own for own, row in priced if row.token_time <= 0.015 and row.device_memory <= H100.hbm_capacity]
    assert found.best[0].batch == max(own["batch"] for own in fits) < 199 and found.fitting == len(fits)
    # Without a second value the best alone.
    assert found.pareto[0].letters == found.best[0].letters and len(found.pareto) == 1
    assert repr(found.best[0]).startswith("batch ") and "-" not in repr(found).split("\n")[3]


def test_what_a_formula_has_no_value_for_is_left_out_and_counted():
    few = Condition("at most 16 sequences", symbol("batch") <= 16)
    narrow = Formula("narrow", "token_time", symbol("memory_time"), doc="A step of few sequences.", domain=(few,))
    letters = dict(batch=BATCHES, context=[1024, 8192], kv_bits=16, weight_bits=16)
    found = search(decoding, narrow, models.llama3_8b, H100, **letters, minimize="token_time", best=100)
    assert {x.batch for x in found.best} == {1, 2, 4, 16}
    assert found.rejected == {"narrow holds for at most 16 sequences": 4}
    assert found.best[0].row.token_time == pytest.approx(found.best[0].token_time)
    near = search(
        decoding, narrow, models.llama3_8b, H100, **letters, maximize="batch", subject_to="token_time <= 1 s"
    ).neighbours()
    assert any("at most 16 sequences" in why for said, value, why in near.steps if value is None and "batch" in said)
    wall = Sheet(
        "wall", Formula("left", "kv_cache", symbol("hbm_capacity") - symbol("weight_memory"), doc="Room for caches.")
    )
    found = search(wall, hbm_capacity="80 GB", weight_memory=[1e9, 70e9, 80e9, 90e9], minimize="kv_cache")
    assert [x.weight_memory for x in found.best] == [80e9, 70e9, 1e9] and found.rejected == {"kv_cache has a value": 1}


@pytest.mark.parametrize("axes", [1, 4096])
def test_strategies_without_a_value_do_not_count_as_priced(axes, monkeypatch):
    monkeypatch.setattr("scalebook.search.problem._AXES", axes)
    domain = (Condition("few", symbol("batch") * symbol("context") <= 65536),)
    few = Formula("few", "token_time", symbol("memory_time"), domain=domain)
    known = dict(batch=BATCHES, context=[1024, 8192], kv_bits=16, weight_bits=[8, 16])
    found = search(decoding, few, models.llama3_8b, H100, **known, minimize="token_time", best=100)
    assert found.count == found.fitting == len(found.best) == 24 - found.rejected["few holds for few"] == 16


def test_a_formula_is_searched_as_the_sheet_of_itself():
    letters = dict(batch=[1, 2, 8], context=[1024, 8192], kv_bits=[16, 8])
    found = search(kv_cache, models.gpt_oss_120b, **letters, minimize="kv_cache", best=100)
    own = [
        kv_cache(models.gpt_oss_120b, batch=b, context=c, kv_bits=k) for b, c, k in itertools.product(*letters.values())
    ]
    assert [x.kv_cache for x in found.best] == pytest.approx(sorted(own))
    whole = search(kv_cache, models.gpt_oss_120b, full_attention, **letters, minimize="kv_cache", best=100)
    assert whole.best[-1].kv_cache > 1.5 * found.best[-1].kv_cache  # its windows are forgotten
    assert whole.best[-1].row.kv_cache == pytest.approx(whole.best[-1].kv_cache)


def test_rows_give_way_to_letters_that_are_searched():
    """What a row computed from a letter that is searched goes with it, and a formula swapped in counts."""
    letters = dict(batch=[1, 8], context=8192, kv_bits=16, weight_bits=16, hbm_bandwidth=[1e12, 3e12])
    found = search(
        decoding, models.llama3_8b, H100, token_time_overhead, **letters, bandwidth_efficiency=0.8,
        block_overhead="10 us", minimize="token_time", against="hbm_bandwidth",
    )  # fmt: skip
    for one in found.best:
        assert one.row.token_time == pytest.approx(one.token_time, rel=1e-12)
        assert one.row.hbm_bandwidth == one.hbm_bandwidth
    assert {x.hbm_bandwidth for x in found.pareto} == {1e12, 3e12}


@pytest.mark.parametrize("name", ["_AXES", "SLAB", "CANDIDATES"])
def test_sizes_do_not_matter(name, monkeypatch):
    sheet, model, held, letters = CASES["sharing"]
    asked_for = dict(minimize="token_time", against=held, best=50)
    plain = search(sheet, model, H100, **letters, **asked_for)
    monkeypatch.setattr(f"scalebook.search.problem.{name}", 3)
    monkeypatch.setattr("scalebook.search.parts.PART", 10)
    again = search(sheet, model, H100, **letters, **asked_for)
    assert [x.values for x in again.best] == [x.values for x in plain.best] and again.rejected == plain.rejected
    assert [x.letters for x in again.pareto] == [x.letters for x in plain.pareto]


# The protocol


class Toll:
    """The least thing that can be searched: what so many lorries pay on two roads."""

    name = "toll"
    space = Space(axes=("step_cost", "step_time"), words={"kernels": ("measured", "ideal")})

    def sheet(self, knowns, letters):
        letters = dict(letters)
        rate = 1 if letters.pop("kernels", "measured") == "ideal" else 2
        cost = Formula("cost", "step_cost", rate * symbol("batch"), doc="What is paid.")
        return Sheet("toll", cost, Formula("time", "step_time", 10 / symbol("batch"), doc="How long.")), knowns, letters

    def __call__(self, *knowns, **letters):
        sheet, knowns, letters = self.sheet(knowns, letters)
        return sheet(*knowns, **letters)


def test_what_has_a_name_a_space_and_a_sheet_can_be_searched():
    assert isinstance(Toll(), Searchable) and isinstance(training_step, Searchable)
    found = search(Toll(), batch=[1, 2, 5], kernels=["measured", "ideal"])
    assert found.count == 6 and (found.best[0].kernels, found.best[0].batch) == ("ideal", 1)
    assert {(x.kernels, x.batch) for x in found.pareto} == {("ideal", 1.0), ("ideal", 2.0), ("ideal", 5.0)}
    assert found.best[3].row.step_cost == found.best[3].step_cost and isinstance(found.best[0].row, Row)


DECODING = dict(context=8192, kv_bits=16, weight_bits=16)


# How many


SHARES = [x / 2000 for x in range(2000)]


def test_a_search_that_would_not_end_is_refused_with_its_size():
    known = dict(tp=8, pp=2, batch=1, recompute="none", sharding="zero1", schedule="1f1b", chunks=1)
    shares = dict(tp_overlap=SHARES, dp_overlap=SHARES, pp_overlap=SHARES)
    said = r"would price about 8,000,000,000 strategies, and most=1e\+09 .*tp_overlap \(2,000 values\).*most=2e\+10"
    refuses(ValueError, said, lambda: searched(**SMALL, **known, **shares))
    ways = dict.fromkeys(("tp", "cp", "pp"), range(1, 2001))  # of these few divide the devices
    assert searched(**SMALL, **ways).count > 868


def test_it_says_how_many_before_it_starts(capsys):
    found = search(decoding, models.llama3_8b, H100, batch=BATCHES, **DECODING, minimize="token_time", progress=True)
    assert f"search of {len(BATCHES)} strategies" in capsys.readouterr().err
    assert found.count + sum(found.rejected.values()) == len(BATCHES)


def test_a_count_of_a_sample_comes_near(monkeypatch):
    def told(**more):
        problem = problem_of(training_step, (models.llama3_8b, H100), None, None, None, (), (), 10, SMALL | more)
        return about(problem, layouts(problem), word_combinations(problem))

    domains = searched(**SMALL)
    count = domains.count + sum(x for n, x in domains.rejected.items() if "holds for" in n)
    assert told() == (count, True)
    monkeypatch.setattr("scalebook.search.problem.LOOKED", 300)
    monkeypatch.setattr("scalebook.search.problem.COUNTED", 100)
    near, is_exact = told()
    assert not is_exact and near == pytest.approx(count, rel=0.5)


# Nothing priced is lost


@pytest.fixture
def halves(monkeypatch):
    """The search of two parts."""
    monkeypatch.setattr("scalebook.search.parts.PART", 4000)
    monkeypatch.setattr("scalebook.search.parts.WORKED", 2)


def whole():
    return searched(**SMALL)


class Some(ThreadPoolExecutor):
    """Runs some parts, and fails the others with an error."""

    def __init__(self, good, error):
        super().__init__(1)
        self.good, self.error = good, error

    def submit(self, function, *args):
        self.good -= 1
        if self.good >= 0:
            return super().submit(function, *args)
        future = Future()
        future.set_exception(self.error)
        return future


def test_a_part_that_fails_costs_no_other(halves):
    with Some(1, OSError("no space left")) as pool:
        part = searched(**SMALL, executor=pool)
    assert not part.is_whole and 0 < part.count < whole().count and part.best[0].step_time
    assert part.note.startswith("the best so far, OSError: no space left: 1 of 2 parts, about 5")
    assert part.note.endswith("strategies, were not priced")
    assert part.note in repr(part) and "no space" in part._repr_html_()
    with Some(0, OSError("no space left")) as pool, pytest.raises(OSError, match="no space left"):
        searched(**SMALL, executor=pool)


def dies(problem, combinations, rows, of):
    """Prices, but for one part that takes its process with it."""
    if rows[0][1].start > 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.price(problem, combinations, rows, of)


def test_a_killed_worker_loses_nothing_that_was_priced(monkeypatch, halves):
    all_of_them = whole().count
    monkeypatch.setattr("scalebook.search.parts.price", dies)
    with ProcessPoolExecutor(1) as pool:
        part = searched(**SMALL, executor=pool)
        assert part.best and 0 < part.count < all_of_them and "a worker process was killed" in part.note
        with pytest.raises(RuntimeError, match=r"a worker process was killed, .*and nothing had been priced"):
            searched(**SMALL, executor=pool)


def test_interrupted_early_it_says_so(monkeypatch, halves):
    def at_once(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("scalebook.search.parts.price", at_once)
    part = whole()
    assert part.count == 0 and "interrupted: 2 of 2 parts, about 1,100 strategies, were not priced" in part.note
    for ask in (lambda: part.best[0], part.neighbours):
        refuses(IndexError, r"^no strategies are here; the best so far, interrupted: 2 of 2 parts", ask)
    assert part.best == part.pareto == [] and "interrupted" in repr(part)


def test_interrupted_it_keeps_what_had_come_back(monkeypatch, halves):
    """Parts that other processes had priced, and nobody had asked for yet."""

    def interrupted(futures):
        futures = list(futures)
        for future in futures:
            future.result()
        yield futures[0]
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.as_completed", interrupted)
    with ThreadPoolExecutor(1) as pool:
        part = searched(**SMALL, executor=pool)
    assert part.is_whole and part.count == whole().count
