"""The closed forms of pipelines against their execution: equal where they are exact, an inequality where they bound."""

import json
from fractions import Fraction
from itertools import pairwise

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scalebook.book.drawings.live_gantt import SIZES, live_gantt

from scalebook import confront, pipeline
from scalebook.language import symbol
from scalebook.pipeline.schedules import SCHEDULES
from scalebook.pipeline.simulation import PASSES, simulate

from .support import TIMES, TIMES_OF, JavaScript, exactly

CHART = live_gantt()
BROWSER = JavaScript(CHART._esm.replace("export default", "const live =").replace("export ", ""))
STAGES = st.integers(1, 8)
quick = settings(max_examples=40)


def closed(name, run, times, **more):
    f = getattr(pipeline, f"bubble_{name}")
    return exactly(f, pp=run.pp, microbatches=run.microbatches, chunks=run.chunks, **times, **more)


def test_dualpipe_is_as_published_where_the_times_are_as_its_report_has_them():
    f, b, w = (symbol(x) for x in TIMES_OF)
    published = (symbol("pp") / 2 - 1) * (f + (b + w) + (b + w) - 3 * w) / (symbol("microbatches") * (f + b + w))
    for at in ({f: 4, b: 4, w: 3}, {f: 4, b: 6, w: 3}, {f: 4, b: 4, w: 4}):
        assert sympy.simplify((pipeline.bubble_dualpipe.rhs - published).subs(at)) == 0


# The domain of each formula: elsewhere it is refused, and nothing runs there or more is idle than it would say.


@quick
@given(STAGES, st.integers(1, 24), TIMES, st.fractions(0, 30, max_denominator=8))
def test_transfers_of_1f1b(pp, microbatches, times, transfer_time):
    run = simulate("1f1b", pp, microbatches, transfer_time=transfer_time, **times)
    assert run.bubble == closed("1f1b_transfers", run, times, transfer_time=transfer_time)


@quick
@given(STAGES, st.integers(1, 24), TIMES, st.integers(0, 30))
def test_gpipe_pays_for_transfers_when_it_fills_and_drains(pp, microbatches, times, transfer_time):
    run = simulate("gpipe", pp, microbatches, transfer_time=transfer_time, **times)
    assert run.makespan == simulate("gpipe", pp, microbatches, **times).makespan + 2 * (pp - 1) * transfer_time


@quick
@given(
    st.sampled_from(["gpipe", "1f1b", "zb_h1", "zb_h2"]),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 12),
    TIMES,
    st.integers(0, 9),
)
def test_every_execution_keeps_the_rules(name, scale, microbatches, times, transfer_time):
    pp = len(scale)
    run = simulate(name, pp, microbatches, scale=scale, transfer_time=transfer_time, **times)
    ends = {x: slot for slot in run.slots for x in slot.operations}
    assert sorted(ends) == sorted((k, s, m) for k in "BFW" for s in range(pp) for m in range(microbatches))
    for (kind, stage, k), slot in ends.items():
        if kind == "F" and stage:
            assert slot.start >= ends["F", stage - 1, k].end + transfer_time
        if kind == "B" and stage < pp - 1:
            assert slot.start >= ends["B", stage + 1, k].end + transfer_time
        if kind == "B":
            assert slot.start >= ends["F", stage, k].end
        if kind == "W":
            assert slot.end >= ends["B", stage, k].end
    for device in range(pp):
        slots = [x for x in run.slots if x.device == device]
        assert all(a.end <= b.start for a, b in pairwise(slots))
    total = sum(times.values())
    assert run.busy == [microbatches * x * total for x in scale]
    assert run.interval >= microbatches * max(scale) * total
    assert run.makespan >= run.interval and run.bubble >= 0


def test_times_may_have_units():
    run = simulate("1f1b", 4, 8, forward_time="10 ms", input_gradient_time="10 ms", weight_gradient_time="5 ms")
    assert float(run.interval) == pytest.approx(11 * 0.025) and run.bubble == Fraction(3, 8)


@quick
@given(st.sampled_from(list(SCHEDULES)), st.sampled_from(list(SIZES)), TIMES, st.integers(0, 20), st.integers(1, 3))
def test_the_browser_executes_as_python_does(name, size, times, transfer_time, slow):
    entry = CHART.pipeline["schedules"][name]
    chunks, (pp, m) = entry["chunks"], SIZES[size]
    scale = [1] * (pp * chunks - 1) + [slow]
    run = simulate(
        name, pp, m, None if SCHEDULES[name].chunks else chunks, scale=scale, transfer_time=transfer_time, **times
    )
    kinds = {kind: times[letter] for kind, letter in PASSES.items()}
    page = BROWSER(
        f"execute({json.dumps(entry['orders'][size])}, {chunks}, {json.dumps(kinds)}, {transfer_time}, {slow})"
    )
    assert page["step"] == pytest.approx(float(run.interval))
    assert page["bubble"] == pytest.approx(float(run.bubble), abs=1e-9)
    assert [x["device"] for x in page["slots"]] == [x.device for x in run.slots]
    assert [x["start"] for x in page["slots"]] == pytest.approx([float(x.start) for x in run.slots])


def confronted(folder, rows):
    """The set with these rows alone, without the columns that only the package's file has."""
    head = "schedule (Victarry/PP-Schedule-Visualization),devices,stages,microbatches,bubble_fraction_of_total\n"
    (folder / "other.csv").write_text(head + rows)
    return confront("pipeline_schedules", folder / "other.csv")


def test_another_simulator_agrees_to_the_last_digit(tmp_path):
    assert confront("pipeline_schedules").summary["worst"] < 1e-12
    assert confronted(tmp_path, f"dualpipe,4,4,16,{2 / 50}\n").summary["worst"] < 1e-12


def test_rows_where_a_formula_does_not_hold_are_left_out(tmp_path):
    rows = "zb1p,8,8,4,0.3\ninterleaved v=2,8,16,12,0.1\n1f1b,8,8,4,0.6363636363636364\n"
    found = confronted(tmp_path, rows)
    assert found.summary["rows"] == 1 and found.summary["worst"] < 1e-12
    assert found.left_out == {"of a schedule whose formula does not hold there": 2}
