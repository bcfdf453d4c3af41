"""A chapter's calculators on its page, without a kernel; the page is opened once, and each test finds it as it was."""

import re

import pytest

from scalebook.language import NOTATION

from .browser import answered, chosen, drag, new_page, open_page, script, settled
from .support import ROOT, calculators, python_says
from .test_access import ENDED, follow
from .test_site import BOX, CHAPTER, check, visit

MADE = [calc for _, calc in calculators(ROOT / f"{CHAPTER}.ipynb")]
SLIDERS = "input[type=range]"
NOTED = "document.querySelectorAll('article details').forEach((x) => { x.dataset.open = x.open; })"
PUT_BACK = """() => {
    for (const x of document.querySelectorAll(".sb-calculator button")) if (x.textContent === "reset") x.click();
    for (const x of document.querySelectorAll("article details")) x.open = x.dataset.open === "true";
    scrollTo(0, 0);
}"""


@pytest.fixture(scope="module")
def opened(chromium, address):
    with new_page(chromium) as page:
        page.set_viewport_size({"width": 1300, "height": 900})
        visit(page, f"{address}/{CHAPTER}.html")
        page.evaluate(NOTED)
        yield page


@pytest.fixture
def page(opened):
    """The page as it opened: wide, light, and its calculators where they began."""
    seen_at(opened, 1300)
    for noted in (opened.outside, opened.errors, opened.missing):
        noted.clear()
    yield opened
    opened.evaluate(PUT_BACK)
    opened.mouse.move(0, 0)
    settled(opened)
    check(opened)


@pytest.fixture
def box(page):
    """The first calculator."""
    return page.locator(BOX).first


def seen_at(page, width, scheme="light"):
    page.set_viewport_size({"width": width, "height": 900 if width > 900 else 844})
    follow(page, scheme)


def says(box):
    """The answers of the first calculator, which are Python's."""
    assert answered(box) == python_says(MADE[0], chosen(box))
    return answered(box)


def typed(field, text):
    field.fill(text)
    field.press("Enter")
    settled(field.page)


def drawn(box):
    """The curve and the marks on it."""
    return box.locator(".sb-curve svg").inner_html()


def test_every_slider_is_dragged(page):
    """Number, formula and curve follow, and say what Python says."""
    for box, calc in zip(page.locator(BOX).all(), MADE, strict=True):
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


def test_a_calculator_is_live_from_the_keyboard(page, box):
    """Tab reaches menus and sliders, which have names and say their values; arrows move them."""
    box.locator(".sb-more").evaluate("(x) => { x.open = false; }")  # it stands open where there is room
    box.locator(".sb-more summary").press("Enter")
    for handle in box.locator(SLIDERS).all():
        name = handle.evaluate("(x) => x.labels[0].querySelector('code').textContent")
        assert NOTATION[name].meaning in handle.evaluate("(x) => x.labels[0].textContent")
        before = answered(box), handle.get_attribute("aria-valuetext")
        handle.focus()
        page.keyboard.press("ArrowLeft")
        settled(page)
        assert says(box) != before[0] and handle.get_attribute("aria-valuetext") != before[1]
    assert handle.get_attribute("aria-valuetext").replace(",", "") == f"{chosen(box)[name]:g}"
    before = answered(box)
    box.locator("select").first.focus()
    page.keyboard.press("ArrowDown")
    settled(page)
    assert says(box) != before
    assert box.locator(".sb-first .sb-value").get_attribute("aria-live") == "polite"


def named_and_whole(page):
    """Check that everything in the calculators has a name and that nothing is cut, wide and on a phone."""
    page.evaluate("document.querySelectorAll('.sb-calculator details').forEach((x) => (x.open = true))")
    for width in (1300, 390):
        seen_at(page, width)
        settled(page, 300)
        for box in page.locator(BOX).all():
            assert box.evaluate(script("nameless")) == [] and box.evaluate(script("cut")) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_in_a_calculator_has_a_name_and_nothing_is_cut(page, chromium, address):
    named_and_whole(page)
    with open_page(chromium) as other:
        visit(other, f"{address}/notebooks/2-parallelism/adaptive-parallelism.html")
        named_and_whole(other)
        check(other)


def test_two_columns_and_on_a_phone_the_answer_stays(page, box):
    controls, answer = (box.locator(x).bounding_box() for x in (".sb-controls", ".sb-head"))
    assert controls["x"] + controls["width"] < answer["x"] and abs(controls["y"] - answer["y"]) < 10
    assert box.locator(".sb-controls > .sb-control").count() <= 4  # three, and the precision of the device
    seen_at(page, 390)
    box.locator(".sb-more").evaluate("(x) => { x.open = true; }")
    box.locator(SLIDERS).last.evaluate("(x) => x.scrollIntoView({ block: 'center' })")
    settled(page, 200)
    for part in (".sb-first .sb-value", ".sb-curve svg"):
        place = box.locator(part).bounding_box()
        assert place["y"] >= 40 and place["y"] + place["height"] < 400, f"{part} does not stay in view"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_readable_on_a_phone(page, scheme):
    """Letters of 11 pixels in 350, in the page's font; nothing white as the page is in light stays so in dark."""
    seen_at(page, 398, scheme)
    seen = page.evaluate(script("figures"))
    assert len(seen) > 2 and all(x["words"] for x in seen)
    assert max(x["width"] for x in seen) <= 350 and min(x["least"] for x in seen) >= 10.95
    white = [x for x in seen if {"rgb(255, 255, 255)", "rgb(0, 0, 0)"} & set(x["fills"])]
    assert scheme == "light" or not white, "a colour does not follow the page"
    assert page.evaluate("document.documentElement.scrollWidth") <= 398


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chapter_is_printed_without_code(page, scheme):
    """Figures, answers and prose stay; what can only be pressed goes; a dark page is printed on white."""
    page.evaluate("document.querySelectorAll('.sb-calculator details').forEach((x) => (x.open = true))")
    seen_at(page, 1300, scheme)
    page.emulate_media(media="print", color_scheme=scheme)
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    page.evaluate(ENDED)
    said = page.evaluate(script("printed"))
    assert said["code"] == said["folds"] == said["controls"] == 0, said
    assert said["figures"] > 2 and all(said["answers"]) and said["answers"], said
    assert said["paper"] in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")


