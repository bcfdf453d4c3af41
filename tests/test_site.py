"""The published site as a reader has it: no kernel, no network, from a web server and from a folder, on a phone too."""

import re
from xml.etree import ElementTree
from zipfile import ZipFile

import nbformat
import pytest
import yaml
from scalebook.book.claims import claims

from scalebook import accelerators, decoding, models
from scalebook.display.live import STORED
from scalebook.language import show
from tools.notebooks import notebooks

from .browser import answered, chosen, drag, open_page, script, settled
from .support import ROOT, calculators, cases, each_case, python_says
from .test_access import ENDED, READ, follow, read

BOX = ".sb-calculator:not(.sb-gantt, .sb-guess)"
SHOWN = script("shown")
START = "notebooks/start.html"
CHAPTER = "notebooks/1-scaling-compute/memory-bottlenecks"
BASE = yaml.safe_load((ROOT / "book" / "_config.yml").read_text("utf-8"))["html"]["baseurl"]


def pages():
    """Every page of the book's contents."""
    contents = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [x for part in contents["parts"] for x in part["chapters"]]
    files = [x["file"] for chapter in chapters for x in (chapter, *chapter.get("sections", ()))]
    return sorted(f"{file}.html" for file in (contents["root"], *files))


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
    """Open a page and wait until its widgets are live."""
    page.goto(url)
    page.wait_for_function(SHOWN)


def test_every_chapter_is_on_the_site(site):
    chapters = {str(p.relative_to(ROOT).with_suffix(".html")) for p in notebooks()}
    built = {str(p.relative_to(site)) for part in ("book", "notebooks") for p in (site / part).rglob("*.html")}
    assert {"book/index.html", START} <= built and chapters <= built and built == set(pages())


def test_the_sidebar_leads_to_every_page(site):
    """To those that another heads, where one of them is open."""
    headed = {x for x in pages() if x.startswith("book/reference/formulas/")}
    for path in pages():
        near = headed if path in {*headed, "book/reference/formulas.html"} else set()
        text = (site / path).read_text(encoding="utf-8")
        sidebar = text[text.index('<nav class="bd-links') :].partition("</nav>")[0]
        here = (site / path).parent
        links = [path if x == "#" else (here / x).resolve() for x in re.findall(r'href="([^"]*)"', sidebar)]
        found = {str(x if x == path else x.relative_to(site.resolve())) for x in links}
        assert found == set(pages()) - headed - {LANDING} | near, path
        assert sidebar.count(' current active"') == (path != LANDING), path


@pytest.mark.parametrize("path", pages())
def test_page(chromium, address, path):
    """No error, nothing from outside, no formula or icon left undrawn, readable contrast, and no wider than a phone;
    and of each kind of page one is read by axe-core.

    A page is set once, which takes longest, and looked at in both colour schemes: it opens in the dark of the reader's
    system, and is made light as by its switch; but of the pages of formulas, which are long and all alike, one.  That
    pages follow the system to light, for which the browser styles them twice, those show that axe-core reads.
    """
    with open_page(chromium, {"width": 390, "height": 844}, "dark", stays=path not in CHAPTERS) as page:
        visit(page, f"{address}/{path}")
        look(page, path, "dark")
        if (notebook := ROOT / path.replace(".html", ".ipynb")).exists():
            said = [answered(box) for box in page.locator(BOX).all()]
            assert said == answers_of(notebook), f"{path} opens with other answers than its notebook"
        if path not in FORMULAS[1:]:
            follow(page, "light") if path in READ else page.evaluate(LIGHT)
            look(page, path, "light")
        if path in CHAPTERS:
            for width, height in ((390, 844), (1300, 800)):
                page.set_viewport_size({"width": width, "height": height})
                assert max(page.evaluate(script("place"))) <= height, f"its calculator is out of view at {width} px"
        if path in READ:
            read(page, READ[path])
        check(page)


