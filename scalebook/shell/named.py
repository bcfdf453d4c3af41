"""Look things up by name, as a command line or a CSV file gives them: functions, rows of tables, values of inputs.

>>> priced(find("decoding"), *read(find("decoding"), {"weight_bits": "16"}, model="llama3_8b")).weight_memory
16060000000.0
>>> find("decodin")
Traceback (most recent call last):
    ...
LookupError: nothing to call is named 'decodin'; did you mean 'decoding', 'decode_intensity' or 'decoded_tokens'?
"""

import importlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from scalebook import tables
from scalebook.language import FORMULAS, NOTATION, Formula, Row, Sheet
from scalebook.language.guide import GuidedMethod
from scalebook.language.notation import either, nearest, quoted, refuse_stray, word
from scalebook.language.row import quantity
from scalebook.search import Searchable
from scalebook.search.arguments import choice, plain
from scalebook.search.space import searchable

__all__ = [
    "FILES", "ROWS", "WHOLE", "find", "home", "is_limit", "is_thing", "parts_of_serve", "priced", "read", "row",
    "texts_of", "things", "things_with", "value", "words",
]  # fmt: skip

ROWS = {"model": "models", "device": "accelerators", "link": "links", "cluster": "clusters"}  # kind of a row: its table
WHOLE = {"accelerators": "device", "frameworks": "framework", "engines": "engine"}  # tables that a search takes whole
FILES = {".toml": "device", ".json": "model"}  # kind of row in a reader's own file, by suffix
# Rooms and files that hold nothing to call.
_ABOVE = ("calculon", "shell", "measurements", "measure", "display", "book", "__main__.py")
# What is asked most and where it is: to find these, no other module is imported.
_FIRST = {"training_step": "training", "serve": "inference", "decoding": "inference", "rl_step": "rl"}


def is_thing(x) -> bool:
    """Return True for what commands can call with rows and inputs: a sheet, a formula or a Searchable."""
    return isinstance(x, Sheet | Formula) or (isinstance(x, Searchable) and callable(x) and not isinstance(x, type))


@cache
def things() -> Mapping[str, Sheet | Formula | Searchable]:
    """Return everything that commands can call, by name: training_step, serve and all sheets first, then formulas."""
    found, folder = {}, Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        if inside.parts[0] not in _ABOVE:
            dotted = ".".join(["scalebook", *inside.with_suffix("").parts]).removesuffix(".__init__")
            own = [(n, x) for n, x in vars(importlib.import_module(dotted)).items() if n[0] != "_"]
            found |= {n: x for n, x in own if is_thing(x) and not isinstance(x, Formula)}
    stated = {n: f for n, f in FORMULAS.items() if f.__module__.startswith("scalebook.")}
    return dict(sorted(found.items())) | dict(sorted(stated.items()))


@cache
def home(name: str) -> str:
    """Return the module to import a thing from, such as "scalebook.training" for "training_step".

    If several modules export it, the one with the shortest name counts. Raises LookupError for an unknown name.

    >>> home("training_step"), home("linear_operator")
    ('scalebook.training', 'scalebook.machine.operators')
    """
    thing = find(name)
    return next(x for x in _exported(name) if getattr(sys.modules[x], name) is thing)


def _exported(name: str) -> list[str]:
    """Return the imported modules that export a name, the one with the shortest name first."""
    own = {x: vars(module) for x, module in [*sys.modules.items()] if x.startswith("scalebook.")}
    places = [x for x, known in own.items() if name in known and name in known.get("__all__", ())]
    return sorted(places, key=lambda x: (x.count("."), len(x)))


@cache
def things_with(letter: str) -> tuple[str, ...]:
    """Return the names of everything that takes a quantity as input: training_step, serve and decoding first, then
    sheets, then what only a function of a service takes, such as `serve.sessions`, then formulas.

    >>> things_with("hit_share")[:2]
    ('computed_rate', 'found_cost_rented')
    """

    def takes(x):
        if not isinstance(x, Sheet | Formula):
            return letter in x.letters
        return letter in x.parameters and letter in x.inputs

    searches = ("a search of training_step",) if letter == "memory_margin" else ()
    parts = [n for n, x in parts_of_serve().items() if letter in x.own and letter not in x.owner.takes]
    found = [*(name for name in _in_order() if takes(things()[name])), *parts]
    return (*searches, *sorted(found, key=lambda n: isinstance(things().get(n), Formula)))  # sheets before parts


@cache
def _in_order() -> list[str]:
    first = "training_step", "serve", "decode_step"
    return sorted(things(), key=lambda n: (isinstance(things()[n], Formula), (*first, n).index(n), n))


