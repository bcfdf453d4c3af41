"""`scalebook NAME [ROW ...] [LETTER=VALUE ...]` evaluates a sheet or formula with the rows and values given.

An answer has at most twelve lines; `--all` prints every letter, and `--json` the same as data
(`scalebook/answers/schema.json`).  A search prints a table, or with `--csv` its rows.  `scalebook NAME --help`
prints the letters of what is called.  The command exits with 0 if it has an answer, with 2 if it was asked wrongly, and
with 3 if no strategy fits.

>>> print(main(["decoding", "llama3_8b", "h100", "batch=1", "context=8192", "weight_bits=16", "kv_bits=16"]))
decoding: Llama 3.1 8B, NVIDIA H100 SXM
decode_memory     17.13 GB       memory for decoding: weight_memory 93.7 %, kv_cache 6.3 %
token_time        4.801 ms       time between two tokens of one sequence: memory_time 100.0 %, compute_time 0.4 %
...
--all prints every letter, --json the same as data
"""

import gc
import os
import re
import sys
from pathlib import Path
from textwrap import shorten

# ruff: noqa: E402
# A command soon ends: looking for garbage, and threads of NumPy's library for matrices, would take a fifth of its time.
gc.disable()
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from scalebook import __version__, tables
from scalebook.language import NOTATION, Formula, show
from scalebook.language.notation import either, nearest, quoted
from scalebook.language.parts import breakdowns, part_lines
from scalebook.language.stanzas import tables_of
from scalebook.language.tabular import aligned
from scalebook.search import search
from scalebook.search.space import NothingFits
from scalebook.shell.named import FILES, ROWS, WHOLE, find, is_limit, parts_of_serve, priced, read, things, value, words
from scalebook.shell.sentences import say

gc.freeze()
gc.enable()  # for those who import this module

_STATED = tables_of("scalebook.shell", "overview.toml")["overview"]
EXAMPLES = _STATED["examples"]
_SOUGHT = ("minimize", "maximize", "against")  # what a search takes besides letters: letters' names,
_TEXTS, _COUNTS = ("subject_to", "lift"), ("best", "most")  # texts by commas, and numbers
TABLES = (*ROWS.values(), *WHOLE)
_KINDS = ROWS | {kind: table for table, kind in WHOLE.items()}  # what a key of a table's row is
_LIMIT = re.compile(r"^\s*(\w+)\s*([<>≤≥].*)$")  # a limit as Python has it in subject_to, such as memory <= 70 GB
_FORMS = {"search": ("--csv",), "": ("--all", "--json")}  # what a search and a call can be printed as
_MORE = "--all prints every letter, --json the same as data"
_OPTIONS = ("--all", "--csv", "--json", "--help", "-h", "--version")


