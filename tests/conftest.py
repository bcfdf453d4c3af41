"""A browser and the built site, shared by the tests that need them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from .browser import browser, serve

settings.register_profile("any machine", deadline=None)  # how long it takes is for `make bench`
settings.load_profile("any machine")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "book" / "_build" / "html"

# What takes longest goes first, so that no core waits at the end for the last of them: the site is built by one worker
# while the other runs notebooks.
LONGEST = (
    "tests/test_site.py",
    "tests/test_language.py",
    "notebooks/",
    "tests/test_lab.py",
    "tests/test_visit.py",
    "tests/test_measurements.py",
    "tests/test_calculon_search.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Files in the order of `LONGEST`, and then as they come."""
    items.sort(key=lambda item: next((i for i, x in enumerate(LONGEST) if item.nodeid.startswith(x)), len(LONGEST)))


@pytest.fixture(scope="session")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def site():
    """The folder of the site, built if it is not there: beside other tests, since building keeps one core busy."""
    if not (SITE / "index.html").exists():
        made = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True)
        if made.returncode:
            pytest.fail(f"`make site` failed:\n{made.stdout[-3000:]}{made.stderr[-3000:]}", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def address(site):
    """The site's address on a web server of our own."""
    with serve(site) as base:
        yield base
