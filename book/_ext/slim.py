"""Drop from the themes' style sheets what no page of the site can show: most of Bootstrap and every icon by name.

And from the theme's script what makes a browser lay a page out once for each of its boxes.
"""

import re
from functools import cache
from pathlib import Path

from sphinx.errors import ExtensionError

SHEETS = ("styles/pydata-sphinx-theme.css", "sphinx-design.min.css", "mystnb.*.css")
RULE = re.compile(r"([^{};]+)\{([^{}]*)\}")
INSIDE = re.compile(r"\([^()]*\)")
# The theme asks each box for its width, and then tells it whether Tab stops there, after every change of a page; a long
# page takes seconds.  book/_static/reading.js asks all boxes first.
STOPS = re.compile(r'document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)')
NAME = re.compile(r"\.(-?[A-Za-z_][\w-]*)")


def asked_for(selector: str) -> set[str]:
    """The classes without which a selector finds nothing.

    >>> sorted(asked_for("a.btn:not(.plain) > .icon"))
    ['btn', 'icon']
    """
    while selector != (bare := INSIDE.sub("", selector)):
        selector = bare
    return set(NAME.findall(selector))


def slimmed(sheet: str, has) -> str:
    """A style sheet without the rules whose classes no page has.

    >>> slimmed("@media print{.a,.b{c:d}.b{e:f}}p{g:h}", {"a"}.__contains__)
    '@media print{.a{c:d}}p{g:h}'
    """

    def kept(rule):
        head, body = rule.groups()
        if head.lstrip().startswith("@"):
            return rule[0]
        left = [x for x in re.split(r",(?![^(]*\))", head) if all(map(has, asked_for(x)))]
        return f"{','.join(left)}{{{body}}}" if left else ""

    return RULE.sub(kept, re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL))


def words_of(folder: Path) -> set[str]:
    """Every class that a page has or that a script may give it."""
    words = set()
    for path in folder.rglob("*.html"):
        for names in re.findall(r'class="([^"]*)"', path.read_text("utf-8")):
            words.update(names.split())
    for path in (folder / "_static").rglob("*.js"):
        if path.name != "fontawesome.js":  # brings its own style
            words.update(re.findall(r"[A-Za-z_][\w-]*", path.read_text("utf-8")))
    return words


def finish(app, error):
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    script = folder / "_static" / "scripts" / "pydata-sphinx-theme.js"
    text, found = STOPS.subn("[]", script.read_text("utf-8"))
    if not found:
        raise ExtensionError("the theme's script has no boxes to stop at any more: book/_ext/slim.py looks for them")
    script.write_text(text, "utf-8")
    words = words_of(folder)
    begun = tuple(x for x in words if x.endswith("-") and len(x) > 3)  # a script puts the rest behind it
    has = cache(lambda name: name in words or name.startswith(begun))
    for path in (x for sheet in SHEETS for x in (folder / "_static").glob(sheet)):
        path.write_text(slimmed(path.read_text("utf-8"), has), "utf-8")


def setup(app):
    app.connect("build-finished", finish, priority=400)  # before equations are set, whose style is their own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
