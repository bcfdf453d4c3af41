"""Many calls of a step or a service priced together: those that one sheet answers, as arrays."""

from functools import cache

import numpy as np

from scalebook.language import Sheet
from scalebook.language.row import gather

__all__ = ["priced", "together"]


@cache
def _part(sheet: Sheet, wanted: tuple[str, ...]) -> tuple[Sheet, frozenset[str]]:
    """What these letters rest on, and the letters that it uses."""
    part = sheet.only(*wanted)
    return part, frozenset(part.inputs) | part.formulas.keys()


def _column(values: list, shape: tuple[int, ...]) -> np.ndarray:
    """A letter's values of all calls, as many of each as the results have."""
    return np.array([np.broadcast_to(x, shape) for x in values] if shape else values, float)


def priced(step, asked: list[tuple[tuple, dict]], *wanted: str) -> dict[str, np.ndarray]:
    """Letters of `step` (decode_step, serve) for each call, which is its rows and its letters.

    Letters may be arrays, of one length for all calls: then each call has a line of the results.
    Raises KeyError for a letter that has no value.

    >>> from scalebook.inference import decode_step
    >>> from scalebook.tables import accelerators, models
    >>> device = accelerators.h100.at("bf16")
    >>> calls = [((models.llama3_8b, device), dict(batch=b, context=4096)) for b in (1, 64)]
    >>> (priced(decode_step, calls, "pass_time")["pass_time"] * 1e3).round(1).tolist()
    [6.7, 21.0]
    """
    planned = (step.plan(rows, letters) for rows, letters in asked)
    known = [(sheet, {n: cell.value for n, cell in gather(rows, left).items()}) for sheet, rows, left in planned]
    return together(known, *wanted)


def together(asked: list[tuple[Sheet, dict]], *wanted: str) -> dict[str, np.ndarray]:
    """The same where each call is a sheet and all that is known, of which it takes what these letters rest on."""
    groups: dict[tuple, list] = {}
    shape: tuple[int, ...] = ()
    for place, (sheet, known) in enumerate(asked):
        part, used = _part(sheet, wanted)
        known = {n: x for n, x in known.items() if n in used}
        if arrays := [x for x in known.values() if not isinstance(x, int | float)]:
            shape = np.broadcast_shapes(shape, *map(np.shape, arrays))
        groups.setdefault((part, *sorted(known)), []).append((place, known))
    found = {name: np.zeros((len(asked), *shape)) for name in wanted}
    for (part, *names), group in groups.items():
        columns = {n: _column([known[n] for _, known in group], shape) for n in names}
        row = part(**{n: column.ravel() for n, column in columns.items()})
        for name in wanted:
            found[name][[place for place, _ in group]] = np.reshape(row[name], (len(group), *shape))
    return found
