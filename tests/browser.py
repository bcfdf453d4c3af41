"""A real browser for the tests: the system's Chromium or Chrome, else Playwright's own, else a skip that says so."""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

NAMES = ["chromium", "google-chrome", "google-chrome-stable", "chromium-browser"]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
# Nothing outside is found, so that pages are not stopped and asked for each of their requests.
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
# The address bar draws its own pages, which nobody sees: half a second of a core for each profile.  The list of what is
# off that comes last counts, so that Playwright's stands in it too.
OFF = """WebUIOmniboxPopup WebUIOmniboxAimPopup AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose
    HttpsUpgrades PaintHolding ThirdPartyStoragePartitioning MediaRouter OptimizationHints"""
# What draws, in software, has no process of its own, which costs more than it saves.
FLAGS += [f"--disable-features={','.join(OFF.split())}", "--in-process-gpu"]
PATIENCE = 300_000  # milliseconds: what is waited for comes, however slow the machine; only what never comes fails
# A planner that has answered.
READY = "document.querySelector('.pl-num') && !document.querySelector('.pl[aria-busy], progress')"
OWN = ("http://127.0.0.1", "http://localhost", "file:", "data:", "blob:", "ws://127.0.0.1")


def script(name: str) -> str:
    """What a test runs in a page: a file of the folder `js`, without the comment on top of it."""
    text = (Path(__file__).parent / "js" / f"{name}.js").read_text("utf-8")
    return re.sub(r"\A(//.*\n)+", "", text).strip()


def skip(reason: str):
    """Skip a browser test; in CI, where a browser is promised, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; in CI a browser test must run")
    pytest.skip(reason)


@contextlib.contextmanager
def browser():
    """A headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("no playwright: pip install -e '.[test]'")
    with sync_playwright() as play:
        found = next(filter(None, map(shutil.which, NAMES)), play.chromium.executable_path)
        if not Path(found).exists():
            skip(f"no browser: none of {', '.join(NAMES)}, nor Playwright's own (playwright install chromium)")
        chromium = play.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield chromium
        finally:
            if chromium in _KEPT:
                _KEPT.pop(chromium)[0].close()
            chromium.close()


# The one page of each browser, from one test to the next: one of its own costs a test a second of a core, for then all
# that pages share (scripts, styles, fonts) is read and compiled anew.
_KEPT = {}
CLEARED = "() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* an empty page has none */ } }"


@contextlib.contextmanager
def open_page(chromium, viewport=None, color_scheme="light", stays=False):
    """The browser's page as if it were new: empty, of this size and colour scheme, with nothing stored or noted.

    Where a test fails on it, the next gets another.  What a test that `stays` has opened is left by the next one: such
    tests come one after another, and each opens another page.
    """
    if chromium not in _KEPT:
        kept = contextlib.ExitStack()
        context = kept.enter_context(contextlib.closing(chromium.new_context()))
        _KEPT[chromium] = kept, kept.enter_context(watched(context))
    kept, page = _KEPT.pop(chromium)
    with contextlib.ExitStack() as unless_well:
        unless_well.push(kept)
        if not stays:
            empty(page)
        page.set_viewport_size(viewport or {"width": 1280, "height": 720})
        page.emulate_media(color_scheme=color_scheme, media="null")
        for noted in (page.outside, page.errors, page.missing):
            noted.clear()
        yield page
        with contextlib.suppress(Exception):  # a page that is just being left cannot be cleared
            page.evaluate(CLEARED)
            if not stays:
                empty(page)
            unless_well.pop_all()
            _KEPT[chromium] = kept, page


def empty(page):
    """Leave what is open in a page, if anything is."""
    if page.url != "about:blank":
        page.goto("about:blank")
        page.mouse.move(0, 0)
        page.context.clear_permissions()


@contextlib.contextmanager
def new_page(chromium, **settings):
    """A page in a fresh profile, which is closed with it."""
    with contextlib.closing(chromium.new_context(**settings)) as context, watched(context) as page:
        yield page


@contextlib.contextmanager
def watched(context):
    """A page that notes what it should not do: `outside` requests (not met), `errors`, `missing`."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    # Asked in every frame, which is usual, a page is drawn in every frame.
    page.wait_for_function = functools.partial(page.wait_for_function, polling=50)
    page.outside, page.errors, page.missing = [], [], []
    page.on("request", lambda one: None if one.url.startswith(OWN) else page.outside.append(one.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    page.on("response", lambda reply: page.missing.append(reply.url) if reply.status >= 400 else None)
    # Who leaves a page breaks off what it still asks for: that is not missing.
    page.on("requestfailed", lambda one: None if one.failure == "net::ERR_ABORTED" else page.missing.append(one.url))
    try:
        yield page
    finally:
        page.close()


@contextlib.contextmanager
def serve(folder):
    """The address of a web server over a folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            if self.path == "/favicon.ico":  # the browser asks of itself; no page names one
                self.send_response(204)
                self.end_headers()
            else:
                super().do_GET()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def drag(page, handle, by: float):
    """Drag the handle of a slider sideways by so many pixels."""
    handle.evaluate("(x) => x.scrollIntoView({ block: 'center' })")
    box = handle.bounding_box()
    share = handle.evaluate("(x) => (x.value - x.min) / (x.max - x.min)")
    x, y = box["x"] + 8 + share * (box["width"] - 16), box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=6)
    page.mouse.up()


def settled(page, milliseconds=0):
    """Wait until what was moved is shown: a calculator answers in the next frame.

    What the page itself puts off by so many milliseconds is done too, on any machine: it waits in line before us.
    """
    page.evaluate(
        """(later) => new Promise((done) => requestAnimationFrame(() => setTimeout(() =>
        requestAnimationFrame(() => done()), later)))""",
        milliseconds,
    )


def chosen(calculator) -> dict:
    """What the controls of a calculator stand at."""
    return json.loads(calculator.get_attribute("data-state"))


def answered(calculator) -> list[str]:
    """The answers of a calculator as they are shown, but for the plural of their units, which Python does not write."""
    texts = calculator.evaluate("(box) => [...box.querySelectorAll('.sb-value')].map((x) => x.textContent.trim())")
    return [re.sub(r"\b(token|bit|request)s\b", r"\1", x) for x in texts]
