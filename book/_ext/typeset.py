r"""Set every equation when the site is built, so that no visit has to.

Pages come out of Sphinx with TeX between \( and \), or \[ and \]: that of the text, and that of the tables and formulas
that notebooks show.  When all pages are written, KaTeX sets each distinct equation once, and it is put into its places.
"""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

from docutils import nodes
from marks import Marks
from offline_assets import BOOK, MODULES, node
from scalebook.book.drawings.looks import INKS
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

from scalebook.display.scheme import COLOURS, SHADES, on_dark
from scalebook.language import NOTATION

# What is no text of a page, a tag, or an equation within text or on a line of its own.
PIECE = re.compile(
    r"<(?P<unread>script|style|pre|code|textarea|title|svg)\b.*?</(?P=unread)\s*>|(?P<tag><[^>]*>)"
    r"|\\\((?P<inline>[^<]+?)\\\)|\\\[(?P<display>[^<]+?)\\\]",
    re.DOTALL,
)
# A short equation is not broken, and keeps the comma behind it, which does not begin a line.
POINTS = re.compile(r"[,.;:)?!]*")
SILENT = re.compile(r"\\htmlData\{[^}]*\}|\\[A-Za-z]+|[\s{}_^]")
COLOUR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
# A reader of the keyboard reaches an equation that is wider than the page, and scrolls it.
BOX = '<span class="sb-display" tabindex="0" role="group" aria-label="equation">{}</span>'


def equations(page: str, marks: Marks):
    r"""The equations of a page: where each stands, its TeX with its letters marked, and whether on a line of its own.

    >>> [x[2:] for x in equations(r"<p>\(a &lt; b\)</p><code>\(c\)</code>", Marks({}))]
    [('a < b', False)]
    """
    for found in PIECE.finditer(page):
        if tag := found["tag"]:
            marks.see(tag)
        elif not found["unread"]:
            display = found["display"] is not None
            tex = html.unescape(found["display"] if display else found["inline"]).strip()
            yield found.start(), found.end(), marks.put(tex), display


def typeset(wanted: list) -> list:
    """What KaTeX makes of each equation, or what it says is wrong."""
    command = [node(), str(BOOK / "js" / "typeset.js")]
    done = subprocess.run(command, input=json.dumps(wanted), capture_output=True, encoding="utf-8")
    if done.returncode:
        raise ExtensionError(f"setting the site's equations failed:\n{done.stderr}")
    return json.loads(done.stdout)


def put(page: str, found, made: dict) -> str:
    """The page with its equations set."""
    pieces, end = [], 0
    for start, stop, tex, display in found:
        pieces += [page[end:start], BOX.format(made[tex, display]) if display else made[tex, display]]
        end = stop
        if not display and len(SILENT.sub("", tex)) < 20:
            mark = POINTS.match(page, stop)
            pieces[-1] = f'<span class="sb-glued">{pieces[-1]}{mark[0]}</span>'
            end = mark.end()
    return "".join([*pieces, page[end:]])


def set_pages(folder: Path) -> set[str]:
    """Set the equations of all pages of a folder, and say which colours they have."""
    pages, marks = {}, Marks.of_package()
    for path in sorted(folder.rglob("*.html")):
        text = path.read_text("utf-8")
        if found := list(equations(text, marks.page(path.relative_to(folder)))):
            pages[path] = text, found
    wanted = list(dict.fromkeys((tex, display) for _, found in pages.values() for *_, tex, display in found))
    made, wrong = {}, {}
    for key, (good, bad) in zip(wanted, typeset(wanted), strict=True):
        made[key], wrong[key] = good, bad
    refused = [
        f"{path.relative_to(folder)}: {tex}: {wrong[tex, display]}"
        for path, (_, found) in pages.items()
        for *_, tex, display in found
        if wrong[tex, display]
    ]
    if refused:
        raise ExtensionError("KaTeX cannot set\n" + "\n".join(refused))
    for path, (text, found) in pages.items():
        path.write_text(put(text, found, made), "utf-8")
    return {x.lower() for tex, _ in wanted for x in COLOUR.findall(tex)}


def house_colours() -> set[str]:
    """The hues in which drawings and charts paint, and terms of equations beside them."""
    ours = [x for hues in (SHADES, INKS) for own in hues.values() for x in own]
    return {x.lower() for x in (*ours, *(light for light, _ in COLOURS.values()))}


def dark(colours) -> str:
    """A style sheet that gives coloured terms the hues of the dark scheme.

    >>> dark(["#0072b2"])
    'html[data-theme="dark"] .katex [style*="#0072b2" i] { color: #56B4E9 !important; }\\n'
    """
    rule = 'html[data-theme="dark"] .katex [style*="{}" i] {{ color: {} !important; }}\n'
    return "".join(rule.format(x, on_dark(x)) for x in sorted(colours))


def style() -> str:
    """KaTeX's style sheet, with the one kind of font file that every browser of today reads."""
    text = (MODULES / "katex" / "dist" / "katex.min.css").read_text("utf-8")
    return re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("\w+"\)', "", text)


def gather(app, config):
    folder, ours = MODULES / "katex" / "dist", BOOK / "_build" / "assets" / "katex"
    shutil.copytree(folder / "fonts", ours / "fonts", ignore=lambda _, names: [x for x in names if x[-6:] != ".woff2"])
    shutil.copy(MODULES / "katex" / "LICENSE", ours)
    shutil.copy(folder / "katex.min.js", ours)  # for equations with a reader's own numbers (book/js/widgets.js)
    said = {name: [x.meaning, x.unit] for name, x in NOTATION.items()}
    text = f"globalThis.scalebook_letters = {json.dumps(said, ensure_ascii=False, sort_keys=True)};\n"
    (ours.parent / "letters-data.js").write_text(text, "utf-8")  # fetched by book/_static/letters.js when asked for
    (ours / "katex.css").write_text(style() + "\n" + dark(house_colours()), "utf-8")


def inline(self, found):
    self.body.append(rf"\({self.encode(found.astext())}\)")
    raise nodes.SkipNode


def block(self, found):
    tex = found.astext()
    if r"\\" in tex and r"\begin{" not in tex:
        tex = rf"\begin{{split}}{tex}\end{{split}}"
    if found["number"]:
        tex += rf"\tag{{{get_node_equation_number(self, found)}}}"
    self.body.append(self.starttag(found, "div", CLASS="math") + rf"\[{self.encode(tex)}\]" + "</div>\n")
    raise nodes.SkipNode


def finish(app, error):
    if error or app.builder.format != "html":
        return
    outdir = Path(app.outdir)
    if strange := set_pages(outdir) - house_colours():
        with (outdir / "_static" / "katex" / "katex.css").open("a", encoding="utf-8") as file:
            file.write(dark(strange))


def setup(app):
    app.add_html_math_renderer("katex", (inline, None), (block, None))
    app.add_css_file("katex/katex.css")
    app.connect("config-inited", gather, priority=900)  # after the folder of assets is made
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
