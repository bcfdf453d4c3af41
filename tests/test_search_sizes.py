"""A search at many sizes, without a Pareto front, finds what a search of each finds, to the last digit."""

import csv
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scalebook.book.measured.sizes import EACH, MODELS, SYSTEMS, at_sizes, fewest, kept, written

from scalebook import accelerators, models, training_step
from scalebook.calculon import Strategies, application, library
from scalebook.inference import serve
from scalebook.search import search
from scalebook.tables import engines, frameworks

MACHINE, MODEL = Strategies(library.systems["h100_80g_nvl8"]), application(library.models["gpt3-1.3B"])
ASKED = dict(global_batch=96, fused=True, overlap=["none", "ring"], progress=False)
SIZES = [8, 24, 40, 64, 104]
MINE = models.llama3_8b


def same(one, other):
    """Whether two searches found the same, to the last digit."""
    return (
        [(x.values, x.letters, x.words) for x in one.best] == [(x.values, x.letters, x.words) for x in other.best]
        and (one.count, one.rejected, one.fitting) == (other.count, other.rejected, other.fitting)
    )  # fmt: skip


def at_each(*things, **known):
    found = search(*things, pareto=False, **known)
    return {x.problem.values["devices"]: x for x in getattr(found, "searches", [found])}


@pytest.fixture(scope="module")
def swept():
    return at_each(MACHINE, MODEL, devices=SIZES, best=3, **ASKED)


@pytest.mark.parametrize("devices", SIZES)
def test_each_size_is_its_search(swept, devices):
    assert same(swept[devices], search(MACHINE, MODEL, devices=devices, best=3, **ASKED))
    assert not swept[devices].pareto


@pytest.mark.parametrize("asked", [dict(), dict(maximize="mfu"), dict(minimize="memory", subject_to="mfu >= 20 %")])
def test_training_is_swept_too(asked):
    known = dict(global_batch=96, seq=4096, recompute=["none", "full"], progress=False, **asked)
    things = training_step, models.llama3_8b, accelerators.h100.at("bf16")
    found = at_each(*things, devices=[8, 24, 48], **known)
    for n in found:
        assert same(found[n], search(*things, devices=n, **known))


def test_executors_find_the_same(swept, monkeypatch):
    monkeypatch.setattr("scalebook.search.parts.SIZES", 2)
    again = [at_each(MACHINE, MODEL, devices=SIZES, best=3, **ASKED)]
    with ProcessPoolExecutor(2) as pool:
        again.append(at_each(MACHINE, MODEL, devices=SIZES, best=3, executor=pool, **ASKED))
    for other in again:
        assert list(other) == list(swept) and all(same(other[n], swept[n]) for n in SIZES)


class Interrupted(ThreadPoolExecutor):
    """Takes one call, and then the reader has had enough."""

    taken = 0

    def submit(self, *call):
        self.taken += 1
        if self.taken > 1:
            raise KeyboardInterrupt
        future = super().submit(*call)
        future.result()
        return future


def test_interrupted_it_gives_the_sizes_so_far(monkeypatch):
    monkeypatch.setattr("scalebook.search.parts.SIZES", 2)
    with Interrupted(1) as pool:
        part = search(MACHINE, MODEL, devices=SIZES[:4], pareto=False, executor=pool, **ASKED)
    assert not part.is_whole and "interrupted: 1 of 2 parts" in repr(part)
    assert sum(bool(x.best) for x in part.searches) == 2


def test_where_rules_allow_no_row_of_some_words_the_others_are_priced():
    """Eight sequences on 512 devices: of most schedules no layout is allowed."""
    known = (training_step, models.llama3_8b, accelerators.h100.at("bf16"))
    given = dict(global_batch=8, seq=4096, progress=False)
    assert same(search(*known, devices=512, pareto=False, **given), search(*known, devices=512, **given))


def test_sizes_may_come_in_any_order_and_twice():
    assert sorted(at_each(MACHINE, MODEL, devices=np.array([24, 8, 24]), **ASKED)) == [8, 24]


# Calculon's study, as it is kept


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_kept_of_the_study_is_what_is_found(system):
    """A sample: the rest was written by the same call."""
    chance = random.Random(system)
    model, sizes = chance.choice([m for m, s in kept() if s == system]), sorted(chance.sample(EACH[::2], 3))
    found = fewest(at_sizes(model, system, sizes, progress=False))
    own = {(m, s): {} for m in MODELS for s in SYSTEMS} | {(model, system): found}
    again = {int(x["devices"]): x[f"{model} on {system}"] for x in csv.DictReader(written(own).splitlines())}
    rows = kept()[model, system]
    for n in sizes:
        assert again[n] == (f"{rows[n]:.5g}" if n in rows else "")


def test_the_study_has_all_sizes():
    for own, rows in kept().items():
        missing = set(EACH) - set(rows)
        assert all(n < 200 for n in missing), own  # none fits on few devices


def test_a_device_without_a_strategy_is_named_with_its_size_if_it_has_some_at_another():
    asked = dict(devices=[16, 64], global_batch=64, seq=8192)
    known = training_step, models.llama3_70b, [accelerators.h100, accelerators.b200]
    assert [*search(*known, **asked).without] == ["NVIDIA H100 SXM (16 devices)"]
    sizes = search(training_step, models.llama3_70b, accelerators.h100, **asked)
    assert [*sizes.without] == ["16"] and "\n16 " in repr(sizes).partition("\ndevices ")[2]
    joined = search(*known, **asked | dict(devices=[1, 2, 3, 64]))
    assert len(joined.without) == 6 and "; without 2 devices, named below" in joined._summary


def test_a_whole_table_of_programs_is_searched_where_they_run():
    """A device of a vendor that no program is known to run on has the default; a list is searched as it is given."""
    devices = [accelerators[x] for x in ("h100", "mi300x", "tpu_v5p", "maia200")]
    trained = dict(devices=64, global_batch=64, seq=4096, best=200, progress=False)
    served = dict(devices=1, users=8, prompt=1000, output=100, best=200, progress=False)
    for thing, table, asked in ((training_step, frameworks, trained), (serve, engines, served)):
        found, word = search(thing, MINE, devices, table, **asked), table.name.removesuffix("s")
        assert f" {word}s do not run on devices of NVIDIA, AMD, Google or Microsoft" in found._summary
        for one, device in zip(found.searches, devices, strict=True):
            used = {x.words.get(word) for x in one.best} - {None, "ideal"}
            assert all(device.words["vendor"] in table[x].words["vendors"].split() for x in used)
            assert bool(used) is (device is not accelerators.maia200)
    listed = search(training_step, MINE, accelerators.mi300x, [frameworks.nemo], **trained)
    assert {x.words["framework"] for x in listed.best} == {"nemo"}
    said = listed._summary, listed.best[0].run.answer.title
    assert all("(which runs on devices of NVIDIA, not of AMD)" in x for x in said)
