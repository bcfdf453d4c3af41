"""One visit as a newcomer makes it, on the built site: the landing page, a plan of one's own, a claim and its formula.

Each step is taken on a phone, and what it leads to is looked at there and wide; no error, nothing from
outside.  `SCALEBOOK_SHOTS=folder` keeps a picture of each step, for eyes.
"""

import json
import os
import re
from pathlib import Path

from .browser import READY, open_page, settled
from .test_huggingface import CONFIGS

SHOTS = os.environ.get("SCALEBOOK_SHOTS")
# No scheme changes a width, and `test_page` has the contrast of both.
LOOKS = [(1300, "light"), (390, "dark")]


def seen(page, name):
    """What is in view, wide and light, narrow and dark: no wider than the window; a picture if asked for."""
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("(x) => document.documentElement.dataset.theme === x", arg=scheme)
        settled(page)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name}, {scheme}: the page is {wide} px wide in a window of {width}"
    assert page.errors == page.outside == page.missing == [], name
    assert not re.search(r"\b(false|null|undefined|NaN)\b", page.locator("main").first.inner_text()), name


def numbers(page):
    """The figures of a plan as they are shown, without when the search ended."""
    return page.locator(".pl-figures .pl-num").all_inner_texts()


def plan_my_model(page):
    """From the landing page's door; a config.json is pasted, and the best layout found again."""
    page.locator(".sb-doors .sd-card", has_text=re.compile("plan", re.I)).first.click()
    page.wait_for_url("**/planner.html*")
    page.wait_for_function(READY)
    before = numbers(page)
    page.locator(".pl-pill").first.click()
    page.locator(".pl-own textarea").fill(json.dumps(CONFIGS["llama3_8b"]))
    page.get_by_text("use this config.json").click()
    devices = page.locator("input[aria-label=devices]")
    devices.fill("64")
    devices.press("Enter")
    page.wait_for_function(
        "(old) => document.querySelector('.pl-num') && document.querySelector('.pl-num').innerText !== old",
        arg=before[0],
    )
    page.wait_for_function(READY)
    assert re.search(
        r"strategies on 64 devices \(.*\), gone through in .*: [\d,]+ can run and were priced",
        page.locator(".pl-verdict").inner_text(),
    )
    assert numbers(page) != before
    seen(page, "2-plan")


def compare_a_device(page):
    page.get_by_text("+ another device").click()
    page.locator(".pl-filter").fill("b200 ")
    page.locator(".pl-filter").press("Enter")
    page.locator(".pl-beside").wait_for()
    page.wait_for_function(READY)
    page.wait_for_function("document.querySelectorAll('.pl-compare table th').length > 2")
    seen(page, "3-beside")


def drag_the_target(page):
    """A slower step is asked for with the pointer, and fewer devices are answered."""
    page.locator(".pl-target").first.wait_for()
    before, grab = page.locator(".pl-solved").inner_text(), page.locator(".pl-target .pl-grab").first
    grab.hover()  # which waits until nothing above it grows any more
    place = grab.bounding_box()
    x, y = place["x"] + place["width"] / 3, place["y"] + place["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 30, steps=5)
    page.mouse.up()
    page.wait_for_function("(old) => document.querySelector('.pl-solved').innerText !== old", arg=before)
    seen(page, "4-target")


def ask_why(page):
    """A number opens its formula, and below it, down to a cell, a source that leads somewhere."""
    page.locator(".pl-num").first.evaluate("(x) => x.scrollIntoView({ block: 'center' })")
    page.locator(".pl-num").first.click()
    tree = page.locator("dialog[open] .pl-tree")
    tree.locator("summary").first.wait_for()
    tree.evaluate("(x) => x.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    links = tree.locator("a").evaluate_all("(several) => several.map((x) => x.href)")
    assert any("#formula-" in x or "/formulas" in x for x in links) and any(not x.startswith(page.base) for x in links)
    # Equations are set as everywhere, and one that is wider than the window is scrolled in its own place.
    page.wait_for_function("document.querySelectorAll('dialog[open] .pl-math .katex-display').length > 3")
    assert r"\(" not in tree.inner_text() and r"\[" not in tree.inner_text()
    assert page.locator("dialog[open]").evaluate("(x) => x.scrollWidth <= x.clientWidth")
    scrolls = tree.locator(".pl-math").evaluate_all("(all) => all.map((x) => getComputedStyle(x).overflowX)")
    assert {*scrolls} == {"auto"}
    seen(page, "5-why")
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('dialog[open]')")


def send_the_link(page):
    """Copied, and opened anew: the same numbers."""
    page.get_by_role("button", name="link", exact=True).click()
    page.locator("dialog[open]").get_by_role("button", name="copy", exact=True).click()
    page.locator("dialog[open] [role=status]", has_text="copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    before = numbers(page)
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function(READY)
    assert numbers(page) == before and before
    seen(page, "6-again")


def follow_a_claim(page):
    """From the landing page's count to a claim, and on to the formula that judged it."""
    page.goto(f"{page.base}/book/index.html")
    page.locator("article a[href*='reference/claims.html']").first.click()
    page.wait_for_url("**/claims.html*")
    claim = page.locator(".sb-claim", has=page.locator("[id='claim-2e28']")).first
    link = claim.locator("a[href*='#formula-']").first
    name = link.get_attribute("href").partition("#")[2]
    link.click()
    page.wait_for_url(f"**#{name}", wait_until="commit")
    entry = page.locator(f"[id='{name}']")
    entry.wait_for(state="attached")
    assert re.search(r"latency", entry.evaluate("(x) => (x.closest('section') ?? x).textContent"), re.I)
    seen(page, "7-formula")


STEPS = [plan_my_model, compare_a_device, drag_the_target, ask_why, send_the_link, follow_a_claim]


def test_a_visit(chromium, address):
    with open_page(chromium, viewport={"width": 390, "height": 844}) as page:
        page.base = address
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{address}/book/index.html")
        page.wait_for_function("document.querySelector('[data-said=time]')?.textContent")
        for step in STEPS:
            step(page)
