"""The published site as a reader has it: no kernel, no network, from a web server and from a folder, on a phone too."""

import re
from pathlib import Path

import pytest
import yaml

from scalebook.claims import claims
from tools.notebooks import notebooks

from .browser import answered, chosen, drag, open_page, watched
from .support import calculators, python_says

BOX = ".sb-calculator:not(.sb-gantt)"
LIVE = "html[data-widgets=live]"
START = "notebooks/start.html"
CHAPTER = "notebooks/1-scaling-compute/memory-bottlenecks"
ROOT = Path(__file__).parents[1]


def pages():
    """Every page of the book's contents."""
    contents = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    files = [contents["root"], *(x["file"] for part in contents["parts"] for x in part["chapters"])]
    return sorted(f"{file}.html" for file in files)


def check(page):
    assert page.outside == [], "a page asked for something outside the site"
    assert page.errors == [], "a page logged an error"
    assert page.missing == [], "a page asked for a file that is not there"


def test_what_a_page_asks_for_outside_is_noted(chromium):
    with open_page(chromium) as page:
        page.set_content('<img src="https://example.org/figure.png">')
        page.wait_for_function("document.querySelector('img').complete")
        assert page.outside == page.missing == ["https://example.org/figure.png"]


def visit(page, url):
    """Open a page and wait until its formulas are set and its widgets are live."""
    page.goto(url)
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.evaluate("MathJax.startup.promise")
    if page.locator('script[type="application/vnd.jupyter.widget-view+json"]').count():
        page.locator(LIVE).wait_for(state="attached")
        page.wait_for_function("[...document.querySelectorAll('.sb-value')].every((x) => x.textContent.trim())")


def test_every_chapter_is_on_the_site(site):
    chapters = {str(p.relative_to(ROOT).with_suffix(".html")) for p in notebooks()}
    built = {str(p.relative_to(site)) for part in ("book", "notebooks") for p in (site / part).rglob("*.html")}
    assert {"book/index.html", START} <= built and chapters <= built and built == set(pages())


def test_the_sidebar_leads_to_every_page(site):
    for path in pages():
        text = (site / path).read_text(encoding="utf-8")
        sidebar = text[text.index('<nav class="bd-links') :].partition("</nav>")[0]
        here = (site / path).parent
        links = [path if x == "#" else (here / x).resolve() for x in re.findall(r'href="([^"]*)"', sidebar)]
        assert {str(x if x == path else x.relative_to(site.resolve())) for x in links} == set(pages()), path
        assert sidebar.count(' current active"') == 1, path


@pytest.fixture(scope="module")
def phone(chromium):
    """A phone in a dark room, which keeps the scripts that all pages share."""
    context = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    yield context
    context.close()


@pytest.mark.parametrize("path", pages())
def test_page(phone, address, path):
    """No error, nothing from outside, no formula or icon left undrawn, readable contrast, and no wider than a phone.

    A page is set once, which takes longest, and looked at in both colour schemes: it opens in dark, and follows the
    reader's system to light.
    """
    with watched(phone) as page:
        visit(page, f"{address}/{path}")
        look(page, path, "dark")
        assert page.locator("mjx-merror").count() == 0
        assert page.locator("i[class*=fa-], span[class*=fa-]").count() == 0, "add the icon to book/js/icon-list.js"
        assert page.locator(".jupyter-widgets-error-widget").count() == 0
        if (notebook := ROOT / path.replace(".html", ".ipynb")).exists():
            stored = calculators(notebook)
            said = [
                f"Calculator({', '.join(f'{x}={text!r}' for x, text in zip(calc.texts, answered(box), strict=True))})"
                for (_, calc), box in zip(stored, page.locator(BOX).all(), strict=True)
            ]
            assert said == [text for text, _ in stored], f"{path} opens with other answers than its notebook"
        page.emulate_media(color_scheme="light")
        page.wait_for_function("document.documentElement.dataset.theme === 'light'")
        page.evaluate(ENDED)
        look(page, path, "light")
        check(page)


def look(page, path, scheme):
    """What the colours of a page can change: its theme, its contrast and its width."""
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    width = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
    assert width <= 390, f"{path} is {width} px wide on a phone of 390, in {scheme}"
    assert page.evaluate(FAINT) == [], scheme


# Colours that fade into others are there at once.
ENDED = "document.getAnimations().forEach((x) => x.effect.getComputedTiming().endTime < Infinity && x.finish())"

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


def drawn(box):
    """The curve and the marks on it."""
    return box.locator(".sb-curve svg").inner_html()


