"""A measured set as data: a CSV file and a stanza of `stanzas/*.toml`, which say how each row becomes a public call.

A stanza has these keys.  Expressions are arithmetic over columns (`"n_gpus / (tp * pp)"`), with `or` for an empty cell.

- `file`, `what`, `sources`, `measured` (a column), `unit`, `group`, `calibrated`: as a `Confrontation` has them.
- `call`: the public thing that is called, `training_step` unless it is said.
- `answer`: a letter of its result, or arithmetic over letters, in the unit of the measured column; `roofline` and
  `peak` likewise: what the device would do at its peaks, and what nothing can beat.
- `parts`: a list of calls that are added up, each with keys of its own over the stanza's; `figure`: arithmetic over
  `total` (the sum, or the only answer) and columns, what is compared, such as `"2 * m * n * k / total / 1e12"`;
  or over `first` and `second`, of two parts that are divided and not added.
- `model`, `device`, `precision`, `framework`, `cluster`, `libraries`, `engine`: keys of tables, or texts with
  `{column}` in them that `[NAME.names]` leads to keys, by patterns; `shape`: letters and words of a model of the row's
  own shape.
- `letters`: letters by expressions; `words`: words of a strategy.
- `when`: a list of `{if = {column = pattern}, ...}`, whose other keys add to the stanza's if all patterns are found.
- `left_out`: a list of `[column, pattern, reason]`, `[expression, reason]` or `{if = {column = pattern}, why = ...}`;
  `left_out_too` adds to that of the stanza it is like.
- `calibrates`: `{even = true}`, `{half = [columns]}`, patterns of columns: rows that something was calibrated on.
- `extract`: new columns out of others, by patterns; `complete`: a function of this room that adds columns.
- `tuned`: letters and words that the source tuned and does not print, each with a list or `divisors(...)`: our fastest
  that fits into the `fits` share of memory; `follows`: letters that follow from these.
- `blend`: a word that a part of the blocks have otherwise: `{recompute = ["none", "full"], share = "..."}`.
- `readings`: a function of this room, or `{word = [values]}` if rows do not say a word: each value is as likely.
- `like`: another stanza, whose keys stand where this one has none; tables of keys are joined.
"""

import itertools
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.resources import files

import numpy as np

from scalebook.language.notation import nearest, quoted
from scalebook.training.totals import useful_times

from .calls import Call, Sum, is_sheet, priced_calls
from .confrontation import Confrontation, Priced, Readings
from .expressions import Empty, expression, names
from .rows import Measurement, is_even, is_half, number

__all__ = ["Call", "Stanza", "Sum", "confrontations", "expression", "stanzas"]

_JOINED = ("letters", "words", "names", "extract", "shape")  # tables that add to those of the stanza it is like
_DEVICES = {
    "GB300": "gb300", "GB200": "gb200", "B300": "b300", "B200": "b200", "H200": "h200", "H100": "h100", "A100": "a100",
    "V100": "v100", "MI300X": "mi300x", "MI325X": "mi325x", "MI350X": "mi350x", "MI355X": "mi355x",
}  # fmt: skip


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
            readings=self._readings(said["readings"]) if "readings" in said else None,
            call=lambda row: self.call(row).text,
        )

    def _readings(self, said: str | Mapping) -> Callable:
        if isinstance(said, str):
            return partial(_named(said), self)
        [(word, values)] = said.items()

        def readings(rows):
            calls = [self.call(row) for row in rows]
            read = [[replace(x, letters={**x.letters, word: value}).value for x in calls] for value in values]
            return Readings(np.array(read), np.full((len(values), len(rows)), 1 / len(values)))

        return readings

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
        for entry in (*self.said.get("left_out", ()), *self.said.get("left_out_too", ())):
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
        terms = [x for call in calls for x in (call.terms if isinstance(call, Sum) else [call])]
        if is_sheet(terms[0].thing):
            return self._added(calls, priced_calls(terms, [[x.answer, *x.least] for x in terms]))
        values = np.array([x.value for x in calls])
        if terms[0].thing != "training_step" or "step_time" not in names(terms[0].answer):
            return Priced(values)
        least = [[x.answered(seconds) for seconds in useful_times(x.runs[0])] for x in calls]
        return Priced(values, *np.array(least).T)

    @staticmethod
    def _added(calls: list[Call | Sum], answers: np.ndarray) -> Priced:
        """The answers of all terms as figures of the rows: prediction, roofline and peak, as far as they are said."""
        found, at = np.full((len(answers), len(calls)), np.nan), 0
        for place, call in enumerate(calls):
            size = len(call.terms) if isinstance(call, Sum) else 1
            values = [answers[:, i] for i in range(at, at + size)]
            found[:, place] = call.become(values) if isinstance(call, Sum) else values[0]
            at += size
        return Priced(found[0], *(x if np.isfinite(x).any() else None for x in found[1:]))

    def call(self, row: Measurement) -> Call | Sum:
        """The public call that a row stands for, or the sum of several."""
        said = self._whole(row)
        parts = said.get("parts")
        if not parts and "figure" not in said:
            return self._single(said, row)
        terms = tuple(self._single(_joined(said, x), row) for x in parts or [{}])
        figure, columns = said.get("figure", "total"), {}
        for name in names(figure):
            if name not in ("total", "first", "second") and row.get(name, "") not in ("", "null"):
                columns[name] = self._of(name, row, {})
        return Sum(terms, figure, columns)

    def _single(self, said: Mapping, row: Measurement) -> Call:
        letters: dict = {}
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
            kinds = ("device", "precision", "cluster", "libraries")
            rows.append(("accelerators", *(self._key(x, row, said) for x in kinds)))
        if "framework" in said:
            rows.append(("frameworks", self._key("framework", row, said)))
        if "engine" in said:
            letters["engine"] = self._key("engine", row, said)
        letters |= {n: x.format_map(row) if isinstance(x, str) else x for n, x in said.get("words", {}).items()}
        thing, blend = said.get("call", "training_step"), None
        if "blend" in said:
            words = dict(said["blend"])
            share = words.pop("share")
            share = self._of(share, row, letters) if isinstance(share, str) else share
            [(word, values)] = words.items()
            if share:
                blend = word, tuple(values), float(share)
            else:
                letters[word] = values[0]
        least = said.get("roofline", ""), said.get("peak", "")
        call = Call(thing, tuple(rows), letters, said["answer"], blend, least)
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
        cases = self.said.get("when", ())
        fits = tuple(all(re.search(p, row.get(c, "")) for c, p in case.get("if", {}).items()) for case in cases)
        if fits not in self._wholes:
            said = dict(self.said)
            for case, is_met in zip(cases, fits, strict=True):
                if is_met:
                    said = _joined(said, {k: x for k, x in case.items() if k != "if"})
            self._wholes[fits] = said
        return self._wholes[fits]

    @cached_property
    def _wholes(self) -> dict[tuple[bool, ...], dict]:
        return {}

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
            is_word = name in ("name", "norm", "attention", "windows", "family")
            own[name] = text.format_map(row) if is_word else self._of(text, row, own) if isinstance(text, str) else text
        return tuple(own.items())

    def _key(self, kind: str, row: Measurement, said: Mapping) -> str:
        """The key of a row's model, device, precision, libraries or the like; "" where none is said or known."""
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
