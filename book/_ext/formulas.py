"""The formulas and the letters as pages: an index that can be filtered, a page a subject, and the notation by group."""

from collections import defaultdict
from doctest import DocTestParser
from html import escape
from itertools import chain
from pathlib import Path

from linking import BOOK, capital, cited, imported, linked, plain, repository

import scalebook
from scalebook.book import claims
from scalebook.language import FORMULAS, NOTATION
from scalebook.language.notation import GROUPS


def first_sentence(module) -> str:
    """What a module is: the first sentence of its docstring, and of it what stands before a semicolon."""
    return module.__doc__.strip().partition("\n\n")[0].replace("\n", " ").partition(";")[0].rstrip(".")


def by_room() -> dict[str, dict]:
    """By room, in the order of the book: the modules that state formulas, and what each states."""
    modules, stated = imported(), defaultdict(list)
    for f in FORMULAS.values():
        stated[f.__module__].append(f)
    found = defaultdict(dict)
    for module in modules:
        if module.__name__ in stated:
            room = module.__name__.removeprefix("scalebook.").removeprefix("book.").partition(".")[0]
            found[room][module] = stated[module.__name__]
    return {room: found[room] for room in (*scalebook.ROOMS, "claims") if room in found}


def package(room: str):
    """The package of a room; claims are the book's."""
    return claims if room == "claims" else getattr(scalebook, room)


def title(room: str) -> str:
    """A room's name as its own page has it: what its docstring says before the colon."""
    said = first_sentence(package(room))
    head = said.partition(":")[0]
    return head if ":" in said and len(head) < 40 else capital(room)


def letter(name: str) -> str:
    """A letter, printed and in code, leading from a page of formulas to the notation."""
    return f'${NOTATION[name].tex}$ <a href="../notation.html#letter-{name}"><code>{name}</code></a>'


def worked(f) -> list[str]:
    """The first example of a formula's docstring that calls it, as it stands there and is tested."""
    for example in DocTestParser().get_examples(f.__doc__ or ""):
        if example.want and f"{f.name}(" in example.source:
            return ["```python", f">>> {example.source.rstrip()}", example.want.rstrip(), "```", ""]
    return []


def entry(f) -> list[str]:
    """One formula: its equation, meaning, unit, letters, an example, sources and code."""
    file, line = f.place
    code = f"{repository()}/blob/main/{Path(file).relative_to(BOOK.parent)}#L{line}"
    given = NOTATION[f.letter]
    holds = "; ".join(plain(x.words) for x in f.domain)
    return [
        "```{index} ! " + f.name.replace("_", " "),
        "```",
        f"(formula-{f.name})=",
        f"### {capital(plain(given.meaning))}: `{f.name}`",
        "",
        f"$${f.narrow or f.latex}$$",
        "",
        *(["::::{dropdown} In one line", f"$${f.latex}$$", "::::", ""] if f.narrow else []),
        f.__doc__.split(">>>")[0].strip(),
        "",
        *worked(f),
        f"- gives {letter(f.letter)}, in {plain(f.unit) or 'units of one'}",
        *([f"- of {', '.join(map(letter, f.inputs))}"] if f.inputs else ["- a constant"]),
        *([f"- holds for {holds}"] if f.domain else []),
        *([f"- usual formulas for letters that are not known: {', '.join(map(linked, f.given))}"] if f.given else []),
        f"- source {cited(f.sources)}",
        f"- code [{Path(file).name}, line {line}](<{code}>)",
        "",
    ]


def subject(room: str, modules: dict) -> str:
    """The page of one room: its modules' formulas."""
    lines = [f"# {title(room)}: formulas", "", f"{first_sentence(package(room))}.", ""]
    for module, stated in modules.items():
        lines += [
            f"## {first_sentence(module)}",
            "",
            f"`{module.__name__}`",
            "",
            *(x for f in stated for x in entry(f)),
        ]
    return "\n".join(lines)


