"""The ledger of what the articles claim: verbatim, one of seven verdicts, and every verdict as its numbers have it."""

import doctest
import html
import json
import re
from dataclasses import replace
from importlib import import_module

import pytest
import yaml
from scalebook.book.claims import ARTICLES, VERDICTS, articles, claims, digest

from scalebook.language import FORMULAS, SOURCES

from .every import every
from .support import ROOT, cases, refuses

MODULES = [
    "scalebook.book.claims",
    *(f"scalebook.book.claims.{x.stem}" for x in (ROOT / "book/claims").glob("[!_]*.py")),
]
CHAPTERS = {x.stem: x for x in (ROOT / "notebooks").rglob("*.ipynb")}
COMPUTED = [key for key, x in claims.items() if x.checks]


@every(sorted(MODULES))
def test_examples_of_claims(name):
    """As pytest runs those of the package; it would import these under another name."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert not doctest.testmod(import_module(name), optionflags=flags).failed


def words(text):
    """A text without quotation marks' curls, emphasis and the marks of quoted lines."""
    return " ".join(
        re.sub(r"^> ?", "", text, flags=re.M).replace("**", "").translate(str.maketrans("“”‘’", "\"\"''")).split()
    )


def prose(stem):
    """The Markdown of a chapter, as words."""
    cells = json.loads(CHAPTERS[stem].read_text("utf-8"))["cells"]
    return words("\n".join("".join(x["source"]) for x in cells if x["cell_type"] == "markdown"))


def test_all_are_in():
    counts = {article: len(claims.of(article)) for article in ARTICLES}
    assert counts == {"distributed-solutions": 42, "unavoidable-imperative": 38, "isaev2023": 23, "podcast-notes": 28}
    assert len(claims) == sum(counts.values()) and len(COMPUTED) >= 70


@pytest.mark.parametrize("key", claims)
def test_claim(key):
    claim = claims[key]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key) and len(key) <= 20
    assert digest(claim.quotation) == claim.sha256, "the quotation is no longer that of the article"
    assert claim.verdict in VERDICTS and claim.correction.endswith(".") and len(claim.correction) < 400
    assert {claim.article, *(x.partition(" ")[0] for x in claim.sources)} <= SOURCES.keys()
    assert claim.sources or claim.verdict == "cannot be checked"
    assert bool(claim.checks) != bool(claim.uncomputed)
    assert not (claim.checks and claim.verdict == "cannot be checked")
    assert claim.chapter and claim.cell and words(claim.cell) in prose(claim.chapter)


@pytest.mark.parametrize("key", COMPUTED)
def test_the_verdict_follows_and_another_number_is_another(key):
    """Every check can fail: what holds would not if a thousandth were claimed, what fails would if our number were."""
    claim = claims[key]
    assert claim.recomputed() == claim.verdict
    said = repr(claim.why())
    assert claim.quotation in said and claim.verdict in said and "computed" in said
    assert all(x.made.letter in said for c in claim.checks for x in (c.main, *c.others.values()) if x.formula)
    page = claim.why()._repr_html_()
    assert page.count("<pre>") == sum(1 + len(x.others) for x in claim.checks) and "<script" not in page
    for check in claim.checks:
        other = check.main.computed / (1000 if check.main.fits() else 1)
        assert replace(check, main=replace(check.main, claimed=other)).verdict() != check.verdict()


PERTURBED = cases("a known of a claim that is changed", globals())


@pytest.mark.parametrize("key", PERTURBED)
def test_a_perturbed_known_is_found(key):
    knowns, verdict = PERTURBED[key]
    claim = claims[key]
    first = claim.checks[0]
    main = replace(first.main, knowns={**first.main.knowns, **knowns})
    belongs = replace(first.belongs, knowns=main.knowns) if hasattr(first.belongs, "knowns") else first.belongs
    other = replace(claim, checks=(replace(first, main=main, belongs=belongs),))
    assert other.recomputed() == verdict != claim.verdict
    said = rf"^claim '{key}' is said to be '{claim.verdict}', and '{verdict}' follows: claimed"
    refuses(ValueError, said, other.confirm)


def test_counts():
    counts = claims.verdicts()
    assert counts.total.total() == len(claims) and counts.computed == len(COMPUTED)
    assert sum(counts["podcast-notes"].values()) == len(claims.of("podcast-notes"))
    assert "misattributed" in repr(counts) and "<table>" in counts._repr_html_()


@every(sorted({x.chapter for x in claims.values() if x.chapter}))
def test_a_chapter_has_its_claims_as_a_table(chapter):
    table = claims.judged_in(chapter)
    here = [x for x in claims.values() if x.chapter == chapter]
    assert list(table.claims) == here
    said, page = repr(table), table._repr_html_()
    assert all(x.key in said and x.correction in said for x in here) and page.count("<tr>") == len(here) + 1
    assert "**" not in page  # marks of emphasis are the article's text, not a page's
    assert all(f'<td class="sb-said">{html.escape(x.correction)}</td>' in page for x in here)


@pytest.mark.parametrize("key", ARTICLES)
def test_every_heading_has_its_chapter(key):
    """Each heading is followed by chapters that are there, or says why not; each claim stands under one of them."""
    article = articles[key]
    names = [x.heading for x in article.headings]
    assert len(names) == len(set(names))
    for x in article.headings:
        assert bool(x.chapters) != bool(x.reason), x.heading
        assert set(x.chapters) <= CHAPTERS.keys(), f"{x.heading}: no such chapter"
    assert {x.section for x in claims.of(key).values()} <= set(names)
    assert sum(len(article.claims(x)) for x in article.headings) == len(claims.of(key))
    assert len(article.said.splitlines()) == 10 and (ROOT / "notebooks" / article.part).is_dir()


@pytest.fixture
def pages(monkeypatch):
    """The pages that the site writes from the package."""
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    return import_module("reference")


def test_the_page_has_every_claim(pages):
    page = pages.what_articles_claim()
    assert claims.verdicts().sentence() in page
    assert all(page.count(f"(claim-{key})=") == 1 and f"`{key}`" in page for key in claims)
    assert page.count("(../parts/") == len(claims) + len(ARTICLES)
    links = re.findall(r"\]\(\.\./\.\./(notebooks/.*?)\)", page)
    assert len(links) == sum(bool(x.chapter) for x in claims.values()) and all((ROOT / x).exists() for x in links)
    assert set(re.findall(r"#formula-(\w+)", page)) <= FORMULAS.keys()


@pytest.mark.parametrize("key", ARTICLES)
def test_an_opener_has_headings_claims_and_counts(pages, key):
    article, page = articles[key], pages.OPENERS[articles[key].part]()
    assert claims.verdicts().sentence(key) in page
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    card = 32  # thirty letters and the head of their table
    assert len(rows) == len(article.headings) + len(claims.of(key)) + 4 + card
    assert all(page.count(f"](#claim-{x})") == 1 for x in claims.of(key))
    assert page.count("*not mirrored:*") == sum(bool(x.reason) for x in article.headings)
    links = set(re.findall(r"\]\(\.\./\.\./notebooks/(.*?)\.ipynb\)", page))
    here = {f"{article.part}/{x.stem}" for x in CHAPTERS.values() if x.parent.name == article.part}
    assert here <= links, "a chapter of the part is not on the page that opens it"


def test_the_parts_begin_with_their_openers():
    parts = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))["parts"]
    begin = {x["chapters"][0]["file"]: x["chapters"][1]["file"].split("/")[1] for x in parts[1:5]}
    assert begin == {f"book/parts/{x.part}": x.part for x in articles.values()}
