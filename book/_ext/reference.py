"""Write pages from the package itself, renewed at every build: book/reference/*.md, and what opens each part."""

import gc
import html
import re
import tomllib
from functools import partial

from appendix import cheat_sheet, glossary, how_to_cite
from articles import opener, what_articles_claim
from formulas import formula_pages, index, letters
from linking import BOOK, cited, linked, plain
from scalebook.book.claims import articles
from trust import trust

from scalebook import tables
from scalebook.language.tabular import plain_page
from scalebook.pipeline import SCHEDULES
from scalebook.training import SHARDINGS, WORDS

TABLES = BOOK.parent / "scalebook" / "tables"


def notation() -> str:
    """Every letter: how it is printed, its word in code, its unit and its meaning; and every word of a strategy."""
    return "\n".join(
        [
            "# Notation",
            "",
            "One word, one letter, one unit, everywhere: in code, on sliders, in tables and in print.",
            "Bandwidths are per direction and per device; peaks are dense.",
            "",
            *letters(),
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
        page = plain_page(rows._repr_html_()).replace("\n", " ")
        return "\n".join([f"# {title}", "", said, "", f'<div class="sb-wide">{page}</div>', "", *notes(rows), ""])

    return page


def libraries() -> str:
    """The page of libraries: each in a fold of its own, with the cells that it has on each device."""
    kinds = {}
    for key, row in tables.libraries.items():
        kinds.setdefault(row.words["library"], []).append(key)
    folds = "".join(_library(word, keys) for word, keys in kinds.items())
    return "\n".join(
        [
            "# Libraries",
            "",
            "A library's kernels reach other figures than a device's own cells say. Name it in a call:",
            f'`accelerators.h100.running("flash_2")`. The table has {len(tables.libraries)} rows of {len(kinds)}',
            "libraries. Open one to see its rows; hover over a value, or follow its mark, for the source.",
            "",
            '<form class="sb-filter" data-rows=".sb-library" role="search" aria-label="Libraries" hidden>'
            '<label>Words <input type="search" name="words" autocomplete="off" placeholder="fp8 h100"></label>'
            '<output aria-live="polite"></output></form>',
            "",
            f'<div class="sb-wide">{folds}</div>',
            "",
            *notes(tables.libraries),
            "",
        ]
    )


def _library(word: str, keys: list[str]) -> str:
    rows = tables.libraries[keys]
    devices = dict.fromkeys(x for row in rows.values() for x in row.words["devices"].split())
    page, _, _ = plain_page(rows._repr_html_()).replace("\n", " ").rpartition("<p>")  # how to read it is said above
    names = [row.name for row in rows.values()]
    name = names[0] if len(names) == 1 else re.sub(r" on [^,]*$", "", min(names, key=len))
    said = ": ".join(filter(None, [f"<code>{word}</code>", html.escape(name)]))
    summary = f"<summary>{said} <small>({', '.join(devices)})</small></summary>"
    return f'<details class="sb-more sb-library">{summary}{page}</details>'


def frameworks() -> str:
    """The page of frameworks: the cells of each, and the choices that it makes where a call says nothing else."""
    names = [x for x in WORDS if any(x in row.words for row in tables.frameworks.values())]
    return "\n".join(
        [
            table("frameworks", "Frameworks", "What a program that trains hides and fuses, and what its host costs. "
                  "Name one in a call: `training_step(model, device, frameworks.nemo, ...)`.")(),
            "## Choices",
            "",
            "What a framework chooses if a call does not say it, and the libraries that it runs.",
            "",
            f"| Framework | {' | '.join(x.replace('_', ' ') for x in names)} | libraries |",
            f"| :-- |{' :-- |' * (len(names) + 1)}",
            *(
                f"| `{key}` | {' | '.join(row.words.get(x, '') for x in names)} "
                f"| {', '.join(f'`{x}`' for x in row.words.get('libraries', '').split())} |"
                for key, row in tables.frameworks.items()
                if any(x in row.words for x in (*names, "libraries"))
            ),
            "",
        ]
    )  # fmt: skip


PAGES = {
    "notation": notation,
    "formulas": index,
    "accelerators": table("accelerators", "Accelerators", "Per device: peaks are dense, bandwidths in one direction. "
                          "An asterisk marks a figure with a note. A column's name sorts by it."),
    "links": table("links", "Links", "Bandwidths in one direction, per device or per socket as the name says."),
    "models": table("models", "Models", "Shapes as published, and what follows from them."),
    "precisions": table("precisions", "Precisions", "Bits per value, scales included, "
                                                    "and the state that training keeps."),
    "engines": table("engines", "Engines", "What a serving engine adds to the work, and what it reserves by default."),
    "frameworks": frameworks,
    "libraries": libraries,
    "clusters": table("clusters", "Clusters", "What a network gives, and how often a node is slow: "
                      "`accelerators.h100.on(clusters.hf_h100)`."),
    "runs": table("runs", "Runs", "What makers publish of the final training of a model."),
    "ranges": table("ranges", "Ranges", "What the factors of a run's cost have been: cheap, as usual, and dear."),
    "claims": what_articles_claim,
    "trust": trust,
    "bibliography": bibliography,
    "glossary": glossary,
    "cheat-sheet": cheat_sheet,
    "how-to-cite": how_to_cite,
}  # fmt: skip


OPENERS = {x.part: partial(opener, key) for key, x in articles.items()}


def write(app, config):
    subjects = {room: lambda text=text: text for room, text in formula_pages().items()}
    folders = {"reference": PAGES, "parts": OPENERS, "reference/formulas": subjects}
    for folder, pages in ((BOOK / name, pages) for name, pages in folders.items()):
        folder.mkdir(parents=True, exist_ok=True)
        for old in set(folder.glob("*.md")) - {folder / f"{name}.md" for name in pages}:
            old.unlink()
        for name, page in pages.items():
            file, text = folder / f"{name}.md", page()
            if not file.exists() or file.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
                file.write_text(text, encoding="utf-8")


def own_script(app, name, template, context, doctree):
    """The page of claims has a filter, those of tables sort; no other page loads what does it."""
    if name == "book/reference/claims":
        app.add_js_file("claims.js", loading_method="defer")
    elif name.startswith("book/reference/"):
        app.add_js_file("tables.js", loading_method="defer")


def setup(app):
    gc.disable()  # a fifth of a build would be spent looking for garbage: 300 MB of it are left to the end
    app.connect("config-inited", write, priority=100)  # before the table of contents is read
    app.connect("html-page-context", own_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
