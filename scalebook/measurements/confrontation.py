"""A confrontation: a set of published measurements, the prediction for each, and the errors."""

import html
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scalebook.language.arguments import checked
from scalebook.language.notation import brief, quoted
from scalebook.language.stanzas import file_of
from scalebook.language.tabular import folded, page_table, styled
from scalebook.tables import cite

from .calls import imports
from .rows import Measurement, number, read_rows

__all__ = ["Confrontation", "Priced", "Readings", "Result"]

SHOWN = 6  # lines of errors that a page shows without unfolding

_FIGURES = ("mean", "median", "p90", "worst", "bias", "single")
TIMES = ("s", "ms", "us", "µs", "d")


class Priced(NamedTuple):
    """Predictions for the rows of a set and, in the same unit, two simpler estimates to compare them with.

    `roofline` is the time or rate with devices at their peaks; a measurement may beat it, because caches help. Nothing
    can beat `peak`, so a row that does is refused.
    """

    predicted: np.ndarray
    roofline: np.ndarray | None = None
    peak: np.ndarray | None = None


class Readings(NamedTuple):
    """Predictions for rows that may mean several things: one line for each meaning, and its probability."""

    predicted: np.ndarray
    chances: np.ndarray


class Measured(dict):
    """A measured row, by column. `call` is the Python that predicts it: import lines, then the call."""

    def __init__(self, row: Measurement, call_of: Callable[[Measurement], str] | None):
        super().__init__(row)
        self._call_of = call_of

    @property
    def call(self) -> str:
        if self._call_of is None:
            raise AttributeError("this set is predicted by code of its own, not by one public call")
        line = self._call_of(self)
        return "\n".join([*imports(line), line])


class _Read(dict):
    """A row that remembers which of its columns was read last."""

    last = ""

    def __getitem__(self, column):
        self.last = column
        return super().__getitem__(column)


