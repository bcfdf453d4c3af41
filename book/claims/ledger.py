"""The ledger of claims: each sentence with its verdict, our correction, its chapter, and the numbers that decide."""

import hashlib
import html
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

from scalebook.language.notation import UnknownKey, nearest, quoted, word
from scalebook.language.sources import SOURCES, cite, cite_html
from scalebook.language.tabular import Markup, aligned, folded, page_table, styled, table_cell

from .check import VERDICTS, Check, read

__all__ = ["ARTICLES", "Claim", "Claims", "Counts", "Reason", "claims", "digest"]

# The four articles, in the order of the book's parts.  Each key names a file of claims here, and a source.
ARTICLES = ("distributed-solutions", "unavoidable-imperative", "isaev2023", "podcast-notes")

# Each verdict as a sentence says it, for one claim and for several.
_SAID = {x: (x, x.replace("holds", "hold")) if x[0] in "hc" else (f"is {x}", f"are {x}") for x in VERDICTS}

_TEXTS = ("section", "quotation", "sha256", "verdict", "correction", "chapter", "cell", "uncomputed")
_NEEDED = ("section", "quotation", "sha256", "verdict", "correction")


def stored(name: str) -> dict:
    """Return the contents of a TOML file of this room, given by its name."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text("utf-8"))


def digest(sentence: str) -> str:
    """Return the SHA-256 of a sentence's words, which ties a quotation to its article without storing the article.

    Line breaks, marks of emphasis and curly quotation marks make no difference.

    >>> digest("a  “b” **c**") == digest('a "b" c'), digest("a b")[:8]
    (True, 'c8687a08')
    """
    plain = sentence.replace("**", "").translate(str.maketrans("“”‘’", "\"\"''"))
    return hashlib.sha256(" ".join(plain.split()).encode()).hexdigest()


@dataclass(frozen=True)
class Claim:
    """One sentence of an article, and our verdict on it."""

    key: str
    article: str
    section: str
    quotation: str
    sha256: str
    verdict: str
    correction: str
    sources: tuple[str, ...] = ()
    chapter: str = ""
    cell: str = ""
    uncomputed: str = ""
    checks: tuple[Check, ...] = ()

    @property
    def words(self) -> str:
        """The sentence without its marks of emphasis, as a page shows it."""
        return self.quotation.replace("**", "")

    def __repr__(self):
        return f'{self.key}: {self.verdict}\n  "{self.quotation}"\n  {self.correction}'

    def _repr_html_(self):
        return self.why()._repr_html_()

    def recomputed(self) -> str:
        """Return the gravest verdict that follows from the current numbers, or "" for a claim without checks."""
        return max((x.verdict() for x in self.checks), key=VERDICTS.index, default="")

    def confirm(self) -> None:
        """Raise ValueError if the current numbers lead to a verdict other than the ledger's."""
        if self.checks and (got := self.recomputed()) != self.verdict:
            said = f"claim {quoted(self.key)} is said to be {quoted(self.verdict)}, and {quoted(got)} follows"
            raise ValueError(f"{said}: {self.numbers()}")

    def numbers(self) -> str:
        """Return the claimed and computed numbers in one line, or ""."""
        return "; ".join(x.comparison() for x in self.checks)

    def why(self) -> "Reason":
        """Show the sentence, its verdict, the correction, and each formula with its numbers."""
        self.confirm()
        return Reason(self)