def index() -> str:
    """Every formula in one table, by subject, with a filter; an address that names a formula goes on to its entry."""
    rows = []
    for room, modules in by_room().items():
        for f in chain.from_iterable(modules.values()):
            name = f.name.replace("_", "-")
            rows.append(
                f'<tr id="formula-{name}"><td><a href="formulas/{room}.html#formula-{name}">{code(f.name)}</a>'
                f"</td><td>{escape(NOTATION[f.letter].meaning)}</td><td>{escape(f.unit)}</td>"
                f"<td>{escape(title(room))}</td></tr>"
            )
    pages = ", ".join(f"[{title(room)}](formulas/{room}.md)" for room in by_room())
    return "\n".join(
        [
            "# Formulas",
            "",
            f"{len(rows)} formulas, each written from the object that readers call: one expression is the equation on",
            "its page, the number in Python, the array in NumPy and the JavaScript of the calculators. By subject:",
            f"{pages}.",
            "",
            '<form class="sb-filter" data-rows="#formula-index tbody tr" role="search" aria-label="Formulas" hidden>'
            '<label>Words <input type="search" name="words" autocomplete="off" placeholder="kv cache"></label>'
            '<output aria-live="polite"></output></form>',
            "",
            '<div class="sb-table sb-index" id="formula-index"><table><thead><tr><th>Formula</th><th>Gives</th>'
            f"<th>Unit</th><th>Subject</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>",
            "",
        ]
    )


def formula_pages() -> dict[str, str]:
    """The page of each subject, by its name."""
    return {room: subject(room, modules) for room, modules in by_room().items()}


def groups() -> list[tuple[str, list[str]]]:
    """The letters by group, in the notation's own order; then those that no group has."""
    imported()
    rest = sorted(set(NOTATION) - {*chain(*GROUPS.values())})
    return [*GROUPS.items()] + ([("Other letters", rest)] if rest else [])


def uses() -> tuple[dict, dict]:
    """By letter: the formulas that give it, and how many use it."""
    given, used = defaultdict(list), defaultdict(int)
    for f in FORMULAS.values():
        given[f.letter].append(f)
        for x in f.inputs:
            used[x] += 1
    return given, used


def code(name: str) -> str:
    """A word that breaks after its underscores only.

    >>> code("token_time")
    '<code class="sb-breaks">token_<wbr>time</code>'
    """
    return f'<code class="sb-breaks">{name.replace("_", "_<wbr>")}</code>'


def letters() -> list[str]:
    """A table a group: letter, word, unit, meaning, the formulas that give it, and how many use it."""
    given, used = uses()
    lines = []
    for head, names in groups():
        lines += [f"## {head}", "", "| Letter | Word | Unit | Meaning | Given by | Used in |"]
        lines += ["| :-- | :-- | :-- | :-- | :-- | --: |"]
        for name in names:
            x, unit = NOTATION[name], plain(NOTATION[name].unit) or "count"
            by = ", ".join(f"[{code(f.name)}](#formula-{f.name})" for f in given[name][:3])
            by += " …" if len(given[name]) > 3 else ""
            lines.append(
                f'| <a id="letter-{name}"></a>${x.tex}$ | {code(name)} | {unit} | {plain(x.meaning)} '
                f"| {by or '–'} | {used[name] or '–'} |"
            )
        lines.append("")
    return lines


def letter_card(most: int = 30) -> list[str]:
    """The letters that most formulas use, as a table in the notation's order: a card to keep at hand."""
    _, used = uses()
    chosen = sorted(used, key=lambda x: -used[x])[:most]
    lines = ["| Letter | In code | Unit | Meaning |", "| :-- | :-- | :-- | :-- |"]
    for name in (x for _, names in groups() for x in names if x in chosen):
        x = NOTATION[name]
        at = f'<a href="../reference/notation.html#letter-{name}">{code(name)}</a>'
        lines.append(f"| ${x.tex}$ | {at} | {plain(x.unit) or 'count'} | {plain(x.meaning)} |")
    return [*lines, ""]
