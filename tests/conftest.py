"""A browser and the built site, shared by the tests that need them."""

from pathlib import Path

import pytest

from .browser import browser, serve

SITE = Path(__file__).parents[1] / "book" / "_build" / "html"


@pytest.fixture(scope="session")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def site():
    """The folder of the built site."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} is not there; `make test` builds it, and so does `make site`")
    return SITE


@pytest.fixture(scope="session")
def address(site):
    """The site's address on a web server of our own."""
    with serve(site) as base:
        yield base