class Reason:
    """Explains why a claim has its verdict, as text and as HTML."""

    def __init__(self, claim: Claim):
        self.claim = claim

    def _checks_worked(self):
        """Yield, for each check, its comparison as lines of text, and its points worked out."""
        for check in self.claim.checks:
            points = {"": check.main, **check.others}
            worked = [f"{name}:\n{x.worked()!r}" if name else repr(x.worked()) for name, x in points.items()]
            yield [*([check.reads] if check.reads else []), check.comparison()], worked
        if self.claim.uncomputed:
            yield [f"not computed: {self.claim.uncomputed}"], []

    def __repr__(self):
        c = self.claim
        lines = [f"{c.key}: {c.verdict}", f'  "{c.quotation}"', f"  {cite(c.article)}, {c.section}"]
        lines.append(f"  {c.correction}")
        for said, worked in self._checks_worked():
            lines += [*(f"  {x}" for x in said), *(f"    {x}" for text in worked for x in text.splitlines())]
        return "\n".join([*lines, *(f"  [{cite(x)}]" for x in c.sources)])

    def _repr_html_(self):
        c = self.claim
        lines = [f"<p>{html.escape(c.correction)}</p>"]
        for said, worked in self._checks_worked():
            lines += [f"<p>{html.escape(x)}</p>" for x in said] + [f"<pre>{html.escape(x)}</pre>" for x in worked]
        lines += [f"<p><small>[{', '.join(map(cite_html, c.sources))}]</small></p>"] if c.sources else []
        where = f"{cite_html(c.article)}, {html.escape(c.section)}"
        return styled(
            f'<div class="sb-why tex2jax_ignore"><p><b>{html.escape(c.key)}: {mark(c.verdict)}</b></p>'
            f"<blockquote>{html.escape(c.words)}<br><small>{where}</small></blockquote>{''.join(lines)}</div>"
        )


def mark(verdict: str) -> Markup:
    """Return a verdict as HTML; the style sheet gives it a colour."""
    return Markup(f'<span class="sb-verdict" data-verdict="{verdict.replace(" ", "-")}">{html.escape(verdict)}</span>')


def _left_cell(text: str) -> Markup:
    return table_cell(text, class_="sb-said")


class Judged:
    """A table of claims: each article's sentence, the verdict on it, and the correction."""

    def __init__(self, found: Iterable[Claim]):
        self.claims = tuple(found)
        for claim in self.claims:
            claim.confirm()

    def __repr__(self):
        return aligned([[x.key, x.verdict, x.correction] for x in self.claims], gap="  ")

    def _repr_html_(self):
        lines = [[f"“{x.words}”", _left_cell(mark(x.verdict)), _left_cell(x.correction)] for x in self.claims]
        return styled(page_table(["the article", "verdict", "what holds"], lines, kind="sb-judged"))


class ByKey(Mapping):
    """Things by key, read on first use.  Subclasses give the name of an entry (`called`) and read all entries.

    An unknown key raises KeyError, naming the nearest.
    """

    called = ""

    def __init__(self, given: Mapping | None = None):
        self._given = given

    @cached_property
    def _found(self) -> dict:
        return self._read()

    def __getitem__(self, key):
        if word(key, self.called) not in self._found:
            name = self.called.partition(" ")[2]
            raise UnknownKey(f"no {name} is called {quoted(key)}; {nearest(key, self._found)}")
        return self._found[key]

    def __contains__(self, key):
        return isinstance(key, str) and key in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self):
        return len(self._found)


class Counts(ByKey):
    """Number of claims per article and verdict."""

    called = "an article"

    def __init__(self, counts: dict[str, Counter], computed: int):
        self._found, self.computed = counts, computed

    @property
    def total(self) -> Counter:
        """The counts of all articles together."""
        return sum(self._found.values(), Counter())

    def _lines(self):
        rows = {**self._found, "all": self.total}
        return [[name, *(str(x[v]) for v in VERDICTS), str(x.total())] for name, x in rows.items()]

    def sentence(self, article: str = "") -> str:
        """Return the counts as a sentence, for one article or for all together."""
        counted = self[article] if article else self.total
        *most, last = (f"{counted[v]} {words[counted[v] > 1]}" for v, words in _SAID.items() if counted[v])
        return f"Of {counted.total()} claims {', '.join(most)}{', and ' if most else ''}{last}."

    def __repr__(self):
        return aligned([["", *VERDICTS, "all"], *self._lines()], right=True, gap="  ")

    def _repr_html_(self):
        return styled(page_table(["", *VERDICTS, "all"], self._lines(), f"{self.computed} recomputed now"))


