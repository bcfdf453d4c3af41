"""What several tests share: the package's formulas and sheets, points to evaluate them at, and a JavaScript engine."""

import contextlib
import csv
import importlib
import io
import json
import pkgutil
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import strategies as st
from py_mini_racer import MiniRacer
from scalebook.book.pages.widgets import remade

import scalebook
from scalebook import tables
from scalebook.display.live import Calculator
from scalebook.display.menus import BY_PRECISION, STATED_BY_ROWS
from scalebook.inference.part_kernels import SCALED
from scalebook.language import FORMULAS, NOTATION, Formula, Sheet, code, show, symbol
from scalebook.language.units import check

from . import ROOT

NAMES = sorted(m.name for m in pkgutil.walk_packages(scalebook.__path__, "scalebook.") if "__main__" not in m.name)
# What is seen, and no formula.
_SHOWN = ("scalebook.display", "scalebook.book.drawings", "scalebook.book.pages", "scalebook.book.planner")
MODULES = {name: importlib.import_module(name) for name in NAMES if not name.startswith(_SHOWN)}
_OBJECTS = {id(x): x for module in MODULES.values() for x in vars(module).values() if isinstance(x, (Formula, Sheet))}
STATED = [f for f in FORMULAS.values() if f.__module__.startswith("scalebook.")]
COMPOSED = [x for x in _OBJECTS.values() if isinstance(x, Formula) and x not in STATED]
SHEETS = [x for x in _OBJECTS.values() if isinstance(x, Sheet)]


A100, H100 = tables.accelerators.a100.at("bf16"), tables.accelerators.h100.at("bf16")