def find(name: str) -> Sheet | Formula | Searchable:
    """Return the sheet, formula or Searchable of this name.  Raises LookupError, with the nearest names, for others."""
    if word(name, "what is called") in _FIRST:
        return getattr(importlib.import_module(f"scalebook.{_FIRST[name]}"), name)
    known = parts_of_serve() if name.startswith("serve.") else things()
    if name not in known:
        if where := _exported(name):
            raise LookupError(f"{name} is called in Python alone: from {where[0]} import {name}")
        near = nearest(name, [*known, "search", *ROWS.values(), *WHOLE], ["search", *_FIRST])
        raise LookupError(f"nothing to call is named {quoted(name)}; {near}")
    return known[name]


def parts_of_serve() -> dict[str, GuidedMethod]:
    """Return the functions of a service, such as `serve.capacity`, by name."""
    return {x.name: x for x in vars(find("serve")).values() if isinstance(x, GuidedMethod)}


def row(name: str, kinds=tuple(ROWS)) -> Row:
    """Return a row of the tables by its key, such as "h100".  Raises LookupError, with the nearest keys, for another.

    A device may also be the path of your own TOML file, as `python -m scalebook.measure --save my.toml` writes it.  A
    model may be the path of a Hugging Face config.json.

    >>> row("h100").name, row("h100@fp8").name
    ('NVIDIA H100 SXM', 'NVIDIA H100 SXM at fp8')
    """
    if (kind := FILES.get(Path(word(name, "a row")).suffix)) in kinds:
        return getattr(tables, ROWS[kind]).read(name)
    homes = [getattr(tables, ROWS[kind]) for kind in kinds]
    key, at, precision = word(name, "a row").partition("@")
    found = next((x[key] for x in homes if key in x), None)  # no other row is made
    if found is None or (at and not hasattr(found, "at")):
        raise LookupError(f"no {either(kinds)} is called {quoted(name)}; {nearest(key, {*chain(*homes)})}")
    return found.at(precision) if at else found


def words(thing) -> Mapping[str, tuple]:
    """Return the options of a Searchable (such as `serve`) with their choices; empty for a sheet or formula."""
    return {} if isinstance(thing, Sheet | Formula) else getattr(thing, "owner", thing).space.words


def texts_of(thing) -> Mapping[str, str | tuple]:
    """Return what a function of a service takes besides letters and words, with defaults: a text, or texts joined by +.

    >>> texts_of(find("serve.sessions"))
    {'pauses': 'lognormal', 'tiers': ()}
    """
    own = thing.own.items() if isinstance(thing, GuidedMethod) else ()
    return {n: x.default for n, x in own if n not in NOTATION}


def is_limit(text: str) -> bool:
    """Return True for a limit such as "<30 ms", which is no value."""
    return text.lstrip()[:1] in ("<", ">", "≤", "≥")


def value(thing, name: str, text: str, more: Iterable[str] = ()):
    """Read the value of an input of `thing` from text such as "8192", "2.5 s" or "full"; numbers in base units.

    `more` are further names that the call takes.  A limit such as "<30 ms" stays a text, which what is called reads or
    refuses.  Raises LookupError if `name` is not an input, and ValueError for a text that does not fit it.

    >>> value(find("training_step"), "step_time", "2.5 s"), value(find("training_step"), "sequence_parallel", "true")
    (2.5, True)
    """
    if name in words(thing):
        by_text = {str(x).lower(): x for x in words(thing)[name]}
        return choice(getattr(thing, "owner", thing).space, name, by_text.get(text.lower(), text.lower()))
    if name in (own := texts_of(thing)):
        return text if isinstance(own[name], str) else [x for x in text.split("+") if x != "none"]
    if name not in NOTATION:
        takes = next(getattr(thing, x) for x in ("letters", "takes", "inputs") if hasattr(thing, x))
        refuse_stray(thing.name, name, {*takes, *words(thing), *own, *more})
    return text if is_limit(text) else quantity(name, plain(text))


def read(thing, texts: Mapping[str, str], **rows: str) -> tuple[tuple[Row, ...], dict]:
    """Read rows and inputs for a call of `thing` from texts: return (rows, inputs by name).

    `rows` names a model, a device, its precision, its cluster, and a link.  Raises as `row` and `value` do, and
    LookupError for a precision that the device lacks.
    """
    found = {kind: row(name, [kind]) for kind, name in rows.items() if kind in ROWS}
    for kind, change in (("precision", "at"), ("cluster", "on")):
        if (other := found.pop(kind, rows.get(kind))) is not None:
            if "device" not in found:
                raise LookupError(f"{kind}={rows[kind]} is of a device: name one, such as h100")
            found["device"] = getattr(found["device"], change)(other)
    return tuple(found.values()), {name: value(thing, name, text) for name, text in texts.items()}


def priced(thing, rows: tuple[Row, ...], letters: Mapping) -> Row:
    """Call a sheet, formula or Searchable with rows and inputs.  Return the result as a row, also for a formula.

    A function of a service returns its own result.
    """
    if isinstance(thing, GuidedMethod):
        return thing(*rows, **letters)
    return searchable(thing, rows, letters)(*rows, **letters)
