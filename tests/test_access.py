"""A page of each kind is read by axe-core, in light and wide or in dark on a phone.

axe-core comes by exact version from book/js/package.json.  What it finds of critical, serious or moderate impact is
mended, or, where it is the theme's own, stands below with a reason.
"""

import pytest

from .browser import READY, open_page, script, settled
from .support import ROOT, cases

AXE = ROOT / "book" / "js" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, PHONE = (1300, "light"), (390, "dark")
# A reading takes seconds, most of them for each element's place on the page: a chapter, which has most that we make, is
# read in both ways, and of the other kinds of pages each in one (`test_page` has every page's contrast, less strictly).
# `test_page`, which has the page open, reads it.
READ = cases("pages that are read", globals())

# The vendor theme's, by rule and by what its element is.
THEIRS = {
    "region": {".sidebar-primary-item": "sphinx-book-theme puts its logo and its switches outside of landmarks"},
    "label-content-name-mismatch": {
        ".search-button__button": "the theme's button shows a keyboard shortcut that its name leaves out"
    },
}
# Colours that fade into others are there at once.
ENDED = "document.getAnimations().forEach((x) => x.effect.getComputedTiming().endTime < Infinity && x.finish())"


def follow(page, scheme):
    """The reader's system turns light or dark, and the page with it."""
    page.emulate_media(color_scheme=scheme, media="null")
    page.wait_for_function("(x) => document.documentElement.dataset.theme === x", arg=scheme)
    page.evaluate(ENDED)


def violations(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 844})
    follow(page, scheme)
    settled(page, 400)  # what follows the width: the theme looks anew after 300 ms
    page.evaluate(ENDED)
    return page.evaluate(script("axe"), THEIRS)


@pytest.fixture
def page(chromium):
    with open_page(chromium, viewport={"width": 1300, "height": 844}, color_scheme="light") as page:
        yield page


def read(page, looks):
    """Who does not see or point can use an open page: whole, and last of all, for the reading leaves things out."""
    page.evaluate("document.querySelectorAll('.sb-calculator details').forEach((x) => (x.open = true))")
    page.evaluate("document.querySelectorAll('section').forEach((x) => (x.style.contentVisibility = 'visible'))")
    page.evaluate(AXE.read_text("utf-8"))
    for width, scheme in looks:
        assert violations(page, width, scheme) == []


def test_who_does_not_see_or_point_can_search(page, address):
    page.goto(f"{address}/search.html?q=pipeline+bubble")
    page.locator("#search-results li a").first.wait_for()
    read(page, [WIDE])


def test_and_the_planner(page, address):
    """Training, with a number's why open; then serving, and an update of reinforcement learning."""
    page.goto(f"{address}/book/planner.html")
    page.wait_for_function(READY)
    page.evaluate(AXE.read_text("utf-8"))
    assert page.locator(".pl-verdict[aria-live=polite]").count() == 1, "an answer is said"
    page.locator(".pl-num").first.click()
    page.locator("dialog[open] summary").first.click()
    assert violations(page, 1300, "light") == []
    page.keyboard.press("Escape")
    page.select_option("select[aria-label^='train, serve']", "serve")
    page.locator(".pl-num[data-letter=tpot]").wait_for()
    page.wait_for_function(READY)
    assert violations(page, 390, "dark") == []
    page.select_option("select[aria-label^='train, serve']", "rl")
    page.locator(".pl-curve .pl-second").wait_for()
    assert violations(page, 1300, "dark") == []


def test_wide_tables_are_scrolled_from_the_keyboard(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/book/reference/trust.html")
    box = page.locator(".sb-table[tabindex='0']").first
    box.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 20")
    assert box.get_attribute("aria-label")


@pytest.mark.parametrize("name, width", [("reference/accelerators", 1300), ("parts/2-parallelism", 390)])
def test_what_is_wider_than_its_place_fades_and_keeps_the_names_of_its_rows(page, address, name, width):
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{address}/book/{name}.html")
    page.locator("[data-more~=right][data-sticks]").first.evaluate("(x) => x.dataset.tried = 'yes'")
    box, fades = page.locator("[data-tried]"), "(x) => getComputedStyle(x).maskImage.includes('32px')"
    row = box.locator("tbody tr > :first-child").first
    left = row.bounding_box()["x"]
    assert box.evaluate(fades) and not box.evaluate("(x) => x.matches('[data-more~=left]')")
    box.evaluate("(x) => x.scrollTo(x.scrollWidth, x.scrollHeight)")
    page.locator("[data-tried][data-more=left]").wait_for()
    assert not box.evaluate(fades) and row.bounding_box()["x"] == left
