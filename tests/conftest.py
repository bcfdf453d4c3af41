"""A browser and the built site, shared by the tests that need them."""

import contextlib
import os
import subprocess
from zlib import crc32

import pytest
from hypothesis import settings

from . import ROOT
from .browser import browser, serve

try:
    import fcntl
except ImportError:  # on Windows, where no other worker is waited for
    fcntl = None

settings.register_profile("any machine", deadline=None)  # how long it takes is for `make bench`
settings.load_profile("any machine")

SITE = ROOT / "book" / "_build" / "html"

# A worker takes a file at a time.  These are taken in so many parts, for each takes longer than a worker's share.
PARTS = {"tests/test_site.py": 3, "tests/test_questions.py": 2}

# What takes longest goes first, so that no core waits at the end for the last of them, and what needs the site after
# what does not: it is built meanwhile.
LONGEST = (
    "notebooks/", "tests/test_questions.py", "tests/test_measurements.py", "tests/test_sessions.py",
    "tests/test_language.py", "tests/test_calibrations.py", "tests/test_visit.py", "tests/test_site.py",
    "tests/test_live.py", "tests/test_access.py", "tests/test_lab.py", "tests/test_planner.py",
    "tests/test_configurations.py", "tests/test_calculon_search.py",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Where all tests run, a process of its own builds the site while the others are prepared."""
    if config.getoption("forks") and "tests" in config.args and not os.fork():
        with contextlib.suppress(Exception):  # the fixture `site` builds it again, and says what is wrong
            build()
        os._exit(0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Parts in the order of `LONGEST`, and then as they come."""
    for item in items:
        file, _, name = item.nodeid.partition("::")
        item.part = f"{file} {crc32(name.encode()) % PARTS[file]}" if file in PARTS else file
    items.sort(key=lambda item: next((i for i, x in enumerate(LONGEST) if item.part.startswith(x)), len(LONGEST)))


@pytest.fixture(scope="session")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def planned():
    """The planner's data as text: one process makes it, which takes half a minute, and others read what it has kept."""
    return plan()


def plan(parts=False):
    from scalebook.book.planner.data import planner_json  # not before a test asks for it

    with alone("planning"):
        return planner_json(parts)


def build():
    """Build the site if it is not there, while those that ask for it too wait; the process that ran, if one did."""
    with alone():
        if not (SITE / "scalebook.zip").exists():  # which is packed last
            for parts in (False, True):  # in one process, for what the first derives the second takes up
                plan(parts)
            return subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True)
    return None


@pytest.fixture(scope="session")
def site():
    """The folder of the site."""
    if (made := build()) and made.returncode:
        pytest.fail(f"`make site` failed:\n{made.stdout[-3000:]}{made.stderr[-3000:]}", pytrace=False)
    return SITE


@contextlib.contextmanager
def alone(doing="building"):
    """No other worker is doing this at the same time."""
    SITE.parent.mkdir(parents=True, exist_ok=True)
    with (SITE.parent / doing).open("w") as file:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def address(site):
    """The site's address on a web server of our own."""
    with serve(site) as base:
        yield base
