"""Make the widgets of a published notebook again, from what the notebook stores, when the site is built."""

import json
import re

from anywidget import AnyWidget
from scalebook.book.drawings.live_gantt import live_gantt

from scalebook.display.described import merge
from scalebook.display.guess import Guess
from scalebook.display.live import STORED, Calculator
from scalebook.language.tabular import plain_page

__all__ = ["published", "remade", "script"]

STATE, VIEW = (f"application/vnd.jupyter.widget-{x}+json" for x in ("state", "view"))
MADE = {"calculator": Calculator, "live_gantt": lambda _: live_gantt(), "guess": lambda asked: Guess(asked=asked)}


def remade(notebook: dict) -> list[tuple[dict, AnyWidget]]:
    """Return pairs of a notebook's stored output and the widget made again from it."""
    shown = [o for cell in notebook["cells"] for o in cell.get("outputs", ()) if STORED in o.get("data", ())]
    return [(o, MADE[kind](said)) for o in shown for kind, said in o["data"][STORED].items()]


def published(notebook: dict, stem: str, shared: dict, made: list | None = None) -> dict:
    """Return a notebook with its widgets' states, as the site shows it; add what pages share to `shared`.

    `made` is what `remade` returned for the notebook, if it was called before.
    """
    states = {}
    for cell in notebook["cells"]:
        for data in (o.get("data", {}) for o in cell.get("outputs", ())):
            if page := data.get("text/html"):
                data["text/html"] = plain_page("".join(page))  # pages load the style sheet of tables once
    for before, cell in zip([{}, *notebook["cells"]], notebook["cells"], strict=False):  # for the style sheet
        if any(STORED in o.get("data", ()) for o in cell.get("outputs", ())):
            for which, tag in ((cell, "live"), (before, "before-live")):
                which.setdefault("metadata", {}).setdefault("tags", []).append(tag)
    for number, (output, widget) in enumerate(remade(notebook) if made is None else made):
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
    """Return a JavaScript file with everything that pages share: formulas, table rows and the widgets' modules.

    It is a script because a page opened from disk can load a script, but no data.
    """
    data = json.dumps({x: shared[x] for x in shared.keys() - {"modules"}}, ensure_ascii=False, sort_keys=True)
    kinds = (
        f"{json.dumps(name)}: {{ css: {json.dumps(own['_css'])}, make() {{\n{_returning(own['_esm'])}\n}} }},\n"
        for name, own in sorted(shared["modules"].items())
    )
    return f"globalThis.scalebook = {data};\nglobalThis.scalebook.modules = {{\n{''.join(kinds)}}};\n"


def _returning(module: str) -> str:
    """Return a function body that returns the default export of a module."""
    return re.sub(r"^export (default )?", lambda found: "return " if found[1] else "", module, flags=re.MULTILINE)
