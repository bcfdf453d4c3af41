"""A measured set as data: a CSV file and a stanza of `stanzas/*.toml`, which say how each row becomes a public call.

A stanza has these keys.  Expressions are arithmetic over columns (`"n_gpus / (tp * pp)"`), with `or` for an empty cell.

- `file`, `what`, `sources`, `measured` (a column), `unit`, `group`, `calibrated`: as a `Confrontation` has them.
- `call`: the public thing that is called, `training_step` unless it is said.
- `answer`: a letter of its result, or arithmetic over letters, in the unit of the measured column.
- `model`, `device`, `precision`, `framework`, `cluster`: keys of tables, or texts with `{column}` in them that
  `[NAME.names]` leads to keys, by patterns; `shape`: the letters and words of a model of the row's own shape.
- `letters`: letters by expressions; `words`: words of a strategy.
- `when`: a list of `{if = {column = pattern}, ...}`, whose other keys add to the stanza's if all patterns are found.
- `left_out`: a list of `[column, pattern, reason]`, `[expression, reason]` or `{if = {column = pattern}, why = ...}`.
- `calibrates`: `{even = true}`, `{half = [columns]}`, patterns of columns: rows that something was calibrated on.
- `extract`: new columns out of others, by patterns; `complete`: a function of this room that adds columns.
- `tuned`: letters and words that the source tuned and does not print, each with a list or `divisors(...)`: our fastest
  that fits into the `fits` share of memory; `follows`: letters that follow from these.
- `blend`: a word that a part of the blocks have otherwise: `{recompute = ["none", "full"], share = "..."}`.
- `like`: another stanza, whose keys stand where this one has none; tables of keys are joined.
"""

import ast
import itertools
import math
import operator
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.resources import files

import numpy as np

from scalebook import tables
from scalebook.language import Formula, Row
from scalebook.language.notation import nearest, quoted
from scalebook.search.space import divisors
from scalebook.shell.named import find
from scalebook.training.totals import useful_times

from .confrontation import Confrontation, Priced
from .rows import Measurement, is_even, is_half, number

__all__ = ["Call", "Stanza", "confrontations", "expression", "stanzas"]

_JOINED = ("letters", "words", "names", "extract", "shape")  # tables that add to those of the stanza it is like
_DEVICES = {
    "GB300": "gb300", "GB200": "gb200", "B300": "b300", "B200": "b200", "H200": "h200", "H100": "h100", "A100": "a100",
    "V100": "v100", "MI300X": "mi300x", "MI325X": "mi325x", "MI350X": "mi350x", "MI355X": "mi355x",
}  # fmt: skip


# Expressions


class Empty(ValueError):
    """A cell that an expression needs has nothing in it."""


def _known_divisors(x: float, most: float = math.inf) -> list[float]:
    return [float(n) for n in divisors(x) if n <= most]


_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable] = {"max": max, "min": min, "ceil": math.ceil, "divisors": _known_divisors}


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def expression(text: str, value: Callable[[str], float]):
    """What an expression gives, its names looked up by `value`.

    Raises ValueError, naming it, for anything but arithmetic, comparisons, `or` and max, min, ceil, divisors.

    >>> expression("n_gpus / (tp * pp)", {"n_gpus": 64, "tp": 8, "pp": 2}.__getitem__)
    4.0
    """

    def of(node):
        match node:
            case ast.Constant(value=int() | float() | str()):
                return node.value
            case ast.Name():
                return value(node.id)
            case ast.BinOp() if type(node.op) in _OPERATIONS:
                return _OPERATIONS[type(node.op)](of(node.left), of(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return -of(node.operand)
            case ast.Compare(ops=[op]) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](of(node.left), of(node.comparators[0]))
            case ast.BoolOp(op=ast.Or()):
                for x in node.values[:-1]:
                    try:
                        return of(x)
                    except Empty:
                        continue
                return of(node.values[-1])
            case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(of, node.args))
        raise ValueError(f"{text!r} is no arithmetic over columns: {ast.unparse(node)} cannot stand in it")

    return of(_parsed(text))


# Calls