class Claims(ByKey):
    """All claims by key.  The files are read on first use."""

    called = "a claim"

    def _read(self) -> dict[str, Claim]:
        given = self._given or {x: stored(x) for x in ARTICLES}
        found = {}
        for article, stanzas in given.items():
            for key, stanza in stanzas.items():
                if key in found:
                    raise ValueError(f"{article}.toml: [{key}] is entered twice")
                found[key] = _claim(article, key, stanza)
        return found

    def of(self, article: str) -> dict[str, Claim]:
        """Return the claims of one article by key, in the article's order."""
        if article not in ARTICLES:
            raise UnknownKey(f"no article is called {quoted(article)}; {nearest(article, ARTICLES)}")
        return {key: x for key, x in self.items() if x.article == article}

    def judged_in(self, chapter: str) -> Judged:
        """Return the table of the claims that a chapter judges. `chapter` is the name of its file.

        Raises ValueError, as `verdicts` does, if the numbers lead to another verdict.
        """
        chapters = sorted({x.chapter for x in self.values() if x.chapter})
        if chapter not in chapters:
            raise UnknownKey(f"no claim is judged in a chapter {quoted(chapter)}; {nearest(chapter, chapters)}")
        return Judged(x for x in self.values() if x.chapter == chapter)

    def verdicts(self) -> Counts:
        """Recompute every claim that has a check, and return the counts by article and verdict.

        Raises ValueError, naming the claim and its numbers, if the numbers lead to another verdict.
        """
        for claim in self.values():
            claim.confirm()
        return self._counts(sum(bool(x.checks) for x in self.values()))

    def _counts(self, computed: int) -> Counts:
        by_article = {x: Counter(c.verdict for c in self.values() if c.article == x) for x in ARTICLES}
        return Counts({x: n for x, n in by_article.items() if n}, computed)

    def __repr__(self):
        return aligned([[key, x.verdict, x.quotation[:80]] for key, x in self.items()], gap="  ")

    def _repr_html_(self):
        heads, counted = ["claim", "verdict", "the sentence", "what holds"], {}
        for key, x in self.items():
            row = [key, _left_cell(mark(x.verdict)), f"“{x.words}”", _left_cell(x.correction)]
            counted.setdefault(x.article, []).append(row)
        several = (folded(page_table(heads, x), f"{len(x)} claims of {cite(name)}") for name, x in counted.items())
        return styled(f"<p>{html.escape(self._counts(0).sentence())}</p>", *several)


def _claim(article, key, stanza):
    where = f"{article}.toml, [{key}]"
    if stray := sorted(stanza.keys() - {*_TEXTS, "sources", "checks"}):
        raise ValueError(f"{where}: a claim has no {quoted(stray[0])}; {nearest(stray[0], _TEXTS)}")
    if lacking := [x for x in _NEEDED if not stanza.get(x)]:
        raise ValueError(f"{where}: {', '.join(lacking)} is missing")
    if stanza["verdict"] not in VERDICTS:
        raise ValueError(f"{where}: {quoted(stanza['verdict'])} is no verdict; {nearest(stanza['verdict'], VERDICTS)}")
    for source in stanza.get("sources", []):
        if source.partition(" ")[0] not in SOURCES:
            raise ValueError(f"{where}: the source {quoted(source)} is not among the sources")
    try:
        checks = tuple(map(read, stanza.get("checks", [])))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if bool(checks) == bool(stanza.get("uncomputed")):
        raise ValueError(f"{where}: a claim has either checks or, in words, why it is uncomputed")
    texts = {name: stanza.get(name, "") for name in _TEXTS}
    return Claim(key, article, **texts, sources=tuple(stanza.get("sources", [])), checks=checks)


claims = Claims()
