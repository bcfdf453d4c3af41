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
OWN = ("http://127.0.0.1", "http://localhost", "file:", "data:", "blob:", "ws://127.0.0.1")


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
            chromium.close()


@contextlib.contextmanager
def open_page(chromium, **settings):
    """A page in a fresh profile, which is closed with it."""
    context = chromium.new_context(**settings)
    try:
        with watched(context) as page:
            yield page
    finally:
        context.close()


@contextlib.contextmanager
def watched(context):
    """A page that notes what it should not do: `outside` requests (not met), `errors`, `missing`."""
    page = context.new_page()
    page.set_default_timeout(120_000)  # the longest page is set for half a minute where other work shares the cores
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


def settled(page):
    """Wait until what was moved is shown: a calculator answers in the next frame."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def chosen(calculator) -> dict:
    """What the controls of a calculator stand at."""
    return json.loads(calculator.get_attribute("data-state"))


def answered(calculator) -> list[str]:
    """The answers of a calculator as they are shown, but for the plural of their units, which Python does not write."""
    texts = calculator.evaluate("(box) => [...box.querySelectorAll('.sb-value')].map((x) => x.textContent.trim())")
    return [re.sub(r"\b(token|bit|request)s\b", r"\1", x) for x in texts]
