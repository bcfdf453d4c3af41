"""The calculator widget. Python and the browser share its state, and the browser draws it."""

import math
import re
from collections.abc import Mapping
from importlib.resources import files

import anywidget
import numpy as np
import traitlets

from scalebook.language import Sheet, show
from scalebook.language.row import strays
from scalebook.language.sheet import computed_at

from .described import Described, brief
from .scheme import shades_style

__all__ = ["STORED", "Calculator", "stored"]

SCRIPTS = ("live", "live_interval", "live_chart", "elements", "live_controls", "live_view")
STORED = "application/vnd.scalebook+json"

_HERE = files(__name__.rpartition(".")[0])


def stored(widget, bundle, made_of: Mapping):
    """Return a widget's notebook output, with what the notebook stores to make the widget again (`made_of`)."""
    data, *rest = bundle if isinstance(bundle, tuple) else (bundle,)
    data = data | {"text/plain": repr(widget), STORED: dict(made_of)}
    return (data, *rest) if rest else data


class Calculator(anywidget.AnyWidget):
    """The widget that `calculator` returns. Python and the browser share its state.

    `state` has the value of each control, `values` all quantities, `texts` the answers, and `message` the sentence in
    place of an answer, or a warning. If Python has no sheet, only the page's JavaScript computes answers.
    """

    _esm = "\n".join((_HERE / f"{x}.js").read_text("utf-8") for x in SCRIPTS)
    _css = (_HERE / "live.css").read_text("utf-8") + shades_style(".sb-calculator")
    spec = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)  # formulas and rows that the spec names; pages load them from a shared file
    state = traitlets.Dict().tag(sync=True)
    values = traitlets.Dict()

    def __init__(self, choice: dict, sheet: Sheet | None = None):
        made = Described(choice)
        self.choice, self.options, self.sheet, self.made, self.message = choice, made.options, None, made, ""
        if sheet is not None:
            self.sheet = Sheet(sheet.name, *(sheet.formulas[x] for x in made.formulas), doc=sheet.doc)
        super().__init__(spec=made.spec, data=made.data if sheet else {}, state=made.start)
        if sheet is not None:
            self.observe(self._update, "state")
            self._update()

    def __repr__(self):
        return f"Calculator({', '.join(f'{x}={text!r}' for x, text in self.texts.items())})"

    def _repr_mimebundle_(self, **kwargs):
        return stored(self, super()._repr_mimebundle_(**kwargs), {"calculator": self.choice})

    @traitlets.validate("state")
    def _checked(self, proposal):
        return self.made.checked(proposal["value"])

    def choose(self, **choices) -> None:
        """Set some controls: a table's row by key, a precision by name, a slider by a number or a text with a unit."""
        self.state = {**self.state, **choices}

    @property
    def texts(self) -> dict[str, str]:
        """The displayed answers, such as "295.3 FLOP/B", by name of the quantity."""
        values = {x["letter"]: (self.values.get(x["letter"], math.nan), x["unit"]) for x in self.spec["outputs"]}
        return {name: "none" if math.isnan(x) else show(x, unit) for name, (x, unit) in values.items()}

    def _update(self, _=None):
        spec, state = self.spec, self.state
        letters = dict.fromkeys(self.sheet.inputs, math.nan)
        for known in (spec["fixed"], *(self.made.letters(*x) for x in state.items())):
            letters |= known
        message = ""
        if "precision" in self.options:
            options = (self.made.option(*x) for x in state.items() if "peaks" in self.options[x[0]][0])
            device, precision = next(options), state["precision"]
            at = dict(device["peaks"]).get(precision, {})
            letters |= {x: at[x] for x in spec["by_precision"] if x in at}
            if precision not in (has := [p for p, _ in device["peaks"]]):
                message = f"{device['label']} has no peak at {precision}; it has {', '.join(has)}"
        values = {**letters, **_evaluate(self.sheet, letters)}
        lacking = next((x for x in self.sheet.formulas if strays(x, np.asarray(values[x]))), None)
        for name, f in self.sheet.formulas.items():  # a letter that depends on one without a value has none either
            rests = () if name in letters else f.inputs
            if strays(name, np.asarray(values[name])) or any(math.isnan(values[x]) for x in rests):
                values[name] = math.nan
        self.values = values
        first = spec["outputs"][0]
        if math.isnan(values[first["letter"]]):
            none = f"what is chosen here gives no {brief(first['meaning'])}"
            self.message = message or self._outside(lacking) or none
        else:
            self.message = message or self._warned()

    def _outside(self, lacking):
        own = self.sheet.formulas[lacking].domain if lacking else ()
        letters = sorted({x for condition in own for x in condition.letters})
        if not own or any(math.isnan(self.values[x]) for x in letters):
            return ""
        said = {x: brief(meaning) for x, (_, meaning) in self.spec["letters"].items()}
        at = "; ".join(f"{said[x]} = {show(self.values[x], self.spec['units'][x])}" for x in letters)
        return f"{said[lacking]}: the formula holds for {' and '.join(x.words for x in own)}, not at {at}"

    def _warned(self):
        values, said = self.values, []
        for left, right, text in self.spec["warn"]:
            if left in values and right in values and values[left] > values[right]:
                said.append(re.sub(r"\{(\w+)\}", lambda m: show(values[m[1]], self.spec["units"][m[1]]), text))
        return " ".join([*said, *self._too_much()])

    def _too_much(self):
        values, units = self.values, self.spec["units"]
        for left, right in self.spec.get("limits", ()):
            if values[left] > values.get(right, math.inf):
                held, has = show(values[left], units[left]), show(values[right], units[right])
                yield f"It does not fit: {held} of {has}."


def _evaluate(sheet, letters):
    """Evaluate every letter of a sheet as the page does: a letter without a value does not stop the others."""
    inputs, steps, _, point, vector = sheet._plan(frozenset(letters))
    outputs, values = [x[0] for x in steps], {x: letters[x] for x in inputs}
    try:
        if any(map(math.isnan, values.values())):  # Python's max loses a NaN, NumPy's and JavaScript's keep it
            raise ValueError
        known = computed_at(point(), values)
        return {x: known[x] for x in outputs}
    except (ArithmeticError, ValueError):
        with np.errstate(all="ignore"):
            return dict(zip(outputs, map(float, vector()(*map(np.float64, values.values()))), strict=True))
