"""What several tests share: the package's formulas and sheets, points to evaluate them at, and a JavaScript engine."""

import importlib
import json
import pkgutil
from pathlib import Path

import numpy as np
from py_mini_racer import MiniRacer

import scalebook
from scalebook.language import FORMULAS, NOTATION, Formula, Sheet, show

ROOT = Path(scalebook.__file__).parent
NAMES = sorted(m.name for m in pkgutil.walk_packages(scalebook.__path__, "scalebook.") if "__main__" not in m.name)
MODULES = {name: importlib.import_module(name) for name in NAMES if not name.startswith("scalebook.display")}
_OBJECTS = {id(x): x for module in MODULES.values() for x in vars(module).values() if isinstance(x, (Formula, Sheet))}
STATED = [f for f in FORMULAS.values() if f.__module__.startswith("scalebook.")]
COMPOSED = [x for x in _OBJECTS.values() if isinstance(x, Formula) and x not in STATED]
SHEETS = [x for x in _OBJECTS.values() if isinstance(x, Sheet)]


def draw(letters, number, seed=0, grouped=False):
    """Random values for each letter, shares between 0 and 1; grouped: stages and micro-batches that every schedule runs."""
    rng = np.random.default_rng(seed)
    shares = ("share", "fraction", "achieved over")
    drawn = {
        x: rng.uniform(0.05, 0.95, number)
        if NOTATION[x].sign == "share" or any(s in NOTATION[x].meaning for s in shares)
        else rng.uniform(1, 100, number)
        for x in letters
    }
    if grouped and "pp" in drawn:
        drawn["pp"] = 2 * np.ceil(drawn["pp"] / 2)
    if grouped and {"pp", "microbatches"} <= drawn.keys():
        drawn["microbatches"] = 2 * drawn["pp"] * np.ceil(drawn["microbatches"] / 10)
    return drawn


class JavaScript:
    """An engine that has run `source`; call it with an expression."""

    def __init__(self, source=""):
        self.context = MiniRacer()
        self.context.eval(source)

    def __call__(self, expression):
        return json.loads(self.context.eval(f"JSON.stringify({expression})"))

    def each(self, function, arguments):
        """The function's answers to many lists of arguments at once; null where it gives no finite number."""
        return self(f"({json.dumps(arguments)}).map((x) => ({function})(...x))")


def live():
    """An engine that knows the functions of live.js."""
    text = (ROOT / "display" / "live.js").read_text("utf-8")
    return JavaScript(text.replace("export default", "const live =").replace("export ", ""))


def specs(notebook):
    """What the calculators of a stored notebook are made of, in their order."""
    widgets = json.loads(Path(notebook).read_text("utf-8"))["metadata"]["widgets"]
    states = widgets["application/vnd.jupyter.widget-state+json"]["state"]
    return [x["state"]["spec"] for _, x in sorted(states.items()) if "spec" in x["state"]]


def python_says(sheet, spec, labels):
    """What a sheet answers, called as any reader would, for controls that stand at these labels."""
    options = [
        next(o for o in control["options"] if o["label"] == label)
        for control, label in zip(spec["controls"], labels, strict=True)
    ]
    letters = {k: v for option in options for k, v in option["letters"].items()}
    peaks, precision = (next((o[k] for o in options if k in o), None) for k in ("peaks", "peak"))
    if precision:
        letters["peak_flops"] = dict(peaks)[precision]
    row = sheet(letters)
    return [show(row[x["letter"]], x["unit"]) for x in spec["outputs"]]
