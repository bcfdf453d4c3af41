"""Compare your own measurements with predictions of a sheet, a formula or training_step."""

from collections import Counter
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from scalebook.language import NOTATION, Formula, Row, Sheet, show
from scalebook.language.notation import brief, either, nearest, quoted, word
from scalebook.language.parts import nearest_parts, part_lines
from scalebook.language.tabular import aligned, page_table
from scalebook.shell.named import ROWS, is_thing, priced, read, words
from scalebook.training.totals import useful_times

from .confrontation import Confrontation, Result
from .rows import Measurement, read_rows

__all__ = ["Own", "confront_own"]

_ROWS = (*ROWS, "precision")
_IDS = ("row_id", "id")
_MOST = 1e100  # largest prediction over measurement; beyond it even a mean overflows


@dataclass(frozen=True, eq=False)
class Own(Result):
    """The comparison with your own measurements: `found` has rows' results, `unpriced` why a row has none."""

    found: list[Row] = field(default_factory=list)
    unpriced: list[tuple[str, str]] = field(default_factory=list)

    def _tables(self):
        """Yield tables of the worst rows and of those without a price, each as headings, lines and a caption."""
        c, lines = self.confrontation, []
        several = [n for n in self.rows[0] if n not in (*_IDS, c.measured) and len({x[n] for x in self.rows}) > 1]
        for i in np.argsort(-np.abs(self.errors))[:5]:
            row, figures = self.rows[i], [show(x[i], c.unit) for x in (self.predicted, self.measured)]
            given = " ".join(f"{n}={row[n]}" for n in several if row[n])
            lines.append([row["row_id"], f"{self.errors[i]:+.1%}", *figures, given, _why(self.found[i], c.measured)])
        yield ["row", "error", "predicted", "measured", "with", "the largest parts predicted"], lines, "worst rows"
        if self.unpriced:
            yield ["row", "why"], [list(x) for x in self.unpriced], "rows left out"

    def __repr__(self):
        shown = (f"{caption}:\n{aligned([heads, *lines], gap='  ')}" for heads, lines, caption in self._tables())
        return "\n\n".join([super().__repr__(), *shown])

    def _repr_html_(self):
        return super()._repr_html_() + "".join(page_table(*x) for x in self._tables())


def _why(row: Row, letter: str) -> str:
    nearest_one = nearest_parts(row, letter)
    if not nearest_one:
        return ""
    made = ", ".join(f"{n} {value} ({share})" for n, value, share in part_lines(row, nearest_one, most=3))
    return made if nearest_one == letter else f"of {nearest_one}: {made}"


def confront_own(thing, csv, measured: str = "step_time") -> Own:
    """Compare the rows of your own CSV file with the predictions of a sheet, a formula or training_step.

    `csv` is the path of the file, or a file open for reading text. A column is an input of the thing (such as tp or
    recompute), a table row by its kind (`model`, `device`, `link`), the device's `precision`, or `id`. `measured` names
    the column to compare, a quantity that the thing computes. Cells are written as everywhere: "2.5 s", or plain
    numbers in base units; an empty cell means the default. Leave out other measured results. A row without a
    prediction or a measurement is left out, and `unpriced` says why. Raises LookupError for an unknown quantity,
    TypeError for something that cannot be called, and ValueError, naming file, row and column, for a bad file.

    >>> from io import StringIO
    >>> from scalebook import training_step
    >>> mine = StringIO("model,device,tp,pp,dp,global_batch,seq,step_time\\n"
    ...                 "llama3_70b,h100,8,4,8,512,8192,19.5 s\\nllama3_70b,h100,7,4,8,512,8192,20 s\\n")
    >>> result = confront_own(training_step, mine)
    >>> result.summary["rows"], result.unpriced
    (1, [('2', 'tp=7 does not divide the 64 heads: tp=1, 2, ...')])
    """
    if not is_thing(thing):
        kinds = "a sheet, a formula or training_step"
        raise TypeError(f"one's own measurements are held against {kinds}, not {quoted(thing)}")
    letter = NOTATION[word(measured)]
    answers = (thing.letter,) if isinstance(thing, Formula) else thing.formulas if isinstance(thing, Sheet) else ()
    if answers and measured not in answers:
        raise LookupError(f"{thing.name} does not answer measured={measured}; {nearest(measured, answers)}")
    rows, where = _opened(csv)
    _check_columns(thing, where, rows, measured)
    kept, found, values, unpriced = [], [], [], []
    for row in rows:
        rows_of, letters, value = _cells(thing, f"{where}, row {quoted(row['row_id'])}", row, measured)
        try:
            if value is None:
                raise ValueError(f"{measured} was not measured")
            new = priced(thing, rows_of, letters)
            if not _predicted(new, measured) / value < _MOST:
                said = f"{new[measured]:g} is predicted, and {measured} is {row[measured]}"
                raise ValueError(f"{said}: no error can be told")
            if value < 0.999 * _least(new, measured):
                raise ValueError(f"{measured} is {row[measured]}: faster than the peak of its device")
        except (ValueError, TypeError, LookupError) as error:
            unpriced.append((row["row_id"], " ".join(str(error).split())))
        else:
            kept, found, values = [*kept, row], [*found, new], [*values, value]
    if not kept:
        first = f"row {quoted(unpriced[0][0])}: {unpriced[0][1]}"
        raise ValueError(f"{where}: no row of {len(rows)} could be priced; the first, {first}")
    predicted, none = np.array([_predicted(row, measured) for row in found]), np.zeros(len(kept), bool)
    left_out = {"without a price or a measurement: see below": len(unpriced)} if unpriced else {}
    c = _confrontation(thing, where, measured, letter)
    return Own(c, kept, predicted, np.array(values), none, left_out, _peak(found, measured), found, unpriced)


