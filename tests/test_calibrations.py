"""Calibrated cells: none of the other values that calibrations.csv lists predicts the rows that the cell names better.

A line names sets, which of the rows that they calibrate on (an expression over their columns and the text of their
call), the letters that are moved together, their value in the tables, and other values: factors of it, or, after "=",
values themselves. The error is a mean of |log|, where `wide` counts products of 1,024 rows three times; of relative
errors; or of their squares, which are of times.
"""

import math
import re
from functools import cache

import numpy as np
import pytest

from scalebook import confront, tables
from scalebook.language import NOTATION
from scalebook.machine.kernels import exposed_write
from scalebook.measurements.confrontation import TIMES
from scalebook.measurements.sets import stanzas
from scalebook.training.host import DEFAULT_LETTERS as HOST_LETTERS

from .refits import fitted_rows, predicted_with
from .support import csv_rows

LINES = csv_rows("calibrations.csv")
KNOWN = {x: getattr(tables, x) for x in ("accelerators", "clusters", "libraries")} | dict(exposed_write=exposed_write)


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


@cache
def picked(name, where):
    """The rows that a set calibrates on and an expression picks, and what was measured and is predicted of them."""
    rows, measured = fitted_rows(name)
    predicted = confront(name).predicted[confront(name).fitted]
    names = dict(matches=lambda text, pattern: re.search(pattern, str(text)), min=min)
    call = stanzas()[name].call if "call" in where else None
    said = ({n: number(x) for n, x in row.items()} | ({"call": call(row).text} if call else {}) for row in rows)
    places = [i for i, row in enumerate(said) if not where or eval(where, {"__builtins__": {}}, names | row)]
    return [rows[i] for i in places], measured[places], predicted[places]


@cache
def error(sets, where, beside, kind, *letters):
    """The mean over the rows of all sets, with other values of letters."""
    beside = {n: eval(x, {}, KNOWN) for n, x in re.findall(r"(\w+) = ([^;]+)", beside)}
    errors = []
    for name in sets.split():
        rows, measured, predicted = picked(name, where)
        if not rows:
            continue
        moved = beside | dict(letters)
        over = (predicted_with(name, rows, **moved) if moved else predicted) / measured
        if kind in ("log", "wide"):
            weights = [3 if kind == "wide" and float(x["m"]) >= 1024 else 1 for x in rows]
            errors += np.repeat(np.abs(np.log(over)), weights).tolist()
        elif kind == "mean":
            errors += np.abs(over - 1).tolist()
        else:
            errors += ((over if confront(name).confrontation.unit in TIMES else 1 / over) - 1).tolist()
    assert errors, "there are no such rows"
    return np.mean(np.square(errors) if kind == "square" else errors)


@pytest.mark.parametrize("line", LINES, ids=lambda x: f"{x['letters']} of {x['sets']}")
def test_a_cell_is_best_for_the_rows_it_names(line):
    asked = line["sets"], line["rows"], line["beside"], line["error"]
    letters, value = line["letters"].split(), eval(line["value"], {}, KNOWN) if line["value"] else math.nan
    own = error(*asked)
    if line["value"]:
        assert error(*asked, *((x, value) for x in letters)) == pytest.approx(own, rel=0.02), "the cell differs"
    is_value, others = line["others"].startswith("="), map(float, line["others"].strip("= ").split())
    for other in [x if is_value else x * value for x in others]:
        assert own < error(*asked, *((x, other) for x in letters)), f"{letters[0]} = {other:g} is nearer"


HOST_TIMES = [letter for letter in HOST_LETTERS if NOTATION[letter].unit == "s"]
HOSTS = [(key, letter) for key, row in tables.frameworks.items() for letter in HOST_TIMES if row.get(letter)]


@pytest.mark.parametrize(("key", "letter"), HOSTS)
def test_a_framework_s_host_time_is_calibrated_by_a_line(key, letter):
    """So a time that is wrong, however small, is not the best of its line."""
    sets = {x for line in LINES if letter in line["letters"].split() for x in line["sets"].split()}
    calls = [stanzas()[name].call(row) for name in sets for row in confront(name).rows]
    used = {other for call in calls for kind, other, *_ in call.rows if kind == "frameworks"}
    own, value = tables.frameworks[key].kin, tables.frameworks[key][letter]
    found = [x for x in own if x in used and tables.frameworks[x].get(letter) == value]
    assert found, f"{key}: no line of calibrations.csv finds {letter} again: add one, or leave the time out"
