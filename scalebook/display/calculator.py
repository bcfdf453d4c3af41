"""Calculators: menus and sliders over a sheet, live with a kernel and without one.

The controls are stock ipywidgets.  With a kernel Python recomputes; on a published page, where
there is none, the sheet's own JavaScript does, and both write the same words.
"""

import itertools
import re

import ipywidgets as widgets
import numpy as np

from scalebook.language import NOTATION, Formula, Sheet, show, tex
from scalebook.language.notation import nearest
from scalebook.language.row import quantity
from scalebook.tables import Table

from .live import Calculator

__all__ = ["Calculator", "calculator"]


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
    """A calculator of one letter of a sheet (or of a formula), and of others that go with it.

    answer: the letter to compute; `also`: letters shown beneath it.
    curve: the letter of a slider, then letters to draw against it (the answer if none is named).
    precision: names such as "bf16" and "fp8", to choose the peak of the device by.
    start: the first choice of each control, by its name.
    warn: `(left, right, sentence)` says the sentence where the one letter exceeds the other; `{letter}`
    in it stands for a value.
    choices: a Table makes a menu; `(low, high)` a slider on a logarithmic scale; a list a slider of
    those values; a number is fixed.

    Raises TypeError for a letter that the sheet needs and nothing gives, or that it does not use.
    """
    if isinstance(sheet, Formula):
        answer, sheet = sheet.letter, Sheet(sheet.name, sheet)
    also, curve, precision = ([x] if isinstance(x, str) else list(x) for x in (also, curve, precision))
    curve_x, curve_y = (curve[0], curve[1:] or [answer]) if curve else (None, [])
    start, outputs = start or {}, [answer, *also]
    warned = [x for left, right, _ in warn for x in (left, right)]
    sheet = sheet.only(*outputs, *curve_y, *(x for x in warned if x in sheet.formulas), given=choices)
    sheet, usual = _by_row(sheet, [table for table in choices.values() if isinstance(table, Table)])
    for name in precision:
        if f"peak_{name}" not in NOTATION:
            known = [x.removeprefix("peak_") for x in NOTATION if x.startswith("peak_")]
            raise LookupError(f"no precision is called {name!r}; {nearest(name, known)}")
    fixed, menus, controls, left_out = {}, [], {}, []
    for name, table in choices.items():
        if isinstance(table, Table):
            controls[name], options, absent = _menu(name, table, sheet, bool(precision), warned, start, usual)
            menus.append(dict(name=name, options=options))
            left_out += absent
    if precision:
        options = [dict(label=p, letters={}, peak=p) for p in precision]
        controls["precision"] = _dropdown("precision", options, start)
        if not any("peaks" in o for m in menus for o in m["options"]):
            raise TypeError("precision chooses among the peaks of a device: give a table of accelerators too")
        menus.append(dict(name="precision", options=options))
    for name, choice in choices.items():
        if isinstance(choice, Table):
            continue
        if name not in sheet.inputs:
            raise TypeError(f"{sheet.name} for {', '.join(outputs)} does not use {name}; {nearest(name, sheet.inputs)}")
        if isinstance(choice, (tuple, list)):
            controls[name], options = _slider(name, choice, start)
            menus.append(dict(name=name, options=options))
        else:
            fixed[name] = quantity(name, choice)
    given = (
        {x for m in menus for x in m["options"][0]["letters"]} | fixed.keys() | ({"peak_flops"} if precision else set())
    )
    if lacking := [x for x in sheet.inputs if x not in given]:
        raise TypeError(
            f"the calculator needs {', '.join(lacking)}: give a table that has it, a range such as {lacking[0]}=(1, 64), or a number"
        )
    for name in start:
        if name not in controls:
            raise TypeError(f"start names {name!r}, which is no control; {nearest(name, controls)}")
    main = sheet.formulas[answer]
    spec = dict(
        sheet=sheet.js, order=[[n, NOTATION[n].sign, list(f.inputs)] for n, f in sheet.formulas.items()],
        controls=menus, fixed=fixed, outputs=[_letter(x) for x in outputs], left=NOTATION[answer].tex,
        right=_wrapped(tex(main.rhs)), template=_wrapped(main.template()), units={x: NOTATION[x].unit for x in [*main.inputs, *warned]},
        warn=[list(x) for x in warn], note=f"Not offered, for want of a figure: {'; '.join(left_out)}." if left_out else "",
    )  # fmt: skip
    holds = [[n, f.name, x.words, list(x.letters)] for n, f in sheet.formulas.items() for x in f.domain]
    if holds:
        spec["holds"] = holds
        spec["units"] |= {x: NOTATION[x].unit for *_, letters in holds for x in letters}
    if curve:
        if curve_x not in controls:
            raise TypeError(f"the curve runs along a slider, and {curve_x!r} is none; {nearest(curve_x, controls)}")
        unit = NOTATION[curve_x].unit
        label = f"{curve_x.replace('_', ' ')}{f' ({unit})' if unit else ''}"
        spec["curve"] = dict(
            x=curve_x, unit=unit, label=label, control=list(controls).index(curve_x), y=[_letter(y) for y in curve_y]
        )
        if not isinstance(choices[curve_x], tuple):  # a list has nothing between its values
            spec["curve"]["steps"] = True
    return Calculator(sheet, spec, controls)