def test_values_are_typed_and_what_is_not_understood_is_said(box):
    field, wrong = box.locator(".sb-typed").first, box.locator(".sb-wrong").first
    typed(field, "12")
    assert chosen(box)["batch"] == 12 and says(box)
    for text, said in [("fast", "“fast” is not understood here"), ("-3", "more than zero"), ("0", "more than zero")]:
        typed(field, text)
        assert said in wrong.inner_text() and chosen(box)["batch"] == 12
    typed(field, "1,000")
    assert wrong.is_hidden() and chosen(box)["batch"] == 1000 and field.input_value() == "1,000"


def test_a_precision_that_the_device_lacks_is_not_offered(page, box):
    device, precision = box.locator("[data-name=device] select"), box.locator("[data-name=precision] select")
    offered = "(x) => [...x.options].filter((o) => !o.disabled).map((o) => o.value)"
    assert "fp4" not in precision.evaluate(offered)
    device.select_option("b200")
    settled(page)
    precision.select_option("fp4")
    device.select_option("h100")
    settled(page)
    assert chosen(box)["precision"] == "bf16" and "fp4" not in precision.evaluate(offered)


def test_menus_are_grouped_and_filtered(page, box):
    menu, words = box.locator("[data-name=device] select"), box.get_by_label("search the menu: device")
    groups = menu.evaluate("(x) => [...x.querySelectorAll('optgroup')].map((g) => g.label)")
    assert {"NVIDIA", "AMD", "Google"} <= set(groups)
    words.fill("h200")
    settled(page)
    assert chosen(box)["device"].startswith("h200")
    words.press("Escape")
    assert menu.evaluate("(x) => [...x.options].every((o) => !o.hidden)")


def test_the_dot_is_dragged_the_curve_is_read_and_kept(page, box):
    box.evaluate("(x) => x.scrollIntoView()")
    box.get_by_role("button", name="pin").click()
    assert box.locator(".sb-pinned").count() and "pinned: as it began" in box.locator("figcaption").inner_text()
    box.locator(".sb-more").evaluate("(x) => { x.open = true; }")
    typed(box.locator("[data-name=kv_bits] .sb-typed"), "4")
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
    assert says(box) and chosen(box)["batch"] != MADE[0].state["batch"]
    box.get_by_role("button", name="reset").click()
    settled(page)
    assert chosen(box) == MADE[0].state and box.locator(".sb-pinned").count() == 0


def test_a_link_opens_the_calculator_as_it_was(page, box, chromium, address):
    """And a broken or hostile one gets a sentence; nothing of it is put into the page."""
    box.locator("[data-name=device] select").select_option("h200")
    typed(box.locator(".sb-typed").first, "12")
    box.get_by_role("button", name="link").click()
    before, link = (chosen(box), answered(box)), page.url
    assert "#c1=device:h200" in link
    with open_page(chromium) as other:
        visit(other, link)
        box = other.locator(BOX).first
        assert (chosen(box), answered(box)) == before
        other.goto("about:blank")
        hostile = "#c1=device:%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E;batch:NaN;__proto__:1"
        visit(other, f"{address}/{CHAPTER}.html{hostile}")
        assert chosen(box) == MADE[0].state and other.locator("img[src=x]").count() == 0
        assert "was left out" in box.locator(".sb-said-done").inner_text()
        check(other)


def test_why_goes_down_to_rows(page, box, address):
    box.locator(".sb-because > summary").click()
    for number in range(3):  # each brings the next with it
        box.locator(".sb-because li summary").nth(number).click()
        box.locator(".sb-because details[open]").nth(number).wait_for()
    box.locator(".sb-because .katex").nth(8).wait_for()  # formulas and letters are set as elsewhere
    said, names = box.locator(".sb-because").inner_text(), box.locator(".sb-because a").all_inner_texts()
    assert r"\(" not in said and "Math" not in said
    assert {x for x in re.findall(r"[a-z]{2,}_\w+", said) if x not in names} == set(), "a name of code is no word"
    folds = box.locator(".sb-because details[open]").count()
    typed(box.locator(".sb-typed").first, "24")
    assert box.locator(".sb-because details[open]").count() == folds > 1
    links = box.locator(".sb-because a").evaluate_all("(several) => several.map((x) => x.getAttribute('href'))")
    assert any("formulas.html#formula-" in x for x in links) and any("accelerators.html" in x for x in links)
    got = {x: page.request.get(f"{address}/{CHAPTER}/../{x}") for x in {x.partition("#")[0] for x in links}}
    assert all(x.ok for x in got.values())
    to, _, anchor = next(x for x in links if "#formula-" in x).partition("#")
    assert f'id="{anchor}"' in got[to].text()


def test_what_does_not_fit_is_said(box):
    box.locator("select").first.select_option(label="NVIDIA H100 SXM")
    at = "memory for decoding = 151.8 GB; memory capacity of one device = 80 GB"
    said = f"the formula holds for weights and caches that fit, not at {at}"
    box.locator(".sb-message", has_text=said).wait_for()
    assert answered(box)[0] == "none"
