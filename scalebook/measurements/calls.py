"""The public call behind each measured row, as a line of Python that a reader can run and as a value."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache, reduce

import numpy as np

from scalebook import calculon, tables
from scalebook.inference.step import Step
from scalebook.inference.traces import found_in_trace
from scalebook.language import Formula, Row, Sheet
from scalebook.language.row import gather
from scalebook.pipeline.simulation import simulate
from scalebook.shell.named import find, home, things

from .expressions import Empty, expression, names, written

__all__ = ["Call", "Sum", "arrays", "called", "grouped", "imports", "is_array", "priced_calls", "row_of", "shown"]

FUNCTIONS = {"simulate": simulate, "found_in_trace": found_in_trace}  # public functions that are not formulas
# Modules of what calls name beside sheets and formulas.
_TABLES = ("accelerators", "clusters", "engines", "frameworks", "links", "models", "runs")
_HOMES = dict.fromkeys(_TABLES, "scalebook.tables") | {
    "simulate": "scalebook.pipeline", "found_in_trace": "scalebook.inference", "calculon": "scalebook",
}  # fmt: skip
TERMS = ("first", "second", "third", "fourth")  # names of a sum's terms in its `figure`
# Letters in which calls of one layout may differ, whatever their sheet.
_FREE = ("users", "prompt", "output", "batch", "context", "prompts", "read_chunk", "past")


def called(thing: str):
    """Return the object that a call's name means, such as "training_step", "decoding" or "serve.offline"."""
    name, *inside = thing.split(".")
    return FUNCTIONS[name] if name in FUNCTIONS else reduce(getattr, inside, find(name))


def imports(line: str) -> list[str]:
    """Return the import statements that a line of Python with public names of the package needs.

    >>> imports("training_step(models.llama3_8b, accelerators.h100, dp=8).step_time")
    ['from scalebook.tables import accelerators, models', 'from scalebook.training import training_step']
    """
    found: dict[str, list[str]] = {}
    for name in sorted(names(line)):
        if name in _HOMES or name in things():
            found.setdefault(_HOMES.get(name) or home(name), []).append(name)
    return [f"from {place} import {', '.join(own)}" for place, own in sorted(found.items())]


@lru_cache(4096)
def _run(thing: str, rows: tuple, letters: tuple) -> Row:
    plain = _plain if thing in FUNCTIONS else lambda x: x
    return called(thing)(*map(row_of, rows), **{n: plain(x) for n, x in letters})


@dataclass(frozen=True)
class Call:
    """One public call, for example the one behind a measured row: `text` is the line of Python, `answered()` its value.

    `rows` are the positional arguments, each a tuple: a table's name and a key, then a precision (two if experts have
    their own), a cluster and libraries; "shape" with quantities; "formula" with its name; or "calculon" with a function
    and its arguments. `answer` is the expression to compute from the result, such as "step_time". `blend` mixes the
    results for two values of one option; its last entry is the share of the second result.
    """

    thing: str
    rows: tuple[tuple, ...]
    letters: Mapping = field(default_factory=dict)
    answer: str = "step_time"
    blend: tuple | None = None
    least: tuple[str, str] = ("", "")  # roofline and peak, written like `answer`

    def _run_text(self, **more) -> str:
        said = [_row_text(x) for x in self.rows]
        said += [f"{n}={shown(x)}" for n, x in (self.letters | more).items()]
        return f"{self.thing}({', '.join(said)})"

    @property
    def text(self) -> str:
        """The line of Python that a reader types for this call."""
        word, values, share = self.blend or ("", ("", ""), 0)
        first = self._run_text(**({word: values[0]} if self.blend else {}))
        if isinstance(called(self.thing), Formula):
            return written(self.answer, {called(self.thing).letter: first})
        used = names(self.answer)
        if len(used) == 1 and not self.blend and self.answer.count(used[0]) == 1:
            return written(self.answer, {used[0]: f"{first}.{used[0]}"})
        said = {x: f"run.{x}" for x in used}
        if self.blend:
            second = self._run_text(**{word: values[1]})
            said["step_time"] = f"({1 - share!r} * run.step_time + {share!r} * {second}.step_time)"
        return written(self.answer, said).replace("run.", f"(run := {first}).", 1)

    @cached_property
    def runs(self) -> list[Row]:
        """The results that `answer` is computed from: one, or two if `blend` mixes two."""
        letters = tuple(self.letters.items())
        if self.blend is None:
            return [_run(self.thing, self.rows, letters)]
        word, values, _ = self.blend
        return [_run(self.thing, self.rows, (*letters, (word, x))) for x in values]

    def answered(self, seconds: float | None = None) -> float | Fraction:
        """Compute the `answer` expression from the call's result. If given, `seconds` replaces its step time."""
        run = self.runs[0]
        if self.thing in FUNCTIONS:
            return expression(self.answer, lambda name: getattr(run, name))
        if not isinstance(run, Row):  # a formula's number
            return float(expression(self.answer, lambda name: run))

        if seconds is None and self.blend and "step_time" in names(self.answer):
            share = self.blend[2]
            seconds = (1 - share) * run.step_time + share * self.runs[1].step_time
        blended = {} if seconds is None else {"step_time": seconds}
        return float(expression(self.answer, lambda name: blended[name] if name in blended else run[name]))

    @property
    def value(self) -> float | Fraction:
        return self.answered()

    def at_peaks(self) -> list[float]:
        """Evaluate the call's two `least` expressions, roofline and peak, in the answer's unit; NaN if one is empty."""
        known = {n: x for row in map(row_of, self.rows) for n, x in row.items()} | dict(self.letters)
        known |= dict(self.runs[0]) if isinstance(self.runs[0], Row) else {}
        return [float(expression(x, known.__getitem__)) if x else np.nan for x in self.least]