@dataclass(frozen=True)
class Confrontation:
    """A set of measurements from one CSV file, and the functions that predict them. Call it to get the `Result`.

    - `predict` takes the kept rows and returns predictions of the column `measured`, in `unit`: an array, or a Priced.
    - `left_out` returns why a row is left out ("" for one that is kept); `group` returns its kind.
    - `calibrated` says which numbers were fitted to which rows; `calibrates` returns True for these rows. The summary
      leaves them out.
    - `optional` columns may be missing in another file. A row without a `row_id` is known by its `id` or its number.
    - `completed` adds columns that are computed from the row's other columns.
    - `alike` returns a row's group, such as the measured quantity. The baseline predicts a group by one number.
    - `readings` gives predictions for each possible meaning of incomplete rows, with their probabilities.
    - `call` gives the line of Python whose value is a row's prediction.
    - `why` says in a sentence why a set needs Python of its own.
    """

    name: str
    file: str
    what: str
    predict: Callable[[list[Measurement]], np.ndarray | Priced]
    measured: str
    unit: str
    sources: tuple[str, ...]
    left_out: Callable[[Measurement], str]
    group: Callable[[Measurement], str]
    calibrated: str = ""
    calibrates: Callable[[Measurement], bool] = field(default=lambda row: False)
    optional: tuple[str, ...] = ()
    completed: Callable[[Measurement], Measurement] = lambda row: row
    alike: Callable[[Measurement], str] = lambda row: ""
    readings: "Callable[[list[Measurement]], Readings] | None" = None
    call: Callable[[Measurement], str] | None = None
    why: str = ""

    def __call__(self, path: str | Path | None = None) -> "Result":
        """Run the confrontation on the package's file, or on another CSV file with the same columns.

        Raises ValueError, naming file, row and column, for a file that cannot be read, that lacks a column, that has an
        unusable cell, or whose rows are all left out. Only rows of the package's file count as calibrated on.
        """
        return self._packaged if path is None else self._confronted(path)

    @cached_property
    def _packaged(self) -> "Result":
        return self._confronted(None)

    @cached_property
    def first(self) -> Measured:
        """The first row of the package's file that is not left out, read without predicting anything."""
        return next(self.kept())

    def kept(self) -> Iterator[Measured]:
        """Yield the rows of the package's file that are not left out, read without predicting anything."""
        rows, _ = read_rows(file_of(__package__, self.file))
        return (Measured(row, self.call) for row in map(self.completed, rows) if not self.left_out(row))

    def _confronted(self, path):
        own, columns = read_rows(file_of(__package__, self.file))
        rows, where = (own, self.file) if path is None else self._other(path, columns)
        rows = [self._answer(where, self.completed, row) for row in rows]
        reasons = [self._answer(where, self.left_out, row) for row in rows]
        kept = [Measured(row, self.call) for row, reason in zip(rows, reasons, strict=True) if not reason]
        left_out = dict(Counter(filter(None, reasons)).most_common())
        if not kept:
            said = "; ".join(f"{n} {reason}" for reason, n in left_out.items()) or "it is empty"
            raise ValueError(f"{where} has no row to confront {self.name} with: {said}")
        measured = np.array([self._answer(where, lambda row: number(row, self.measured), row) for row in kept])
        for row in kept:
            self._answer(where, self.group, row)
        priced = self._priced(where, kept)
        if (faster := self._faster(priced, measured)).any():
            refused = [row["row_id"] for row, is_faster in zip(kept, faster, strict=True) if is_faster]
            left_out |= {f"faster than the peak of its device, which is no measurement: {x}": 1 for x in refused}
            if faster.all():
                raise ValueError(f"{where} has no row to confront {self.name} with: all are {next(reversed(left_out))}")
            kept = [row for row, is_faster in zip(kept, faster, strict=True) if not is_faster]
            priced, measured = Priced(*(x if x is None else x[~faster] for x in priced)), measured[~faster]
        ids = {row["row_id"] for row in kept} if path is not None else ()
        same = (self.completed(row) for row in own if row["row_id"] in ids)
        whole = kept if path is None else [row for row in same if not self.left_out(row)]
        known = {row["row_id"] for row in whole if self.calibrates(row)}
        fitted = np.array([row["row_id"] in known for row in kept])
        predicted = priced.predicted
        with np.errstate(all="ignore"):
            far = np.flatnonzero(~np.isfinite([predicted / measured, measured / predicted]).all(0))
        if far.size:
            row = kept[far[0]]
            said = f"{predicted[far[0]]:g} is predicted, and {self.measured} is {quoted(row[self.measured])}"
            raise ValueError(f"{where}, row {quoted(row['row_id'])}: {said}: no error can be told")
        return Result(self, kept, predicted, measured, fitted, left_out, priced.roofline)

    def _other(self, path, columns) -> tuple[list[Measurement], str]:
        """Return the rows of another file, and what error messages call it."""
        if not isinstance(path, str | PathLike):
            raise TypeError(f"other measurements are given as the path of a CSV file, not as {quoted(path)}")
        rows, found = read_rows(Path(path))
        where = str(path) if len(str(path)) <= 160 else quoted(str(path))
        if lacking := [c for c in columns if c not in found and c not in self.optional]:
            raise ValueError(f"{where} lacks the column{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
        return rows, where

    def _faster(self, priced: Priced, measured) -> np.ndarray:
        """Return a mask of rows that beat the peak of their devices by more than the rounding of figures."""
        if priced.peak is None:
            return np.zeros(len(measured), bool)
        return measured < 0.999 * priced.peak if self.unit in TIMES else measured > 1.001 * priced.peak

    def _priced(self, where, rows) -> Priced:
        try:
            found = self.predict(rows)
            found = found if isinstance(found, Priced) else Priced(found)
            priced = Priced(*(x if x is None else np.asarray(x, float) for x in found))
        except Exception as error:  # a bad column may raise anything; the message names its place
            for row in rows:
                self._answer(where, lambda x: self.predict([x]), row)
            said = f"{self.name} cannot be predicted for these rows together: {brief(error)}"
            raise ValueError(f"{where}: {said}") from None
        if not np.isfinite(priced.predicted).all():
            row = rows[np.flatnonzero(~np.isfinite(priced.predicted))[0]]
            raise ValueError(f"{where}, row {quoted(row['row_id'])}: nothing finite is predicted for it")
        return priced

    def _answer(self, where, question, row):
        """Return the answer of a function of a row. Raises ValueError, naming file, row and the column read last."""
        read = _Read(row)
        try:
            with np.errstate(all="ignore"):
                return question(read)
        except Exception as error:
            if brief(error).startswith(f"{row['row_id']}: "):  # the wording of `number`
                raise ValueError(f"{where}, row {brief(error)}") from None
            column = f", {read.last} is {quoted(row.get(read.last))}" if read.last else ""
            said = f"{type(error).__name__}: " * (not isinstance(error, ValueError)) + brief(error)
            raise ValueError(f"{where}, row {quoted(row['row_id'])}{column}: {said}") from None


@dataclass(frozen=True, eq=False)
class Result:
    """The compared rows with predictions, measurements and any rooflines; `left_out` counts other rows by reason."""

    confrontation: Confrontation
    rows: list[Measurement]
    predicted: np.ndarray
    measured: np.ndarray
    fitted: np.ndarray
    left_out: dict[str, int]
    roofline: np.ndarray | None = None

    @cached_property
    def errors(self) -> np.ndarray:
        """The error of each row, predicted / measured - 1, as an array."""
        return self.predicted / self.measured - 1

    @cached_property
    def single(self) -> np.ndarray:
        """Errors of a baseline that predicts all rows by one number: a share of the roofline or, without it, one value.

        The number for a row is the best one for the other rows. If there are no others, the error is NaN.
        """
        known = (np.ones(len(self.rows)) if self.roofline is None else self.roofline) / self.measured
        kinds, found = np.array([self.confrontation.alike(row) for row in self.rows]), np.empty(len(self.rows))
        for kind in set(kinds):
            found[kinds == kind] = best_share(known[kinds == kind])
        return found * known - 1

    def of(self, picked: np.ndarray) -> dict[str, float]:
        """Return statistics of |predicted/measured - 1| over the rows that the mask `picked` selects.

        `bias` is the signed mean, and `single` the mean error of predicting all rows by one number.
        """
        if not isinstance(picked, np.ndarray) or picked.dtype != bool or picked.shape != self.errors.shape:
            raise TypeError(f"picked is an array of {len(self.rows)} values True or False, not {quoted(picked)}")
        errors = self.errors[picked]
        if not errors.size:
            return {"rows": 0}
        size = np.abs(errors)
        figures = {"mean": size.mean(), "median": np.median(size), "p90": np.quantile(size, 0.9), "worst": size.max()}
        figures |= {"bias": errors.mean()}
        told = np.abs(self.single[picked][np.isfinite(self.single[picked])])
        figures |= {"single": told.mean()} if told.size else {}
        return {"rows": len(size)} | {k: float(x) for k, x in figures.items()}

    @cached_property
    def summary(self) -> dict[str, float]:
        """Mean, median, 90th percentile and more of the errors, without the rows that numbers were fitted to."""
        return self.of(~self.fitted)

    @cached_property
    def groups(self) -> dict[str, dict[str, float]]:
        """Error statistics by kind of row. Rows used for calibration, if any, are the kind "calibrated on"."""
        kinds = np.array([self.confrontation.group(row) for row in self.rows])
        found = {"calibrated on": self.of(self.fitted)} if self.fitted.any() else {}
        return found | {str(k): self.of((kinds == k) & ~self.fitted) for k in sorted(set(kinds[~self.fitted]))}

    @property
    def skill(self) -> str:
        """A sentence that compares our mean error with the error of predicting every row by one number."""
        s = self.summary
        if "single" not in s:
            return "Of one row no other number can be found."
        what = "one value for all rows" if self.roofline is None else "one share of the roofline for all rows"
        said = f"{what}, the best for the others, is {s['single']:.1%} off in the mean"
        if s["mean"] > s["single"]:
            return f"We lose: {said}, and we are {s['mean']:.1%} off."
        groups = {k: g for k, g in self.groups.items() if k != "calibrated on"}
        lost = [k for k, g in groups.items() if g.get("single", np.inf) < g.get("mean", 0)]
        return f"{said[0].upper()}{said[1:]}." + (f" It is nearer than we are for {'; '.join(lost)}." if lost else "")

    @cached_property
    def ambiguity(self) -> str:
        """If rows can be understood in several ways: a sentence on the error of the best reading; otherwise ""."""
        if not self.confrontation.readings or self.fitted.all():
            return ""
        unseen = np.flatnonzero(~self.fitted)
        found = self.confrontation.readings([self.rows[i] for i in unseen])
        off = np.abs(found.predicted / self.measured[unseen] - 1)
        told = np.abs(found.predicted - self.predicted[unseen]).argmin(0)
        other, expected = off.argmin(0) != told, 1 - found.chances[told, np.arange(unseen.size)]
        return (
            f"A row may mean one of {len(off)} things and does not say which: the nearest is {off.min(0).mean():.1%} "
            f"off in the mean. For {other.mean():.0%} it is another than the one above, as is to be expected for "
            f"{expected.mean():.0%}."
        )

    @checked
    def worst(self, n: Integral = 5) -> list[dict]:
        """Return the n rows with the largest errors, largest first, with `predicted`, `measured` and `error`."""
        order = np.argsort(-np.abs(self.errors))[: int(n)]
        columns = {"predicted": self.predicted, "measured": self.measured, "error": self.errors}
        return [self.rows[i] | {name: float(column[i]) for name, column in columns.items()} for i in order]

    def record(self) -> dict:
        """Return the statistics of this result as a dict for JSON, without the rows."""
        c = self.confrontation
        said = {"what": c.what, "unit": c.unit, "calibrated": c.calibrated, "sources": list(c.sources)}
        return self.summary | said | {"skill": self.skill, "groups": self.groups, "left_out": self.left_out}

    def _table(self):
        for name, s in {"not calibrated on": self.summary, **self.groups}.items():
            figures = [f"{s[k]:{'+' * (k == 'bias')}.1%}" if k in s else "" for k in _FIGURES]
            yield [name, str(s["rows"]), *figures]

    def __repr__(self):
        c = self.confrontation
        lines = [["", "rows", *_FIGURES], *self._table()]
        wide = max(len(line[0]) for line in lines)
        head = f"{c.name}: {c.what}\nCalibrated: {c.calibrated or 'nothing'}."
        table = (f"{name:{wide}}" + "".join(f"{x:>9}" for x in figures) for name, *figures in lines)
        left_out = (f"Left out: {n} {reason}." for reason, n in self.left_out.items())
        return "\n".join([head, *table, *filter(None, [self.skill, self.ambiguity]), *left_out])

    def _repr_html_(self):
        c = self.confrontation
        heads = [c.name, "rows", "mean", "median", "90 %", "worst", "bias", "one number"]
        lines = list(self._table())
        groups = lines[2 if self.fitted.any() else 1 :]
        apart = len(lines) > SHOWN  # kinds of rows are folded below the summary
        figures = page_table(heads, lines[: -len(groups)] if apart else lines)
        figures += folded(page_table(heads, groups), f"{len(groups)} kinds of rows") if apart else ""
        first = (
            f"{c.what} Errors are |predicted/measured − 1| of {c.measured} ({c.unit}); bias is the signed mean, and "
            f"one number stands for what the best one is off in the mean. {self.skill} {self.ambiguity}".rstrip()
        )
        more = [f"{n} rows left out: {reason}." for reason, n in self.left_out.items()]
        more += [f"Source: {cite(s)}." for s in c.sources]
        listed = "".join(f"<li>{html.escape(x)}</li>" for x in more)
        return styled(
            f"{figures}<p>{html.escape(first)}<br>Calibrated: {html.escape(c.calibrated or 'nothing')}.</p>"
            f"<details><summary>Sources, and rows left out</summary><ul>{listed}</ul></details>"
        )


def best_share(x: np.ndarray) -> np.ndarray:
    """Return, for each value of `x`, the number s with the least mean of |s·x - 1| over the other values.

    It is the median of 1/x with weights x.
    """
    if len(x) < 2:
        return np.full(len(x), np.nan)
    inverse = np.divide(1, x, out=np.zeros_like(x), where=x > 1e-300)
    order = np.argsort(inverse, kind="stable")
    weights = x[order]
    below = np.cumsum(weights)
    half = (below[-1] - weights) / 2
    places = np.arange(len(x))
    at = np.searchsorted(below, half)  # the median lies before the row left out
    after = np.searchsorted(below, half + weights)
    at = np.minimum(np.where(at < places, at, np.maximum(after, places + 1)), len(x) - 1)
    at = np.where(at == places, np.maximum(places - 1, 0), at)  # the last row, if rounding left too little weight
    found = np.empty(len(x))
    found[order] = inverse[order][at]
    return found