def csv_rows(path):
    """The rows of a CSV file beside the tests, or of another by its whole path."""
    with (ROOT / "tests" / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cases(table, names):
    """Cases of a table of cases.csv by name: each a tuple in Python, evaluated with the names of a test's file."""
    return {x["name"]: eval(x["case"], dict(names)) for x in csv_rows("cases.csv") if x["table"] == table}


def each_case(table, letters, names):
    """Run a test with each case of a table of cases.csv; `letters` are the test's arguments."""
    found = cases(table, names)
    # pytest names a case that only has a number by its values.
    return pytest.mark.parametrize(letters, found.values(), ids=[None if x.isdigit() else x for x in found])


def draw(letters, number, seed=0, grouped=False):
    """Random values for each letter, shares between 0 and 1; grouped:
    stages and micro-batches that every schedule runs, weights that devices share evenly, turns that a service can take.
    """
    rng = np.random.default_rng(seed)
    drawn = {
        x: rng.uniform(0.05, 0.95, number) if NOTATION[x].sign == "share" else rng.uniform(1, 100, number)
        for x in letters
    }
    for x in {"prompt_spread", "answer_spread"} & drawn.keys():  # of logarithms
        drawn[x] = drawn[x] / 50
    if grouped and "pp" in drawn:
        drawn["pp"] = 2 * np.ceil(drawn["pp"] / 2)
    if grouped and {"pp", "microbatches"} <= drawn.keys():
        drawn["microbatches"] = 2 * drawn["pp"] * np.ceil(drawn["microbatches"] / 10)
    if grouped and {"tp", "weight_columns"} <= drawn.keys():
        drawn["tp"] = np.ceil(drawn["tp"])
        drawn["weight_columns"] = drawn["tp"] * np.ceil(drawn["weight_columns"])
    if grouped and {"turn_rate", "added_time"} <= drawn.keys():  # so few that all of them fit into a second
        drawn["turn_rate"] /= 1e6
    if "l2_capacity" in drawn:  # bytes that hold some of the tensors drawn
        drawn["l2_capacity"] *= 1e6
    return drawn


# Times of the passes of a pipeline, drawn.
TIMES_OF = ("forward_time", "input_gradient_time", "weight_gradient_time")
TIMES = st.fixed_dictionaries({x: st.integers(1, 40) for x in TIMES_OF})


def exactly(f, **letters):
    """The value of a formula as a fraction."""
    value = f.rhs.subs({symbol(n): sympy.Rational(x) for n, x in letters.items() if n in f.inputs})
    if not value.is_Rational:
        raise TypeError(
            f"{f.name} gives {value}, which is no exact fraction: write Rational(1, 2) instead of 1 / 2 or 0.5 "
            "in the body of a formula that tests compare with an executed order"
        )
    return Fraction(int(value.p), int(value.q))


def printed(source):
    """What Python prints when it runs a text."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(source, {})
    return said.getvalue()


def written(folder, rows):
    """The path of a CSV file of these rows, with the columns of the first."""
    with (path := folder / "other.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def refuses(kind, words, call, *given, **letters):
    """Check that a call raises an error of this kind that says these words."""
    with pytest.raises(kind, match=words):
        call(*given, **letters)


class JavaScript:
    """An engine that has run `source`; call it with an expression."""

    def __init__(self, source=""):
        self.source = source

    @cached_property
    def context(self):
        """Made by the first call: an engine has threads, and no process with threads is forked well."""
        context = MiniRacer()
        context.eval(self.source)
        return context

    def __call__(self, expression):
        return json.loads(self.context.eval(f"JSON.stringify({expression})"))

    def each(self, function, arguments):
        """The function's answers to many lists of arguments at once; null where it gives no finite number."""
        return self(f"({json.dumps(arguments)}).map((x) => ({function})(...x))")


def agree(sheet, number, rel):
    """Check that NumPy and JavaScript say the same of a sheet at random points: each letter that has a value."""
    values, outputs = draw(sheet.inputs, number), list(sheet.formulas)
    with np.errstate(all="ignore"):
        arrays = code.vector(sheet.inputs, [(n, f.guarded) for n, f in sheet.formulas.items()], outputs)(
            *values.values()
        )
    arrays = [np.broadcast_to(x, number) for x in arrays]
    rows = [{n: float(x[i]) for n, x in values.items()} for i in range(number)]
    for i, page in enumerate(JavaScript().each(sheet.js, [[row] for row in rows])):
        fine = {n: float(x[i]) for n, x in zip(outputs, arrays, strict=True) if np.isfinite(x[i])}
        assert {n: x for n, x in page.items() if x is not None} == pytest.approx(fine, rel=rel)
        yield rows[i], fine


def sound(sheets):
    """Check that formulas made from listings have their unit, a meaning and a source."""
    formulas = (f for sheet in sheets for f in sheet.formulas.values())
    for f in {(f.name, f.letter, f.rhs): f for f in formulas if "__wrapped__" not in vars(f)}.values():
        assert f.meaning.endswith(".") and f.sources, f.name
        if f.rhs != 0 and (f.letter not in SCALED or not f.name.endswith("_usual")):  # the H100's numbers have units
            check(f)


def live():
    """An engine that knows the functions of a calculator's script."""
    return JavaScript(Calculator._esm.replace("export default", "const live =").replace("export ", ""))


def on_page(engine, calc, expression):
    """What an expression on the `spec` of a calculator gives in an engine that is live."""
    return engine(f"((spec) => {expression})(whole({json.dumps(calc.spec)}, {json.dumps(calc.data)}))")


def calculators(notebook):
    """The calculators of a stored notebook, each with what it said when it was stored, and made anew."""
    shown = remade(json.loads(Path(notebook).read_text("utf-8")))
    return [("".join(output["data"]["text/plain"]), x) for output, x in shown if isinstance(x, Calculator)]


def package_sheet(calc):
    """The sheet of a calculator, if the package states every formula of it."""
    names = calc.choice["formulas"]
    return Sheet(calc.choice["sheet"], *map(FORMULAS.get, names)) if all(isinstance(x, str) for x in names) else None


def some_states(calc, number, seed):
    """States of a calculator, drawn from what its menus and sliders offer."""
    rng = np.random.default_rng(seed)
    offered = {
        name: [o["key"] if "key" in o else o["letters"][name] for o in options]
        for name, options in calc.options.items()
    }
    return [{name: x[rng.integers(len(x))] for name, x in offered.items()} for _ in range(number)]


def row_of(control, key, precision):
    """What the row that a menu names says at a precision: one of the package, or one that the chapter put together."""
    if "rows" in control:
        own = next(x for x in control["rows"] if x["key"] == key)
        at = dict(own.get("peaks", ())).get(precision)
        row = own["letters"] if at is None else {x: v for x, v in own["letters"].items() if x not in BY_PRECISION} | at
        is_device, has_peak = "peaks" in own, at is not None
    else:
        row = getattr(tables, control["table"])[key]
        is_device, has_peak = hasattr(type(row), "at"), f"peak_{precision}" in row
        row = row.at(precision) if is_device and has_peak else row
    lacking = {"peak_flops"} if precision and is_device and not has_peak else ()
    return {x: row[x] for x in row if x not in lacking}


def python_says(calc, state):
    """What the package answers by its own formulas and tables for controls that stand so."""
    sheet = package_sheet(calc)
    letters = dict(calc.choice["fixed"])
    for control in calc.choice["controls"]:
        value = state[control["name"]]
        if "table" in control:
            row = row_of(control, value, state.get("precision"))
            letters |= {
                x: row[x]
                for x in row
                if x in sheet.inputs or (x in sheet.formulas and (x in STATED_BY_ROWS or not sheet.formulas[x].inputs))
            }
        elif "precisions" not in control:
            letters[control["name"]] = value
    row = sheet(letters)
    outputs = [x["letter"] for x in calc.spec["outputs"]]
    return [show(row[x], NOTATION[x].unit) if x in row else "none" for x in outputs]
