"""The contract of a schedule: what it says of itself is what its order does.
A new one is held to it by being entered.
"""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scalebook.language import SOURCES, Formula, symbol
from scalebook.pipeline import SCHEDULES, Schedule, simulate
from scalebook.pipeline.simulation import _needs
from scalebook.training import CHOICES, WORDS

from .support import TIMES, TIMES_OF, each_case, exactly, refuses

SHAPES = st.integers(1, 8).flatmap(
    lambda pp: st.tuples(st.just(pp), st.one_of(st.integers(1, 40), st.integers(1, 6).map(lambda n: 2 * pp * n)))
)


def holds(f, letters):
    return all(x.holds(letters) for x in f.domain)


def misplaced(schedule, run):
    """What a schedule says of the model's ends, copies and trips that its order does not do; nothing if all is well."""
    if run.pp == 1:
        return ""
    places = {(x.stage, slot.device) for slot in run.counted for x in slot.operations}
    last = run.pp * run.chunks - 1
    first, final = ({device for stage, device in places if stage == end} for end in (0, last))
    ends = "both" if len(first) > 1 else "first" if first == final else "apart"
    if schedule.ends != ends:
        return f"ends is {schedule.ends!r}, and the order puts them {ends!r}: {sorted(first)} and {sorted(final)}"
    if schedule.copies != (copies := Fraction(len(places), last + 1)):
        return f"copies is {schedule.copies}, and the order keeps each stage on {copies} devices"
    visits = Counter((slot.device, x.microbatch) for slot in run.counted for x in slot.operations if x.kind == "F")
    trips = schedule.passes * (run.chunks if schedule.chunks is None else 1)
    return (
        "" if {*visits.values()} == {trips} else f"passes is {schedule.passes}, and devices see {max(visits.values())}"
    )


def wrongly_exposed(schedule, run, asked, times, letters):
    """What a schedule says of transfers that nothing hides, and its order does not do; nothing if all is well.

    If a device waits for each tensor that it receives, what is exposed is what the busiest device receives. If it
    works ahead instead, what is exposed is what the executed step grows by, and that is less. Two devices have no
    neighbours on both sides, and receive half as much: the formulas are on the safe side there.
    """
    if run.pp == 2:
        return ""
    place = {x: slot.device for slot in run.counted for x in slot.operations}
    needed = {x: need for x in place if (need := _needs(x, run.pp * run.chunks - 1))}
    received = Counter(place[x] for x, need in needed.items() if place[x] != place[need])
    late, most = Fraction(min(times.values()), 8 * run.chunks), max(received.values(), default=0)
    # A strategy gives chunks only if the schedule leaves them open.
    chunks = run.chunks if schedule.chunks is None else 1
    said = exactly(schedule.exposed, **letters | dict(transfer_time=late, pp_overlap=0, chunks=chunks)) / late
    if said == most:
        return ""
    waited = (simulate(*asked, **times, transfer_time=late).makespan - run.makespan) / late
    return "" if said == waited else f"exposed is {said} transfers; a device receives {most} and waits for {waited}"


def broken(schedule, pp, microbatches, chunks, times, scale=1):
    """What a schedule says of itself that its order does not do; nothing if all is well."""
    chunks = schedule.chunks or chunks
    letters = dict(pp=pp, microbatches=microbatches, chunks=chunks, **times)
    asked = (schedule.name, pp, microbatches, None if schedule.chunks else chunks)
    try:
        run = simulate(*asked, **times)
    except ValueError as error:
        is_out = not holds(schedule.bubble, letters)
        return "" if is_out else f"its bubble has a value where its order does not run: {error}"
    slow = simulate(*asked, **times, scale=[*[1] * (pp * chunks - 1), scale])  # unequal stages: kept and sent as much
    said = [exactly(schedule.held, **letters, stage=i + 1) for i in range(pp)]
    if max(run.in_flight) > max(said) or any(a > b for a, b in zip(run.in_flight, said, strict=True)):
        return f"held is {said}, and the order keeps {run.in_flight}"
    if not holds(schedule.bubble, letters):
        is_more = run.bubble > exactly(schedule.bubble, **letters)
        return "" if is_more else "its bubble is right where it is said not to hold"
    if max(run.in_flight) != max(said):
        return f"held is {said}, and the order keeps {run.in_flight}"
    if slow.in_flight != run.in_flight or slow.messages != run.messages:
        return "what is kept and sent depends on how long stages are"
    if run.messages != (sent := exactly(schedule.messages, **letters)):
        return f"messages are {sent}, and the order sends {run.messages}"
    if said := misplaced(schedule, run) or wrongly_exposed(schedule, run, asked, times, letters):
        return said
    bubble = exactly(schedule.bubble, **letters)
    is_right = run.bubble == bubble if schedule.is_exact(*(times[x] for x in TIMES_OF)) else run.bubble <= bubble
    return "" if is_right else f"its bubble is {bubble}, and the order idles {run.bubble}"


@pytest.mark.parametrize("name", SCHEDULES)
@settings(max_examples=24)
@given(SHAPES, st.integers(2, 4), TIMES, st.integers(1, 3))
@example((4, 16), 2, dict.fromkeys(TIMES_OF, 1), 2)
def test_its_closed_forms_are_what_its_order_does(name, shape, chunks, times, scale):
    assert not broken(SCHEDULES[name], *shape, chunks, times, scale)


@each_case("wrong schedules", "name, wrong, said", globals())
def test_the_contract_sees_a_wrong_schedule(name, wrong, said, monkeypatch):
    impostor = object.__new__(Schedule)  # not entered: in the place of the right one
    vars(impostor).update(vars(SCHEDULES[name]) | wrong)
    monkeypatch.setitem(SCHEDULES, name, impostor)
    found = {broken(impostor, 4, m, 1, dict(zip(TIMES_OF, (4, 5, 3), strict=True))) for m in (7, 8, 16)}
    assert any(said in x for x in found)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_a_word_with_a_source(name):
    schedule = SCHEDULES[name]
    assert name in CHOICES["schedule"] and WORDS["schedule"].value(name) is schedule
    assert schedule.source.split()[0] in SOURCES, f"the source {schedule.source!r} is not among the sources"
    assert repr(schedule) == name and schedule.ends in ("apart", "first", "both")
    assert schedule.plain is None or schedule.plain in SCHEDULES
    assert (schedule.chunks is None) == (schedule.plain is not None)


@settings(max_examples=100)
@given(st.integers(1, 8), st.integers(0, 20), TIMES, st.integers(0, 40))
def test_eager_1f1b_waits_for_the_first_and_the_last_transfer_alone(pp, more, times, transfer_time):
    m, (forward, *back) = 2 * pp - 1 + more, (times[x] for x in TIMES_OF)
    late = min(transfer_time, forward, sum(back))
    run = simulate("eager_1f1b", pp, m, **times, transfer_time=late)
    waited = run.makespan - simulate("eager_1f1b", pp, m, **times).makespan
    letters = dict(pp=pp, microbatches=m, transfer_time=late, pp_overlap=0)
    assert waited == exactly(SCHEDULES["eager_1f1b"].exposed, **letters)
    assert run.makespan <= simulate("1f1b", pp, m, **times, transfer_time=late).makespan


def test_a_formula_that_is_no_fraction_is_named():
    loose = Formula("loose", "held_microbatches", symbol("pp") + 1 / 2, ("scalebook",), "")
    refuses(TypeError, r"loose gives 4.5.*: write Rational\(1, 2\) instead of 1 / 2", lambda: exactly(loose, pp=4))
