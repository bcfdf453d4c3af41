"""A browser and the built site, shared by the tests that need them."""

import contextlib
import subprocess
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from .browser import browser, serve

try:
    import fcntl
except ImportError:  # on Windows, where no other worker is waited for
    fcntl = None

settings.register_profile("any machine", deadline=None)  # how long it takes is for `make bench`
settings.load_profile("any machine")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "book" / "_build" / "html"

# A worker takes a file at a time.  These are taken in so many parts, for each takes longer than a worker's share.
PARTS = {"tests/test_site.py": 3, "tests/test_language.py": 2}

# These are taken by one worker, one after the other: a process that has confronted a set keeps it for all of them.
SHARED = {
    f"tests/test_{x}.py": "measured sets"
    for x in ("measurements", "sets", "intervals", "frameworks", "measured_serving", "training_coverage")
}

# What takes longest goes first, so that no core waits at the end for the last of them: the site is built by one worker
# while the others run what does not need it.
LONGEST = (
    "tests/test_site.py 0",
    "measured sets",
    "notebooks/",
    "tests/test_language.py",
    "tests/test_visit.py",
    "tests/test_site.py",
    "tests/test_access.py",
    "tests/test_lab.py",
    "tests/test_planner.py",
    "tests/test_calculon_search.py",
)


def part_of(nodeid):
    """What a worker takes at a time: a test's file, one of its parts, or the files with which it shares work."""
    file, _, name = nodeid.partition("::")
    if file in PARTS:
        return f"{file} {crc32(name.encode()) % PARTS[file]}"
    return SHARED.get(file, file)


@pytest.hookimpl(optionalhook=True)  # there may be no xdist
def pytest_xdist_make_scheduler(config, log):
    """Files of `--dist loadfile`, but for `PARTS` and `SHARED`."""
    from xdist.scheduler import LoadFileScheduling

    class Parts(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return part_of(nodeid)

    return Parts(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Parts in the order of `LONGEST`, and then as they come."""

    def place(item):
        part = part_of(item.nodeid)
        return next((i for i, x in enumerate(LONGEST) if part.startswith(x)), len(LONGEST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def planned():
    """The planner's data as text: one worker makes it, which takes half a minute, and others read what it has kept."""
    from scalebook.book.planner.data import planner_json  # not before a test asks for it

    with alone("planning"):
        return planner_json()


@pytest.fixture(scope="session")
def site(planned):
    """The folder of the site, built if it is not there: by one worker, while those that ask for it too wait."""
    with alone():
        if not (SITE / "scalebook.zip").exists():  # which is packed last
            made = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True)
            if made.returncode:
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
