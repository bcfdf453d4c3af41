"""The published site as a reader has it: no kernel, no network, from a web server and from a folder, on a phone too."""

import re
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
import yaml
from scalebook.book.claims import claims

from scalebook.inference import decoding
from scalebook.language import NOTATION, show
from scalebook.tables import accelerators, models
from tools.notebooks import notebooks

from .browser import answered, chosen, drag, open_page, script, settled
from .support import calculators, python_says

BOX = ".sb-calculator:not(.sb-gantt)"
LIVE = "html[data-widgets=live]"
START = "notebooks/start.html"
CHAPTER = "notebooks/1-scaling-compute/memory-bottlenecks"
ROOT = Path(__file__).parents[1]
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
    if page.locator('script[type="application/vnd.jupyter.widget-view+json"]').count():
        page.locator(LIVE).wait_for(state="attached")
        page.wait_for_function("[...document.querySelectorAll('.sb-value')].every((x) => x.textContent.trim())")


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
    """No error, nothing from outside, no formula or icon left undrawn, readable contrast, and no wider than a phone.

    A page is set once, which takes longest, and looked at in both colour schemes: it opens in dark, and follows the
    reader's system to light.
    """
    with open_page(chromium, viewport={"width": 390, "height": 844}, color_scheme="dark") as page:
        visit(page, f"{address}/{path}")
        look(page, path, "dark")
        assert page.locator(".katex-error").count() == 0
        assert page.locator("i[class*=fa-], span[class*=fa-]").count() == 0, "add the icon to book/js/icon-list.js"
        assert page.locator(".jupyter-widgets-error-widget").count() == 0
        if (notebook := ROOT / path.replace(".html", ".ipynb")).exists():
            stored = calculators(notebook)
            said = [
                repr_of(calc, answered(box)) for (_, calc), box in zip(stored, page.locator(BOX).all(), strict=True)
            ]
            assert said == [text for text, _ in stored], f"{path} opens with other answers than its notebook"
        page.emulate_media(color_scheme="light")
        page.wait_for_function("document.documentElement.dataset.theme === 'light'")
        page.evaluate(ENDED)
        look(page, path, "light")
        if path in CHAPTERS:
            for width, height in ((390, 844), (1300, 800)):
                page.set_viewport_size({"width": width, "height": height})
                assert max(page.evaluate(PLACE)) <= height, f"its calculator is not on the first screen of {width} px"
        check(page)


def repr_of(calc, texts):
    """A calculator's words in Python, with the answers that a page shows."""
    letters = (x["letter"] for x in calc.spec["outputs"])
    return f"Calculator({', '.join(f'{x}={text!r}' for x, text in zip(letters, texts, strict=True))})"


def look(page, path, scheme):
    """What the colours of a page can change: its theme, its contrast and its width."""
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    width = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
    assert width <= 390, f"{path} is {width} px wide on a phone of 390, in {scheme}"
    assert page.evaluate(FAINT) == [], scheme


# Colours that fade into others are there at once.
ENDED = "document.getAnimations().forEach((x) => x.effect.getComputedTiming().endTime < Infinity && x.finish())"

FAINT = script("faint")


def drawn(box):
    """The curve and the marks on it."""
    return box.locator(".sb-curve svg").inner_html()


FIGURES = script("figures")


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


SLIDERS = "input[type=range]"
CHAPTERS = [p for p in pages() if p.startswith("notebooks/")]
PLACE = script("place")


@pytest.mark.parametrize("place", ["server", "folder"])
def test_calculators_are_live_without_a_kernel(chromium, address, site, place):
    """Drag every slider of the chapter's calculators: number, formula and curve follow, and say what Python says."""
    base = address if place == "server" else site.as_uri()
    with open_page(chromium, viewport={"width": 1200, "height": 900}) as page:
        visit(page, f"{base}/{CHAPTER}.html")
        boxes = page.locator(BOX).all()
        pairs = list(zip(boxes, calculators(ROOT / f"{CHAPTER}.ipynb"), strict=True))
        for box, (_, calc) in pairs if place == "server" else pairs[:1]:
            box.evaluate("(x) => x.querySelectorAll('details').forEach((fold) => (fold.open = true))")
            assert answered(box) == python_says(calc, chosen(box))
            for handle in box.locator(SLIDERS).all():
                before = chosen(box), answered(box), drawn(box)
                drag(page, handle, -40)
                settled(page)
                if chosen(box) == before[0]:  # it stood at its left end
                    drag(page, handle, 40)
                    settled(page)
                assert chosen(box) != before[0]
                assert answered(box) == python_says(calc, chosen(box)) != before[1]
                assert drawn(box) != before[2] or answered(box)[0] == before[1][0]  # the curve is of the first answer
            box.locator(".sb-worked .sb-equation .katex-html").first.wait_for()
            assert box.locator(".sb-worked .sb-equation .katex-html").count() == 1
        check(page)