def _wrapped(typeset, most=5):
    """A long sum over several lines, of so many addends each."""
    places, depth = [], 0
    for found in re.finditer(r"\\left|\\right|\\[{}]|[{}]| [+-] ", typeset):
        mark = found.group()
        depth += (mark in ("\\left", "{")) - (mark in ("\\right", "}"))
        if not depth and mark in (" + ", " - "):
            places.append(found.start())
    if len(places) < most:
        return typeset
    cuts = [0, *places[most - 1 :: most], len(typeset)]
    return r" \\ &\quad {}".join(typeset[a:b].strip() for a, b in itertools.pairwise(cuts))


def _letter(name):
    letter = NOTATION[name]
    return dict(letter=name, unit=letter.unit, sign=letter.sign, meaning=letter.meaning)


def _by_row(sheet, tables):
    """The sheet without the constants that some row of a table gives itself, and their values for the other rows."""
    usual = {n: f() for n, f in sheet.formulas.items() if not f.inputs and any(n in row for t in tables for row in t.values())}
    return Sheet(sheet.name, *(f for n, f in sheet.formulas.items() if n not in usual), doc=sheet.__doc__), usual


def _menu(name, table, sheet, with_peaks, warned, start, usual):
    """A menu of the rows that know every letter the sheet needs of this table, its options, and the rows it lacks."""
    needed = [
        x for x in sheet.inputs if any(x in row for row in table.values()) and not (with_peaks and x == "peak_flops")
    ]
    rows = {k: row for k, row in table.items() if all(x in row or x in usual for x in needed)}
    if not rows:
        raise TypeError(f"no row of {table.name} has all of {', '.join(needed)}, which {sheet.name} needs")
    options = []
    for key, row in rows.items():
        known = {**usual, **row}
        letters = {x: known[x] for x in [*needed, *warned] if x in known and x not in sheet.formulas}
        option = dict(key=key, label=row.name, letters=letters)
        if with_peaks and hasattr(row, "at"):
            peaks = [x for x in row if x.startswith("peak_") and x not in ("peak_flops", "peak_vector")]
            option["peaks"] = [[x.removeprefix("peak_"), row[x]] for x in peaks]  # a list keeps its order when stored
        options.append(option)
    absent = [
        f"{row.name} ({', '.join(x for x in needed if x not in row)})" for k, row in table.items() if k not in rows
    ]
    return _dropdown(name, options, start), options, absent


def _dropdown(name, options, start):
    labels = [o["label"] for o in options]
    keys = [o.get("key", o["label"]) for o in options]
    if name in start and start[name] not in keys:
        raise LookupError(f"start: {name} has no {start[name]!r} to offer; {nearest(str(start[name]), keys)}")
    index = keys.index(start[name]) if name in start else 0
    return widgets.Dropdown(
        options=labels, index=index, description=name.replace("_", " "), style={"description_width": "9rem"}
    )


def _slider(name, choice, start):
    letter = NOTATION[name]
    values = [quantity(name, x) for x in choice]
    if isinstance(choice, tuple):
        if len(values) != 2 or not 0 < values[0] < values[1]:
            raise ValueError(
                f"{name} takes a range (low, high) with 0 < low < high, or a list of values, not {choice!r}"
            )
        values = _steps(*values)
    index = 0
    if name in start:
        wanted = quantity(name, start[name])
        with np.errstate(divide="ignore"):  # a slider may begin at 0
            index = values.index(wanted) if wanted in values else int(np.argmin(np.abs(np.log(values) - np.log(wanted))))
    options = [dict(label=show(x, letter.unit), letters={name: x}) for x in values]
    slider = widgets.SelectionSlider(
        options=[o["label"] for o in options], index=index, description=name.replace("_", " "), tooltip=letter.meaning,
        continuous_update=True, style={"description_width": "9rem"},
    )  # fmt: skip
    return slider, options


def _steps(low, high):
    """Powers of two and the steps half-way between, from low to high."""
    steps, x = [], low
    while x < high:
        steps += [x, x * 3 / 2] if x > 1 and x * 3 / 2 < high else [x]
        x *= 2
    return [*steps, high]