# Of each figure: the height of its smallest letters in pixels, and the colours that fill what stands on it.
FIGURES = """() => [...document.querySelectorAll("svg.sb-plot")].map((figure) => {
  const scale = figure.getScreenCTM().a;
  const heights = [...figure.querySelectorAll("text")].map((x) => parseFloat(getComputedStyle(x).fontSize) * scale);
  const face = (x) => getComputedStyle(x).fontFamily;
  const fills = [...figure.querySelectorAll("path, text")].map((x) => getComputedStyle(x).fill);
  return { least: Math.min(...heights), width: figure.parentElement.clientWidth, fills: [...new Set(fills)],
           words: face(figure.querySelector("text")) === face(document.body) };
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_readable_on_a_phone(chromium, address, scheme):
    """Letters of 11 pixels in 350, in the page's font; nothing white as the page is in light stays so in dark."""
    with open_page(chromium, viewport={"width": 398, "height": 844}, color_scheme=scheme) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        seen = page.evaluate(FIGURES)
        assert len(seen) > 2 and all(x["words"] for x in seen)
        assert max(x["width"] for x in seen) <= 350 and min(x["least"] for x in seen) >= 10.95
        white = [x for x in seen if {"rgb(255, 255, 255)", "rgb(0, 0, 0)"} & set(x["fills"])]
        assert scheme == "light" or not white, "a colour does not follow the page"
        assert page.evaluate("document.documentElement.scrollWidth") <= 398
        check(page)


@pytest.mark.parametrize("place", ["server", "folder"])
def test_calculators_are_live_without_a_kernel(chromium, address, site, place):
    """Drag every slider of the chapter's calculators: number, formula and curve follow, and say what Python says."""
    base = address if place == "server" else site.as_uri()
    with open_page(chromium, viewport={"width": 1200, "height": 900}) as page:
        visit(page, f"{base}/{CHAPTER}.html")
        boxes = page.locator(".sb-calculator")
        for box, (_, calc) in zip(boxes.all(), calculators(ROOT / f"{CHAPTER}.ipynb"), strict=True):
            assert answered(box) == python_says(calc, chosen(box))
            for handle in box.locator(".noUi-handle").all():
                before = chosen(box), answered(box), drawn(box)
                drag(page, handle, -120)
                page.wait_for_timeout(80)
                if chosen(box) == before[0]:  # it stood at its left end
                    drag(page, handle, 120)
                    page.wait_for_timeout(80)
                assert chosen(box) != before[0]
                assert answered(box) == python_says(calc, chosen(box)) != before[1]
                assert drawn(box) != before[2] or answered(box)[0] == before[1][0]  # the curve is of the first answer
            assert box.locator(".sb-worked mjx-container").count() == 1
        check(page)


def test_a_calculator_is_live_from_the_keyboard(chromium, address):
    """Tab reaches menus and sliders, which have names; arrows move them."""
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box, (_, calc) = page.locator(".sb-calculator").first, calculators(ROOT / f"{CHAPTER}.ipynb")[0]
        for handle in box.locator(".noUi-handle").all():
            assert handle.get_attribute("aria-label").replace(" ", "_") in calc.controls
            before = answered(box)
            handle.focus()
            page.keyboard.press("ArrowLeft")
            page.wait_for_timeout(80)
            assert answered(box) == python_says(calc, chosen(box)) != before
        before = answered(box)
        box.locator("select").first.focus()
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(80)
        assert answered(box) == python_says(calc, chosen(box)) != before
        check(page)