def answers_of(notebook):
    """The answers of a notebook's calculators, as Python wrote them."""
    shown = (o["data"] for x in nbformat.read(notebook, 4).cells for o in x.get("outputs", ()) if "data" in o)
    said = [x["text/plain"] for x in shown if STORED in x]
    return [re.findall(r"\w+='(.*?)'", x) for x in said if x.startswith("Calculator(")]


def look(page, path, scheme):
    """What the colours of a page can change, its contrast and its width; and that all of it is drawn."""
    theme, width, undrawn, faint = page.evaluate(LOOK)
    assert theme == scheme
    assert width <= 390, f"{path} is {width} px wide on a phone of 390, in {scheme}"
    assert undrawn == [], "an equation, widget, verdict or print is wrong, or an icon lacks in book/js/icon-list.js"
    assert faint == [], scheme


LIGHT = "document.documentElement.dataset.theme = 'light'"
LOOK = script("look").replace("ENDED", ENDED).replace("FAINT", script("faint"))

CHAPTERS = [p for p in pages() if p.startswith("notebooks/") and "/appendix/" not in p]
FORMULAS = [p for p in pages() if p.startswith("book/reference/formulas/")]


def test_no_style_rests_on_what_another_place_holds():
    """`.a:has(.b) .c` has a browser style all of the page anew whenever a curve is drawn."""
    ours = [*(ROOT / "book" / "_static").glob("*.css"), *(ROOT / "scalebook").rglob("*.css")]
    for sheet in ours:
        assert re.findall(r":has\((?:[^()]|\([^()]*\))*\)+\s*[^\s,{)]", sheet.read_text("utf-8")) == [], sheet


def test_files_beside_the_pages(site):
    """The map names every page, the feed is read as XML, and a shared link has a picture and a description."""
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
    named = {x.text.removeprefix(BASE) for x in ElementTree.parse(site / "sitemap.xml").iter(space)}
    assert named == set(pages())
    assert ElementTree.parse(site / "changes.xml").getroot().tag.endswith("feed")
    for page in (LANDING, f"{CHAPTER}.html"):
        text = (site / page).read_text("utf-8")
        assert f'<meta property="og:image" content="{BASE}_static/social.png"' in text
        assert 'name="description"' in text and "<title>" in text
    assert (site / "_static" / "social.png").stat().st_size > 10_000


@each_case("words that the site is searched for", "words, first", globals())
def test_search_finds_prose_and_formulas(chromium, address, words, first):
    with open_page(chromium) as page:
        page.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
        page.locator("#search-results li").nth(1).wait_for()
        page.locator("#search-results .search-summary", has_text="Search finished").wait_for()
        assert first in page.locator("#search-results li a").first.get_attribute("href")