@dataclass(frozen=True)
class Call:
    """A public call that a row stands for: `text` is what a reader types, `value` what it gives.

    `rows` are table, key, precision and cluster of each row by position, or a shape's letters and words; `blend` are a
    word, its two values and the share of the second.
    """

    thing: str
    rows: tuple[tuple, ...]
    letters: Mapping = field(default_factory=dict)
    answer: str = "step_time"
    blend: tuple | None = None

    def _row_text(self, row) -> str:
        kind, key, *more = row
        if kind == "shape":
            return f"models.shaped({', '.join(f'{n}={_shown(x)}' for n, x in key)})"
        at, on = (*more, "", "")[:2]
        said = f"{kind}.{key}" + (f".at({at!r})" if at else "")
        return said + (f".on(clusters.{on})" if on else "")

    def _run_text(self, **more) -> str:
        said = [self._row_text(x) for x in self.rows]
        said += [f"{n}={_shown(x)}" for n, x in (self.letters | more).items()]
        return f"{self.thing}({', '.join(said)})"

    @property
    def text(self) -> str:
        """The line of Python."""
        word, values, share = self.blend or ("", ("", ""), 0)
        first = self._run_text(**({word: values[0]} if self.blend else {}))
        if isinstance(find(self.thing), Formula):
            return first
        if self.answer.isidentifier() and not self.blend:
            return f"{first}.{self.answer}"
        seconds = "run.step_time"
        if self.blend:
            second = self._run_text(**{word: values[1]})
            seconds = f"({1 - share!r} * run.step_time + {share!r} * {second}.step_time)"
        said = re.sub(r"\b([a-z_]+)\b", lambda x: seconds if x[1] == "step_time" else f"run.{x[1]}", self.answer)
        return said.replace("run.", f"(run := {first}).", 1)

    @cached_property
    def runs(self) -> list[Row]:
        """The results that the answer is made of."""
        rows = [_row(x) for x in self.rows]
        if self.blend is None:
            return [find(self.thing)(*rows, **self.letters)]
        word, values, _ = self.blend
        return [find(self.thing)(*rows, **self.letters, **{word: x}) for x in values]

    def answered(self, seconds: float | None = None) -> float:
        """The answer, or what it would be if a step took so many seconds."""
        run = self.runs[0]
        if not isinstance(run, Row):  # a formula's number
            return float(run)

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


def _shown(x) -> str:
    return repr(int(x)) if isinstance(x, float) and x.is_integer() else repr(x)


def _row(said: tuple) -> Row:
    kind, key, *more = said
    if kind == "shape":
        return tables.models.shaped(**dict(key))
    row, (at, on) = getattr(tables, kind)[key], (*more, "", "")[:2]
    row = row.at(at) if at else row
    return row.on(tables.clusters[on]) if on else row


# Stanzas


