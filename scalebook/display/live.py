"""A calculator on the screen: stock ipywidgets, and the part that runs in the browser."""

import html
import math
import re
from importlib.resources import files

import anywidget
import ipywidgets as widgets
import numpy as np
import traitlets

from scalebook.language import NOTATION, Sheet, show
from scalebook.language.units import show_tex

__all__ = ["Calculator", "Live"]

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
        legend = widgets.HTMLMath(_legend(spec))
        legend.add_class("sb-letters")
        notes = [widgets.Label(spec["note"])] if spec["note"] else []
        for note in notes:
            note.add_class("sb-note")
        super().__init__([*controls.values(), answers[0], self._worked, self._message, *answers[1:], legend, live, *notes])
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
        if precision:
            peaks = dict(device["peaks"])
            letters["peak_flops"] = peaks.get(precision["peak"], np.nan)
            if precision["peak"] not in peaks:
                message = f"{device['label']} has no peak at {precision['peak']}; it has {', '.join(peaks)}"
        self.values = values = {**letters, **_evaluate(self.sheet, letters)}
        self._lacking = next((n for n, sign, _ in spec["order"] if not _good(values[n], sign)), None)
        for name, sign, inputs in spec["order"]:  # what rests on a letter without a value has none either
            if not _good(values[name], sign) or any(math.isnan(values[x]) for x in inputs):
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
        own = [x for x in self.spec.get("holds", []) if x[0] == self._lacking]
        if not own or any(math.isnan(self.values[x]) for *_, letters in own for x in letters):
            return ""
        letters = sorted({x for *_, names in own for x in names})
        said = ", ".join(f"{x}={show(self.values[x], self.spec['units'][x])}" for x in letters)
        return f"{own[0][1]} holds for {' and '.join(x[2] for x in own)}, not at {said}"

    def _warned(self):
        values, said = self.values, []
        for left, right, text in self.spec["warn"]:
            if left in values and right in values and values[left] > values[right]:
                said.append(re.sub(r"\{(\w+)\}", lambda m: show(values[m[1]], self.spec["units"][m[1]]), text))
        return " ".join(said)


def _legend(spec):
    """The letters of the formula that is worked out, folded."""
    names = [x["letter"] for x in spec["outputs"][:1]] + [x for x in spec["units"] if f"⟦{x}⟧" in spec["template"]]
    items = "".join(rf"<li>\({NOTATION[x].tex}\) {html.escape(NOTATION[x].meaning)}</li>" for x in dict.fromkeys(names))
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
