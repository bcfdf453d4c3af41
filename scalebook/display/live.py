"""A calculator on the screen: stock ipywidgets, and the part that runs in the browser."""

import html
import math
import re
from collections.abc import Mapping
from importlib.resources import files

import anywidget
import ipywidgets as widgets
import numpy as np
import traitlets

from scalebook.language import NOTATION, Sheet, show
from scalebook.language.units import show_tex

from .described import Described

__all__ = ["STORED", "Calculator", "Live", "stored"]

STORED = "application/vnd.scalebook+json"

_HERE = files(__name__.rpartition(".")[0])


def stored(widget, bundle, made_of: Mapping):
    """An output with what the widget is made of beside it: a stored notebook keeps that in the widget's place."""
    data, *rest = bundle if isinstance(bundle, tuple) else (bundle,)
    data = data | {"text/plain": repr(widget), STORED: dict(made_of)}
    return (data, *rest) if rest else data


class Live(anywidget.AnyWidget):
    """The part of a calculator that runs in the browser: it joins the other widgets and draws the curve."""

    _esm = (_HERE / "live.js").read_text("utf-8")
    _css = (_HERE / "live.css").read_text("utf-8")
    spec = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)  # what the spec names; a page has it from a file that all pages share
    controls = traitlets.List(traitlets.Instance(widgets.Widget)).tag(sync=True, **widgets.widget_serialization)
    labels = traitlets.List(traitlets.Instance(widgets.Widget)).tag(sync=True, **widgets.widget_serialization)
    worked = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)
    message = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)

    def __repr__(self):
        return f"Live({self.spec['outputs'][0]['letter']!r})"


class Calculator(widgets.VBox):
    """What `calculator` returns: `controls` by name, `texts` as shown, `values` of the present choice.

    Without a sheet it has no answers of its own: it is one of a page, whose JavaScript gives them.
    """

    def __init__(self, choice: dict, sheet: Sheet | None = None):
        made = Described(choice)
        self.choice, self.spec, self.data, self.options, self.sheet = choice, made.spec, made.data, made.options, None
        self.controls = {c["name"]: _control(c, made) for c in choice["controls"]}
        self._labels = [widgets.Label() for _ in made.spec["outputs"]]
        self._worked, self._message = widgets.HTMLMath(), widgets.Label()
        self.values = {}
        for widget, name in [
            *((x, "sb-value") for x in self._labels),
            (self._worked, "sb-worked"),
            (self._message, "sb-message"),
            *((x, "sb-control") for x in self.controls.values()),
        ]:
            widget.add_class(name)
        if sheet is not None:
            self.sheet = Sheet(sheet.name, *(sheet.formulas[x] for x in made.formulas), doc=sheet.__doc__)
            for control in self.controls.values():
                control.observe(self._update, "index")
            self._update()
        answers = [
            widgets.HBox([widgets.Label(x["meaning"]), label])
            for x, label in zip(self.spec["outputs"], self._labels, strict=True)
        ]
        for answer in answers:
            answer.add_class("sb-answer")
        answers[0].add_class("sb-first")
        live = Live(
            spec=self.spec,
            data=self.data if sheet else {},
            controls=list(self.controls.values()),
            labels=self._labels,
            worked=self._worked,
            message=self._message,
        )
        legend = widgets.HTMLMath(_legend(made))
        legend.add_class("sb-letters")
        notes = [widgets.Label(self.spec["note"])] if self.spec["note"] else []
        for note in notes:
            note.add_class("sb-note")
        controls = self.controls.values()
        super().__init__([*controls, answers[0], self._worked, self._message, *answers[1:], legend, live, *notes])
        self.add_class("sb-calculator")

    def __repr__(self):
        return f"Calculator({', '.join(f'{x}={text!r}' for x, text in self.texts.items())})"

    def _repr_mimebundle_(self, **kwargs):
        """What a notebook is told: the widget, in words what it answers, and the choice that makes it anew."""
        return stored(self, super()._repr_mimebundle_(**kwargs), {"calculator": self.choice})

    @property
    def texts(self) -> dict[str, str]:
        """The answers as they are shown, by letter."""
        return {x["letter"]: label.value for x, label in zip(self.spec["outputs"], self._labels, strict=True)}

    def _update(self, _=None):
        spec = self.spec
        options = [self.options[name][control.index] for name, control in self.controls.items()]
        letters = dict.fromkeys(self.sheet.inputs, math.nan)
        for known in (spec["fixed"], *(o["letters"] for o in options)):
            letters |= known
        device, precision = (next((o for o in options if k in o), {}) for k in ("peaks", "peak"))
        message = ""
        if precision:
            peaks = dict(device["peaks"])
            at = peaks.get(precision["peak"], {})
            letters |= {x: at[x] for x in spec["by_precision"] if x in at}
            if precision["peak"] not in peaks:
                message = f"{device['label']} has no peak at {precision['peak']}; it has {', '.join(peaks)}"
        self.values = values = {**letters, **_evaluate(self.sheet, letters)}
        signs = {name: NOTATION[name].sign for name in self.sheet.formulas}
        self._lacking = next((n for n, sign in signs.items() if not _good(values[n], sign)), None)
        for name, sign in signs.items():  # what rests on a letter without a value has none either
            if not _good(values[name], sign) or any(math.isnan(values[x]) for x in self.sheet.formulas[name].inputs):
                values[name] = math.nan
        texts = [
            "none" if math.isnan(values[x["letter"]]) else show(values[x["letter"]], x["unit"]) for x in spec["outputs"]
        ]
        first, worked = spec["outputs"][0], ""
        if texts[0] == "none":
            message = message or self._outside() or f"no {first['meaning']} here"
        else:
            message = message or self._warned()
            numbers = spec["template"]
            for name, unit in spec["units"].items():
                if f"⟦{name}⟧" in numbers:
                    numbers = numbers.replace(f"⟦{name}⟧", show_tex(self.values[name], unit))
            steps = r" \\ &= ".join([spec["right"], numbers, show_tex(self.values[first["letter"]], first["unit"])])
            worked = rf"\(\begin{{aligned}}{spec['left']} &= {steps}\end{{aligned}}\)"
        for label, text in zip(self._labels, texts, strict=True):
            label.value = text
        self._worked.value, self._message.value = worked, message

    def _outside(self):
        """The conditions of the first formula without a value, if it has some."""
        own = self.sheet.domain.get(self._lacking, ())
        letters = sorted({x for condition in own for x in condition.letters})
        if not own or any(math.isnan(self.values[x]) for x in letters):
            return ""
        said = ", ".join(f"{x}={show(self.values[x], self.spec['units'][x])}" for x in letters)
        return (
            f"{self.sheet.formulas[self._lacking].name} holds for {' and '.join(x.words for x in own)}, not at {said}"
        )

    def _warned(self):
        values, said = self.values, []
        for left, right, text in self.spec["warn"]:
            if left in values and right in values and values[left] > values[right]:
                said.append(re.sub(r"\{(\w+)\}", lambda m: show(values[m[1]], self.spec["units"][m[1]]), text))
        return " ".join(said)


