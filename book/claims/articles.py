"""The headings of the four articles, and the chapters that follow each heading."""

from dataclasses import dataclass

from scalebook.language.notation import UnknownKey, nearest, quoted
from scalebook.language.tabular import aligned

from .ledger import ARTICLES, ByKey, Claim, claims, stored

__all__ = ["Article", "Articles", "Heading", "articles"]


@dataclass(frozen=True)
class Heading:
    """A heading of an article, with the chapters that follow it, or the reason why none does."""

    heading: str
    chapters: tuple[str, ...] = ()
    reason: str = ""
    under: bool = False  # True for a subheading of the last heading that is not one
    named: str = ""  # who gave the heading its name, if the article did not


@dataclass(frozen=True)
class Article:
    """An article: the part of the book that follows it, a summary in our words, and its headings in order."""

    key: str
    part: str
    short: str
    said: str
    headings: tuple[Heading, ...]

    def heading(self, name: str) -> Heading:
        """Return one of its headings by its text.  Raises KeyError, with the nearest headings, for an unknown one.

        >>> articles["isaev2023"].heading("How tensor offloading works").chapters
        ('tensor-offloading',)
        """
        found = {x.heading: x for x in self.headings}
        if name not in found:
            raise UnknownKey(f"{quoted(self.key)} has no heading {quoted(name)}; {nearest(name, found)}")
        return found[name]

    def claims(self, heading: Heading) -> list[Claim]:
        """Return the claims of the ledger under a heading."""
        return [x for x in claims.of(self.key).values() if x.section == heading.heading]

    def chapters(self, heading: Heading) -> list[str]:
        """Return the chapters that follow a heading or judge a claim under it."""
        return list(dict.fromkeys([*heading.chapters, *(x.chapter for x in self.claims(heading) if x.chapter)]))

    def __repr__(self):
        rows = [["  " * x.under + x.heading, ", ".join(x.chapters) or f"no chapter: {x.reason}"] for x in self.headings]
        return aligned(rows, gap="  ")


class Articles(ByKey):
    """All articles by key, in the order of the book's parts.  Their file is read on first use."""

    called = "an article"

    def _read(self) -> dict[str, Article]:
        given = self._given or stored("articles")
        return {key: _article(key, given[key]) for key in ARTICLES if key in given}

    def __repr__(self):
        return aligned([[key, x.part, f"{len(x.headings)} headings"] for key, x in self.items()], gap="  ")


def _article(key, stanza):
    found = []
    for x in stanza["headings"]:
        if bool(x.get("chapters")) == bool(x.get("reason")):
            said = "a heading has either chapters or a reason for none"
            raise ValueError(f"articles.toml, [{key}], {quoted(x['heading'])}: {said}")
        if x["heading"] in (y.heading for y in found):
            raise ValueError(f"articles.toml, [{key}]: {quoted(x['heading'])} is entered twice")
        found.append(Heading(**{**x, "chapters": tuple(x.get("chapters", ()))}))
    return Article(key, stanza["part"], stanza["short"], stanza["said"].strip(), tuple(found))


articles = Articles()