def test_a_calculator_is_live_from_the_keyboard(chromium, address):
    """Tab reaches menus and sliders, which have names and say their values; arrows move them."""
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box, (_, calc) = page.locator(BOX).first, calculators(ROOT / f"{CHAPTER}.ipynb")[0]
        box.locator(".sb-more").evaluate("(x) => { x.open = false; }")  # it stands open where there is room
        box.locator(".sb-more summary").press("Enter")
        for handle in box.locator(SLIDERS).all():
            name = handle.evaluate("(x) => x.labels[0].querySelector('code').textContent")
            assert NOTATION[name].meaning in handle.evaluate("(x) => x.labels[0].textContent")
            before = answered(box), handle.get_attribute("aria-valuetext")
            handle.focus()
            page.keyboard.press("ArrowLeft")
            settled(page)
            assert answered(box) == python_says(calc, chosen(box)) != before[0]
            assert handle.get_attribute("aria-valuetext") != before[1]
        assert handle.get_attribute("aria-valuetext").replace(",", "") == f"{chosen(box)[name]:g}"
        before = answered(box)
        box.locator("select").first.focus()
        page.keyboard.press("ArrowDown")
        settled(page)
        assert answered(box) == python_says(calc, chosen(box)) != before
        assert box.locator(".sb-first .sb-value").get_attribute("aria-live") == "polite"
        check(page)


NAMELESS = script("nameless")
CUT = script("cut")


@pytest.mark.parametrize("width", [1300, 390])
def test_everything_in_a_calculator_has_a_name_and_nothing_is_cut(chromium, address, width):
    with open_page(chromium, viewport={"width": width, "height": 844}) as page:
        for path in (CHAPTER, "notebooks/2-parallelism/adaptive-parallelism"):
            visit(page, f"{address}/{path}.html")
            page.evaluate("document.querySelectorAll('.sb-calculator details').forEach((x) => (x.open = true))")
            settled(page, 300)
            for box in page.locator(BOX).all():
                assert box.evaluate(NAMELESS) == [] and box.evaluate(CUT) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        check(page)


def test_two_columns_and_on_a_phone_the_answer_stays(chromium, address):
    with open_page(chromium, viewport={"width": 1300, "height": 800}) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        controls, answer = (box.locator(x).bounding_box() for x in (".sb-controls", ".sb-head"))
        assert controls["x"] + controls["width"] < answer["x"] and abs(controls["y"] - answer["y"]) < 10
        assert box.locator(".sb-controls > .sb-control").count() <= 4  # three, and the precision of the device
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        box.locator(".sb-more summary").click()
        box.locator(SLIDERS).last.evaluate("(x) => x.scrollIntoView({ block: 'center' })")
        settled(page, 200)
        for part in (".sb-first .sb-value", ".sb-curve svg"):
            place = box.locator(part).bounding_box()
            assert place["y"] >= 40 and place["y"] + place["height"] < 400, f"{part} does not stay in view"


