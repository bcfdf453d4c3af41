"""Equations are set when the site is built; a letter says what it means; a page loads little."""

import gzip
import re
from importlib import import_module

import pytest

from scalebook.display.scheme import on_dark
from scalebook.language import NOTATION

from . import ROOT
from .browser import new_page, open_page, serve

CHAPTER = "notebooks/2-parallelism/interconnects-and-memory-tiers.html"
FORMULAS = "book/reference/formulas/memory.html"
# What is no text of a page; and in a text what only TeX has.
UNREAD = re.compile(r"<(script|style|pre|code|textarea|svg|annotation)\b.*?</\1\s*>|<[^>]*>", re.DOTALL)
UNSET = re.compile(r"\\[()\[\]]|\\[a-z]{3,}|[_^]\{|\$[A-Za-z\\_^{}]+\$")


@pytest.fixture(scope="module")
def ext():
    """The extension; what it imports lies beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book" / "_ext")
        yield import_module("typeset")


def written(folder, name, body):
    (folder / name).write_text(f"<html><head><title>a</title></head><body>{body}</body></html>", "utf-8")


def test_no_page_has_tex_in_its_text_or_loads_what_would_set_it(site):
    """Nor an equation that KaTeX marked as wrong; and each that is shown is said in MathML too."""
    count = 0
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        name = str(path.relative_to(site))
        assert not re.search(r"<script[^>]*(?i:mathjax|katex)|window\.MathJax|katex-error", text), name
        assert UNSET.findall(UNREAD.sub("", text)) == [], name
        assert text.count('class="katex-html"') == text.count('class="katex-mathml"') == text.count("<annotation"), name
        count += text.count('class="katex-html"')
    assert count > 3000
    assert not list(site.rglob("*mathjax*")), "files of MathJax lie on the site"


def test_only_files_of_the_site_are_asked_for(site):
    style = (site / "_static" / "katex" / "katex.css").read_text("utf-8")
    fonts = re.findall(r"url\(([^)]*)\)", style)
    assert fonts and all(x.endswith(".woff2") and (site / "_static" / "katex" / x).is_file() for x in fonts)


def test_what_cannot_be_set_fails_with_its_page_and_its_tex(ext, tmp_path):
    written(tmp_path, "good.html", r"<p>\(a\)</p>")
    written(tmp_path, "bad.html", r"<p>\(a\) and \(\frac{a}\)</p>")
    with pytest.raises(Exception, match=r"bad\.html: \\frac\{a\}: .*"):
        ext.set_pages(tmp_path)
    assert r"\(a\)" in (tmp_path / "good.html").read_text("utf-8"), "a page was written though another is wrong"


def test_what_is_no_text_stays_and_what_is_set_is_not_set_again(ext, tmp_path):
    kept = r"<code>\(a\)</code><pre>\[b\]</pre><script>x = '\(c\)'</script><a title='\(d\)'>e</a>"
    written(tmp_path, "page.html", kept + r"<p>\(a &lt; 1\)</p>\[b\]")
    assert ext.set_pages(tmp_path) == set()
    once = (tmp_path / "page.html").read_text("utf-8")
    assert kept in once and once.count('class="katex"') == 2 and once.count("sb-display") == 1
    ext.set_pages(tmp_path)
    assert (tmp_path / "page.html").read_text("utf-8") == once


def test_a_comma_stays_with_a_short_equation(ext, tmp_path):
    written(tmp_path, "page.html", r"<p>\(a_1\), then \(b\) and \(x + y + z + u + v + w + p + q + r + s + t\).</p>")
    ext.set_pages(tmp_path)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert text.count("sb-glued") == 2 and "</span>,</span> then" in text


def test_a_coloured_term_takes_the_hue_of_the_scheme(ext, tmp_path, chromium, site):
    colours = ["#0072B2", "#009E73", "#D55E00", "#7A7F87", "#123456"]
    terms = " + ".join(rf"\textcolor{{{x}}}{{\frac{{a}}{{b}}}}" for x in colours)
    shown = """() => [...new Set([...document.querySelectorAll('.katex-html .mfrac .mathnormal')].map(
      (x) => getComputedStyle(x).color))]"""
    with serve(site) as address:
        head = f'<link rel="stylesheet" href="{address}/_static/katex/katex.css">'
        written(tmp_path, "page.html", rf"{head}\[{terms}\]")
        strange = ext.set_pages(tmp_path) - ext.house_colours()
        assert strange == {"#123456"}, "the hue that the house has not is told, and gets a rule of its own"
        with serve(tmp_path) as own, open_page(chromium) as page:
            page.goto(f"{own}/page.html")
            page.add_style_tag(content=ext.dark(strange))
            for scheme, of in (("light", str), ("dark", on_dark)):
                page.evaluate(f"document.documentElement.dataset.theme = '{scheme}'")
                hues = [of(x) for x in colours]
                said = [f"rgb({int(x[1:3], 16)}, {int(x[3:5], 16)}, {int(x[5:], 16)})" for x in hues]
                assert page.evaluate(shown) == said, scheme


def test_an_equation_wider_than_the_page_scrolls_in_its_own_box(chromium, address):
    with open_page(chromium, viewport={"width": 1300, "height": 844}) as page:
        page.goto(f"{address}/book/reference/formulas/training.html")
        for width in (1300, 390):
            page.set_viewport_size({"width": width, "height": 844})
            boxes = page.evaluate("""() => [...document.querySelectorAll(".sb-display")].map((x) =>
              [x.scrollWidth > x.clientWidth + 1, x.scrollHeight > x.clientHeight + 1, x.tabIndex, x.role])""")
            assert any(x[0] for x in boxes) and not any(x[1] for x in boxes), "cut off above or below"
            assert {(x[2], x[3]) for x in boxes} == {(0, "group")}
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def told(page):
    page.locator(".sb-letter-tip").wait_for()
    return page.locator(".sb-letter-tip li").all_inner_texts()


def line(name):
    letter = NOTATION[name]
    return f"{name} {letter.meaning}" + (f", in {letter.unit}" if letter.unit else "")


def test_a_letter_says_its_word_meaning_and_unit(chromium, address):
    """Under the pointer; all of an equation from the keyboard, in one stop; Escape takes it away."""
    with open_page(chromium, viewport={"width": 1300, "height": 900}) as page:
        page.goto(f"{address}/{CHAPTER}")
        equation = page.locator(".sb-formula .sb-display").nth(1)
        letters = equation.locator(".katex-html [data-l]")
        letters.first.hover()
        assert told(page) == [line(letters.first.get_attribute("data-l"))]
        page.keyboard.press("Escape")
        assert page.locator(".sb-letter-tip").count() == 0
        page.mouse.move(0, 0)
        names = list(dict.fromkeys(x.get_attribute("data-l") for x in letters.all()))
        equation.evaluate("""(x) => { const before = document.createElement("button");
          x.before(before); before.focus(); }""")
        page.keyboard.press("Tab")
        assert told(page) == [line(x) for x in names] and len(names) > 2
        assert equation.get_attribute("aria-describedby") == page.locator(".sb-letter-tip").get_attribute("id")
        page.keyboard.press("Tab")
        assert page.locator(".sb-letter-tip a:focus, .sb-letter-tip").count() <= 1
        assert page.errors == page.outside == []


def test_a_tap_says_it_too_and_stays_on_the_phone(chromium, address):
    with new_page(chromium, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as page:
        page.goto(f"{address}/{FORMULAS}")
        letter = page.locator(".sb-display .katex-html [data-l]").first
        letter.tap()
        assert told(page) == [line(letter.get_attribute("data-l"))]
        box = page.locator(".sb-letter-tip").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        page.locator("article h1").tap()
        assert page.locator(".sb-letter-tip").count() == 0


def test_only_what_can_be_meant_is_marked(ext):
    m = ext.Marks.of_package()
    assert m.marked(r"N_{\mathrm{act}} n", m.prose) == r"\htmlData{l=active_params}{N_{\mathrm{act}}} n"
    for tex in (r"N_{\mathrm{nobody}}", r"\mathrm{N}", r"e^{-x_k}", r"\sum_{N}", r"\textcolor{#b0b0b0}{1}", r"\hat{}"):
        assert "htmlData" not in m.marked(tex, m.prose), tex
    for name, x in NOTATION.items():
        assert m.marked(x.tex, m.all) == rf"\htmlData{{l={name}}}{{{x.tex}}}"


def weight(site, urls):
    files = [(site / x).read_bytes() for x in urls if (site / x).is_file()]
    return sum(min(len(x), len(gzip.compress(x, 6))) for x in files)


def test_a_cold_visit_is_light(chromium, address, site):
    """What sets equations comes when a worked formula is opened, the search's index when something is searched."""
    with new_page(chromium) as page:
        asked = []
        page.on("requestfinished", lambda x: asked.append(x.url.removeprefix(address + "/").partition("?")[0]))
        page.goto(f"{address}/{CHAPTER}")
        page.locator("html[data-widgets=live]").wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        assert not [x for x in asked if re.search("katex.min.js|searchindex|letters-data|mathjax", x)]
        assert weight(site, set(asked)) < 350_000
        box = page.locator(".sb-calculator").first
        box.locator(".sb-worked summary").click()
        box.locator(".sb-equation .katex-html").wait_for()
        assert [x for x in asked if x.endswith("katex.min.js")] and "\\" not in box.locator(".sb-letters").inner_text()
        assert page.errors == page.outside == []


def test_the_search_shows_no_letter_twice(chromium, address):
    with open_page(chromium) as page:
        page.goto(f"{address}/search.html?q=halving+and+doubling")
        page.locator("#search-results li .context").first.wait_for()
        assert not UNSET.search(page.locator("#search-results").inner_text())
        assert page.errors == []
