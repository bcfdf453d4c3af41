"""Predictions of a measured set's rows with other values of some letters: what tests of calibrations try."""

from dataclasses import replace

import numpy as np

from scalebook import Sheet, confront
from scalebook.measurements.calls import Sum, called, is_array, priced_calls
from scalebook.measurements.sets import stanzas


def predicted_with(name, rows, **letters):
    """What a set predicts for these rows if its calls also gave these letters."""
    calls = [stanzas()[name].call(row) for row in rows]
    calls = [x if isinstance(x, Sum) else Sum((x,)) for x in calls]
    terms = [[replace(t, letters={**t.letters, **_used(t, letters, x)}) for t in x.terms] for x in calls]
    if not all(is_array(t.thing) for x in terms for t in x):  # loads of a service are priced one by one
        return np.array([_value(replace(x, terms=tuple(own)), x) for x, own in zip(calls, terms, strict=True)])
    answers = iter(priced_calls([t for x in terms for t in x], [[t.answer] for x in terms for t in x])[0])
    return np.array([call.become([next(answers) for _ in own]) for call, own in zip(calls, terms, strict=True)])


def _used(term, letters, call):
    """The letters that a call uses, if it is one of a sum's: the others are of other calls."""
    sheet = called(term.thing)
    one = len(call.terms) == 1 or not isinstance(sheet, Sheet)
    return letters if one else {n: x for n, x in letters.items() if n in sheet.inputs or n in sheet.formulas}


def _value(call, plain):
    """The value of a call, or of the call without the letters if none of its steps uses them."""
    try:
        return call.value
    except TypeError as error:
        assert "does not use" in str(error)
        return plain.value


def fitted_rows(name, **columns):
    """The rows of a set that something was calibrated on and that say this, and what was measured of them."""
    result = confront(name)
    picked = np.array([
        fits and all(row[c] == x for c, x in columns.items())
        for row, fits in zip(result.rows, result.fitted, strict=True)
    ])  # fmt: skip
    return [row for row, x in zip(result.rows, picked, strict=True) if x], result.measured[picked]


def off(name, rows, measured, **letters):
    """The mean of |log(predicted/measured)|."""
    return np.abs(np.log(predicted_with(name, rows, **letters) / measured)).mean()
