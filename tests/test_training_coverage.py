"""Eight in ten measured steps lie in the interval of the call that a reader types, with a framework and without one."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from scalebook.measurements import confront
from scalebook.measurements.calls import Call
from scalebook.measurements.sets import stanzas
from scalebook.tables import frameworks
from scalebook.training.frameworks import words_of

MOST = 30  # rows asked of a set
SETS = [
    x
    for x, said in stanzas().items()
    if "framework" in said.said and said.said["file"].startswith("training_")
    and "parts" not in said.said  # how two steps compare, and no step's time
]  # fmt: skip
# The host sets these steps, or how a slow node stalls them, which no interval of overlaps can hold.
OF_HOST = {"nanotron", "bloom_topology", "mtnlg"}


def _without_framework(call: Call) -> Call:
    """A call without its framework: the words of its strategy and the width of its sums are said instead."""
    row = frameworks[next(key for kind, key, *_ in call.rows if kind == "frameworks")]
    said = words_of(row) | {x: row[x] for x in ("reduce_bits",) if x in row}
    return replace(call, rows=tuple(x for x in call.rows if x[0] != "frameworks"), letters=said | dict(call.letters))


@cache
def covered(name: str) -> tuple[int, float, float]:
    """How many rows of a set were asked, and which share is inside with its framework and without one."""
    result, stanza = confront(name), stanzas()[name]
    places = np.unique(np.linspace(0, len(result.rows) - 1, min(MOST, len(result.rows))).astype(int))
    inside = []
    for i in places:
        call, off = stanza.call(result.rows[i]), result.measured[i] / result.predicted[i]
        measured = call.runs[0].step_time * (off if result.confrontation.unit in ("s", "d") else 1 / off)
        bare = _without_framework(call)
        inside.append([measured in x.runs[0].interval("step_time") for x in (call, bare)])
    return len(places), *np.mean(inside, axis=0)


@pytest.mark.parametrize("name", [x for x in SETS if x not in OF_HOST])
def test_most_rows_of_a_set_are_inside_both_ways(name):
    rows, named, unnamed = covered(name)
    least = 0.6 if rows > 8 else 0.5  # of so few one row more or less
    assert named >= least and unnamed >= least, (
        f"{name}: {named:.0%} of {rows} with its framework, {unnamed:.0%} without"
    )


def test_about_eight_in_ten_of_all_rows_are_inside_both_ways():
    """Sets count as the square roots of their rows, as where spreads are learnt; bytes of memory are no step's time."""
    table = {name: covered(name) for name in SETS if stanzas()[name].said["unit"] != "B"}
    for name, (rows, named, unnamed) in table.items():
        print(f"{name:28} {rows:4} {named:5.0%} {unnamed:5.0%}")
    weights = [x[0] ** 0.5 for x in table.values()]
    for way in (1, 2):
        assert 0.75 <= np.average([x[way] for x in table.values()], weights=weights) <= 0.92
