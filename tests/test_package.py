"""What is published: one version, links that work elsewhere, and the files that `make package` compares."""

import re
import tomllib
from importlib import resources

import yaml

import scalebook
from tools.package import unlike

from . import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONFIG = yaml.safe_load((ROOT / "book/_config.yml").read_text("utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_the_version_is_said_once_and_alike():
    assert "version" not in PROJECT and PROJECT["dynamic"] == ["version"]
    assert CITATION["version"] == scalebook.__version__
    assert f"## {scalebook.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_citation_says_what_the_project_says():
    assert {"cff-version", "message", "title", "authors"} <= CITATION.keys() and CITATION["cff-version"] == "1.2.0"
    assert CITATION["authors"] == PROJECT["authors"] == [{"name": CONFIG["author"]}]
    for key, said in (("title", "name"), ("license", "license"), ("keywords", "keywords")):
        assert CITATION[key] == PROJECT[said]
    assert CITATION["abstract"] == PROJECT["description"] + "."


def test_addresses_are_those_of_the_book():
    repository, book = CONFIG["repository"]["url"], CONFIG["html"]["baseurl"]
    assert CITATION["repository-code"] == PROJECT["urls"]["Repository"] == repository
    assert CITATION["url"] == PROJECT["urls"]["Book"] == book
    links = re.findall(r"\]\(([^)]*)\)", (ROOT / "README.md").read_text("utf-8"))
    for link in links:  # PyPI shows the README, and has no files beside it
        assert link.startswith("https://")
        if link.startswith(f"{repository}/blob/{CONFIG['repository']['branch']}/"):
            assert (ROOT / link.split("/", 7)[-1]).exists(), link


def test_annotations_are_declared():
    assert resources.files(scalebook).joinpath("py.typed").is_file()


def test_an_sdist_is_held_against_the_repository():
    kept = {"README.md", "tests/support.py"}
    assert unlike(kept | {"PKG-INFO", "setup.cfg", "scalebook.egg-info/PKG-INFO"}, kept) == ""
    assert unlike({"README.md", "book/_build/x.html"}, kept) == (
        "the sdist lacks tests/support.py; the sdist should not hold book/_build/x.html"
    )


def test_ci_tries_what_is_built():
    assert "make package" in (ROOT / ".ci/run").read_text("utf-8")