def test_the_index_of_formulas_is_filtered_and_devices_are_sorted(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/book/reference/formulas.html")
        page.get_by_label("Words").fill("kv cache latent")
        shown = page.locator("#formula-index tbody tr:visible")
        assert 0 < shown.count() < 9 and all("latent" in x.lower() for x in shown.all_inner_texts())
        page.goto(f"{address}/book/reference/formulas.html#formula-bubble-1f1b")
        page.wait_for_url("**/formulas/pipeline.html#formula-bubble-1f1b")
        visit(page, f"{address}/book/reference/accelerators.html")
        page.get_by_role("button", name="hbm bandwidth").click()
        first = page.locator(".sb-facts tbody tr").first.locator("code").inner_text()
        assert accelerators[first].hbm_bandwidth == max(x.hbm_bandwidth for x in accelerators.values())
        with page.expect_download() as got:
            page.get_by_text("CSV, in SI units").click()
        assert len(got.value.path().read_text().splitlines()) == len(accelerators) + 1
        check(page)


LANDING = "book/index.html"


def test_the_landing_sentence_is_live(chromium, address):
    """Another model, other bits, another device: the time is Python's; else how many would hold it."""
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        visit(page, f"{address}/{LANDING}")
        box = page.locator(".sb-sentence")

        def choose(model, bits, device):
            for name, label in (("Model", model.name), ("Bits of a weight", f"{bits} bits"), ("Device", device.name)):
                box.get_by_label(name).select_option(label=label)
            fixed = dict(batch=1, context=8192, kv_bits=16)
            return decoding(model, device.at("bf16"), weight_bits=bits, **fixed)

        for model, bits, device in cases("sentences of the landing page", {}).values():
            row = choose(models[model], bits, accelerators[device])
            said = box.locator("p").first.inner_text()
            assert show(row.token_time, "s") in said and said.endswith("of it waiting for memory.")
            assert show(1 - row.compute_time / row.memory_time, "%") in said
        choose(models.llama3_405b, 16, accelerators.h100)
        assert box.locator("[data-said=refused]").inner_text().endswith("; 11 of them would hold it.")
        box.get_by_text("Why?").click()
        assert box.locator("li:visible").count() == 5
        assert claims.verdicts().sentence() in " ".join(page.locator("article").inner_text().split())
        assert page.locator(".sb-parts .sd-card").count() == 4
        check(page)


CLAIMS = "book/reference/claims.html"


def test_claims_are_filtered(chromium, address):
    """By article, verdict and words, each control with its name; the address keeps the choice, the count is said."""
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        visit(page, f"{address}/{CLAIMS}")
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


FOLDED = "details.above-input"


def opened(page):
    """How many of the page's folded cells are open, and how many there are."""
    return page.locator(f"{FOLDED}[open]").count(), page.locator(FOLDED).count()


def test_one_switch_opens_all_code_and_is_remembered(chromium, address):
    """From the keyboard too; on the next page and after a reload; and solutions stay folded."""
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        page.goto(f"{address}/{CHAPTER}.html")
        switch = page.get_by_role("button", name="Show code")
        assert switch.count() == 1 and switch.get_attribute("aria-pressed") == "false"
        shown, cells = opened(page)
        assert shown == 0 < cells
        switch.click()
        assert switch.get_attribute("aria-pressed") == "true" and opened(page) == (cells, cells)
        assert page.locator("details:not(.above-input).hide[open]").count() == 0, "a solution was opened"
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


def test_the_archive_works_from_disk(chromium, site, tmp_path):
    """Unpacked anywhere, without a server: the landing sentence, a calculator, a filter, the search and the planner."""
    with ZipFile(site / "scalebook.zip") as packed:
        packed.extractall(tmp_path)
    whole = tmp_path / "scalebook"
    pages_in = ({str(x.relative_to(folder)) for x in folder.rglob("*.html")} for folder in (whole, site))
    assert next(pages_in) == next(pages_in)
    base, [(_, calc), *_] = whole.as_uri(), calculators(ROOT / f"{CHAPTER}.ipynb")
    with open_page(chromium) as page:
        page.goto(f"{base}/index.html")
        page.wait_for_url("**/book/index.html")
        assert page.locator("[data-said=time]").inner_text().endswith("ms")
        visit(page, f"{base}/{CHAPTER}.html")
        box = page.locator(BOX).first
        before = answered(box)
        drag(page, box.locator("input[type=range]").first, -40)
        settled(page)
        assert answered(box) == python_says(calc, chosen(box)) != before
        box.locator(".sb-worked summary").click()
        box.locator(".sb-worked .sb-equation .katex-html").first.wait_for()
        visit(page, f"{base}/{CLAIMS}")
        page.get_by_label("Verdict").select_option(label="wrong")
        assert page.locator(".sb-claim:visible").count() == len([x for x in claims.values() if x.verdict == "wrong"])
        page.goto(f"{base}/search.html?q=notation")
        page.locator("#search-results li a", has_text="Notation").first.wait_for()
        page.goto(f"{base}/book/planner.html")
        page.locator(".pl-num").first.wait_for()
        check(page)
