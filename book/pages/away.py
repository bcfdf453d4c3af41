"""Offers the book as PDF and EPUB on the landing page, where `make book` has left them in dist."""

import re
import shutil
from pathlib import Path

DIST = Path(__file__).parents[2] / "dist"
FILES = {"scalebook.pdf": "PDF", "scalebook.epub": "EPUB"}
PLACE = re.compile('<p class="sb-away".*?</p>', re.DOTALL)  # of book/index.md


def offer(site: Path, dist: Path = DIST) -> None:
    """Copy the files into the built site, and fill in the line that links to them: without them it stays hidden."""
    made = [x for x in FILES if (dist / x).exists()]
    for name in made:
        shutil.copy(dist / name, site / name)
    links = [f'<a href="../{x}">{FILES[x]}</a> ({(dist / x).stat().st_size / 1e6:.0f} MB)' for x in made]
    page = site / "book" / "index.html"
    if links:
        said = f'<p class="sb-away">To read away from a screen, the book as {" or ".join(links)}.</p>'
        page.write_text(PLACE.sub(said, page.read_text("utf-8")), "utf-8")