def main(arguments: list[str]) -> str:
    """Return what to print. On an error, print what would work; exit with 2 (asked wrongly) or 3 (no strategy fits)."""
    try:
        return _answer(arguments)
    except (LookupError, TypeError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(3 if isinstance(error, NothingFits) else 2)


def _answer(arguments):
    options = [x for x in dict.fromkeys(arguments) if x.startswith("-")]
    first, *rest = [x for x in arguments if x not in options] or [""]
    forms = _FORMS.get(first, () if first in TABLES else _FORMS[""])
    if stray := next((x for x in options if x not in _OPTIONS), None):
        raise LookupError(f"no option is called {quoted(stray)}; {nearest(stray, _OPTIONS)}")
    if "--version" in options:
        return f"scalebook {__version__}"
    if {"-h", "--help"} & {*options} or not first:
        return _help(first)
    if options and (len(options) > 1 or options[0] not in forms):
        raise ValueError(f"{' with '.join(options)} does not go with {first}: {either(forms or ['--help'])} would do")
    if first in TABLES:
        table = getattr(tables, first)
        return "\n\n".join(repr(table[x]) for x in rest) or repr(table)
    return _search(rest, *options) if first == "search" else _call(*_given([first, *rest]), *options)


def _help(name: str) -> str:
    if name in ("", *TABLES):
        return overview()
    return (search if name == "search" else find(name)).__doc__


def overview() -> str:
    """List what can be called, the tables, and the form of a call.

    >>> [line for line in overview().splitlines() if "decoding" in line][0]
    '  decoding         One step of decoding on one device: what it holds, reads and computes, and how long it takes.'
    """
    sheets = {n: x for n, x in things().items() if not isinstance(x, Formula)}
    others = f"{', '.join(parts_of_serve())}, and {len(things()) - len(sheets)} formulas, such as ridge_intensity"
    names = "\n".join(f"  {n:<16} {_first_line(x)}" for n, x in sheets.items())
    some = ", ".join(f"{name} ({len(getattr(tables, name))})" for name in ROWS.values())
    return _STATED["text"].format(names=names, others=others, whole=", ".join(WHOLE), some=some, examples=EXAMPLES)


def _first_line(thing) -> str:
    return shorten((getattr(thing, "doc", thing.__doc__) or "").partition("\n")[0], 100, placeholder=" ...")


def _given(arguments):
    """Return the thing to call, the keys of its rows by kind, and the texts of its letters and words."""
    name, *rest = arguments
    thing, rows, texts = find(name), {}, {}
    for text in rest:
        key, is_letter, given = text.partition("=")
        table = next((x for x in TABLES if text.startswith(f"{x}.") and Path(text).suffix not in FILES), "")
        text = text.removeprefix(f"{table}.")  # as in Python, models.llama3_8b
        stems = [x.partition("@")[0] for x in text.split(",")]  # a search takes several devices
        kinds = (k for k, x in _KINDS.items() if table in ("", x) and all(y in getattr(tables, x) for y in stems))
        kind = key if is_letter else WHOLE.get(text) or next(kinds, FILES.get(Path(text).suffix))
        if kind is None:
            raise LookupError(_no_row(text))
        into = rows if kind in ROWS or kind == "precision" else texts
        if kind in into:
            raise ValueError(f"{kind} is given twice, as {into[kind]} and as {given if is_letter else text}")
        into[kind] = given if is_letter else text
    return thing, rows, texts


def _no_row(text) -> str:
    stems = [stem for table in _KINDS.values() for stem in getattr(tables, table)]
    return f"{quoted(text)} is neither a row of a table nor LETTER=VALUE; {nearest(text, stems)}"


def _call(thing, rows, texts, form="") -> str:
    if whole := [x for x in (*rows.values(), *texts.values()) if x in WHOLE]:
        raise ValueError(f"{whole[0]} is a whole table, which a search takes: search {thing.name} ... {whole[0]}")
    knowns = _rows(thing, rows) if thing.name == "serve.apart" else read(thing, {}, **rows)[0]
    letters = {n: value(thing, n, x) for n, x in texts.items()}
    if isinstance(thing, Formula) and form != "--json":
        return repr(thing.worked(*knowns, **letters)) if rows or texts else f"{thing!r}\n{_first_line(thing)}"
    result = priced(thing, knowns, letters)
    found = getattr(result, "row", result)  # of a capacity, or of two pools
    lacks = found.missing.get(found.answer.letter, "") if found.answer else ""
    if lacks.startswith("needs") and form != "--all":
        said = f": {found.answer.letter} {lacks}" if "device" in rows else " needs a device: give one, such as h100"
        raise TypeError(thing.name + said)
    if form == "--json":
        import json

        return json.dumps(found.to_dict(), indent=1, allow_nan=False)
    head = [] if result is found else [f"{result!r}\n"]
    if found.answer and not form:
        title = found.answer.title
        title = f"{thing.name}: {result!r}; {title.partition(': ')[2]}" if head else title
        return f"{title}\n{found.answer.text(more=_MORE)}"
    if not form:
        return "\n".join(_short(thing, knowns, found))
    lacking = [f"  {n:<22} {why}" for n, why in found.missing.items()]
    return "\n".join([*head, found.listing, *(["", "No value:", *lacking] if lacking else []), *_parts(found)])


def _short(thing, knowns, row) -> list[str]:
    """Return a result in at most twelve lines: what has no value here, then times, memories and other results."""
    sums, own = {n: part_lines(row, n) for n in breakdowns(row)}, row.cells
    computed = [n for n in reversed(own) if own[n].formula]
    read = {i for n in computed for i in own[n].formula.inputs}
    asked = [*getattr(thing, "finds", ()), *sums, *sorted(computed, key=read.__contains__)]
    lines = {n: ("-", why) for n, why in row.missing.items() if not why.startswith("needs")}
    for n in asked:
        if n in own:
            parts = ", ".join(f"{x} {share}" for x, _, share in sums.get(n, ()))
            lines[n] = show(own[n].value, NOTATION[n].unit), NOTATION[n].short + (f": {parts}" if parts else "")
    lines |= {n: ("-", why) for n, why in row.missing.items() if n not in lines}
    title = ": ".join(filter(None, [thing.name, ", ".join(x.name for x in knowns)]))
    return [title, aligned([(n, *x) for n, x in [*lines.items()][:10]], gap="  "), _MORE]


def _parts(row):
    for letter in breakdowns(row):
        made = part_lines(row, letter)
        how = "is the sum of" if row.cells[letter].formula.rhs.is_Add else "is the largest of"
        yield f"\n{letter:<20} {show(row[letter], NOTATION[letter].unit):>9}  {how}"
        yield from (f"  {n:<18} {x:>9}  {share:>7}" for n, x, share in made)


def _search(arguments, form="") -> str:
    if not arguments:
        raise LookupError(_STATED["search"])
    thing, rows, texts = _given([_LIMIT.sub(r"\1=\2", x) for x in arguments])
    asked = {n: texts.pop(n) for n in _SOUGHT if n in texts}
    asked |= {n: [x.strip() for x in texts.pop(n).split(",")] for n in _TEXTS if n in texts}
    asked |= {n: _count(n, texts.pop(n)) for n in _COUNTS if n in texts}
    if "pareto" in texts:
        text = texts.pop("pareto")
        asked["pareto"] = {"true": True, "false": False}.get(text.lower(), text)
    whole = [getattr(tables, own.pop(n)) for own in (rows, texts) for n, x in [*own.items()] if WHOLE.get(x) == n]
    letters = {n: _values(thing, n, text) for n, text in texts.items()}
    found = search(thing, *_rows(thing, rows), *whole, **asked, **letters)
    return found.to_csv().rstrip() if form else repr(found)


def _rows(thing, rows) -> list:
    """Return the rows of a call. Several devices, separated by commas, are a list."""
    devices = rows.get("device", "").split(",")
    cases = [read(thing, {}, **rows | {"device": x} if x else rows)[0] for x in devices]
    return [[*x] if len(x) > 1 and "hbm_bandwidth" in x[0] else x[0] for x in zip(*cases, strict=True)]


def _count(name, text):
    try:
        return int(text) if name == "best" else float(text)
    except ValueError:
        raise ValueError(f"{name} is a number of strategies, such as {name}=10, not {quoted(text)}") from None


def _values(thing, name, text):
    """Read a value, or several separated by commas; a limit or a range such as 1..64 is left to the search."""
    text = text.strip("[]")  # a list as in Python
    if is_limit(text) or (".." in text and name not in words(thing)):
        return text
    texts = re.split(r",(?![^(]*\))", text)  # not inside dict(...)
    found = [value(thing, name, x.strip(), (*_SOUGHT, *_TEXTS, *_COUNTS)) for x in texts]
    return found if len(found) > 1 else found[0]


def command() -> None:
    """Run the console script `scalebook`."""
    gc.disable()
    say(main)


if __name__ == "__main__":
    command()
