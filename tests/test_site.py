"""The published site as a reader has it: no kernel, no network, from a web server and from a folder, on a phone too."""

import re

import pytest

from .browser import drag, open_page
from .conftest import SITE

LIVE = "html[data-widgets=live]"
START = "notebooks/start.html"


def pages():
    """Every page of the book (found when the tests are collected, so the site is built before)."""
    return sorted(str(p.relative_to(SITE)) for part in ("book", "notebooks") for p in (SITE / part).rglob("*.html"))


def check(page):
    assert page.outside == [], "a page asked for something outside the site"
    assert page.errors == [], "a page logged an error"
    assert page.missing == [], "a page asked for a file that is not there"


def visit(page, url):
    """Open a page and wait until its formulas are set and its widgets are live."""
    page.goto(url)
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.evaluate("MathJax.startup.promise")
    if page.locator('script[type="application/vnd.jupyter.widget-view+json"]').count():
        page.locator(LIVE).wait_for(state="attached")


def test_every_chapter_is_on_the_site(site):
    assert {"book/index.html", START} <= set(pages())


@pytest.mark.parametrize("path", pages())
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page(chromium, address, path, scheme):
    """No error, nothing from outside, no formula or icon left undrawn, readable contrast, and no wider than a phone."""
    with open_page(chromium, viewport={"width": 390, "height": 844}, color_scheme=scheme) as page:
        visit(page, f"{address}/{path}")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        width = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
        assert width <= 390, f"{path} is {width} px wide on a phone of 390"
        assert page.locator("mjx-merror").count() == 0
        assert page.locator("i[class*=fa-], span[class*=fa-]").count() == 0, "add the icon to book/js/icon-list.js"
        assert page.locator(".jupyter-widgets-error-widget").count() == 0
        assert page.evaluate(FAINT) == []
        check(page)


# Texts whose contrast with the colour behind them is under 3 to 1 (a large text's minimum in WCAG 2).
FAINT = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if ((colour[3] ?? 1) > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll("article :is(p, td, th, .sb-widget *, .cell_output *)")].filter(
    (e) => e.getClientRects().length && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  return texts.filter((e) => {
    const [dark, bright] = [light(parts(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05) < 3;
  }).map((e) => e.textContent.trim().slice(0, 40));
}"""


@pytest.mark.parametrize("place", ["server", "folder"])
def test_a_slider_is_live_without_a_kernel(chromium, address, site, place):
    base = address if place == "server" else site.as_uri()
    with open_page(chromium, viewport={"width": 1200, "height": 900}) as page:
        visit(page, f"{base}/{START}")
        number = page.locator(".widget-text input").first
        before = float(number.input_value())
        drag(page, page.locator(".noUi-handle").first, 60)
        after = float(number.input_value())
        assert after == pytest.approx(float(page.locator(".widget-readout").first.inner_text())) != before
        check(page)


def test_a_slider_is_live_from_the_keyboard(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{START}")
        number = page.locator(".widget-text input").first
        before = float(number.input_value())
        page.locator(".noUi-handle").first.focus()
        page.keyboard.press("ArrowRight")
        assert float(number.input_value()) > before


def test_front_door_leads_to_the_book(chromium, address, site):
    for base in (address, site.as_uri()):
        with open_page(chromium) as page:
            page.goto(f"{base}/index.html")
            page.wait_for_url("**/book/index.html")
            check(page)


def test_search_finds_a_page(chromium, address, site):
    for base in (address, site.as_uri()):
        with open_page(chromium) as page:
            page.goto(f"{base}/search.html?q=notation")
            page.locator("#search-results li a", has_text="Notation").first.wait_for()
            check(page)


def test_theme_switch(chromium, address):
    with open_page(chromium, color_scheme="light") as page:
        visit(page, f"{address}/{START}")
        seen = set()
        for _ in range(3):
            page.locator(".theme-switch-button:visible").first.click()
            seen.add(page.evaluate("document.documentElement.dataset.theme"))
        assert seen == {"light", "dark"}


def test_links_out(site):
    """Binder, Colab, the repository and the download of a notebook are one click away."""
    text = (site / START).read_text(encoding="utf-8")
    for link in (r"mybinder\.org/v2/gh/", r"colab\.research\.google\.com/github/", r"_sources/notebooks/"):
        assert re.search(link + r"[^\"]*start\.ipynb", text), link


def test_no_cdn(site):
    """No page names a script or a style of another host."""
    other = re.compile(r"<script[^>]+src=.(?:https?:)?//[^>]+|<link[^>]+rel=.stylesheet[^>]+href=.(?:https?:)?//[^>]+")
    for file in site.rglob("*.html"):
        assert other.findall(file.read_text(encoding="utf-8")) == [], file