@dataclass(frozen=True)
class Sum:
    """A number computed from several calls: `figure` is arithmetic over their answers, by default their sum.

    It may use `total` (the sum), `first` to `fourth` (single answers), and `columns` of the measured row.
    """

    terms: tuple[Call, ...]
    figure: str = "total"
    columns: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        texts = [x.text for x in self.terms]
        said = {n: shown(x) for n, x in self.columns.items()} | dict(zip(TERMS, texts, strict=False))
        return written(self.figure, said | {"total": " + ".join(texts)})

    @property
    def value(self) -> float:
        return float(self.become([x.value for x in self.terms]))

    def become(self, answers):
        """Compute the `figure` from the answers of the calls, given in the order of `terms`."""
        columns = {n: _plain(x) for n, x in self.columns.items()}
        known = {**columns, **dict(zip(TERMS, answers, strict=False)), "total": sum(answers)}
        return expression(self.figure, known.__getitem__)


def priced_calls(calls: list[Call], answers: list[list[str]], using=(), **given) -> np.ndarray:
    """Evaluate many calls at once. Return an array: one line for each of the `answers` of a call, one column per call.

    Calls that differ only in numbers are made as one call with arrays. For serving steps and services, the formulas of
    `using` and the values in `given` (one per call) replace the calls' own.
    """
    if isinstance(called(calls[0].thing), Step):
        return _stepped(calls, answers, using, given)
    found = np.full((len(answers[0]), len(calls)), np.nan)
    for (thing, rows, words, letters, wanted), places in grouped(calls, answers).items():
        said = arrays([calls[i] for i in places], letters, dict(words))
        run = called(thing)(*map(row_of, rows), **said)
        if not isinstance(run, Row):  # the number of a formula, whose inputs are known too
            given = [dict(x) for x in map(row_of, rows) if isinstance(x, Row)]
            run = reduce(operator.or_, given, {}) | said | {find(thing).letter: run}
        for line, text in enumerate(wanted):
            if text:
                found[line, places] = expression(text, run.__getitem__)
    return found


def grouped(calls: list[Call], answers: list[list[str]]) -> dict[tuple, list[int]]:
    """Group calls that differ only in numbers. Return their indices by function, rows, options, inputs and answers."""
    groups: dict[tuple, list[int]] = {}
    for place, call in enumerate(calls):
        words = tuple((n, x) for n, x in call.letters.items() if isinstance(x, str | bool))
        groups.setdefault((call.thing, call.rows, words, tuple(call.letters), tuple(answers[place])), []).append(place)
    return groups


def arrays(calls: list[Call], letters: tuple[str, ...], words: dict) -> dict:
    """Return the keywords of one call in place of several: options, and an array for each quantity."""
    return words | {n: np.array([x.letters[n] for x in calls], float) for n in letters if n not in words}


