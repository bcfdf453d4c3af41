"""The planner: what a training run or a service needs, asked in a sentence and answered by the package's own formulas.

The page evaluates and searches by itself: in JupyterLab as an anywidget, on the site without a kernel.

>>> planner("serve", model="llama3_70b", device="h200", devices=4, users=32)
planner: serve llama3_70b on 4 h200
"""

import json
from importlib.resources import files
from pathlib import Path

import anywidget
import traitlets

from scalebook.display.scheme import shades_style
from scalebook.inference.serving import Serve
from scalebook.language import NOTATION
from scalebook.language.row import quantity
from scalebook.tables import accelerators, engines, frameworks, models
from scalebook.training.frameworks import UNNAMED

from .data import planner_json

__all__ = ["Planner", "planner", "planner_script", "planner_style"]

_HERE = Path(__file__).parent
_PARTS = ("engine", "cases", "pools", "search", "likely", "words", "rows", "draw", "state", "answer", "form",
          "evidence", "side", "apart", "worker", "page")  # fmt: skip
BASE = "https://scalebook.github.io/scalebook/"
DEFAULT_PLANS = {
    "train": dict(
        job="train", model="llama3_405b", device="h100", precision="bf16", framework=UNNAMED, targets={}, fixed={},
        beside=[],
        letters=dict(devices=1024, global_batch=1024, seq=8192, train_tokens=15.6e12),
    ),
    "serve": dict(
        job="serve", model="deepseek_v3", device="b200", precision="fp8", engine=Serve.engine, fixed={}, beside=[],
        letters=dict(devices=8, users=64, prompt=1024, output=1024), targets=dict(ttft=1, tpot=0.03),
    ),
}  # fmt: skip


def _scripts() -> str:
    return "\n".join([_draws(), *((_HERE / f"{x}.js").read_text("utf-8") for x in _PARTS)])


def _draws() -> str:
    """Of the calculators' script what draws causes and orders results."""
    text = (files("scalebook.display") / "live_interval.js").read_text("utf-8")
    end = text.index("\n}\n", text.index("function spreadOf")) + 3
    return text[:end].replace("export ", "")


def planner_style() -> str:
    """The style sheet, of the widget and of the page."""
    return (_HERE / "planner.css").read_text("utf-8") + shades_style(".pl")


class Planner(anywidget.AnyWidget):
    """What `planner` returns; `plan` is what is asked first, as a link has it."""

    _esm = _scripts() + (
        "\nexport default { render({ model, el }) { const text = model.get('data'), data = JSON.parse(text);"
        " const page = planPage(el, data, text, { base: model.get('base'), linked: false, state: model.get('plan'),"
        " typeset: (x) => (model.widget_manager?._rendermime?.latexTypesetter ?? globalThis.scalebook)?.typeset?.(x)"
        " }); return () => page.close(); } };\n"
    )
    _css = planner_style()
    data = traitlets.Unicode().tag(sync=True)
    base = traitlets.Unicode(BASE).tag(sync=True)
    plan = traitlets.Dict().tag(sync=True)

    def __repr__(self):
        x = self.plan
        return f"planner: {x['job']} {x['model']} on {x['letters']['devices']:g} {x['device']}"


def planner(
    job: str = "train",
    model: str = "",
    device: str = "",
    precision: str = "",
    engine: str = "",
    framework: str = "",
    **letters,
):
    """A planner that begins with this plan; models, devices, engines and frameworks by their names in the tables.

    Letters are numbers or texts with a unit ("1 s"); `ttft` and `tpot` of a service are targets, a `rate` stands in the
    place of its users.  Raises ValueError for a job that is neither "train" nor "serve", LookupError for a name that no
    table has.

    >>> planner("server")
    Traceback (most recent call last):
        ...
    ValueError: a planner is asked to 'train' or to 'serve', not 'server'
    """
    if job not in DEFAULT_PLANS:
        raise ValueError(f"a planner is asked to 'train' or to 'serve', not {job!r}")
    plan = json.loads(json.dumps(DEFAULT_PLANS[job]))
    named = (
        ("model", model, models), ("device", device, accelerators), ("engine", engine, engines),
        ("framework", framework, frameworks),
    )  # fmt: skip
    for name, said, table in named:
        if said:
            table[said]  # answers with the nearest names
            plan[name] = said
    row = accelerators[plan["device"]]
    if precision or f"peak_{plan['precision']}" not in row:
        plan["precision"] = precision or next(x for x in ("bf16", "fp16", "fp8", "fp4") if f"peak_{x}" in row)
    row.at(plan["precision"])
    if "rate" in letters:  # asked for in the place of users
        del plan["letters"]["users"]
    for name, value in letters.items():
        where = plan["targets"] if name in plan["targets"] else plan["letters"]
        where[NOTATION[name].name] = float(quantity(name, value))
    return Planner(plan=plan, data=planner_json())


def planner_script(small=lambda script: script) -> str:
    """The same for a page without a kernel, as one classic script: it fills the element `sb-planner`.

    `small` may shorten the scripts, as a bundler does; functions that stand by themselves keep their names.
    """
    data = (
        planner_json().replace("\\", "\\\\").replace("'", "\\'")
    )  # as a text in single quotes, for JSON is full of others
    return (
        f"(() => {{\n{small(_scripts())}\nconst text = '{data}', data = JSON.parse(text);\n"
        "const go = () => planPage(document.getElementById('sb-planner'), data, text, { base: '../', linked: true });\n"
        "if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', go); else go();\n})();\n"
    )
