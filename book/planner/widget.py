"""The planner widget: you describe a training run or a service in one sentence, and the package's formulas answer.

The browser evaluates and searches by itself: as an anywidget in JupyterLab, and without a kernel on the site.

>>> planner("serve", model="llama3_70b", device="h200", devices=4, users=32)
planner: serve llama3_70b on 4 h200
"""

import json
from importlib.resources import files
from pathlib import Path

import anywidget
import traitlets

from scalebook.display.scheme import shades_style
from scalebook.language import NOTATION
from scalebook.language.row import quantity
from scalebook.tables import accelerators, engines, frameworks, models

from .data import DEFAULT_PLANS, planner_json

__all__ = ["Planner", "planner", "planner_parts", "planner_script", "planner_style"]

_HERE = Path(__file__).parent
# In an order found by trial: gzip looks back 32 kB, so what resembles each other stands together (-1 kB).
_PARTS = ("sessions", "words", "engine", "updates", "search", "likely", "assumed", "pools", "cases", "state", "rows",
          "answer", "form", "costs", "apart", "learning", "evidence", "draw", "side", "agents", "changes", "market",
          "page", "worker")  # fmt: skip
BASE = "https://scalebook.github.io/scalebook/"


def _scripts() -> str:
    return "\n".join([_draws(), *((_HERE / f"{x}.js").read_text("utf-8") for x in _PARTS)])


def _draws() -> str:
    """Return the part of the calculators' JavaScript that draws the causes of an interval and sorts results."""
    text = (files("scalebook.display") / "live_interval.js").read_text("utf-8")
    end = text.index("\n}\n", text.index("function spreadOf")) + 3
    return text[:end].replace("export ", "")


def planner_style() -> str:
    """Return the CSS of the planner, for the widget and for the site's page."""
    return (_HERE / "planner.css").read_text("utf-8") + shades_style(".pl")


class Planner(anywidget.AnyWidget):
    """The widget that `planner` returns. `plan` is the plan that it shows first, in the form of the page's links."""

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
    """Return a planner widget that starts with this plan. Models, devices, engines and frameworks are keys of tables.

    Letters are numbers or texts with a unit ("1 s"). For serving and agents, `ttft` and `tpot` are targets, and for
    serving `rate` (requests per second) replaces `users`. For reinforcement learning ("rl"), `rollout` and `training`
    are layouts, such as dict(tp=4). Raises ValueError for a job that is none of these four, and LookupError for a name
    that no table has.

    >>> planner("server")
    Traceback (most recent call last):
        ...
    ValueError: a planner is asked to 'train', to 'serve', about 'agents' or about 'rl', not 'server'
    """
    if job not in DEFAULT_PLANS:
        raise ValueError(f"a planner is asked to 'train', to 'serve', about 'agents' or about 'rl', not {job!r}")
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
        if isinstance(plan.get(name), dict):  # a layout
            plan[name] |= value
            continue
        where = plan["targets"] if name in plan["targets"] else plan["letters"]
        where[NOTATION[name].name] = float(quantity(name, value))
    return Planner(plan=plan, data=planner_json(parts=True))


def planner_script(small=lambda script: script) -> str:
    """Return the planner and its data as one classic script, for a page without a kernel.

    The script fills the element with the id `sb-planner`. `small` may minify the scripts but must keep the names of
    top-level functions. If a visitor asks for a model with a list of parts, the script loads `planner_parts` from
    planner-parts.js beside it.
    """
    return (
        f"(() => {{\n{small(_scripts())}\nconst text = {_quoted(planner_json())};\n"
        "const here = document.currentScript?.src ?? '';\n"
        "const go = () => planPages(document.getElementById('sb-planner'), text, { base: '../', linked: true },"
        " here.replace(/planner\\.js.*/, 'planner-parts.js'));\n"
        "if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', go); else go();\n})();\n"
    )


def planner_parts() -> str:
    """Return the script with the data of all models, also of those with a list of parts, for the page to load."""
    return f"globalThis.scalebookPlanned = {_quoted(planner_json(parts=True))};\n"


def _quoted(text: str) -> str:
    """Return JSON as JavaScript's text in single quotes, because JSON is full of double ones."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
