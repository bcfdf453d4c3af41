"""Public calls that measured rows stand for: as a line of Python, and priced one by one or many together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from scalebook import tables
from scalebook.language import Formula, Row, Sheet
from scalebook.shell.named import find

from .expressions import expression, names, written

__all__ = ["Call", "Sum", "priced_calls", "row_of", "shown"]


@dataclass(frozen=True)
class Call:
    """One public call: `text` is what a reader types, `value` what it gives.

    `rows` are, by position, table, key, precision, cluster and libraries of each row, or a shape's letters and words.
    `answer` is a letter of the result or arithmetic over its letters; of a formula it is the formula's number.  `blend`
    are a word, its two values and the share of the second.
    """

    thing: str
    rows: tuple[tuple, ...]
    letters: Mapping = field(default_factory=dict)
    answer: str = "step_time"
    blend: tuple | None = None
    least: tuple[str, str] = ("", "")  # roofline and peak, as `answer`

    def _run_text(self, **more) -> str:
        said = [_row_text(x) for x in self.rows]
        said += [f"{n}={shown(x)}" for n, x in (self.letters | more).items()]
        return f"{self.thing}({', '.join(said)})"

    @property
    def text(self) -> str:
        """The line of Python."""
        word, values, share = self.blend or ("", ("", ""), 0)
        first = self._run_text(**({word: values[0]} if self.blend else {}))
        if isinstance(find(self.thing), Formula):
            return written(self.answer, {find(self.thing).letter: first})
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
        """The results that the answer is made of."""
        rows = [row_of(x) for x in self.rows]
        if self.blend is None:
            return [find(self.thing)(*rows, **self.letters)]
        word, values, _ = self.blend
        return [find(self.thing)(*rows, **self.letters, **{word: x}) for x in values]

    def answered(self, seconds: float | None = None) -> float:
        """The answer, or what it would be if a step took so many seconds."""
        run = self.runs[0]
        if not isinstance(run, Row):  # a formula's number
            return float(expression(self.answer, lambda name: run))

        def value(name):
            if name != "step_time":
                return run[name]
            if seconds is not None:
                return seconds
            if self.blend is None:
                return run.step_time
            share = self.blend[2]
            return (1 - share) * run.step_time + share * self.runs[1].step_time

        return float(expression(self.answer, value))

    @property
    def value(self) -> float:
        return self.answered()


_PLACES = ("first", "second")  # terms by name, in a figure that compares them


@dataclass(frozen=True)
class Sum:
    """Several calls added up; `figure` is what they become: arithmetic over `total` and the row's columns, or over
    `first` and `second` where it compares two calls."""

    terms: tuple[Call, ...]
    figure: str = "total"
    columns: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The line of Python."""
        texts = [x.text for x in self.terms]
        said = {n: shown(x) for n, x in self.columns.items()} | {"total": " + ".join(texts)}
        return written(self.figure, said | dict(zip(_PLACES, texts, strict=False)))

    @property
    def value(self) -> float:
        return float(self.become([x.value for x in self.terms]))

    def become(self, values: list):
        """What the calls' answers become."""
        known = self.columns | {"total": sum(values)} | dict(zip(_PLACES, values, strict=False))
        return expression(self.figure, known.__getitem__)


def priced_calls(calls: list[Call], answers: list[list[str]]) -> np.ndarray:
    """Answers of calls of sheets and formulas, an array of as many lines as each call has answers.

    Calls of the same rows and words that give the same letters are one call with arrays.
    """
    groups: dict[tuple, list[int]] = {}
    for place, call in enumerate(calls):
        words = tuple((n, x) for n, x in call.letters.items() if isinstance(x, str | bool))
        groups.setdefault((call.thing, call.rows, words, tuple(call.letters), tuple(answers[place])), []).append(place)
    found = np.full((len(answers[0]), len(calls)), np.nan)
    for (thing, rows, words, letters, wanted), places in groups.items():
        said = dict(words)
        said |= {n: np.array([calls[i].letters[n] for i in places], float) for n in letters if n not in said}
        run = find(thing)(*map(row_of, rows), **said)
        for line, text in enumerate(wanted):
            if text:
                found[line, places] = expression(text, lambda name, run=run: run[name] if isinstance(run, Row) else run)
    return found


def is_sheet(thing: str) -> bool:
    """Whether a thing to call is one sheet or formula, whatever its words."""
    return isinstance(find(thing), Sheet | Formula)


def shown(x) -> str:
    """A value as a reader types it: whole numbers without a point."""
    return repr(int(x)) if isinstance(x, float) and x.is_integer() and abs(x) < 2**53 else repr(x)


def _row_text(row: tuple) -> str:
    kind, key, *more = row
    if kind == "shape":
        return f"models.shaped({', '.join(f'{n}={shown(x)}' for n, x in key)})"
    at, on, running = (*more, "", "", "")[:3]
    said = f"{kind}.{key}" + (f".at({at!r})" if at else "") + (f".on(clusters.{on})" if on else "")
    return said + (f".running({', '.join(map(repr, running.split()))})" if running else "")


@cache
def row_of(said: tuple) -> Row:
    """The row of the tables that a call names."""
    kind, key, *more = said
    if kind == "shape":
        return tables.models.shaped(**dict(key))
    row, (at, on, running) = getattr(tables, kind)[key], (*more, "", "", "")[:3]
    row = row.at(at) if at else row
    row = row.on(tables.clusters[on]) if on else row
    return row.running(*running.split()) if running else row
