"""Calculators: menus and sliders over a sheet, live with a kernel and without one.

The controls are stock ipywidgets.  With a kernel Python recomputes; on a published page, where
there is none, the sheet's own JavaScript does, and both write the same words.
"""

from importlib.resources import files

import anywidget
import ipywidgets as widgets
import numpy as np
import traitlets

from scalebook.language import NOTATION, Formula, Sheet, show, tex
from scalebook.language.notation import nearest
from scalebook.language.row import quantity
from scalebook.language.units import show_tex
from scalebook.tables import Table

__all__ = ["Calculator", "calculator"]

_HERE = files(__name__.rpartition(".")[0])


class Live(anywidget.AnyWidget):
    """The part of a calculator that runs in the browser: it joins the other widgets and draws the curve."""

    _esm = (_HERE / "live.js").read_text("utf-8")
    _css = (_HERE / "live.css").read_text("utf-8")
    spec = traitlets.Dict().tag(sync=True)
    controls = traitlets.List(traitlets.Instance(widgets.Widget)).tag(sync=True, **widgets.widget_serialization)
    labels = traitlets.List(traitlets.Instance(widgets.Widget)).tag(sync=True, **widgets.widget_serialization)
    worked = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)
    message = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)

    def __repr__(self):
        return f"Live({self.spec['outputs'][0]['letter']!r})"


class Calculator(widgets.VBox):
    """What `calculator` returns: `controls` by name, `texts` as shown, `values` of the present choice."""

    def __init__(self, sheet: Sheet, spec: dict, controls: dict[str, widgets.Widget]):
        self.sheet, self.spec, self.controls = sheet, spec, controls
        self._labels = [widgets.Label() for _ in spec["outputs"]]
        self._worked, self._message = widgets.HTMLMath(), widgets.Label()
        self.values = {}
        for widget, name in [
            *((x, "sb-value") for x in self._labels),
            (self._worked, "sb-worked"),
            (self._message, "sb-message"),
        ]:
            widget.add_class(name)
        for control in controls.values():
            control.add_class("sb-control")
            control.observe(self._update, "index")
        self._update()
        answers = [
            widgets.HBox([widgets.Label(x["meaning"]), label])
            for x, label in zip(spec["outputs"], self._labels, strict=True)
        ]
        for answer in answers:
            answer.add_class("sb-answer")
        answers[0].add_class("sb-first")
        live = Live(
            spec=spec, controls=list(controls.values()), labels=self._labels, worked=self._worked, message=self._message
        )
        super().__init__([*controls.values(), answers[0], self._worked, self._message, *answers[1:], live])
        self.add_class("sb-calculator")

    @property
    def texts(self) -> dict[str, str]:
        """The answers as they are shown, by letter."""
        return {x["letter"]: label.value for x, label in zip(self.spec["outputs"], self._labels, strict=True)}

    def _update(self, _=None):
        spec = self.spec
        options = [c["options"][w.index] for c, w in zip(spec["controls"], self.controls.values(), strict=True)]
        letters = {k: v for x in (spec["fixed"], *(o["letters"] for o in options)) for k, v in x.items()}
        device, precision = (next((o for o in options if k in o), {}) for k in ("peaks", "peak"))
        message = ""
        if precision and precision["peak"] not in device["peaks"]:
            message = f"{device['label']} has no peak at {precision['peak']}; it has {', '.join(device['peaks'])}"
        elif precision:
            letters["peak_flops"] = device["peaks"][precision["peak"]]
        self.values = {} if message else {**letters, **_evaluate(self.sheet, letters)}
        texts = [
            show(self.values[x["letter"]], x["unit"]) if _good(self.values.get(x["letter"]), x["sign"]) else "none"
            for x in spec["outputs"]
        ]
        first, worked = spec["outputs"][0], ""
        if texts[0] == "none":
            message = message or f"no {first['meaning']} here"
        else:
            numbers = spec["template"]
            for name, unit in spec["units"].items():
                numbers = numbers.replace(f"⟦{name}⟧", show_tex(self.values[name], unit))
            steps = r" \\ &= ".join([spec["right"], numbers, show_tex(self.values[first["letter"]], first["unit"])])
            worked = rf"\(\begin{{aligned}}{spec['left']} &= {steps}\end{{aligned}}\)"
        for label, text in zip(self._labels, texts, strict=True):
            label.value = text
        self._worked.value, self._message.value = worked, message


