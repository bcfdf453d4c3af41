"""What the articles claim, as a page that can be filtered, and the page that opens each part with its article."""

import html

from formulas import letter_card
from linking import capital, chapter, cited, plain, stems
from scalebook.book.claims import VERDICTS, articles, claims

from scalebook.language import SOURCES


def kind(verdict: str) -> str:
    """A verdict as the style sheet and the filter name it.

    >>> kind("holds only with sparsity")
    'holds-only-with-sparsity'
    """
    return verdict.replace(" ", "-")


def mark(verdict: str) -> str:
    """A verdict with its colour."""
    return f'<span class="sb-verdict" data-verdict="{kind(verdict)}">{verdict}</span>'


def part(article) -> str:
    """A link to the page that opens the article's part."""
    return f"[Part {article.part[0]}: {plain(article.short)}](../parts/{article.part}.md)"


def claim(said) -> list[str]:
    """One sentence of an article: its verdict, what holds, the two numbers, and where the book speaks of it."""
    points = [x for c in said.checks for x in (c.main, *c.others.values()) if x.formula]
    used = dict.fromkeys(f"[`{name}`](#formula-{name})" for name in (x.formula.rpartition(".")[2] for x in points))
    places = [
        chapter(said.chapter),
        part(articles[said.article]),
        *used,
        *([cited(said.sources)] if said.sources else []),
    ]
    lines = [
        f"{mark(said.verdict).replace(said.verdict + '<', capital(said.verdict) + '.<')} {plain(said.correction)}",
        *(plain(" ".join(filter(None, [c.reads, capital(c.comparison()) + "."]))) for c in said.checks),
        *([f"Not computed: {plain(said.uncomputed)}."] if said.uncomputed else []),
        " · ".join([*places, f"`{said.key}`"]),
    ]
    first, *more = lines
    return [
        f'<div class="sb-claim" data-article="{said.article}" data-verdict="{kind(said.verdict)}">',
        "",
        f"(claim-{said.key})=",
        f"“{plain(said.words)}”",
        f": {first}",
        *(f"\n  {x}" for x in more),
        "",
        "</div>",
        "",
    ]


def bar(counted) -> str:
    """Counts of verdicts as one bar."""
    said = ", ".join(f"{counted[x]} {x}" for x in VERDICTS if counted[x])
    parts = "".join(
        f'<span data-verdict="{kind(x)}" style="flex-grow:{counted[x]}" title="{counted[x]} {x}"></span>'
        for x in VERDICTS
        if counted[x]
    )
    return f'<div class="sb-bar" role="img" aria-label="{said}">{parts}</div>'


def count(n: int, **chosen: str) -> str:
    """A number of claims, leading to the filter that shows them."""
    if not n:
        return "<td>–</td>"
    return f'<td><a href="#{html.escape("&".join(f"{k}={v}" for k, v in chosen.items()))}">{n}</a></td>'