def test_a_device_without_the_precision_says_so(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(".sb-calculator").first
        box.locator("select").last.select_option("fp4")
        box.locator(".sb-message", has_text="AMD Instinct MI325X has no peak at fp4").wait_for()
        assert answered(box)[0] == "none" and answered(box)[-1] != "none"  # what needs no peak is still answered
        check(page)


def test_what_does_not_fit_is_said(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(".sb-calculator").first
        box.locator("select").first.select_option(label="NVIDIA H100 SXM")
        at = "decode_memory=151.8 GB, hbm_capacity=80 GB"
        said = f"token_time_fitting holds for weights and caches that fit, not at {at}"
        box.locator(".sb-message", has_text=said).wait_for()
        assert answered(box)[0] == "none"
        check(page)


def test_front_door_leads_to_the_book(chromium, address, site):
    for base in (address, site.as_uri()):
        with open_page(chromium) as page:
            page.goto(f"{base}/index.html")
            page.wait_for_url("**/book/index.html")
            check(page)


CLAIMS = "book/reference/claims.html"


@pytest.mark.parametrize("place", ["server", "folder"])
def test_claims_are_filtered(chromium, address, site, place):
    """By article, verdict and words, each control with its name; the address keeps the choice, the count is said."""
    base = address if place == "server" else site.as_uri()
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        visit(page, f"{base}/{CLAIMS}")
        said, shown = page.locator(".sb-filter output"), page.locator(".sb-claim:visible")

        def shows(found):
            assert shown.count() == len(found)
            assert said.inner_text().startswith(f"{len(found) or 'none'} of {len(claims)} claims")

        assert said.get_attribute("aria-live") == "polite"
        shows(claims)
        page.get_by_label("Verdict").select_option(label="wrong")
        wrong = [x for x in claims.values() if x.verdict == "wrong"]
        shows(wrong)
        page.get_by_label("Article").select_option(label="The poster")
        shows([x for x in wrong if x.article == "isaev2023"])
        assert page.locator("h2:visible").count() == 1, "an article without a claim to show has no heading"
        assert page.url.endswith("#article=isaev2023&verdict=wrong")
        page.reload()
        shows([x for x in wrong if x.article == "isaev2023"])
        page.get_by_role("button", name="Show all").click()
        page.wait_for_function(f"document.querySelector('.sb-filter output').textContent.startsWith({len(claims)})")
        page.get_by_label("Words").fill("NVLink 900")
        assert 0 < shown.count() < 10
        assert all("nvlink" in x.lower() and "900" in x for x in shown.all_inner_texts())
        page.get_by_label("Words").fill("no such words")
        shows([])
        check(page)


def test_a_link_to_a_claim_shows_it(chromium, address):
    """From the page that opens its part, and where a filter hid it; a count of the table is a choice."""
    with open_page(chromium) as page:
        visit(page, f"{address}/book/parts/1-scaling-compute.html")
        page.locator("a[href$='#claim-tf32']").click()
        page.wait_for_url("**/claims.html#claim-tf32")
        page.locator(".sb-claim", has=page.locator("#claim-tf32")).wait_for()
        page.locator(".sb-counts a[href='#verdict=outdated']").click()
        page.wait_for_function("document.querySelectorAll('.sb-claim:not([hidden])').length === 1")
        page.evaluate("location.hash = 'claim-tf32'")
        page.wait_for_function("document.querySelectorAll('.sb-claim:not([hidden])').length > 1")
        assert page.get_by_label("Verdict").input_value() == ""
        check(page)


def test_the_cheat_sheet_prints_on_one_page(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/book/reference/cheat-sheet.html")
        paper = page.pdf(format="A4", margin=dict.fromkeys(("top", "right", "bottom", "left"), "10mm"))
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1


def test_search_finds_a_page(chromium, address, site):
    for base in (address, site.as_uri()):
        with open_page(chromium) as page:
            page.goto(f"{base}/search.html?q=notation")
            page.locator("#search-results li a", has_text="Notation").first.wait_for()
            check(page)


def test_theme_switch(chromium, address):
    with open_page(chromium, color_scheme="light") as page:
        visit(page, f"{address}/{START}")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        seen = set()
        for _ in range(3):
            page.locator(".theme-switch-button:visible").first.click()
            seen.add(page.evaluate("document.documentElement.dataset.theme"))
        assert seen == {"light", "dark"}


FOLDED = "details.above-input"


def opened(page):
    """How many of the page's folded cells are open, and how many there are."""
    return page.locator(f"{FOLDED}[open]").count(), page.locator(FOLDED).count()


@pytest.mark.parametrize("width", [1200, 390])
def test_one_switch_opens_all_code_and_is_remembered(chromium, address, width):
    """From the keyboard too; on the next page and after a reload; and solutions stay folded."""
    with open_page(chromium, viewport={"width": width, "height": 844}) as page:
        page.goto(f"{address}/{CHAPTER}.html")
        switch = page.get_by_role("button", name="Show code")
        assert switch.count() == 1 and switch.get_attribute("aria-pressed") == "false"
        shown, cells = opened(page)
        assert shown == 0 < cells
        switch.click()
        assert switch.get_attribute("aria-pressed") == "true" and opened(page) == (cells, cells)
        assert page.locator("details:not(.above-input).hide[open]").count() == 0, "a solution was opened"
        page.reload()
        assert switch.get_attribute("aria-pressed") == "true" and opened(page) == (cells, cells)
        page.goto(f"{address}/{START}")
        assert switch.get_attribute("aria-pressed") == "true" and opened(page)[0] == opened(page)[1] > 0
        switch.focus()
        page.keyboard.press("Space")
        assert switch.get_attribute("aria-pressed") == "false" and opened(page)[0] == 0
        page.reload()
        assert switch.get_attribute("aria-pressed") == "false" and opened(page)[0] == 0
        page.goto(f"{address}/book/reference/links.html")
        assert switch.count() == 0, "a page without code has no switch"
        check(page)


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
