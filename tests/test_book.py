"""The book on paper and as an e-book: nothing that needs a screen, nothing cut, and files that readers can open."""

from contextlib import closing
from dataclasses import replace
from xml.etree import ElementTree
from zipfile import ZIP_STORED, ZipFile

import pytest
from scalebook.book.pages import away

from tools import book, epub

from . import ROOT

NAME = "notebooks/1-scaling-compute/memory-walls.html"
OPF = "{http://www.idpf.org/2007/opf}"
SEEN = """() => [...document.querySelectorAll("nav, header, footer, aside, button, .tag_hide-input details")]
    .filter((x) => !x.closest(".sb-calculator") && x.getBoundingClientRect().height).map((x) => x.className)"""


@pytest.fixture(scope="module")
def made(site, chromium):
    """A chapter as it is printed, what of its page should not be seen, and its background."""
    [chapter] = (x for x in book.chapters() if x.name == NAME)
    with closing(book.sheet(chromium)) as page:
        pages = book.read(page, chapter, {NAME: epub.file_of(NAME)}, 41)
        return chapter, pages, page.evaluate(SEEN), page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_a_chapter_on_paper_is_whole_and_has_nothing_of_the_screen(made):
    chapter, pages, seen, background = made
    assert chapter.title == "Memory walls" and chapter.cut == () and seen == []
    assert 6 <= pages <= 15 and background == "rgb(255, 255, 255)"
    assert chapter.text.count("Live at") == len(chapter.pictures) > 1 and "Hide the" not in chapter.text


def test_the_contents_are_those_of_the_site_without_tables_to_look_up():
    names = [x.name for x in book.chapters()]
    chapters = {f"{x.relative_to(ROOT).with_suffix('')}.html" for x in (ROOT / "notebooks").rglob("*.ipynb")}
    assert names[0] == "book/index.html" and chapters <= {*names} and "book/reference/trust.html" in names
    assert not [x for x in names if "formulas" in x or "accelerators" in x]


def test_an_e_book_has_what_it_lists_and_every_page_parses(made, tmp_path):
    chapter = made[0]
    first = replace(chapter, part="", name="book/index.html", pictures={})
    epub.write([first, chapter], tmp_path / "one.epub", book.TITLE, book.ABOUT, "")
    with ZipFile(tmp_path / "one.epub") as file:
        whole = {x: file.read(x) for x in file.namelist()}
        assert file.infolist()[0].filename == "mimetype" and file.infolist()[0].compress_type == ZIP_STORED
    trees = {x: ElementTree.fromstring(data) for x, data in whole.items() if x.endswith(("html", "opf", "xml"))}
    listed = [f"book/{x.get('href')}" for x in trees["book/book.opf"].iter(f"{OPF}item")]
    assert {*listed} | {"mimetype", "META-INF/container.xml", "book/book.opf"} == {*whole}
    for name in (x for x in listed if x.endswith("xhtml")):
        links = [x.get("src") or x.get("href") for x in trees[name].iter() if x.get("src") or x.get("href")]
        own = [x.partition("#")[0] for x in links if not x.startswith(("http", "#"))]
        assert {f"book/{x}" for x in own} <= {*whole}, name
        assert not {"script", "button", "select", "input"} & {x.tag.rpartition("}")[2] for x in trees[name].iter()}
        assert {x[1:] for x in links if x.startswith("#")} <= {x.get("id") for x in trees[name].iter()}, name
        assert not trees[name].findall(".//{*}summary/{*}p")  # what epubcheck 5.3 refused
        assert all(len(x) == 2 for x in trees[name].findall(".//{*}msub"))


def test_the_landing_page_offers_what_was_made(tmp_path):
    page = tmp_path / "book" / "index.html"
    page.parent.mkdir()
    place = away.PLACE.search((ROOT / "book" / "index.md").read_text("utf-8"))
    page.write_text(place[0], "utf-8")
    away.offer(tmp_path, tmp_path / "none")
    assert "hidden" in page.read_text("utf-8")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "scalebook.epub").write_bytes(b"e" * 2_000_000)
    away.offer(tmp_path, tmp_path / "dist")
    assert 'href="../scalebook.epub">EPUB</a> (2 MB)' in page.read_text("utf-8")
    assert "pdf" not in page.read_text("utf-8")
    assert (tmp_path / "scalebook.epub").exists() and "\nbook: " in (ROOT / "Makefile").read_text("utf-8")
