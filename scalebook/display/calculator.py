"""Build calculators: menus and sliders over the inputs of a sheet or a formula."""

from collections.abc import Mapping

from scalebook import tables
from scalebook.language import LETTERS, NOTATION, Formula, Sheet
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted
from scalebook.language.row import Row, quantity
from scalebook.tables import Table

from .described import reference, typeset
from .live import Calculator
from .menus import row_of

__all__ = ["Calculator", "calculator"]


@checked
def calculator(
    sheet: Sheet | Formula,
    answer: str | None = None,
    *,
    also=(),
    curve=(),
    start=None,
    precision=(),
    warn=(),
    **choices,
) -> Calculator:
    """Return an interactive calculator of one quantity that a sheet or formula computes, and of others on request.

    - `answer`: the quantity to compute, such as "token_time"; `also`: quantities to show below it.
    - `curve`: the quantity of a slider, then the quantities to draw against it (by default the answer).
    - `precision`: names such as "bf16" and "fp8", to choose the device's peak.
    - `start`: the first choice of each control, by the control's name.
    - `warn`: `(left, right, sentence)` shows the sentence if quantity `left` exceeds `right`; `{name}` is a value.
    - `choices`: inputs by name. A Table is a menu, `(low, high)` a logarithmic slider, a list a slider, a number fixed.
      A single row, such as one from `models.read`, is fixed too.

    Raises TypeError, LookupError or ValueError if the sheet lacks an input or does not use a given one.

    >>> from scalebook.machine.roofline import ridge_intensity
    >>> from scalebook.tables import accelerators
    >>> calculator(ridge_intensity, device=accelerators, precision=["bf16", "fp8"], start={"device": "h100"})
    Calculator(ridge_intensity='295.3 FLOP/B')
    """
    rows = {x: row for x, row in choices.items() if isinstance(row, Row)}
    choices |= {x: Table("a row", {row.name: row}) for x, row in rows.items()}
    if isinstance(sheet, Formula):
        answer, sheet = sheet.letter, _of_formula(sheet, choices, rows.values())
    if not isinstance(sheet, Sheet):
        of = "a calculator is of a sheet or of a formula"
        if callable(getattr(sheet, "sheet", None)):  # training_step, serve
            raise TypeError(f"{of}, and {sheet.name} makes a sheet for each call: give one, as training_sheet makes it")
        raise TypeError(f"{of}, not of {quoted(sheet)}")
    if answer is None:
        raise TypeError(f"a calculator answers one letter, not None; name one: {', '.join(sheet.formulas)}")
    sheet = sheet.suited(*rows.values())
    also, curve, precision = (_names(*x) for x in (("also", also), ("curve", curve), ("precision", precision)))
    warn = [_warning(x) for x in ([warn] if isinstance(warn, str) else _several("warn", warn))]
    if answer in choices:
        raise TypeError(f"{answer} is the answer: a calculator computes it, so it cannot be a choice too")
    wanted = [x for left, right, _ in warn for x in (left, right) if x in sheet.formulas]
    sheet = sheet.only(answer, *also, *curve[1:], *wanted, given=choices)
    for name in [x for x, choice in choices.items() if not isinstance(choice, Table) and x not in sheet.inputs]:
        asked = ", ".join([answer, *also])
        raise TypeError(f"{sheet.name} for {asked} does not use {name}; {nearest(name, sheet.inputs)}")
    controls, fixed = _controls(choices, precision)
    _start(controls, {} if start is None else start)
    used = [x for f in sheet.formulas.values() for x in (f.letter, *f.inputs)]
    refs, main = [reference(f) for f in sheet.formulas.values()], sheet.formulas[answer]
    own = {x: [NOTATION[x].unit, NOTATION[x].meaning, NOTATION[x].tex, NOTATION[x].sign] for x in used}
    choice = dict(sheet=sheet.name, formulas=refs, answer=answer, also=also, curve=curve, warn=warn, controls=controls)
    choice |= dict(fixed=fixed, letters={x: said for x, said in own.items() if x not in LETTERS})
    if main.name not in refs:
        choice["equation"] = typeset(main)
    return Calculator(choice, sheet)


def _of_formula(f, choices, rows):
    """Return the sheet of a formula for these rows. Default formulas give inputs that are not chosen."""
    sheet = Sheet(f.name, f).suited(*rows)
    tables = [x for x in choices.values() if isinstance(x, Table)]
    known = {*sheet.formulas, *choices, *(x for table in tables for row in table.values() for x in row)}
    return Sheet(f.name, *(x._fill(known) for x in sheet.formulas.values()))


def _several(what, words):
    if not isinstance(words, (list, tuple)):
        raise TypeError(f"{what} takes a list, not {quoted(words)}")
    return words


def _names(what, words):
    words = [words] if isinstance(words, str) else _several(what, words)
    if strange := [x for x in words if not isinstance(x, str)]:
        raise TypeError(f"{what} takes names, not {quoted(strange[0])}")
    if what == "precision":
        known = [x.removeprefix("peak_") for x in NOTATION if x.startswith("peak_")]
        if strange := [x for x in words if x not in known]:
            raise LookupError(f"no precision is called {quoted(strange[0])}; {nearest(strange[0], known)}")
    return list(words)


def _warning(said):
    if not isinstance(said, (list, tuple)) or len(said) != 3 or not all(isinstance(x, str) for x in said):
        raise TypeError(f"a warning is (left, right, sentence), two letters and a text, not {quoted(said)}")
    return list(said)


def _controls(choices, precision):
    controls, sliders, fixed = [], [], {}
    for name, choice in choices.items():
        if isinstance(choice, Table):
            controls.append(dict(name=name, table=choice.name, **_kept(choice)))
        elif isinstance(choice, (tuple, list)):
            sliders.append(dict(name=name, **_values(name, choice)))
        else:
            fixed[name] = _number(name, choice)
    if precision:
        controls.append(dict(name="precision", precisions=precision))
    return controls + sliders, fixed


def _kept(table):
    """Return the part of a table to store: nothing for the package's tables, keys for a selection, else all rows."""
    package = getattr(tables, table.name, {})
    if all(package.get(key) is row for key, row in table.items()):
        return {} if list(table) == list(package) else dict(keys=list(table))
    return dict(rows=[dict(key=key, **row_of(row)) for key, row in table.items()])


def _number(name, value):
    found = quantity(name, value)
    if not isinstance(found, float):
        raise TypeError(f"{name} takes one number here, not {quoted(value)}")
    return found


def _values(name, choice):
    values = [_number(name, x) for x in choice]
    if isinstance(choice, list) and values:
        return dict(values=values)
    if len(values) != 2 or not 0 < values[0] < values[1]:
        said = "a range (low, high) with 0 < low < high, or a list of values"
        raise ValueError(f"{name} takes {said}, not {quoted(choice)}")
    return dict(range=values)


def _start(controls, start):
    if not isinstance(start, Mapping):
        said = "the first choice of each control by its name, such as dict(batch=8)"
        raise TypeError(f"start takes {said}, not {quoted(start)}")
    by_name = {c["name"]: c for c in controls}
    for name, first in start.items():
        if name not in by_name:
            raise TypeError(f"start names {name!r}, which is no control; {nearest(str(name), by_name)}")
        is_slider = "values" in by_name[name] or "range" in by_name[name]
        by_name[name]["start"] = _number(name, first) if is_slider else first
