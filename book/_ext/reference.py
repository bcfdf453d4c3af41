"""Write the reference pages from the package itself: book/reference/*.md, renewed at every build."""

import importlib
import inspect
import json
import pkgutil
import re
import tomllib
from functools import cache
from itertools import groupby
from pathlib import Path

import yaml

import scalebook
from scalebook import tables
from scalebook.claims import VERDICTS, claims
from scalebook.language import FORMULAS, NOTATION, SOURCES
from scalebook.pipeline import SCHEDULES
from scalebook.training import SHARDINGS, WORDS

BOOK = Path(__file__).parents[1]
TABLES = BOOK.parent / "scalebook" / "tables"


def plain(text: str) -> str:
    """Text that Markdown shows as it stands, in a table too.

    >>> plain("a*b | <c>")
    'a\\\\*b \\\\| \\\\<c\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>#|$])", r"\\\1", text)


def notation() -> str:
    """Every letter: how it is printed, its word in code, its unit and its meaning; and every word of a strategy."""
    rows = [
        f"| ${x.tex}$ | `{x.name}` | {plain(x.unit) or 'count'} | {plain(x.meaning)} |"
        for x in sorted(NOTATION.values(), key=lambda x: x.name)
    ]
    return "\n".join(
        [
            "# Notation",
            "",
            "One word, one letter, one unit, everywhere: in code, on sliders, in tables and in print.",
            "Bandwidths are per direction and per device; peaks are dense.",
            "",
            "| Letter | Word | Unit | Meaning |",
            "| :-- | :-- | :-- | :-- |",
            *rows,
            "",
            "## Words",
            "",
            "The choices of a strategy that are names. The first of a word's values is the usual one.",
            "",
            "| Word | Values | Meaning |",
            "| :-- | :-- | :-- |",
            *(f"| `{x.name}` | {', '.join(f'`{v}`' for v in x.values)} | {plain(x.meaning)} |" for x in WORDS.values()),
            "",
            "## Schedules",
            "",
            "| Schedule | Bubble | Held | Copies of a stage | Source |",
            "| :-- | :-- | :-- | :-- | :-- |",
            *(
                f"| `{x}` | {linked(x.bubble)} | {linked(x.held)} | {x.copies} | {cited([x.source])} |"
                for x in SCHEDULES.values()
            ),
            "",
            "## Shardings",
            "",
            "What devices of other tokens keep of a model's state: "
            "dealt out to all of them, to a group, or each the whole.",
            "",
            "| Sharding | Weights | Gradients | Optimizer | Source |",
            "| :-- | :-- | :-- | :-- | :-- |",
            *(
                f"| `{x}` | "
                + " | ".join(" and ".join(DEALT[to] for to in x.parts(what)) for what in STATE)
                + f" | {cited([x.source])} |"
                for x in SHARDINGS.values()
            ),
            "",
        ]
    )


STATE = ("weight", "gradient", "optimizer")
DEALT = {"one": "whole", "all": "over all", "group": "over a group"}


def linked(f) -> str:
    """A formula's name, leading to its entry."""
    return f"[`{f.name}`](#formula-{f.name})"


@cache
def chapter(stem: str) -> str:
    """A link to a chapter by the name of its file, under its own heading."""
    [path] = (BOOK.parent / "notebooks").rglob(f"{stem}.ipynb")
    first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
    return f"[{first.splitlines()[0].removeprefix('# ')}](../../{path.relative_to(BOOK.parent)})"


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def short(article: str) -> str:
    """The title of an article up to its first colon or comma."""
    return plain(re.split("[:,]", SOURCES[article]["title"])[0])


