"""The planner's page: its script and style sheet, written when the site is built, and loaded by that page alone."""

import subprocess
from pathlib import Path

from offline_assets import MODULES
from scalebook.book.planner import planner_parts, planner_script, planner_style

ASSETS = Path(__file__).parents[1] / "_build" / "assets"


def gather(app, config):
    ASSETS.mkdir(parents=True, exist_ok=True)
    small = [str(MODULES / ".bin" / "esbuild"), "--minify"]  # of a script: what a worker asks for keeps its name
    script = planner_script(lambda x: subprocess.run(small, input=x, capture_output=True, text=True, check=True).stdout)
    (ASSETS / "planner.js").write_text(script, "utf-8")
    (ASSETS / "planner-parts.js").write_text(planner_parts(), "utf-8")
    (ASSETS / "planner.css").write_text(planner_style(), "utf-8")


def load(app, pagename, templatename, context, doctree):
    if pagename == "book/planner":
        app.add_js_file("widgets.js", loading_method="defer")  # which sets equations that a visitor opens
        app.add_js_file("planner.js", loading_method="defer")
        app.add_css_file("planner.css")


def setup(app):
    app.connect("config-inited", gather, priority=900)  # after the folder of assets is made
    app.connect("html-page-context", load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
