"""Every formula: units, documentation, sources, and the same value in Python, NumPy, SymPy and JavaScript."""

import inspect
import json
import pickle

import numpy as np
import pytest
import sympy
from IPython.lib.pretty import pretty

from scalebook.language import NOTATION, SOURCES, code, symbol
from scalebook.language.narrow import in_parts
from scalebook.language.units import check
from scalebook.machine.roofline import ridge_intensity

from .every import every
from .support import COMPOSED, STATED, JavaScript, draw

ENGINE = JavaScript()


@every([*STATED, *COMPOSED], name=lambda f: f.name)
def test_formula(f):
    if f in STATED:
        documented(f)
        cited(f)
        parameters_are_letters_and_the_body_uses_no_others(f)
    check(f)
    python_numpy_sympy_and_javascript_agree(f)
    shows(f)


def documented(f):
    assert f.meaning.endswith("."), f.meaning
    assert ">>> " in f.__doc__, f"{f.name} has no worked number"


def cited(f):
    assert f.sources
    for source in f.sources:
        assert source.split()[0] in SOURCES


def parameters_are_letters_and_the_body_uses_no_others(f):
    names = list(inspect.signature(f.__wrapped__).parameters)
    assert set(names) <= set(NOTATION)
    assert set(f.inputs) <= {*names, *(x for condition in f.domain for x in condition.letters)}


def python_numpy_sympy_and_javascript_agree(f):
    values = draw(f.inputs, 200)
    array = np.broadcast_to(f.numpy(*values.values()), 200)
    fine = np.flatnonzero(np.isfinite(array))[:8]
    assert len(fine) == 8, "too few random points have a value"
    rows = [{n: float(x[i]) for n, x in values.items()} for i in fine]
    point = code.point(f.inputs, [(f.letter, f.rhs)], [f.letter])
    assert [point(**row)[0] for row in rows] == pytest.approx(array[fine], rel=1e-12)
    assert [x[f.letter] for x in ENGINE.each(f.js, [[row] for row in rows])] == pytest.approx(array[fine], rel=1e-12)
    for row, expected in zip(rows[:2], array[fine], strict=False):  # all letters at once: subs is slow
        exact = f.rhs.xreplace({symbol(n): sympy.Float(x, 40) for n, x in row.items()}).evalf(30)
        assert float(exact) == pytest.approx(expected, rel=1e-12)


def shows(f):
    assert f.letter in repr(f)
    assert f.latex.startswith(NOTATION[f.letter].tex)
    template = f.template()
    assert all(f"⟦{n}⟧" in template for n in f.inputs if symbol(n) in f.rhs.free_symbols)
    if f.narrow:
        means_the_same_in_parts(f)


def means_the_same_in_parts(f):
    whole, parts = in_parts(f.rhs)
    values = draw(f.inputs, 8)
    array = np.broadcast_to(f.numpy(*values.values()), 8)
    i = next(i for i in range(8) if np.isfinite(array[i]))
    known = {symbol(n): sympy.Float(x[i], 30) for n, x in values.items()}
    for name, part in reversed(parts):
        known[name] = part.xreplace(known)
    assert float(whole.xreplace(known)) == pytest.approx(array[i], rel=1e-9)


def test_a_notebook_shows_a_result_with_its_unit_and_it_stays_a_number():
    found = pickle.loads(pickle.dumps(ridge_intensity(peak_flops="989.4 TFLOP/s", hbm_bandwidth="3.35 TB/s")))
    assert pretty(found) == pretty([found])[1:-1] == "295.3 FLOP/B"
    assert repr(found) == repr(float(found)) and type(2 * found) is float and json.dumps(found) == repr(found)