def _stepped(calls: list[Call], answers: list[list[str]], using, given: Mapping) -> np.ndarray:
    """Return the answers of calls of serving steps and services; all calls of one sheet are priced together."""
    groups: dict[tuple, list] = {}
    for place, call in enumerate(calls):
        free = {n: x for n, x in call.letters.items() if n in _FREE}
        fixed = tuple((n, x) for n, x in call.letters.items() if n not in free)
        sheet, known = _planned(call.thing, call.rows, fixed, tuple(free))
        sheet, known = _swapped(sheet, tuple(using)), known | free
        known = {n: x for n, x in known.items() if n not in {f.letter for f in using}}
        known |= {n: x[place] for n, x in given.items()}
        groups.setdefault((sheet, tuple(answers[place]), *sorted(known)), []).append((place, known))
    found = np.full((len(answers[0]), len(calls)), np.nan)
    for (sheet, wanted, *letters), group in groups.items():
        places, columns = [x for x, _ in group], {n: np.array([x[n] for _, x in group], float) for n in letters}
        asked = {n for text in wanted if text for n in names(text)}
        part = _part(sheet, frozenset(asked & sheet.formulas.keys() - columns.keys()))
        run = part(**{n: x for n, x in columns.items() if n in part.inputs or n in part.formulas})

        def value(name, run=run, part=part, columns=columns):
            if name not in part.formulas and name not in columns:
                raise Empty(f"nothing says what {name} is")
            return columns[name] if name in columns else run[name]

        for line, text in enumerate(wanted):
            if text:
                found[line, places] = expression(text, value)
    return found


@cache
def _swapped(sheet: Sheet, formulas: tuple[Formula, ...]) -> Sheet:
    return sheet.using(*own) if (own := [f for f in formulas if f.letter in sheet.letters]) else sheet


@cache
def _part(sheet: Sheet, letters: frozenset[str]) -> Sheet:
    return sheet.only(*sorted(letters))


@cache
def _planned(thing: str, rows: tuple, fixed: tuple, free: tuple) -> tuple[Sheet, dict]:
    """Return the sheet of calls that differ only in the values of `free` letters, and all other known values."""
    letters = dict(fixed) | dict.fromkeys(free, 1.0)
    sheet, knowns, left = find(thing).plan(tuple(map(row_of, rows)), letters, may_be_one=True)
    return sheet, {n: cell.value for n, cell in gather(knowns, left).items() if n not in free}


def is_array(thing: str) -> bool:
    """Return True if the thing of this name accepts arrays: a sheet, a formula, a serving step or a service."""
    return isinstance(called(thing), Sheet | Formula | Step)


def shown(x) -> str:
    """Return a value as Python source, with whole numbers without a decimal point: 8.0 becomes "8"."""
    return repr(_plain(x))


def _plain(x):
    return int(x) if isinstance(x, float) and x.is_integer() and abs(x) < 2**53 else x


def _row_text(row: tuple) -> str:
    kind, key, *more = row
    if kind == "shape":
        return f"models.shaped({', '.join(f'{n}={shown(x)}' for n, x in key)})"
    if kind == "formula":
        return key
    if kind == "calculon":
        return f"calculon.{key}({', '.join(map(repr, _numbered(more)))})"
    at, on, running = (*more, "", "", "")[:3]
    dense, *experts = at.split() or [""]
    at = f"{dense!r}, experts={experts[0]!r}" if experts else repr(dense)
    said = f"{kind}.{key}" + (f".at({at})" if dense else "") + (f".on(clusters.{on})" if on else "")
    return said + (f".running({', '.join(map(repr, running.split()))})" if running else "")


def _numbered(texts) -> list:
    return [int(x) if x.isdecimal() else x for x in texts]


@cache
def row_of(said: tuple) -> Row | Formula:
    """Return the table row or formula that a tuple of `Call.rows` stands for, such as ("accelerators", "h100")."""
    kind, key, *more = said
    if kind == "shape":
        return tables.models.shaped(**dict(key))
    if kind == "formula":
        return find(key)
    if kind == "calculon":
        return getattr(calculon, key)(*_numbered(more))
    row, (at, on, running) = getattr(tables, kind)[key], (*more, "", "", "")[:3]
    row = row.at(*at.split()) if at else row
    row = row.on(tables.clusters[on]) if on else row
    return row.running(*running.split()) if running else row
