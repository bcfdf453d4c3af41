"""What the pages written from the package share: text as it stands, and links to formulas, chapters and sources."""

import importlib
import json
import pkgutil
import re
from functools import cache
from pathlib import Path

import yaml

import scalebook

BOOK = Path(__file__).parents[1]


@cache
def imported() -> list:
    """Every module of the package but its figures and the book's own: what they state can then be named."""
    names = [m.name for m in pkgutil.walk_packages(scalebook.__path__, "scalebook.")]
    own = (f"scalebook.book.{x}" for x in ("drawings", "pages", "planner"))
    shown = ("scalebook.display", *own)  # these state no formula
    names = [x for x in names if not x.startswith(shown)]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def plain(text: str) -> str:
    """Text that Markdown shows as it stands, in a table too.

    >>> plain("a*b | <c>")
    'a\\\\*b \\\\| \\\\<c\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>#|$])", r"\\\1", text)


def linked(f) -> str:
    """A formula's name, leading to its entry."""
    return f"[`{f.name}`](#formula-{f.name})"


@cache
def chapter(stem: str) -> str:
    """A link to a chapter by the name of its file, under its own heading."""
    [path] = (BOOK.parent / "notebooks").rglob(f"{stem}.ipynb")
    first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
    return f"[{first.splitlines()[0].removeprefix('# ')}](../../{path.relative_to(BOOK.parent)})"


@cache
def contents() -> dict:
    """The book's table of contents."""
    return yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))


def stems(part: str) -> list[str]:
    """The chapters of a part by the names of their files, in their order."""
    files = [x["file"] for p in contents()["parts"] for x in p["chapters"]]
    return [x.rpartition("/")[2] for x in files if x.startswith(f"notebooks/{part}/")]


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


@cache
def repository() -> str:
    return yaml.safe_load((BOOK / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]


def cited(sources) -> str:
    """Sources as links into the bibliography."""
    keys = [source.partition(" ")[::2] for source in sources]
    return ", ".join(f"[{plain(key)}](#source-{key}) {plain(place)}".strip() for key, place in keys)
