"""The appendix: a glossary, a cheat sheet and how to cite, each written from what the package and the book hold."""

import tomllib

import yaml
from formulas import letter_card
from linking import BOOK, capital, chapter, imported, linked, plain

from scalebook import tables
from scalebook.language import FORMULAS, NOTATION, show
from scalebook.language.row import quantity
from scalebook.language.units import show_tex
from scalebook.training import WORDS


def kept(name: str) -> dict:
    """What a file of the book holds."""
    return tomllib.loads((BOOK / name).read_text(encoding="utf-8"))


def meaning(term: dict) -> str:
    """A term in one sentence: that of the notation where it is a letter or a word, else its own."""
    if name := term.get("letter"):
        x = NOTATION[name]
        return f"{capital(plain(x.meaning))}. In formulas ${x.tex}$, in code `{name}`."
    if name := term.get("word"):
        x = WORDS[name]
        choices = ", ".join(f"`{v}`" for v in x.values)
        return f"{capital(plain(x.meaning))}. In code `{name}`: {choices}."
    return plain(term["says"])


def glossary() -> str:
    """The field's terms, each with one sentence and where it is defined."""
    imported()
    lines = [
        "# Glossary",
        "",
        "The terms that chapters use, one sentence each, and where each is stated or derived. Every letter, with its",
        "unit, stands in the [notation](notation.md).",
        "",
    ]
    for term in sorted(kept("glossary.toml")["terms"], key=lambda x: x["term"].lower()):
        where = linked(FORMULAS[term["formula"]]) if "formula" in term else chapter(term["chapter"])
        lines += [plain(term["term"]), f": {meaning(term)} · {where}", ""]
    return "\n".join(lines)


def row(name: str):
    """A row of a table by "table.key", or a cell of it by "table.key.letter"."""
    table, key, *letter = name.split(".")
    found = getattr(tables, table)[key]
    return getattr(found, letter[0]) if letter else found


def known(letter: str, value) -> float:
    """A number, a text with its unit, or a cell of a table."""
    return row(value) if str(value).partition(".")[0] in tables.__all__ else quantity(letter, value)


def value(letter: str, f, rows, knowns) -> float:
    """A letter of a formula at a point: known, in a row, or by a usual formula."""
    if letter in knowns:
        return knowns[letter]
    for x in rows:
        if letter in x.cells:
            return getattr(x, letter)
    for usual in f.given:
        if usual.letter == letter:
            try:
                return usual(**{x: value(x, usual, rows, knowns) for x in usual.inputs})
            except LookupError:
                continue
    raise LookupError(f"{f.name}: nothing says what {letter} is")


def worked(stanza: dict):
    """A formula of the sheet, the values of its letters, and what follows from them."""
    f = FORMULAS[stanza["formula"]]
    rows = [row(x) for x in stanza.get("rows", ())]
    knowns = {letter: known(letter, x) for letter, x in stanza.get("knowns", {}).items()}
    values = {x: value(x, f, rows, knowns) for x in f.inputs}
    return f, values, f(**values)


def card(stanza: dict) -> list[str]:
    """A formula, typeset, with one number."""
    f, values, result = worked(stanza)
    said = ", ".join(rf"${NOTATION[x].tex} = {show_tex(v, NOTATION[x].unit)}$" for x, v in values.items())
    return [
        '<div class="sb-card">',
        "",
        f"[{plain(stanza.get('title') or capital(NOTATION[f.letter].meaning))}](#formula-{f.name})",
        "",
        f"$${f.latex}$$",
        "",
        f"**{plain(show(result, f.unit))}** for {said}",
        "",
        "</div>",
        "",
    ]


def cheat_sheet() -> str:
    """Twenty formulas to know by heart, each worked out for the model and the device that run through the book."""
    imported()
    lines = [
        "# Cheat sheet",
        "",
        f"Twenty formulas, each with one number: for {tables.models.llama3_70b.name} where they ask for a model, on",
        f"{tables.accelerators.h100.name} where they ask for a device. A title leads to the formula's entry, with its",
        "assumptions and sources.",
        "The formulas print on one page; the thirty letters that recur most follow them.",
        "",
    ]
    for group in kept("cheat-sheet.toml")["groups"]:
        cards = [line for x in group["formulas"] for line in card(x)]
        lines += [f"## {group['title']}", "", '<div class="sb-cards">', "", *cards, "</div>", ""]
    return "\n".join([*lines, "## Thirty letters", "", *letter_card()])


def how_to_cite() -> str:
    """The entry of CITATION.cff as a sentence and for BibTeX."""
    x = yaml.safe_load((BOOK.parent / "CITATION.cff").read_text(encoding="utf-8"))
    year = yaml.safe_load((BOOK / "_config.yml").read_text(encoding="utf-8"))["copyright"]
    who = " and ".join(a.get("name") or f"{a['family-names']}, {a['given-names']}" for a in x["authors"])
    return "\n".join(
        [
            "# How to cite",
            "",
            f"{capital(who)}: *{x['title']}: {x['abstract'][0].lower()}{x['abstract'][1:].rstrip('.')}*, version "
            f"{x['version']}, {year}. <{x['url']}>",
            "",
            "```bibtex",
            f"@software{{{x['title']},",
            f"  title = {{{x['title']}: {x['abstract'][0].lower()}{x['abstract'][1:].rstrip('.')}}},",
            f"  author = {{{{{who}}}}},",
            f"  year = {{{year}}},",
            f"  version = {{{x['version']}}},",
            f"  license = {{{x['license']}}},",
            f"  url = {{{x['url']}}},",
            "}",
            "```",
            "",
            "A formula, a number or a measurement that you take from the book has a source of its own: cite that too.",
            "Its key stands beside it, and the [bibliography](bibliography.md) has the rest. In code,",
            "`ridge_intensity.sources` names it, and a row's `why` says where a cell comes from.",
            "",
            f"The code and the text are under the licence {x['license']}; the repository is <{x['repository-code']}>.",
            "",
        ]
    )
