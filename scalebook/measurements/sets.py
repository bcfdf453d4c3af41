"""A measured set described by data: a CSV file, and a table in `stanzas/*.toml` that turns its rows into public calls.

`stanza_keys.toml` explains every key of such a table, which we call a stanza.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from importlib import import_module

import numpy as np

from scalebook import tables
from scalebook.language import NOTATION
from scalebook.language.notation import nearest
from scalebook.shell.named import find
from scalebook.training.totals import useful_times

from .calls import TERMS, Call, Sum, is_array, priced_calls, row_of, shown
from .confrontation import Confrontation, Priced, Readings
from .expressions import Empty, expression, names
from .rows import Measurement, is_even, is_half, number
from .stanza_keys import joined, written

__all__ = ["Call", "Stanza", "Sum", "confrontations", "expression", "stanzas"]

_DEVICES = ["gb300", "gb200", "b300", "b200", "h200", "h100", "a100", "v100", "mi300x", "mi325x", "mi350x", "mi355x"]
_REQUIRED = ("file", "what", "sources", "measured", "unit", "group")
_PATTERNS = {x.upper(): x for x in _DEVICES}  # of devices, if a stanza gives none; the longer name first
_search = lru_cache(1 << 14)(re.search)  # rows of a set have the same few texts in most columns


@dataclass(frozen=True, eq=False)
class Stanza:
    """The TOML description of a measured set, and the public calls that it makes from the rows."""

    name: str
    said: Mapping
    _calls: dict[tuple[str, ...], Call | Sum] = field(default_factory=dict, repr=False)
    _wholes: dict[tuple[bool, ...], dict] = field(default_factory=dict, repr=False)

    def confrontation(self) -> Confrontation:
        """Return the set as a `Confrontation`, which compares its measurements with predictions."""
        said, texts = self.said, ("file", "what", "measured", "unit", "calibrated", "why")
        if lacking := [x for x in _REQUIRED if x not in said]:
            raise ValueError(f"{self.name}: the stanza lacks {', '.join(lacking)}; stanza_keys.toml explains every key")
        return Confrontation(
            self.name, **{x: said[x] for x in texts if x in said}, sources=tuple(said["sources"]),
            optional=tuple(said.get("optional", ())), predict=self.predicted, left_out=self.left_out,
            group=self.group, calibrates=self.calibrates, completed=self.completed,
            readings=self._readings(said["readings"]) if "readings" in said else None,
            alike=lambda row: said.get("alike", "").format_map(row), call=lambda row: self.call(row).text,
        )  # fmt: skip

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
        """Return a row with the columns added that the set's description computes from other columns."""
        new = dict(row)
        for name, how in self.said.get("extract", {}).items():
            new[name] = self._extracted(how, new)
        if maker := self.said.get("complete"):
            new |= _named(maker)(new)
        for name, cases in self.said.get("labels", {}).items():
            new[name] = next((word for case, word in cases if self._labels(case, new)), "")
        return new

    def _extracted(self, how, row: Measurement) -> str:
        if isinstance(how, str):
            try:
                return shown(float(self._of(how, row, {}, lambda: _cells(self._rows(row, self.said)))))
            except (Empty, KeyError):
                return ""
        if isinstance(how, Mapping):
            text = how["of"].format_map(row)
            patterns = how.get("names", {"": text})
            patterns = self.said["names"][patterns] if isinstance(patterns, str) else patterns
            return next((x for pattern, x in patterns.items() if _search(pattern, text)), "")
        pairs = how if isinstance(how[0], list) else [how]
        found = next((x for column, pattern in pairs if (x := _search(pattern, row.get(column, "")))), None)
        return (found[1] if found.re.groups else found[0]) if found else ""

    def _labels(self, case: str | Mapping, row: Measurement) -> bool:
        return not case or self._holds({"if": case} if isinstance(case, Mapping) else {"where": case}, row)

    def left_out(self, row: Measurement) -> str:
        """Return why a row of the set is not compared with a prediction, or "" if it is."""
        whole = self._whole(row)
        said = {n: x for n, x in whole.items() if n != "at_most"}
        call_of = cache(lambda: self._single(said, row) if "at_most" in whole else _first(self.call(row)))
        known = cache(lambda: _cells(call_of().rows) | dict(call_of().letters))
        for entry in (*self.said.get("left_out", ()), *self.said.get("also_left_out", ())):
            if isinstance(entry, Mapping):
                reason = entry["why"]
                if over := entry.get("over"):
                    is_out = any(call_of().letters[x] > _most(call_of(), x, y) for x, y in over.items())
                else:
                    is_out = self._holds(entry, row, known)
            elif len(entry) == 3:
                column, pattern, reason = entry
                is_out = _search(pattern, row.get(column, ""))
            else:
                condition, reason = entry
                is_out = self._of(condition, row, {}, known)
            if is_out:
                return reason
        if whole.get("device") and not self._key("device", row, whole):
            return "on a device that is not in the table"
        if "shape" not in whole and whole.get("model") and not self._key("model", row, whole):
            return "of a model that is not in the table"
        return self.said["refused"] if "refused" in self.said and self._is_refused(row) else ""

    def _is_refused(self, row: Measurement) -> bool:
        try:
            return not self.call(row).value
        except ValueError:
            return True

    def group(self, row: Measurement) -> str:
        said = self._whole(row)
        keys = {x: self._key(x, row, said) for x in ("device", "framework", "model") if "{" in said.get(x, "")}
        keys["at"] = self._key("precision", row, said)
        if "{device_name}" in said["group"]:
            keys["device_name"] = row_of(("accelerators", self._key("device", row, said))).name.partition(" (")[0]
        return said["group"].format_map({**row, **keys})

    def calibrates(self, row: Measurement) -> bool:
        """Return True if a number in the package was fitted to this row."""
        said = self.said.get("calibrates", [])
        return any(self._calibrates(dict(x), row) for x in (said if isinstance(said, list) else [said]) if x)

    def _calibrates(self, said: dict, row: Measurement) -> bool:
        is_in = is_even(row) if said.pop("even", False) else True
        columns = said.pop("half", ())
        is_in &= is_half(*(row[x] for x in columns)) if columns else True
        return is_in and self._holds({"where": said.pop("where", ""), "if": said}, row)

    def _holds(self, case: Mapping, row: Measurement, known: Callable[[], Mapping] = dict) -> bool:
        """Return True if a row matches all patterns of a case and its expression; False if a cell it needs is empty."""
        if not all(_search(p, row.get(c, "")) for c, p in case.get("if", {}).items()):
            return False
        try:
            return not case.get("where") or bool(self._of(case["where"], row, {}, known))
        except Empty:
            return False

    def predicted(self, rows: list[Measurement]) -> Priced:
        """Return each row's prediction, and the time or rate that its devices would reach at their peaks."""
        calls = [self.call(row) for row in rows]
        terms = [x for call in calls for x in (call.terms if isinstance(call, Sum) else [call])]
        if floor := self.said.get("floor"):
            values = np.array([x.value for x in calls])
            least = values if floor == self.name else stanzas()[floor].predicted(rows).predicted
            return Priced(values, least, least)
        if all(is_array(x) for x in {x.thing for x in terms}):
            return self._added(calls, priced_calls(terms, [[x.answer, *x.least] for x in terms]))
        if {"training_step"} != {x.thing for x in terms}:
            return self._added(calls, np.array([[x.value, *x.at_peaks()] for x in terms]).T)
        values = np.array([x.value for x in calls])
        if any(isinstance(x, Sum) or "step_time" not in names(x.answer) for x in calls):
            return Priced(values)
        least = [[x.answered(seconds) for seconds in useful_times(x.runs[0])] for x in calls]
        return Priced(values, *np.array(least).T)

    def results(self, rows: list[Measurement], *wanted: str, using=(), **letters) -> dict[str, np.ndarray]:
        """Return what the rows' calls compute: for each `wanted` quantity an array, one value per row.

        Formulas in `using` and values in `letters` (one, or one per row) replace the calls' own. Raises KeyError for a
        quantity that a result does not have.
        """
        given = {n: np.broadcast_to(x, len(rows)) for n, x in letters.items()}
        found = priced_calls([self.call(row) for row in rows], [list(wanted)] * len(rows), using, **given)
        return dict(zip(wanted, found, strict=True))

    @staticmethod
    def _added(calls: list[Call | Sum], answers: np.ndarray) -> Priced:
        found, at = np.full((len(answers), len(calls)), np.nan), 0
        for place, call in enumerate(calls):
            size = len(call.terms) if isinstance(call, Sum) else 1
            found[:, place] = call.become(answers[:, at : at + size].T) if isinstance(call, Sum) else answers[:, at]
            at += size
        return Priced(found[0], *(x if np.isfinite(x).any() else None for x in found[1:]))

    def call(self, row: Measurement) -> Call | Sum:
        """Return the public call that predicts a row, or a sum of several."""
        if (key := tuple(row.values())) not in self._calls:
            self._calls[key] = self._call(row)
        return self._calls[key]

    def _call(self, row: Measurement) -> Call | Sum:
        said = self._whole(row)
        parts = said.get("parts")
        if not parts and "figure" not in said:
            return self._single(said, row)
        terms = tuple(self._single(joined(said, x), row) for x in parts or [{}])
        figure, columns = said.get("figure", "total"), {}
        for name in names(figure):
            if name not in ("total", *TERMS) and row.get(name, "") not in ("", "null"):
                columns[name] = self._of(name, row, {})
        return Sum(terms, figure, columns)

    def _single(self, said: Mapping, row: Measurement) -> Call:
        letters, rows = {}, self._rows(row, said)
        for letter, text in said.get("letters", {}).items():
            try:
                letters[letter] = self._of(text, row, letters, partial(_cells, rows)) if isinstance(text, str) else text
            except Empty:
                continue
        letters = {n: x for n, x in letters.items() if not n.startswith("_")}
        letters |= {n: x.format_map(row) if isinstance(x, str) else x for n, x in said.get("words", {}).items()}
        thing, blend = said.get("call", "training_step").format_map(row), None
        if "blend" in said:
            words = dict(said["blend"])
            share = words.pop("share")
            [(word, values)] = words.items()
            if isinstance(share, str):
                second = Call(thing, rows, letters | {word: values[-1]})
                share = self._of(share, row, letters, lambda: second.runs[0])
            if share:
                blend = word, tuple(values), float(share)
            else:
                letters[word] = values[0]
        least = said.get("roofline", ""), said.get("peak", "")
        if "answer" not in said:
            raise ValueError(f"{self.name}: the stanza lacks answer, the letter of the result that is compared")
        call = Call(thing, rows, letters, said["answer"], blend, least)
        for letter, other in said.get("at_most", {}).items():
            call = replace(call, letters=letters | {letter: min(letters[letter], _most(call, letter, other))})
        return self._tuned(said["tuned"], call, row) if "tuned" in said else call

    def _tuned(self, tuned: Mapping, call: Call, row) -> Call:
        """Return the fastest choice that runs and fits in memory, or the smallest if none fits."""
        tuned = dict(tuned)
        best, where, share, found = tuned.pop("best", ""), tuned.pop("where", ""), tuned.pop("fits", 1.0), []
        lists = [self._of(x, row, call.letters) if isinstance(x, str) else x for x in tuned.values()]
        for values in itertools.product(*lists):
            own = dict(zip(tuned, values, strict=True))
            if where and not self._of(where, row, call.letters | own):
                continue
            letters = dict(call.letters)
            for name, text in self._whole(row).get("follows", {}).items():
                letters[name] = self._of(text, row, letters | own)
            option = replace(call, letters=letters | own)
            try:
                run = option.runs[0]
                over = not best and run.memory > share * run.hbm_capacity
                rate = -run[best] if best else run.step_time / run.global_batch
                rank = (over, run.memory if over else rate)
            except (KeyError, ValueError):
                continue  # micro-batches are no whole number, the schedule cannot run, or memory is short
            found.append((*rank, option))
        if not found:
            raise ValueError(f"none of the choices of {', '.join(tuned)} runs")
        return min(found, key=lambda x: x[:2])[2]

    def _whole(self, row: Measurement) -> dict:
        """Return the stanza with the additions of its `when` cases that hold for a row."""
        cases = [*self.said.get("when", ()), *self.said.get("also", ())]
        fits = tuple(self._holds(case, row) for case in cases)
        if fits not in self._wholes:
            said = dict(self.said)
            for case, is_met in zip(cases, fits, strict=True):
                if is_met:
                    said = joined(said, {k: x for k, x in case.items() if k != "if"})
            self._wholes[fits] = said
        return self._wholes[fits]

    def _rows(self, row: Measurement, said: Mapping) -> tuple[tuple, ...]:
        rows = [("shape", self._shape(said["shape"], row))] if "shape" in said else []
        if said.get("model") and "shape" not in said:
            rows.append(("models", self._key("model", row, said)))
        if said.get("device"):
            kinds = ("device", "precision", "cluster", "libraries")
            rows.append(("accelerators", *(self._key(x, row, said) for x in kinds)))
        rows += [(f"{x}s", self._key(x, row, said)) for x in ("framework", "engine") if x in said]
        for text in said.get("rows", ()):
            (kind, key), *more = text.partition(" ")[0].split("."), *text.split(" ")[1:]
            rows.append((kind, *filter(None, (x.format_map(row) for x in (key, *more)))))
        return (*rows, *(("formula", x.format_map(row)) for x in said.get("formulas", ())))

    def _of(self, text: str, row: Measurement, letters: Mapping, known: Callable[[], Mapping] = dict):
        def value(name):
            if name in letters:
                return letters[name]
            if name not in row and name in NOTATION:
                if name not in known():
                    raise Empty(f"{row.get('row_id', 'a row')}: nothing says what {name} is")
                return known()[name]
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
        text = said.get(kind, "")
        if "{" not in text:
            return text
        text = text.format_map(row)
        patterns = said.get("names", {}).get(kind, _PATTERNS if kind == "device" else None)
        if patterns is None or (patterns is _PATTERNS and text.islower() and text in tables.accelerators):
            return text  # the text is a key already, in its own spelling
        return next((key for pattern, key in patterns.items() if _search(f"(?i){pattern}", text)), "")


