"""Make the widgets of the pages anew from what the notebooks store, so that they hold today's tables and formulas.

Each page gets the state of its widgets, and all pages together one script with the tables' rows, the formulas and the
widgets' own JavaScript.
"""

import importlib
import json
import pkgutil
import re
from pathlib import Path

from scalebook.book.pages.widgets import published, script

import scalebook
from scalebook.language.tabular import house

ROOT = Path(__file__).parents[2]
PAGES = {}


def gather(app, config):
    for module in pkgutil.walk_packages(scalebook.__path__, "scalebook."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # its formulas can then be named
    shared = dict(formulas={}, tables={}, modules={})
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        PAGES[str(path.relative_to(ROOT).with_suffix(""))] = json.dumps(published(notebook, path.stem, shared))
    assets = ROOT / "book" / "_build" / "assets"
    (assets / "calculators.js").write_text(script(shared), "utf-8")
    # A notebook's own style is fought with there, not here: each class once, so that a page's style can go on from it.
    (assets / "house.css").write_text(re.sub(r"(\.sb-table)+", r"\1", house()), "utf-8")


def put(app, name, source):
    source[0] = PAGES.get(name, source[0])


def setup(app):
    app.connect("config-inited", gather, priority=900)  # after the folder of assets is made
    app.connect("source-read", put)
    app.add_css_file("house.css", priority=300)  # before custom.css
    return {"parallel_read_safe": True, "parallel_write_safe": True}