def claim(said) -> list[str]:
    """One sentence of an article: its verdict, what holds, the two numbers, and where the book speaks of it."""
    points = [x for c in said.checks for x in (c.main, *c.others.values()) if x.formula]
    used = dict.fromkeys(f"[`{name}`](#formula-{name})" for name in (x.formula.rpartition(".")[2] for x in points))
    where = chapter(said.chapter) if said.chapter else f"No chapter yet; planned: {said.missing}"
    lines = [
        f"*{said.verdict.capitalize()}.* {plain(said.correction)}",
        *(plain(" ".join(filter(None, [c.reads, capital(c.said()) + "."]))) for c in said.checks),
        *([f"Not computed: {plain(said.uncomputed)}."] if said.uncomputed else []),
        f"{where} · " + " · ".join([*used, *([cited(said.sources)] if said.sources else []), f"`{said.key}`"]),
    ]
    first, *more = lines
    return [f"(claim-{said.key})=", f"“{plain(said.quotation)}”", f": {first}", *(f"\n  {x}" for x in more), ""]


def what_articles_claim() -> str:
    """Every checkable sentence of the four articles, by article and section, and the counts of verdicts."""
    counts = claims.verdicts()
    rows = {f"[{short(x)}](#claims-of-{x})": n for x, n in counts.items()} | {"All": counts.total}
    lines = [
        "# What the articles claim",
        "",
        "The book follows four articles that have nothing to do with each other. These are their sentences that can be",
        f"checked, each with one of seven verdicts. {counts.sentence()}",
        "",
        f"{counts.computed} are computed: the build works out their numbers anew, and fails where another verdict",
        "follows. How a verdict follows from two numbers is said in",
        '`scalebook.claims.check`; `claims["2e28"].why()` shows the formula with its numbers.',
        "",
        f"| Article | {' | '.join(x.capitalize() for x in VERDICTS)} | All |",
        f"| :-- |{' --: |' * (len(VERDICTS) + 1)}",
        *(f"| {name} | {' | '.join(str(n[x]) for x in VERDICTS)} | {n.total()} |" for name, n in rows.items()),
        "",
    ]
    for article in counts:
        lines += [
            f"(claims-of-{article})=",
            f"## {plain(SOURCES[article]['title'])}",
            "",
            f"Source: {cited([article])}",
            "",
        ]
        for section, said in groupby(claims.of(article).values(), key=lambda x: x.section):
            lines += [f"### {plain(section)}", "", *(line for x in said for line in claim(x))]
    return "\n".join(lines)


def bibliography() -> str:
    """Every source that a formula, a table or a chapter names."""
    sources = {}
    for file in sorted(TABLES.glob("sources*.toml")):
        sources |= tomllib.loads(file.read_text(encoding="utf-8"))
    lines = ["# Bibliography", "", "What the formulas and the tables rest on, by key.", ""]
    for key, source in sorted(sources.items()):
        title = plain(source["title"])
        if url := source.get("url"):
            title = f"[{title}](<{url}>)"
        read = f" ({plain(source['read'])})" if source.get("read") else ""
        who = ", ".join(plain(str(source[k])) for k in ("author", "year") if source.get(k))
        lines += [f"(source-{key})=", f"`{key}`", f": {title}.{f' {who}.' if who else ''}{read}", ""]
    return "\n".join(lines)