def _opened(csv) -> tuple[list[Measurement], str]:
    """Return the rows with stripped cells, and what error messages call the file."""
    is_path = isinstance(csv, str | PathLike)
    if not is_path and not hasattr(csv, "read"):
        given = "given as the path of a CSV file or the open file"
        raise TypeError(f"one's own measurements are {given}, not as {quoted(csv)}")
    where = quoted(str(csv)) if is_path else "the file"
    rows, names = read_rows(Path(csv) if is_path else csv)
    rows = [{_name(n): x.strip() for n, x in row.items()} for row in rows]
    names = [_name(x) for x in names]
    if not rows:
        raise ValueError(f"{where} is empty: its first line names the columns, and each other line is a measurement")
    if twice := [n for n, times in Counter(names).items() if times > 1]:
        raise ValueError(f"{where} has the column {quoted(twice[0])} twice")
    if len(names) == 1 and (other := next((x for x in (";", "\t") if x in names[0]), None)):
        raise ValueError(f"{where} parts its columns by {other!r}: commas would do")
    return rows, where


def _name(column: str) -> str:
    return column.strip().removeprefix("\ufeff")


def _check_columns(thing, where, rows, measured):
    known = {*NOTATION, *words(thing), *_ROWS, *_IDS}
    if measured not in rows[0]:
        raise ValueError(f"{where} lacks the column {measured}, which is what was measured; measured= names another")
    strange = next((x for x in rows[0] if x not in known), None)
    if strange is not None:
        kinds = f"a letter, a word of {thing.name}" if words(thing) else "a letter"
        said = f"is neither {kinds} nor {either(_ROWS)}; {nearest(strange, known)}"
        raise ValueError(f"{where}: the column {quoted(strange)} {said}")


def _cells(thing, where, row, measured) -> tuple[tuple[Row, ...], dict, float | None]:
    given = {n: x for n, x in row.items() if x and n not in _IDS}
    stems = {n: given.pop(n) for n in _ROWS if n in given}
    try:
        rows, letters = read(thing, given, **stems)
    except (LookupError, ValueError, TypeError) as error:
        raise ValueError(f"{where}: {brief(error)}") from None
    value = letters.pop(measured, None)
    letters = {n: x for n, x in letters.items() if n not in getattr(thing, "finds", ())}  # measured, no inputs
    if value == 0:
        raise ValueError(f"{where}: {measured} is {quoted(row[measured])}, of which no error can be told")
    return rows, letters, value


def _predicted(row: Row, letter: str) -> float:
    value = row[letter]
    if row.cells[letter].formula is None:
        raise ValueError(f"{letter} is given there ({row.cells[letter].origin}), not predicted")
    return value


def _peak(found, measured) -> np.ndarray | None:
    """Return step times at the peaks of the devices, or None; one share of them is the simple estimate to beat."""
    names = ("model_flops", "devices", "peak_flops")
    if measured != "step_time" or not all(name in row for row in found for name in names):
        return None
    return np.array([row.model_flops / (row.devices * row.peak_flops) for row in found])


def _least(row, measured) -> float:
    """Return the time of the weights' arithmetic alone at the peak, or 0 if unknown."""
    if _peak([row], measured) is None or not all(x in row for x in ("layers", "heads", "seq", "global_batch")):
        return 0.0
    whole, unmasked = useful_times(row)
    return 2 * unmasked - whole


def _confrontation(thing, where, measured, letter) -> Confrontation:
    def group(row):
        return " ".join(row[n] for n in _ROWS if row.get(n)) or "all"

    what = f"{letter.meaning[0].upper()}{letter.meaning[1:]} ({measured}), against the rows of {where}."
    given = thing.name, where, what, lambda rows: np.array([]), measured, letter.unit, ()
    return Confrontation(*given, left_out=lambda row: "", group=group)