def _first(call: Call | Sum) -> Call:
    return call.terms[0] if isinstance(call, Sum) else call


@cache
def _cells(rows: tuple[tuple, ...]) -> dict:
    found: dict = {}
    for x in rows:
        if x[0] != "formula":
            found |= row_of(x)
    return found


def _most(call: Call, letter: str, other: str) -> float:
    """Return another letter of a call's result with the letter set to one, or 0 if it has no value."""
    return _other(call.thing, call.rows, tuple((call.letters | {letter: 1.0}).items()), other)


@cache
def _other(thing: str, rows: tuple, letters: tuple, other: str) -> float:
    try:
        find(thing).checked(tuple(map(row_of, rows)), dict(letters))  # raises if the layout cannot run
        return float(priced_calls([Call(thing, rows, dict(letters))], [[other]])[0, 0])
    except (KeyError, ValueError):
        return 0.0


def _named(text: str) -> Callable:
    module, function = text.split(":")
    return getattr(import_module(f"scalebook.measurements.{module}"), function)


def stanzas(bound: bool = False) -> dict[str, Stanza]:
    """Return the sets that TOML files describe, by name; with `bound`, the sets of lower bounds instead."""
    return _kept(bound)


@cache
def _kept(bound: bool) -> dict[str, Stanza]:
    return {name: Stanza(name, x) for name, x in written().items() if x.get("bound", False) is bound}


def confrontations() -> dict[str, Confrontation]:
    """Return, by name, the `Confrontation` of every set that a TOML file describes."""
    return {name: x.confrontation() for name, x in stanzas().items()}
