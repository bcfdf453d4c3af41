"""A notebook's widgets as a published page holds them: made anew from what the notebook stores, when the site is built.

What several widgets name (rows of tables, formulas, the widgets' own JavaScript) is said once, for all pages.
"""

import json

import ipywidgets as widgets
from anywidget import AnyWidget
from ipywidgets.embed import dependency_state

from .described import merge
from .live import STORED, Calculator
from .live_gantt import live_gantt

__all__ = ["published", "remade", "script"]

STATE, VIEW = (f"application/vnd.jupyter.widget-{x}+json" for x in ("state", "view"))
MADE = {"calculator": Calculator, "live_gantt": lambda _: live_gantt()}

OF_ALL = [
    "_esm",
    "_css",
    "_view_name",
    "_view_module",
    "_view_module_version",
]  # what every widget of a class has alike


def remade(notebook: dict) -> list[tuple[dict, widgets.DOMWidget]]:
    """The outputs of a notebook that show a widget, each with the widget made anew."""
    shown = [o for cell in notebook["cells"] for o in cell.get("outputs", ()) if STORED in o.get("data", ())]
    return [(o, MADE[kind](said)) for o in shown for kind, said in o["data"][STORED].items()]


def published(notebook: dict, stem: str, shared: dict) -> dict:
    """The notebook with the state of its widgets; what its pages have in common is added to `shared`."""
    shown = remade(notebook)
    state = dependency_state([widget for _, widget in shown]) if shown else {}
    for output, widget in shown:
        if isinstance(widget, Calculator):
            merge(shared, widget.data)
        for own in (x for x in (widget, *getattr(widget, "children", ())) if isinstance(x, AnyWidget)):
            state[own.model_id]["state"]["_anywidget_id"] = own._anywidget_id
            shared["modules"][own._anywidget_id] = {x: getattr(own, x) for x in OF_ALL}
        del output["data"][STORED]
        output["data"][VIEW] = dict(version_major=2, version_minor=0, model_id=widget.model_id)
    if state:
        notebook["metadata"]["widgets"] = {STATE: dict(version_major=2, version_minor=0, state=state)}
    text = json.dumps(notebook, ensure_ascii=False)
    for number, name in enumerate(state):  # names by chance would make every build another
        text = text.replace(name, f"{stem}-{number:04d}")
    for _, widget in shown:
        widget.close()
    return json.loads(text)


def script(shared: dict) -> str:
    """What all pages share, as the script that they load (a script can be read from a folder, data cannot)."""
    return f"globalThis.scalebook = {json.dumps(shared, ensure_ascii=False, sort_keys=True)};\n"