def table_of(counts) -> str:
    """Verdicts by article, each count a choice of the filter."""
    heads = "".join(f'<th scope="col">{html.escape(articles[x].short)}</th>' for x in counts)
    lines = []
    for verdict in VERDICTS:
        cells = "".join(count(n[verdict], article=x, verdict=kind(verdict)) for x, n in counts.items())
        total = count(counts.total[verdict], verdict=kind(verdict))
        lines.append(f'<tr><th scope="row">{mark(verdict)}</th>{cells}{total}</tr>')
    totals = "".join(count(n.total(), article=x) for x, n in counts.items())
    lines.append(f'<tr><th scope="row">all</th>{totals}<td>{counts.total.total()}</td></tr>')
    return (
        '<div class="sb-table sb-counts"><table><thead><tr><td></td>'
        f'{heads}<th scope="col">all</th></tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def choices(options: dict[str, str]) -> str:
    return "".join(f'<option value="{html.escape(x)}">{html.escape(said)}</option>' for x, said in options.items())


def filter_form() -> str:
    """The filter of the page; without its script the page shows every claim and no filter."""
    by_article = {"": "all four", **{x: a.short for x, a in articles.items()}}
    by_verdict = {"": "all seven", **{kind(x): x for x in VERDICTS}}
    return (
        '<form class="sb-filter" role="search" aria-label="Claims" hidden>'
        f'<label>Article <select name="article">{choices(by_article)}</select></label>'
        f'<label>Verdict <select name="verdict">{choices(by_verdict)}</select></label>'
        '<label>Words <input type="search" name="words" autocomplete="off"></label>'
        '<button type="reset">Show all</button>'
        '<output aria-live="polite"></output></form>'
    )


def what_articles_claim() -> str:
    """Every checkable sentence of the four articles, by article and section, and the counts of verdicts."""
    counts = claims.verdicts()
    lines = [
        "# What the articles claim",
        "",
        "The book follows four articles that have nothing to do with each other. These are their sentences that can be",
        f"checked, each with one of seven verdicts. {counts.sentence()}",
        "",
        f"{counts.computed} are computed: the build works out their numbers anew, and fails where another verdict",
        "follows. How a verdict follows from two numbers is said in",
        '`scalebook.book.claims.check`; `claims["2e28"].why()` shows the formula with its numbers.',
        "",
        bar(counts.total),
        "",
        table_of(counts),
        "",
        filter_form(),
        "",
    ]
    for article in counts:
        lines += [
            f"(claims-of-{article})=",
            f"## {plain(SOURCES[article]['title'])}",
            "",
            f"Source: {cited([article])} · {part(articles[article])}",
            "",
        ]
        for heading in articles[article].headings:
            if said := articles[article].claims(heading):
                lines += [f"### {plain(heading.heading)}", "", *(line for x in said for line in claim(x))]
    return "\n".join(lines)


def about(key: str) -> str:
    """Who wrote an article and when, as far as its text says."""
    source = SOURCES[key]
    said = [f"*{plain(source['title'])}*"]
    if url := source.get("url"):
        said = [f"[{said[0]}](<{url}>)"]
    said += [plain(str(source[x])) for x in ("author", "year") if source.get(x)]
    return f"{', '.join(said)} ({plain(source['read'])})." if source.get("read") else f"{', '.join(said)}."


def sections(article) -> list[str]:
    """The article's headings, each with the chapters that follow it, or why none does."""
    lines = ["| Section of the article | Chapters | Claims |", "| :-- | :-- | --: |"]
    for x in article.headings:
        name = f"{'– ' if x.under else ''}{plain(x.heading)}"
        if x.named and x.named != "ours":
            name += f" ({plain(x.named)})"
        where = " · ".join(map(chapter, article.chapters(x))) or f"*not mirrored:* {plain(x.reason)}"
        lines.append(f"| {name} | {where} | {len(article.claims(x)) or '–'} |")
    return lines


def beyond(article) -> list[str]:
    """The chapters of the part that no heading of its article leads to."""
    led_to = {x for heading in article.headings for x in article.chapters(heading)}
    return [chapter(x) for x in stems(article.part) if x not in led_to]


def first_words(sentence: str, most: int = 120) -> str:
    """A sentence cut after a word.

    >>> first_words("one two three", 9)
    'one two …'
    """
    return sentence if len(sentence) <= most else sentence[: most - 1].rpartition(" ")[0] + " …"


def judged(article) -> list[str]:
    """The article's claims, each with its verdict and its chapter."""
    lines = ["| The article says | Verdict | Chapter |", "| :-- | :-- | :-- |"]
    for x in (x for heading in article.headings for x in article.claims(heading)):
        said = plain(first_words(" ".join(x.words.split())))
        lines.append(f"| [“{said}”](#claim-{x.key}) | {mark(x.verdict)} | {chapter(x.chapter)} |")
    return lines


def boxed(table: list[str]) -> list[str]:
    """A table as wide as its style lets it be."""
    return ['<div class="sb-sections">', "", *table, "", "</div>", ""]


def opener(key: str) -> str:
    """The page that opens a part: its article in our words, section by section and claim by claim."""
    article, counts = articles[key], claims.verdicts()
    more = beyond(article)
    ours = ["The text has paragraphs and no headings; the names are ours.", ""]
    return "\n".join(
        [
            f"# Part {article.part[0]} follows: {plain(article.short)}",
            "",
            about(key),
            "",
            '<div class="sb-said">',
            "",
            *(x for line in article.said.splitlines() for x in (line, "")),
            "</div>",
            "",
            "::::{dropdown} Thirty letters that recur in the book",
            *letter_card(),
            "::::",
            "",
            "## Its sections, and our chapters",
            "",
            *(ours if all(x.named == "ours" for x in article.headings) else []),
            *boxed(sections(article)),
            *([f"Beyond the article this part has {' · '.join(more)}.", ""] if more else []),
            "## Its claims, and what holds",
            "",
            counts.sentence(key),
            "",
            bar(counts[key]),
            "",
            *boxed(judged(article)),
            "What holds in place of each, with its numbers, its formula and its source, says",
            f"[What the articles claim](#claims-of-{key}).",
            "",
        ]
    )
