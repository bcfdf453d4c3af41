"""The appendix is what the package and the book hold: terms, formulas worked out, and how to cite."""

import re
import tomllib
from importlib import import_module

import pytest
import yaml

import scalebook
from scalebook.language import FORMULAS, NOTATION
from scalebook.training import WORDS

from . import ROOT

CHAPTERS = {x.stem for x in (ROOT / "notebooks").rglob("*.ipynb")}
TERMS = tomllib.loads((ROOT / "book" / "glossary.toml").read_text("utf-8"))["terms"]
GROUPS = tomllib.loads((ROOT / "book" / "cheat-sheet.toml").read_text("utf-8"))["groups"]
STANZAS = {x["formula"]: x for group in GROUPS for x in group["formulas"]}


@pytest.fixture
def appendix(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    made = import_module("appendix")
    made.imported()
    return made


@pytest.mark.parametrize("term", TERMS, ids=lambda x: x["term"])
def test_a_term_is_said_once_and_leads_somewhere(appendix, term):
    assert len({"letter", "word", "says"} & term.keys()) == 1 and len({"formula", "chapter"} & term.keys()) == 1
    assert term.get("letter", "batch") in NOTATION and term.get("word", "schedule") in WORDS
    assert term.get("formula", "ridge_intensity") in FORMULAS and term.get("chapter", "start") in CHAPTERS
    if said := term.get("says"):
        assert said.endswith(".") and ". " not in said, "a term has one sentence"
        meanings = {x.meaning for x in NOTATION.values()} | {x.meaning for x in WORDS.values()}
        assert said[:1].lower() + said[1:-1] not in meanings, "the notation says that already: name the letter"


def test_the_glossary_is_in_order(appendix):
    page, names = appendix.glossary(), [x["term"] for x in TERMS]
    assert len(set(names)) == len(names) and page.count("\n: ") == len(names)
    heads = re.findall(r"^(.+)\n: ", page, flags=re.M)
    assert heads == sorted(heads, key=str.lower)


@pytest.mark.parametrize("name", STANZAS)
def test_a_number_of_the_cheat_sheet_is_what_the_package_says(appendix, name):
    """Worked out from its own letters, as the card has it, and in one call from rows and knowns."""
    stanza = STANZAS[name]
    f, values, result = appendix.worked(stanza)
    knowns = {letter: appendix.known(letter, x) for letter, x in stanza.get("knowns", {}).items()}
    assert result == pytest.approx(f(*map(appendix.row, stanza.get("rows", ())), **knowns))
    assert values.keys() == set(f.inputs)


def test_the_cheat_sheet_has_twenty_formulas(appendix):
    page = appendix.cheat_sheet()
    assert len(STANZAS) == page.count('<div class="sb-card">') == page.count("](#formula-") == 20
    assert all(f"$${FORMULAS[x].latex}$$" in page for x in STANZAS)


def test_what_follows_from_nothing_is_named(appendix):
    with pytest.raises(LookupError, match="kv_cache: nothing says what batch is"):
        appendix.worked({"formula": "kv_cache", "rows": ["models.llama3_70b"], "knowns": {"kv_bits": 16}})


def test_how_to_cite_is_the_citation(appendix):
    cited, page = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8")), appendix.how_to_cite()
    assert all(cited[x] in page for x in ("title", "version", "license", "url", "repository-code"))
    assert f"version = {{{scalebook.__version__}}}" in page and cited["authors"][0]["name"] in page
