"""A notebook's widgets as a published page holds them: made anew from what the notebook stores, when the site is built.

What several widgets name (rows of tables, formulas, the widgets' own JavaScript) is said once, for all pages.
"""

import json
import re

from anywidget import AnyWidget

from scalebook.language.tabular import plain_page

from .described import merge
from .live import STORED, Calculator
from .live_gantt import live_gantt

__all__ = ["published", "remade", "script"]

STATE, VIEW = (f"application/vnd.jupyter.widget-{x}+json" for x in ("state", "view"))
MADE = {"calculator": Calculator, "live_gantt": lambda _: live_gantt()}


def remade(notebook: dict) -> list[tuple[dict, AnyWidget]]:
    """The outputs of a notebook that show a widget, each with the widget made anew."""
    shown = [o for cell in notebook["cells"] for o in cell.get("outputs", ()) if STORED in o.get("data", ())]
    return [(o, MADE[kind](said)) for o in shown for kind, said in o["data"][STORED].items()]


def published(notebook: dict, stem: str, shared: dict) -> dict:
    """The notebook with the state of its widgets; what its pages have in common is added to `shared`.

    The style sheet that travels with tables is left out: pages load it once.
    """
    states = {}
    for cell in notebook["cells"]:
        for data in (o.get("data", {}) for o in cell.get("outputs", ())):
            if page := data.get("text/html"):
                data["text/html"] = plain_page("".join(page))
    for before, cell in zip([{}, *notebook["cells"]], notebook["cells"], strict=False):  # for the style sheet
        if any(STORED in o.get("data", ()) for o in cell.get("outputs", ())):
            for which, tag in ((cell, "live"), (before, "before-live")):
                which.setdefault("metadata", {}).setdefault("tags", []).append(tag)
    for number, (output, widget) in enumerate(remade(notebook)):
        name = f"{stem}-{number:04d}"  # names by chance would make every build another
        if isinstance(widget, Calculator):
            merge(shared, widget.made.data)
        own = {x: v for x, v in widget.get_state().items() if x[0] != "_" and not AnyWidget.class_traits().get(x)}
        shared["modules"][widget._anywidget_id] = {x: getattr(widget, x) for x in ("_esm", "_css")}
        states[name] = dict(state=own | dict(_anywidget_id=widget._anywidget_id))
        del output["data"][STORED]
        output["data"][VIEW] = dict(version_major=2, version_minor=0, model_id=name)
        widget.close()
    if states:
        notebook["metadata"]["widgets"] = {STATE: dict(version_major=2, version_minor=0, state=states)}
    return notebook


def script(shared: dict) -> str:
    """What all pages share, as the script that they load (a script can be read from a folder, data cannot).

    A widget's module is a function there: as a module it would be read last of all that a page loads.
    """
    data = json.dumps({x: shared[x] for x in shared.keys() - {"modules"}}, ensure_ascii=False, sort_keys=True)
    kinds = (
        f"{json.dumps(name)}: {{ css: {json.dumps(own['_css'])}, make() {{\n{_returning(own['_esm'])}\n}} }},\n"
        for name, own in sorted(shared["modules"].items())
    )
    return f"globalThis.scalebook = {data};\nglobalThis.scalebook.modules = {{\n{''.join(kinds)}}};\n"


def _returning(module: str) -> str:
    """The body of a function that gives what a module exports by default."""
    return re.sub(r"^export (default )?", lambda found: "return " if found[1] else "", module, flags=re.MULTILINE)