def _control(c, made):
    """A menu of a table's rows or of precisions, else a slider."""
    name = c["name"]
    look = dict(
        options=[o["label"] for o in made.options[name]],
        index=made.index[name],
        description=name.replace("_", " "),
        style={"description_width": "9rem"},
    )
    if "table" in c or "precisions" in c:
        return widgets.Dropdown(**look)
    return widgets.SelectionSlider(**look, tooltip=made.letter(name).meaning, continuous_update=True)


def _legend(made):
    """The letters of the formula that is worked out, folded."""
    spec = made.spec
    names = [x["letter"] for x in spec["outputs"][:1]] + [x for x in spec["units"] if f"⟦{x}⟧" in spec["template"]]
    letters = [made.letter(x) for x in dict.fromkeys(names)]
    items = "".join(rf"<li>\({html.escape(x.tex)}\) {html.escape(x.meaning)}</li>" for x in letters)
    return f"<details><summary>the letters</summary><ul>{items}</ul></details>"


def _evaluate(sheet, letters):
    """Every letter of the sheet as the page computes it: where one has no value, the others still do."""
    inputs, outputs, _, point, vector = sheet._plan(frozenset(letters))
    values = [letters[x] for x in inputs]
    try:
        if any(map(math.isnan, values)):  # Python's max loses a NaN, NumPy's and JavaScript's keep it
            raise ValueError
        return dict(zip(outputs, point()(*values), strict=True))
    except (ArithmeticError, ValueError):
        with np.errstate(all="ignore"):
            return dict(zip(outputs, map(float, vector()(*map(np.float64, values))), strict=True))


def _good(value, sign):
    return (
        math.isfinite(value)
        and (sign == "real" or value > 0 or (sign != "positive" and value == 0))
        and (sign != "share" or value <= 1)
    )