def test_values_are_typed_and_what_is_not_understood_is_said(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box, (_, calc) = page.locator(BOX).first, calculators(ROOT / f"{CHAPTER}.ipynb")[0]
        field, wrong = box.locator(".sb-typed").first, box.locator(".sb-wrong").first
        field.fill("12")
        field.press("Enter")
        settled(page)
        assert chosen(box)["batch"] == 12 and answered(box) == python_says(calc, chosen(box))
        for text, said in [
            ("fast", "“fast” is not understood here"),
            ("-3", "more than zero"),
            ("0", "more than zero"),
        ]:
            field.fill(text)
            field.press("Enter")
            assert said in wrong.inner_text() and chosen(box)["batch"] == 12
        field.fill("1,000")
        field.press("Enter")
        settled(page)
        assert wrong.is_hidden() and chosen(box)["batch"] == 1000 and field.input_value() == "1,000"
        check(page)


def test_a_precision_that_the_device_lacks_is_not_offered(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        device, precision = box.locator("[data-name=device] select"), box.locator("[data-name=precision] select")
        offered = "(x) => [...x.options].filter((o) => !o.disabled).map((o) => o.value)"
        assert "fp4" not in precision.evaluate(offered)
        device.select_option("b200")
        settled(page)
        precision.select_option("fp4")
        device.select_option("h100")
        settled(page)
        assert chosen(box)["precision"] == "bf16" and "fp4" not in precision.evaluate(offered)
        check(page)


def test_menus_are_grouped_and_filtered(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        menu, words = box.locator("[data-name=device] select"), box.get_by_label("search the menu: device")
        assert {"NVIDIA", "AMD", "Google"} <= set(
            menu.evaluate("(x) => [...x.querySelectorAll('optgroup')].map((g) => g.label)")
        )
        words.fill("h200")
        settled(page)
        assert chosen(box)["device"].startswith("h200")
        words.press("Escape")
        assert menu.evaluate("(x) => [...x.options].every((o) => !o.hidden)")
        check(page)


def test_the_dot_is_dragged_the_curve_is_read_and_kept(chromium, address):
    with open_page(chromium, viewport={"width": 1300, "height": 900}) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box, (_, calc) = page.locator(BOX).first, calculators(ROOT / f"{CHAPTER}.ipynb")[0]
        box.evaluate("(x) => x.scrollIntoView()")
        box.get_by_role("button", name="pin").click()
        assert box.locator(".sb-pinned").count() and "pinned: as it began" in box.locator("figcaption").inner_text()
        box.locator("[data-name=kv_bits] :is(input, select)").last.evaluate(
            "(x) => x.closest('details')?.setAttribute('open', '')"
        )
        bits = box.locator("[data-name=kv_bits] .sb-typed")
        bits.fill("4")
        bits.press("Enter")
        settled(page)
        box.get_by_role("button", name="pin").click()
        assert "pinned: bits per cached key or value 4 bits" in box.locator("figcaption").inner_text()
        box.get_by_role("button", name="reset").click()
        box.evaluate("(x) => x.scrollIntoView()")
        place = box.locator(".sb-curve svg").bounding_box()
        middle = place["y"] + 100
        page.mouse.move(place["x"] + 120, middle)
        assert re.match(r"at [\d.,]+: ", box.locator(".sb-read").inner_text())
        page.mouse.down()
        page.mouse.move(place["x"] + 160, middle, steps=3)
        page.mouse.up()
        settled(page)
        assert chosen(box)["batch"] not in (calc.state["batch"],) and answered(box) == python_says(calc, chosen(box))
        box.get_by_role("button", name="reset").click()
        settled(page)
        assert chosen(box) == calc.state and box.locator(".sb-pinned").count() == 0
        check(page)


def test_a_link_opens_the_calculator_as_it_was(chromium, address):
    """And a broken or hostile one gets a sentence; nothing of it is put into the page."""
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        box.locator("[data-name=device] select").select_option("h200")
        box.locator(".sb-typed").first.fill("12")
        box.locator(".sb-typed").first.press("Enter")
        settled(page)
        box.get_by_role("button", name="link").click()
        before, link = (chosen(box), answered(box)), page.url
        assert "#c1=device:h200" in link
        page.goto("about:blank")
        visit(page, link)
        assert (chosen(box), answered(box)) == before
        page.goto("about:blank")
        visit(
            page, f"{address}/{CHAPTER}.html#c1=device:%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E;batch:NaN;__proto__:1"
        )
        assert chosen(box) == calculators(ROOT / f"{CHAPTER}.ipynb")[0][1].state
        assert "was left out" in box.locator(".sb-said-done").inner_text() and page.locator("img[src=x]").count() == 0
        check(page)


def test_why_goes_down_to_rows(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        box.locator(".sb-because > summary").click()
        for number in range(3):  # each brings the next with it
            box.locator(".sb-because li summary").nth(number).click()
            box.locator(".sb-because details[open]").nth(number).wait_for()
        box.locator(".sb-because .katex").nth(8).wait_for()  # formulas and letters are set as elsewhere
        said, names = box.locator(".sb-because").inner_text(), box.locator(".sb-because a").all_inner_texts()
        assert r"\(" not in said and "Math" not in said
        assert {x for x in re.findall(r"[a-z]{2,}_\w+", said) if x not in names} == set(), "a name of code is no word"
        folds = box.locator(".sb-because details[open]").count()
        box.locator(".sb-typed").first.fill("24")
        box.locator(".sb-typed").first.press("Enter")
        settled(page)
        assert box.locator(".sb-because details[open]").count() == folds > 1
        links = box.locator(".sb-because a").evaluate_all("(several) => several.map((x) => x.getAttribute('href'))")
        assert any("formulas.html#formula-" in x for x in links) and any("accelerators.html" in x for x in links)
        for link in {x.partition("#")[0] for x in links}:
            assert page.request.get(f"{address}/{CHAPTER}/../{link}").ok
        anchor = next(x for x in links if "#formula-" in x)
        page.goto(f"{address}/{CHAPTER.rpartition('/')[0]}/{anchor}")
        assert page.locator(f"[id='{anchor.partition('#')[2]}']").count() == 1
        check(page)


def test_what_does_not_fit_is_said(chromium, address):
    with open_page(chromium) as page:
        visit(page, f"{address}/{CHAPTER}.html")
        box = page.locator(BOX).first
        box.locator("select").first.select_option(label="NVIDIA H100 SXM")
        at = "memory for decoding = 151.8 GB; memory capacity of one device = 80 GB"
        said = f"the formula holds for weights and caches that fit, not at {at}"
        box.locator(".sb-message", has_text=said).wait_for()
        assert answered(box)[0] == "none"
        check(page)


def test_no_style_rests_on_what_another_place_holds():
    """`.a:has(.b) .c` has a browser style all of the page anew whenever a curve is drawn."""
    ours = [*(ROOT / "book" / "_static").glob("*.css"), *(ROOT / "scalebook").rglob("*.css")]
    for sheet in ours:
        assert re.findall(r":has\((?:[^()]|\([^()]*\))*\)+\s*[^\s,{)]", sheet.read_text("utf-8")) == [], sheet


def test_front_door_leads_to_the_book(chromium, address, site):
    for base in (address, site.as_uri()):
        with open_page(chromium) as page:
            page.goto(f"{base}/index.html")
            page.wait_for_url("**/book/index.html")
            check(page)


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


@pytest.mark.parametrize(
    "words, first", [("pipeline bubble", "pipeline-parallelism.html"), ("kv cache", "memory.html#index-")]
)
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


@pytest.mark.parametrize("place", ["server", "folder"])
def test_the_landing_sentence_is_live(chromium, address, site, place):
    """Another model, other bits, another device: the time is Python's; else how many would hold it."""
    base = address if place == "server" else site.as_uri()
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        visit(page, f"{base}/{LANDING}")
        box = page.locator(".sb-sentence")

        def choose(model, bits, device):
            for name, label in (("Model", model.name), ("Bits of a weight", f"{bits} bits"), ("Device", device.name)):
                box.get_by_label(name).select_option(label=label)
            fixed = dict(batch=1, context=8192, kv_bits=16)
            return decoding(model, device.at("bf16"), weight_bits=bits, **fixed)

        for model, bits, device in [
            ("llama3_70b", 8, "h100"),
            ("llama3_8b", 16, "mi300x"),
            ("mixtral_8x7b", 4, "b200"),
        ]:
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


def test_the_archive_works_from_disk(chromium, site, tmp_path):
    """Unpacked anywhere: the landing sentence, a calculator and the planner answer without a server."""
    with ZipFile(site / "scalebook.zip") as packed:
        packed.extractall(tmp_path)
    whole = tmp_path / "scalebook"
    assert {str(x.relative_to(whole)) for x in whole.rglob("*.html")} == {
        str(x.relative_to(site)) for x in site.rglob("*.html")
    }
    with open_page(chromium) as page:
        page.goto((whole / "index.html").as_uri())
        page.wait_for_url("**/book/index.html")
        assert page.locator("[data-said=time]").inner_text().endswith("ms")
        page.goto((whole / f"{CHAPTER}.html").as_uri())
        page.locator(LIVE).wait_for(state="attached")
        assert answered(page.locator(BOX).first) == python_says(
            calculators(ROOT / f"{CHAPTER}.ipynb")[0][1], chosen(page.locator(BOX).first)
        )
        page.goto((whole / "book" / "planner.html").as_uri())
        page.locator(".pl-num").first.wait_for()
        check(page)