@dataclass(frozen=True, eq=False)
class Stanza:
    """What a stanza says of a set, and the calls that its rows stand for."""

    name: str
    said: Mapping

    def confrontation(self) -> Confrontation:
        """The set, to be confronted."""
        said = self.said
        return Confrontation(
            self.name,
            said["file"],
            said["what"],
            self.predicted,
            said["measured"],
            said["unit"],
            tuple(said["sources"]),
            self.left_out,
            self.group,
            said.get("calibrated", ""),
            self.calibrates,
            tuple(said.get("optional", ())),
            self.completed,
            readings=partial(_named(said["readings"]), self) if "readings" in said else None,
            call=lambda row: self.call(row).text,
        )

    def completed(self, row: Measurement) -> Measurement:
        """A row with the columns that are extracted from others."""
        new = dict(row)
        for name, (column, pattern) in self.said.get("extract", {}).items():
            found = re.search(pattern, new.get(column, ""))
            new[name] = (found[1] if found and found.re.groups else found[0]) if found else ""
        if maker := self.said.get("complete"):
            new |= _named(maker)(new)
        return new

    def left_out(self, row: Measurement) -> str:
        """Why a row is left out, "" for one that is kept."""
        for entry in self.said.get("left_out", ()):
            if isinstance(entry, Mapping):
                if all(re.search(p, row.get(c, "")) for c, p in entry["if"].items()):
                    return entry["why"]
                continue
            *condition, reason = entry
            if len(condition) == 2:
                is_out = re.search(condition[1], row.get(condition[0], "")) is not None
            else:
                is_out = self._of(condition[0], row, {})
            if is_out:
                return reason
        return "" if not self.said.get("device") or self._key("device", row, self._whole(row)) else (
            "on a device that is not in the table"
        )  # fmt: skip

    def group(self, row: Measurement) -> str:
        """Which kind of row it is."""
        said = self._whole(row)
        keys = {x: self._key(x, row, said) for x in ("device", "framework", "model") if "{" in said.get(x, "")}
        return said["group"].format_map({**row, **keys})

    def calibrates(self, row: Measurement) -> bool:
        """Whether something was calibrated on a row."""
        said = dict(self.said.get("calibrates", {}))
        if not said:
            return False
        is_in = is_even(row) if said.pop("even", False) else True
        columns = said.pop("half", ())
        is_in &= is_half(*(row[x] for x in columns)) if columns else True
        return is_in and all(re.search(p, row.get(c, "")) for c, p in said.items())

    def predicted(self, rows: list[Measurement]) -> Priced:
        """Each row's call, and what its devices would do at their peaks."""
        calls = [self.call(row) for row in rows]
        values = [x.value for x in calls]
        if calls[0].thing != "training_step":
            return Priced(np.array(values))
        least = [[x.answered(seconds) for seconds in useful_times(x.runs[0])] for x in calls]
        return Priced(np.array(values), *np.array(least).T)

    def call(self, row: Measurement) -> Call:
        """The public call that a row stands for."""
        said, letters = self._whole(row), {}
        for letter, text in said.get("letters", {}).items():
            try:
                letters[letter] = self._of(text, row, letters) if isinstance(text, str) else text
            except Empty:
                continue
        letters = {n: x for n, x in letters.items() if not n.startswith("_")}
        rows = [("shape", self._shape(said["shape"], row))] if "shape" in said else []
        if "model" in said and "shape" not in said:
            rows.append(("models", self._key("model", row, said)))
        if "device" in said:
            rows.append(("accelerators", *(self._key(x, row, said) for x in ("device", "precision", "cluster"))))
        if "framework" in said:
            rows.append(("frameworks", self._key("framework", row, said)))
        letters |= {n: x.format_map(row) if isinstance(x, str) else x for n, x in said.get("words", {}).items()}
        thing, answer, blend = said.get("call", "training_step"), said["answer"], None
        if "blend" in said:
            words = dict(said["blend"])
            share = words.pop("share")
            share = self._of(share, row, letters) if isinstance(share, str) else share
            [(word, values)] = words.items()
            if share:
                blend = word, tuple(values), float(share)
            else:
                letters[word] = values[0]
        call = Call(thing, tuple(rows), letters, answer, blend)
        return self._tuned(said["tuned"], call, row) if "tuned" in said else call

    def _tuned(self, tuned: Mapping, call: Call, row) -> Call:
        """The fastest of the choices that runs and fits."""
        tuned = dict(tuned)
        share, found = tuned.pop("fits", 1.0), []
        names = list(tuned)
        lists = [self._of(x, row, call.letters) if isinstance(x, str) else x for x in tuned.values()]
        for values in itertools.product(*lists):
            own = dict(zip(names, values, strict=True))
            letters = dict(call.letters)
            for name, text in [(n, x) for n, x in self._whole(row).get("follows", {}).items()]:
                letters[name] = self._of(text, row, letters | own)
            option = Call(call.thing, call.rows, letters | own, call.answer)
            try:
                run = option.runs[0]
                run["step_time"]
            except (KeyError, ValueError):
                continue  # no whole number of micro-batches, or a schedule that does not run them
            found.append((run.memory > share * run.hbm_capacity, run.step_time, option))
        if not found:
            raise ValueError(f"none of the choices of {', '.join(names)} runs")
        return min(found, key=lambda x: x[:2])[2]

    def _whole(self, row: Measurement) -> dict:
        """The stanza with what `when` adds for a row."""
        said = dict(self.said)
        for case in self.said.get("when", ()):
            if all(re.search(p, row.get(c, "")) for c, p in case.get("if", {}).items()):
                said = _joined(said, {k: x for k, x in case.items() if k != "if"})
        return said

    def _of(self, text: str, row: Measurement, letters: Mapping):
        def value(name):
            if name in letters:
                return letters[name]
            if name not in row:
                raise ValueError(f"{self.name}: there is no column {name!r}; {nearest(name, row)}")
            if row[name] in ("", "null"):
                raise Empty(f"{row.get('row_id', 'a row')}: {name} is empty")
            return 0.0 if row[name] in ("0", "0.0") else number(row, name)

        return expression(text, value)

    def _shape(self, shape: Mapping, row) -> tuple:
        own = {}
        for name, text in shape.items():
            is_word = name in ("name", "norm", "attention", "windows")
            own[name] = text.format_map(row) if is_word else self._of(text, row, own) if isinstance(text, str) else text
        return tuple(own.items())

    def _key(self, kind: str, row: Measurement, said: Mapping) -> str:
        """The key of a row's model, device, precision, framework or cluster; "" where none is said or known."""
        text = said.get(kind, "")
        if "{" not in text:
            return text
        text = text.format_map(row)
        patterns = said.get("names", {}).get(kind, _DEVICES if kind == "device" else {})
        return next((key for pattern, key in patterns.items() if re.search(pattern, text, re.IGNORECASE)), "")


def _named(text: str) -> Callable:
    """A function of this room, of its name as `module:function`."""
    module, function = text.split(":")
    return getattr(import_module(f"scalebook.measurements.{module}"), function)


def _joined(first: Mapping, second: Mapping) -> dict:
    """One stanza over another: tables of keys are joined, everything else is the second's."""
    both = {**first, **second}
    for key in _JOINED:
        if key in first and key in second:
            both[key] = {**first[key], **second[key]}
            for inner, x in second[key].items():
                if isinstance(x, Mapping) and isinstance(first[key].get(inner), Mapping):
                    both[key][inner] = {**first[key][inner], **x}
    return both


@cache
def stanzas() -> dict[str, Stanza]:
    """All sets that are data, by name.

    >>> "mlperf_training" in stanzas()
    True
    """
    said: dict[str, dict] = {}
    for path in sorted(files(__package__).joinpath("stanzas").iterdir(), key=lambda x: x.name):
        if path.name.endswith(".toml"):
            said |= tomllib.loads(path.read_text("utf-8"))
    return {name: Stanza(name, _inherited(name, said)) for name in said}


def _inherited(name: str, said: Mapping) -> dict:
    own = dict(said[name])
    if (other := own.pop("like", None)) is None:
        return own
    if other not in said:
        raise ValueError(f"{name} is like {quoted(other)}, which is no set; {nearest(other, said)}")
    return _joined(_inherited(other, said), own)


def confrontations() -> dict[str, Confrontation]:
    """All sets that are data, to be confronted."""
    return {name: x.confrontation() for name, x in stanzas().items()}