def _evaluate(sheet, letters):
    """Every letter of the sheet as the page computes it: where one has no value, the others still do."""
    inputs, outputs, _, point, vector = sheet._plan(frozenset(letters))
    values = [letters[x] for x in inputs]
    try:
        return dict(zip(outputs, point()(*values), strict=True))
    except (ArithmeticError, ValueError):
        with np.errstate(all="ignore"):
            return dict(zip(outputs, map(float, vector()(*map(np.float64, values))), strict=True))


def _good(value, sign):
    return (
        value is not None
        and np.isfinite(value)
        and (sign == "real" or value > 0 or (sign == "nonnegative" and value == 0))
    )


def calculator(
    sheet: Sheet | Formula, answer: str | None = None, *, also=(), curve=(), start=None, precision=(), **choices
) -> Calculator:
    """A calculator of one letter of a sheet (or of a formula), and of others that go with it.

    answer: the letter to compute; `also`: letters shown beneath it.
    curve: the letter of a slider, then letters to draw against it (the answer if none is named).
    precision: names such as "bf16" and "fp8", to choose the peak of the device by.
    start: the first choice of each control, by its name.
    choices: a Table makes a menu; `(low, high)` a slider on a logarithmic scale; a list a slider of
    those values; a number is fixed.

    Raises TypeError for a letter that the sheet needs and nothing gives, or that it does not use.
    """
    if isinstance(sheet, Formula):
        answer, sheet = sheet.letter, Sheet(sheet.name, sheet)
    also, curve, precision = ([x] if isinstance(x, str) else list(x) for x in (also, curve, precision))
    curve_x, curve_y = (curve[0], curve[1:] or [answer]) if curve else (None, [])
    start, outputs = start or {}, [answer, *also]
    sheet = sheet.only(*outputs, *curve_y, given=choices)
    fixed, menus, controls = {}, [], {}
    for name, table in choices.items():
        if isinstance(table, Table):
            controls[name], options = _menu(name, table, sheet, bool(precision), start)
            menus.append(dict(name=name, options=options))
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
        sheet=sheet.js, controls=menus, fixed=fixed, outputs=[_letter(x) for x in outputs], left=NOTATION[answer].tex,
        right=tex(main.rhs), template=main.template(), units={x: NOTATION[x].unit for x in main.inputs},
    )  # fmt: skip
    if curve:
        if curve_x not in controls:
            raise TypeError(f"the curve runs along a slider, and {curve_x!r} is none; {nearest(curve_x, controls)}")
        unit = NOTATION[curve_x].unit
        label = f"{NOTATION[curve_x].meaning}{f' ({unit})' if unit else ''}"
        spec["curve"] = dict(
            x=curve_x, unit=unit, label=label, control=list(controls).index(curve_x), y=[_letter(y) for y in curve_y]
        )
    return Calculator(sheet, spec, controls)


def _letter(name):
    letter = NOTATION[name]
    return dict(letter=name, unit=letter.unit, sign=letter.sign, meaning=letter.meaning)


def _menu(name, table, sheet, with_peaks, start):
    """A menu of the rows that know every letter the sheet needs of this table."""
    needed = [
        x for x in sheet.inputs if any(x in row for row in table.values()) and not (with_peaks and x == "peak_flops")
    ]
    rows = {k: row for k, row in table.items() if all(x in row for x in needed)}
    if not rows:
        raise TypeError(f"no row of {table.name} has all of {', '.join(needed)}, which {sheet.name} needs")
    options = []
    for key, row in rows.items():
        option = dict(key=key, label=row.name, letters={x: row[x] for x in needed})
        if with_peaks and hasattr(row, "at"):
            option["peaks"] = {
                x.removeprefix("peak_"): row[x]
                for x in row
                if x.startswith("peak_") and x not in ("peak_flops", "peak_vector")
            }
        options.append(option)
    return _dropdown(name, options, start), options


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
        index = int(np.argmin(np.abs(np.log(values) - np.log(quantity(name, start[name])))))
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
