"""A real JupyterLab with a real kernel in a real browser: run the chapter, drag its sliders, read the numbers."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import nbformat
import pytest

from .browser import PATIENCE, answered, chosen, drag, open_page, script, settled
from .support import ROOT, calculators, python_says

NOTEBOOK, START = (ROOT / "notebooks" / x for x in ("1-scaling-compute/memory-bottlenecks.ipynb", "start.ipynb"))
PLANNER = "planner.ipynb"
PRIVATE = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
           "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR"]  # fmt: skip


# Of the house's tables and calculators: how words in cells are set, and how light their texts are, 0 to 1.
WORDS = "[...document.querySelectorAll('.sb-table td.sb-said')].map((x) => getComputedStyle(x).textAlign)"
LIGHT = script("light")


# The kernel answers in turn: what it was told of a slider it has answered before this.
KERNEL_IS_DONE = "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo()"


def answers(url: str, server: subprocess.Popen, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2)
            return True
        except OSError:
            time.sleep(0.25)
    return False


@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory):
    """The address of a copy of the chapter in a JupyterLab, as `make lab` starts it, that shares nothing with the
    reader's own."""
    home = tmp_path_factory.mktemp("jupyter")
    (home / "root").mkdir()
    for book in (NOTEBOOK, START):
        shutil.copy(book, home / "root")
    cell = nbformat.v4.new_code_cell(
        'from scalebook.book.planner import planner\nplanner("serve", model="llama3_8b", device="h100", users=8)'
    )
    kernel = dict(kernelspec=dict(name="python3", display_name="Python 3", language="python"))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), home / "root" / PLANNER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tools.lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=test", f"--ServerApp.root_dir={home / 'root'}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    own = os.environ | {key: str(home / key) for key in PRIVATE}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=own, stdout=log, stderr=subprocess.STDOUT)
    try:
        if not answers(f"http://127.0.0.1:{port}/api?token=test", server, PATIENCE / 1000):
            pytest.fail(f"JupyterLab did not start:\n{(home / 'log').read_text()[-2000:]}")
        yield f"http://127.0.0.1:{port}/lab/tree/{NOTEBOOK.name}?token=test&reset"
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def page(chromium, lab):
    """JupyterLab with the chapter in front.  To open it takes a browser ten seconds of a core: all tests share it."""
    with open_page(chromium, viewport={"width": 1400, "height": 1600}) as page:
        page.goto(lab)
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        yield page


def opened(page, name):
    """The panel of another notebook, in front."""
    page.evaluate("(path) => jupyterapp.commands.execute('docmanager:open', { path }).then(() => null)", name)
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    panel.locator(".jp-CodeCell").first.wait_for()
    return panel


def from_menu(menu, page, *names):
    """What a menu offers, by the names on the way there."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    for name in names[:-1]:
        page.get_by_text(name, exact=True).first.hover()
    page.get_by_text(names[-1], exact=True).first.click()


def run_all(page, shown):
    """Run all cells until one shows this: a click that comes before the kernel is there runs nothing."""
    from playwright.sync_api import TimeoutError as PlaywrightTimeout  # skipped where there is no browser

    for _ in range(4):
        from_menu("Run", page, "Run All Cells")
        with suppress(PlaywrightTimeout):
            shown.wait_for(timeout=PATIENCE / 4)
            break
    shown.wait_for()


def darken(page):
    from_menu("Settings", page, "Theme", "JupyterLab Dark")
    page.locator('body[data-jp-theme-light="false"]').wait_for(state="attached")  # Playwright may hold it for empty


def test_chapter_in_jupyterlab(page):
    """Python and the page's JavaScript both answer here, and agree."""
    page.locator(".jp-Notebook .jp-CodeCell").first.click()
    in_words = page.locator(".jp-OutputArea-output", has_text="Calculator(token_time=")
    in_words.first.wait_for()  # until it is run
    assert page.locator(".sb-calculator, .jp-RenderedText [data-mime-type*=stderr]").count() == 0
    box, (_, calc) = page.locator(".sb-calculator").first, calculators(NOTEBOOK)[0]
    run_all(page, box)
    # The kernel answers a drag when it is done with the cells, and a curve is drawn when it is seen.
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()
    box.scroll_into_view_if_needed()
    box.locator(".sb-curve path:visible").first.wait_for()
    box.evaluate("(x) => x.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    for handle in box.locator("input[type=range]").all():
        before = answered(box)
        for _ in range(3):  # while later cells run, a page may miss a drag
            drag(page, handle, -40)
            settled(page)
            if answered(box) != before:
                break
        page.evaluate(KERNEL_IS_DONE)
        settled(page)
        assert answered(box) == python_says(calc, chosen(box)) != before
    assert box.locator(".sb-worked .sb-equation mjx-container").count() == 1
    assert page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    assert set(page.evaluate(WORDS)) == {"left"} and min(page.evaluate(LIGHT)) < 0.2
    darken(page)
    page.wait_for_function(f"Math.min(...{LIGHT}) > 0.35")  # no text is dark on dark
    assert page.outside == []


def test_a_notebook_that_was_only_opened_is_not_unsaved(page):
    """Its kernel's language is written into it when the kernel answers: here it is there already."""
    panel, tab = opened(page, START.name), page.locator(".lm-TabBar-tab.jp-mod-current")
    tab.get_by_text(START.name).wait_for()
    held = page.evaluate(script("opened"))
    assert held["notebook"] == held["kernel"] and not held["unsaved"]
    marked = page.locator(".lm-TabBar-tab.jp-mod-current.jp-mod-dirty")
    assert marked.count() == 0
    panel.locator(".jp-CodeCell .cm-content").first.click()  # and one that was changed is
    page.keyboard.type("#")
    marked.wait_for()


def test_the_planner_says_why_in_jupyterlab(page, planned):
    """Equations are set by JupyterLab, in the dark too; a link leads to the site, since a notebook has no address."""
    opened(page, PLANNER).locator(".jp-CodeCell").first.click()
    run_all(page, number := page.locator(".pl-num[data-letter=tpot]"))
    number.click()
    why = page.locator("dialog.pl-why[open]")
    why.locator("mjx-container").nth(3).wait_for()
    why.locator("details summary").nth(1).click()
    why.locator("details details .pl-math mjx-container").first.wait_for()
    assert r"\(" not in why.inner_text() and r"\[" not in why.inner_text()
    page.keyboard.press("Escape")
    darken(page)
    page.locator(".pl-num[data-letter=tpot]").click()
    colour = "(x) => getComputedStyle(x).color.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + b / 765, 0)"
    assert why.evaluate(colour) > 0.6 and why.locator("mjx-container").first.evaluate(colour) > 0.6
    page.keyboard.press("Escape")
    page.get_by_role("button", name="link", exact=True).click()
    said = page.locator("dialog[open] pre").inner_text()
    assert said.startswith("https://scalebook.github.io/scalebook/book/planner.html#plan=")
    assert page.outside == []