@cache
def repository() -> str:
    return yaml.safe_load((BOOK / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]


def cited(sources) -> str:
    """Sources as links into the bibliography."""
    keys = [source.partition(" ")[::2] for source in sources]
    return ", ".join(f"[{plain(key)}](#source-{key}) {plain(place)}".strip() for key, place in keys)


def modules():
    """Every module of the package that states formulas, in the order of the book."""
    names = [m.name for m in pkgutil.walk_packages(scalebook.__path__, "scalebook.") if ".display" not in m.name]
    found = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    stated = {m.__name__: [f for f in FORMULAS.values() if f.__module__ == m.__name__] for m in found}
    found = sorted(
        (m for m in found if stated[m.__name__]), key=lambda m: scalebook.ROOMS.index(m.__name__.split(".")[1])
    )
    return [(m, stated[m.__name__]) for m in found]


def entry(f) -> list[str]:
    """One formula: its equation, meaning, unit, letters, sources and code."""
    letters = ", ".join(f"${NOTATION[x].tex}$ `{x}`" for x in f.inputs)
    file, line = inspect.getsourcefile(f.__wrapped__), inspect.getsourcelines(f.__wrapped__)[1]
    code = f"{repository()}/blob/main/{Path(file).relative_to(BOOK.parent)}#L{line}"
    prose = f.__doc__.split(">>>")[0].strip()
    holds = "; ".join(plain(x.words) for x in f.domain)
    usual = ", ".join(f"[`{g.name}`](#formula-{g.name})" for g in f.given)
    return [
        f"(formula-{f.name})=",
        f"### `{f.name}`",
        "",
        f"$${f.latex}$$",
        "",
        prose,
        "",
        f"- gives ${NOTATION[f.letter].tex}$ `{f.letter}`, {plain(NOTATION[f.letter].meaning)}, "
        f"in {plain(f.unit) or 'units of one'}",
        f"- of {letters}",
        *([f"- holds for {holds}"] if f.domain else []),
        *([f"- usual formulas for letters that are not known: {usual}"] if usual else []),
        f"- source {cited(f.sources)}",
        f"- code [{Path(file).name}, line {line}](<{code}>)",
        "",
    ]


def formulas() -> str:
    lines = [
        "# Formulas",
        "",
        "Every formula of the package, written from the object that readers call. Each is one expression: the",
        "equation here, the number in Python, the array in NumPy and the JavaScript of the calculators.",
        "",
    ]
    for module, stated in modules():
        title = module.__doc__.strip().splitlines()[0].rstrip(".")
        lines += [f"## `{module.__name__}`", "", title + ".", "", *(x for f in stated for x in entry(f))]
    return "\n".join(lines)


def notes(rows) -> list[str]:
    """The cells of a table that carry a note, in words: what hovering says, for those who cannot hover."""
    said = []
    for key, row in rows.items():
        cells = {n: c for n, c in row.cells.items() if c.note and not c.formula and n != "peak_flops"}
        if cells:
            said += [f"**{plain(row.name)}** `{key}`", ""]
            said += [f"- {n.replace('_', ' ')}: {plain(c.note)} ({cited([c.source])})" for n, c in cells.items()]
            said += [""]
    return ["## Notes", "", "::::{dropdown} What the asterisks say", *said, "::::"] if said else []


def table(name: str, title: str, said: str):
    """The page of one table, with a source for every cell and the notes in words."""

    def page() -> str:
        rows = getattr(tables, name)
        html = rows._repr_html_().replace("\n", " ")
        return "\n".join([f"# {title}", "", said, "", f'<div class="sb-wide">{html}</div>', "", *notes(rows), ""])

    return page


PAGES = {
    "notation": notation,
    "formulas": formulas,
    "accelerators": table("accelerators", "Accelerators", "Per device: peaks are dense, bandwidths in one direction. "
                                                          "An "
                          "asterisk marks a figure with a note."),
    "links": table("links", "Links", "Bandwidths in one direction, per device or per socket as the name says."),
    "models": table("models", "Models", "Shapes as published, and what follows from them."),
    "precisions": table("precisions", "Precisions", "Bits per value, scales included, "
                                                    "and the state that training keeps."),
    "engines": table("engines", "Engines", "What a serving engine adds to the work, and what it reserves by default."),
    "runs": table("runs", "Runs", "What makers publish of the final training of a model."),
    "ranges": table("ranges", "Ranges", "What the factors of a run's cost have been: cheap, as usual, and dear."),
    "claims": what_articles_claim,
    "bibliography": bibliography,
}  # fmt: skip


def write(app, config):
    folder = BOOK / "reference"
    folder.mkdir(exist_ok=True)
    for old in set(folder.glob("*.md")) - {folder / f"{name}.md" for name in PAGES}:
        old.unlink()
    for name, page in PAGES.items():
        file, text = folder / f"{name}.md", page()
        if not file.exists() or file.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
            file.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("config-inited", write, priority=100)  # before the table of contents is read
    return {"parallel_read_safe": True, "parallel_write_safe": True}
