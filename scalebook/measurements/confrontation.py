"""A confrontation: published measurements, what a formula predicts for each, and how far the two are apart.

>>> from scalebook.measurements import confront
>>> result = confront("batch1_floor")
>>> result.summary["rows"], bool((result.predicted >= result.measured).all())
(120, True)
"""

import csv
import gzip
import html
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from os import PathLike
from pathlib import Path

import numpy as np

from scalebook.language.notation import brief, quoted
from scalebook.language.tabular import folded, page_table
from scalebook.tables import cite

__all__ = ["Confrontation", "Result"]

SHOWN = 6  # lines of errors that a page shows at once

Measurement = dict[str, str]  # one line of a CSV file


class _Read(dict):
    """A row that knows which of its columns was read last."""

    last = ""

    def __getitem__(self, column):
        self.last = column
        return super().__getitem__(column)


@dataclass(frozen=True)
class Confrontation:
    """Measurements and the formula they are held against.

    `predict` takes the rows that are kept and returns the predictions, in `unit`, of the column
    `measured`.  `left_out` says why a row is left out ("" for one that is kept), `group` which
    kind of row it is.  `calibrated` says which numbers were fitted and on which rows; `calibrates`
    picks those rows, and the summary leaves them out.  Another file may lack the columns that are
    `optional`; a row without a `row_id` is known by its `id` or its number.  `completed` adds the columns that follow
    from a row's own.
    """

    name: str
    file: str
    what: str
    predict: Callable[[list[Measurement]], np.ndarray]
    measured: str
    unit: str
    sources: tuple[str, ...]
    left_out: Callable[[Measurement], str]
    group: Callable[[Measurement], str]
    calibrated: str = ""
    calibrates: Callable[[Measurement], bool] = field(default=lambda row: False)
    optional: tuple[str, ...] = ()
    completed: Callable[[Measurement], Measurement] = lambda row: row

    def __call__(self, path: str | Path | None = None) -> "Result":
        """Confront the package's file, or another CSV file with the same columns.

        Raises ValueError, naming the file, the row and the column, for a file that cannot be read, lacks a column or
        has what nothing can be predicted from, and for one without a row that is kept.  Only
        rows of the package's file count as calibrated on.

        >>> from scalebook.measurements import CONFRONTATIONS
        >>> CONFRONTATIONS["batch1_floor"]("/dev/null")
        Traceback (most recent call last):
            ...
        ValueError: /dev/null lacks the columns row_id, engine, model, quant, gpu, n_gpus, phase, batch, ...
        """
        return self._own if path is None else self._confronted(path)

    @cached_property
    def _own(self) -> "Result":
        """That of the package's file, kept: rows and formulas do not change under way."""
        return self._confronted(None)

    def _confronted(self, path):
        own, columns = _read(files("scalebook.measurements") / self.file)
        rows, where = own, self.file
        if path is not None:
            if not isinstance(path, str | PathLike):
                raise TypeError(f"other measurements are given as the path of a CSV file, not as {quoted(path)}")
            rows, found = _read(Path(path))
            where = str(path) if len(str(path)) <= 160 else quoted(str(path))
            if lacking := [c for c in columns if c not in found and c not in self.optional]:
                raise ValueError(f"{where} lacks the column{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
        rows = [self._asked(where, self.completed, row) for row in rows]
        reasons = [self._asked(where, self.left_out, row) for row in rows]
        kept = [row for row, reason in zip(rows, reasons, strict=True) if not reason]
        left_out = dict(Counter(filter(None, reasons)).most_common())
        if not kept:
            said = "; ".join(f"{n} {reason}" for reason, n in left_out.items()) or "it is empty"
            raise ValueError(f"{where} has no row to confront {self.name} with: {said}")
        measured = np.array([self._asked(where, lambda row: number(row, self.measured), row) for row in kept])
        for row in kept:
            self._asked(where, self.group, row)
        known = {row["row_id"] for row in own if self.calibrates(row)}
        fitted = np.array([row["row_id"] in known for row in kept])
        predicted = self._predicted(where, kept)
        with np.errstate(over="ignore"):
            far = np.flatnonzero(~np.isfinite(predicted / measured))
        if far.size:
            row = kept[far[0]]
            raise ValueError(
                f"{where}, row {quoted(row['row_id'])}: {predicted[far[0]]:g} is predicted, and {self.measured} is "
                f"{quoted(row[self.measured])}: no error can be told"
            )
        return Result(self, kept, predicted, measured, fitted, left_out)

    def _predicted(self, where, rows) -> np.ndarray:
        """The predictions; raises ValueError, naming the file, the row and its column, where there is none."""
        try:
            predicted = np.asarray(self.predict(rows), float)
        except Exception as error:  # whatever a column that does not fit led to: it is said where it stands
            for row in rows:
                self._asked(where, lambda x: self.predict([x]), row)
            raise ValueError(
                f"{where}: {self.name} cannot be predicted for these rows together: {brief(error)}"
            ) from None
        if not np.isfinite(predicted).all():
            row = rows[np.flatnonzero(~np.isfinite(predicted))[0]]
            raise ValueError(f"{where}, row {quoted(row['row_id'])}: nothing finite is predicted for it")
        return predicted

    def _asked(self, where, question, row):
        """What a question has for an answer; raises ValueError, naming the file,
        the row and the column it read last.
        """
        read = _Read(row)
        try:
            with np.errstate(all="ignore"):
                return question(read)
        except Exception as error:
            if brief(error).startswith(f"{row['row_id']}: "):  # as `number` says it
                raise ValueError(f"{where}, row {brief(error)}") from None
            column = f", {read.last} is {quoted(row.get(read.last))}" if read.last else ""
            said = f"{type(error).__name__}: " * (not isinstance(error, ValueError)) + brief(error)
            raise ValueError(f"{where}, row {quoted(row['row_id'])}{column}: {said}") from None


@dataclass(frozen=True, eq=False)
class Result:
    """The rows of a confrontation, what was predicted and measured for each, and the rows left out by reason."""

    confrontation: Confrontation
    rows: list[Measurement]
    predicted: np.ndarray
    measured: np.ndarray
    fitted: np.ndarray
    left_out: dict[str, int]

    @cached_property
    def errors(self) -> np.ndarray:
        """predicted / measured - 1, row by row."""
        return self.predicted / self.measured - 1

    def of(self, picked: np.ndarray) -> dict[str, float]:
        """How many rows, mean, median, 90th percentile and worst of |predicted/measured - 1|, and the signed mean."""
        errors = self.errors[picked]
        if not errors.size:
            return {"rows": 0}
        size = np.abs(errors)
        figures = {"mean": size.mean(), "median": np.median(size), "p90": np.quantile(size, 0.9), "worst": size.max()}
        return {"rows": len(size)} | {k: float(x) for k, x in {**figures, "bias": errors.mean()}.items()}

    @property
    def summary(self) -> dict[str, float]:
        """The errors of the rows that nothing was calibrated on."""
        return self.of(~self.fitted)

    @property
    def groups(self) -> dict[str, dict[str, float]]:
        """The same of the rows calibrated on, if any, and of each kind of row that nothing was calibrated on."""
        kinds = np.array([self.confrontation.group(row) for row in self.rows])
        found = {"calibrated on": self.of(self.fitted)} if self.fitted.any() else {}
        return found | {str(k): self.of((kinds == k) & ~self.fitted) for k in sorted(set(kinds[~self.fitted]))}

    def worst(self, n: int = 5) -> list[dict]:
        """The n rows that are farthest off, farthest first, with `predicted`, `measured` and `error`."""
        order = np.argsort(-np.abs(self.errors))[:n]
        columns = {"predicted": self.predicted, "measured": self.measured, "error": self.errors}
        return [self.rows[i] | {name: float(column[i]) for name, column in columns.items()} for i in order]

    def record(self) -> dict:
        """Everything but the rows, for a JSON file."""
        c = self.confrontation
        said = {"what": c.what, "unit": c.unit, "calibrated": c.calibrated, "sources": list(c.sources)}
        return self.summary | said | {"groups": self.groups, "left_out": self.left_out}

    def _table(self):
        """The lines of figures to show, as text."""
        for name, s in {"not calibrated on": self.summary, **self.groups}.items():
            figures = (
                [f"{s[k]:.1%}" for k in ("mean", "median", "p90", "worst")] + [f"{s['bias']:+.1%}"]
                if s["rows"]
                else [""] * 5
            )
            yield [name, str(s["rows"]), *figures]

    def __repr__(self):
        c = self.confrontation
        lines = [["", "rows", "mean", "median", "p90", "worst", "bias"], *self._table()]
        wide = max(len(line[0]) for line in lines)
        return "\n".join(
            [
                f"{c.name}: {c.what}",
                f"Calibrated: {c.calibrated or 'nothing'}.",
                *(f"{name:{wide}}" + "".join(f"{x:>9}" for x in figures) for name, *figures in lines),
                *(f"Left out: {n} {reason}." for reason, n in self.left_out.items()),
            ]
        )

    def _repr_html_(self):
        c = self.confrontation
        heads, lines = [c.name, "rows", "mean", "median", "90 %", "worst", "bias"], list(self._table())
        groups = lines[2 if self.fitted.any() else 1 :]
        apart = len(lines) > SHOWN  # the kinds of rows stand behind a line, and what all of them give is seen at once
        figures = page_table(heads, lines[: -len(groups)] if apart else lines)
        figures += folded(page_table(heads, groups), f"{len(groups)} kinds of rows") if apart else ""
        first = f"{c.what} Errors are |predicted/measured − 1| of {c.measured} ({c.unit}); bias is the signed mean."
        more = [
            *(f"{n} rows left out: {reason}." for reason, n in self.left_out.items()),
            *(f"Source: {cite(s)}." for s in c.sources),
        ]
        listed = "".join(f"<li>{html.escape(x)}</li>" for x in more)
        return (
            f"{figures}<p>{html.escape(first)}<br>Calibrated: {html.escape(c.calibrated or 'nothing')}.</p>"
            f"<details><summary>Sources, and rows left out</summary><ul>{listed}</ul></details>"
        )


def number(row: Measurement, column: str) -> float:
    """A positive number out of a row; raises ValueError, naming row and column, for anything else."""
    try:
        value = float(row[column])
        if not 0 < value < np.inf:
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"{row['row_id']}: {column} is {quoted(row[column])}, not a positive number") from None
    return value


def _read(source) -> tuple[list[Measurement], list[str]]:
    """The rows and the names of the columns of a CSV file, by its path (.gz too) or open for reading text.

    Raises ValueError, naming the file, for one that cannot be read, is no CSV file in UTF-8 or has a cell too many.
    """
    is_open = hasattr(source, "read")
    where = "the file" if is_open else quoted(str(source))
    opened = gzip.open if str(source).endswith(".gz") else open
    try:
        with nullcontext(source) if is_open else opened(source, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            rows = [{"row_id": row.get("id", str(number))} | row for number, row in enumerate(reader, 1)]
            names = reader.fieldnames or []
    except OSError as error:
        raise ValueError(f"cannot read {where}: {error.strerror or brief(error)}") from None
    except (ValueError, EOFError, csv.Error, zlib.error) as error:  # no UTF-8, a field without end, a file that was cut
        raise ValueError(f"{where} is no CSV file in UTF-8: {brief(error)}") from None
    if long := next((row for row in rows if None in row), None):
        raise ValueError(f"{where}, row {quoted(long['row_id'])}: it has more cells than there are columns")
    return rows, names
