"""The book to read away from a screen: print the built site into dist/scalebook.pdf and dist/scalebook.epub.

Reference pages that are tables to look things up in stay on the site alone.
"""

import io
import json
import shutil
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from playwright.sync_api import sync_playwright
from scalebook.book.pages import away

from tools import epub

ROOT = Path(__file__).parents[1]
SITE = ROOT / "book" / "_build" / "html"
PRINT = ROOT / "book" / "print"
BASE = yaml.safe_load((ROOT / "book" / "_config.yml").read_text("utf-8"))["html"]["baseurl"]
KEPT = ("trust", "cheat-sheet", "glossary", "bibliography", "how-to-cite")  # of the reference; the rest is tables
TITLE = "scalebook"
ABOUT = "How much memory, bandwidth, arithmetic and money does a large language model need?"
DISK = SITE.as_uri() + "/"
WIDTH = 665  # of the column, in pixels: A4 without the margins of paper.css


@dataclass
class Chapter:
    """A page of the site as the book has it."""

    part: str
    name: str  # its address in the site
    title: str = ""
    cut: tuple = ()  # texts that the column cuts
    paper: bytes = b""
    text: str = ""  # XHTML
    pictures: dict = None


def chapters() -> list[Chapter]:
    """The pages of the book in order."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    found = [Chapter("", toc["root"] + ".html")]
    for part in toc["parts"]:
        files = [x["file"] for x in part["chapters"]]
        found += [Chapter(part["caption"], f"{x}.html") for x in files if "reference/" not in x or x.endswith(KEPT)]
    return [x for x in found if not x.name.endswith("design.html")]


def sheet(chromium):
    """Open a page that is as wide as the column and styled as paper."""
    page = chromium.new_page(viewport={"width": WIDTH, "height": 1000}, device_scale_factor=2)
    page.set_default_timeout(600_000)
    page.emulate_media(media="print", color_scheme="light")
    return page


def read(page, chapter: Chapter, local: dict, first: int) -> int:
    """Fill in a chapter: its pages on paper, which begin with number `first`, and its XHTML.  Return how many pages."""
    page.goto(DISK + chapter.name)
    if page.locator('script[type="application/vnd.jupyter.widget-view+json"]').count():
        page.locator("html[data-widgets=live]").wait_for(state="attached")
    page.wait_for_function("!document.querySelector('progress')")  # the planner has searched
    page.evaluate((PRINT / "pages.js").read_text("utf-8"))
    page.add_style_tag(path=PRINT / "paper.css")
    chapter.title = page.evaluate("(live) => book.prepare(live)", BASE + chapter.name)
    boxes = page.locator(".sb-calculator:not(.sb-calculator .sb-calculator)").all()
    chapter.cut = tuple(page.evaluate("book.fit()"))
    stem = chapter.name.removesuffix(".html").replace("/", "-")
    chapter.pictures = {f"{stem}-{i}.png": box.screenshot() for i, box in enumerate(boxes)}
    chapter.paper = printed(page, chapter.title, first)
    arguments = [local | {"": BASE}, DISK, [f"images/{x}" for x in chapter.pictures]]
    chapter.text, images = page.evaluate("(x) => book.xhtml(...x)", arguments)
    for image in images:
        path = unquote(urlsplit(image).path)
        name = path.rsplit("/", 1)[-1]
        chapter.pictures[name] = (SITE / chapter.name).parent.joinpath(path).read_bytes()
        chapter.text = chapter.text.replace(f'src="{escape(image)}"', f'src="images/{name}"')
    return pages_of(chapter.paper)


def printed(page, title: str, first: int | None) -> bytes:
    """Print a page.  Its header has a title, its footer a number, from `first` on; front matter has neither."""
    if first is not None:
        page.add_style_tag(
            content=f"html {{ counter-reset: page {first - 1}; }} @page {{"
            f"@top-left {{ content: {json.dumps(title, ensure_ascii=False)}; font: 8pt sans-serif; color: #57606a; }}"
            "@bottom-right { content: counter(page); font: 8pt sans-serif; color: #57606a; } }"
        )
    return page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


def pages_of(paper: bytes) -> int:
    """How many pages a PDF of Chromium has: it does not compress what says so."""
    return paper.count(b"/Type /Page\n")


def front(page, found: list[Chapter], firsts: list[int]) -> bytes:
    """The title page and the contents."""
    lines, part = [], ""
    for chapter, first in zip(found, firsts, strict=True):
        if chapter.part != part:
            part = chapter.part
            lines.append(f"<h2>{escape(part)}</h2>")
        lines.append(f'<a href="{DISK}{chapter.name}">{escape(chapter.title)}<b>{first}</b></a>')
    page.set_content(
        f'<div class="sb-title"><h1>{TITLE}</h1><p>{ABOUT}</p><small>{BASE}<br>Every number here is checked, and '
        f'every calculator is live there.</small></div><div class="sb-contents"><h1>Contents</h1>{"".join(lines)}</div>'
    )
    page.add_style_tag(path=PRINT / "paper.css")
    return printed(page, TITLE, None)


def bound(papers: list[bytes], found: list[Chapter], path: Path) -> None:
    """Join PDFs to one: chapters are bookmarks below their parts, and links between chapters stay in it."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, NameObject, NullObject, TextStringObject

    made, at, above = PdfWriter(), {}, {}
    for paper, chapter in zip(papers, [None, *found], strict=True):
        first = len(made.pages)
        made.append(PdfReader(io.BytesIO(paper)), import_outline=False)
        if chapter:
            at[chapter.name] = first
            if chapter.part and chapter.part not in above:
                above[chapter.part] = made.add_outline_item(title=chapter.part, page_number=first)
            made.add_outline_item(title=chapter.title, page_number=first, parent=above.get(chapter.part))
    for one in made.pages:
        for note in one.get("/Annots", ()):
            action = note.get_object().get("/A", {})
            link = str(action.get("/URI", ""))
            if not link.startswith(DISK):
                continue
            if (name := link.removeprefix(DISK).partition("#")[0]) in at:
                there = made.pages[at[name]].indirect_reference
                del note.get_object()["/A"]
                note.get_object()[NameObject("/Dest")] = ArrayObject([there, NameObject("/XYZ"), *[NullObject()] * 3])
            else:
                action[NameObject("/URI")] = TextStringObject(link.replace(DISK, BASE))
    made.add_metadata({"/Title": f"{TITLE}: {ABOUT}", "/Author": "the scalebook authors"})
    made.compress_identical_objects()
    made.write(path)


def main(names: list[str]) -> None:
    found = [x for x in chapters() if not names or any(y in x.name for y in names)]
    local = {x.name: epub.file_of(x.name) for x in found}
    firsts, folder = [1], ROOT / "dist"
    folder.mkdir(exist_ok=True)
    with sync_playwright() as play:
        own = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
        page = sheet(play.chromium.launch(executable_path=own, args=["--no-sandbox", "--disable-gpu"]))
        for chapter in found:
            firsts.append(firsts[-1] + read(page, chapter, local, firsts[-1]))
            print(f"{firsts[-2]:>5}  {chapter.title}", *(f"\n       cut: {x}" for x in chapter.cut), flush=True)
        papers = [front(page, found, firsts[:-1]), *(x.paper for x in found)]
    bound(papers, found, folder / "scalebook.pdf")
    epub.write(found, folder / "scalebook.epub", TITLE, ABOUT, (PRINT / "ebook.css").read_text("utf-8"))
    away.offer(SITE)


if __name__ == "__main__":
    main(sys.argv[1:])
