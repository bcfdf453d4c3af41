"""What an answer assumes: inputs that the call did not give, and the answers at their other likely values."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from scalebook.language import NOTATION, Row
from scalebook.language.arguments import checked, is_whole
from scalebook.language.interval import causes, usual_ends
from scalebook.language.notation import quoted
from scalebook.language.row import Cell, with_unit
from scalebook.language.stanzas import tables_of
from scalebook.language.words import WORDS
from scalebook.tables import frameworks, vendor_of
from scalebook.training.frameworks import FASTEST, SLOWEST, UNNAMED, framework_of, words_of
from scalebook.training.step import DEFAULT_LETTERS

__all__ = ["Assumption", "End", "answer_letter", "assumed"]

LEAST, MOST = 0.05, 6  # what moves an answer by less is not listed, and no more than six are
STEPS = 64  # between a value and an impossible end of its range, of which the last possible one is an end
TRIED = tables_of(__package__, "changes.toml")
OTHERS = TRIED["others"]  # other values of defaults that have no spread
ENTRIES = tables_of(__package__, "entries.toml")


class Lines(tuple):
    """A tuple that is shown with a line for each of its elements."""

    __slots__ = ()

    def __repr__(self):
        return "\n".join(map(str, self)) or "()"


class End(NamedTuple):
    """Another likely value of an assumption, the keywords that set it in the call, and the time (s) that results.

    The time is None if the call cannot run at a value within the assumption's range. `ttft` is of an engine, of its
    chunks, and of two pools.
    """

    value: float | str | bool
    letters: Mapping[str, Any]
    answer: float | None
    ttft: float | None = None


class Assumption(NamedTuple):
    """A value that the call did not give: its name, value, unit and source, and the answers at other likely values."""

    letter: str
    value: float | str | bool
    source: str
    ends: tuple[End, ...]
    unit: str
    moved: float

    def __str__(self):
        meaning = f", {short_meaning(self.letter)}" if self.letter in NOTATION else ""
        ends = ", ".join(f"{_time(x)} at {_value(self.letter, x.value)}" for x in self.ends)
        letters = " and ".join(self.ends[0].letters)
        return f"{letters} {_value(self.letter, self.value)}{meaning} ({self.source}): {ends}"


def _time(end: End) -> str:
    first = f" and TTFT {with_unit(end.ttft, 's')}" if end.ttft else ""
    return "cannot run" if end.answer is None else f"{with_unit(end.answer, 's')}{first}"


def _value(letter: str, value) -> str:
    return str(value) if isinstance(value, str | bool) else with_unit(value, NOTATION[letter].unit)


def short_meaning(letter: str) -> str:
    """Return the meaning of a quantity in a few words: its entry in the notation, cut at a comma, colon or bracket."""
    return NOTATION[letter].short


@checked
def answer_letter(run: Row) -> str:
    """Return the name of the time that answers a call: "step_time" in training, "tpot" (per output token) in serving.

    Reinforcement learning has "update_time", offline batches "makespan", static ones "end_to_end". Raises TypeError for
    a row that none of these calls returned.
    """
    return entry_of(run)["time"]


def entry_of(run: Row) -> Mapping[str, Any]:
    """Return what an answer says of the results of a run's call: its stanza of `entries.toml`."""
    if run.call is None:
        raise TypeError(f"{run.name} is no result of training_step, serve or rl_step, and only these have an answer")
    return ENTRIES.get(run.call.thing.name, ENTRIES["training_step"])


def _bases(run: Row, letter: str) -> list[tuple[Row, str]]:
    """Return the results that a time rests on, each with its letter there: the run itself, or the steps of it."""
    return [*run.made_of.values()] or [(run, letter)]


def cells_of(run: Row) -> dict[str, Cell]:
    """Return the cells of a run and of the steps that it is made of, which count if both have a letter, by name."""
    return {n: x for row in (run, *(x for x, _ in run.made_of.values())) for n, x in row.cells.items()}


@checked
def assumed(run: Row, most: int = MOST) -> tuple[Assumption, ...]:
    """Return the assumptions behind a run that move its time by more than 5 %: the `most` strongest, strongest first.

    Each has `ends`: other likely values and the time at each. `run.call.again(**end.letters)` repeats the call at one.
    """
    letter = answer_letter(run)
    if not is_whole(most) or most < 0:
        raise TypeError(f"most is how many assumptions to list, a whole number, not {quoted(most)}")
    if letter not in run:
        return Lines()
    if letter == "update_time":
        unsaid = run.call.thing.unsaid(*run.call.knowns, **run.call.letters)
        tried = (_moved(run, letter, (n,), others, *own) for n, (*own, others) in unsaid.items())
    else:
        tried = (_moved(run, letter, names, x, *_own(run, names[0])) for names, x in _candidates(run, letter))
    found = [x for x in tried if x and x.moved > LEAST]
    return Lines(sorted(found, key=lambda x: -x.moved)[:most])


def _candidates(run: Row, letter: str) -> Iterator[tuple[tuple[str, ...], list]]:
    """Yield letters that share an assumed value, and its other values."""
    open_cells, cells, bases = {}, cells_of(run), _bases(run, letter)
    # A slower service has more users, who slow it further; so have sessions, which begin their next turns later.
    least = LEAST / 4 if {"rate", "sessions"} & run.call.letters.keys() else LEAST
    for row, own in bases:
        for cause in causes(row, own):
            cell = row.cells[cause.letter]
            moves = max(abs(x / row[own] - 1) for x in (cause.low, cause.high)) > least
            is_shared = all(x[cause.letter] == cell.value for x, _ in bases if cause.letter in x)  # by both pools
            if moves and not cell.inputs and is_shared:
                open_cells[cause.letter] = cell
    for name, cell in open_cells.items():
        names = tuple(n for n, x in cells.items() if x is cell)
        most = 1.0 if NOTATION[name].sign == "share" else np.inf
        values = [min(cell.value * x, most) for x in usual_ends(name, cell)]
        values = [float(int(x + 0.5)) for x in values] if NOTATION[name].whole else values
        yield (name, *(n for n in names if n != name)), values
    rows = [frameworks[x] for x in (FASTEST, SLOWEST)] if letter == "step_time" else []
    rows = run.between.ends if rows and run.between else rows  # results, with cells of the framework's libraries too
    for name in sorted({n for row in rows for n in row} & {*run} - open_cells.keys()):
        cell, way = run.cells[name], name.partition("_")[0]  # an overlap of one device's exchange is of nothing
        is_idle = way in ("cp", "dp", "ep", "tp") and run.get(way, 1) == 1
        if not is_idle and cell.formula is None and cell.low is None and cell.origin != "given":
            values = [row.get(name, DEFAULT_LETTERS.get(name)) for row in rows]
            yield (name,), [x for x in values if x is not None and x != cell.value]
    others, given = {n: x for n, x in OTHERS.items() if n in cells}, {*run.call.letters}
    if any(getattr(x, "words", {}).get("precision") for x in run.call.knowns):  # which says the weights' bits
        given.add("weight_bits")
    if run.between is not None and run.between.what == "engine":
        others |= {n: x for n, x in TRIED["unnamed"].items() if n in cells}
        others["engine"] = TRIED["engines"].get(vendor_of(run.call.knowns), ["vllm"])
    for name, x in TRIED["options"].items() if letter == "step_time" else ():
        if run.get(x["way"], 1) > 1 and given.isdisjoint(x["of"]):
            others[name] = x["beside" if run.get(x.get("without"), 1) > 1 else "values"]
    yield from (((n,), x) for n, x in others.items() if n not in given)


def _moved(run: Row, letter: str, names: tuple[str, ...], values, own, source: str) -> Assumption | None:
    """Return an assumption with the answers at other values; values that do not go with the call are left out.

    A value within an assumption's range is not left out.  If arithmetic forbids it (memory would be faster than its
    bandwidth), the nearest possible value replaces it.  If the call refuses it, that moves the time by all of it.
    """
    ends, cell = [], cells_of(run).get(names[0])
    is_of_range = cell and usual_ends(names[0], cell)
    for value in dict.fromkeys(x for x in values if x != own):
        try:
            ends.append(_end(run, letter, names, value))
        except LookupError:
            ends += _nearest_end(run, letter, names, own, value) if is_of_range else []
        except TypeError:  # the call does not take this letter
            continue
        except ValueError:
            ends += [End(value, dict.fromkeys(names, value), None)] if is_of_range else []
    if not ends:
        return None
    moved = [1.0 if x.answer is None else abs(x.answer / run[letter] - 1) for x in ends]
    moved += [abs(x.ttft / run.ttft - 1) for x in ends if x.ttft]
    unit = "" if isinstance(own, str | bool) else NOTATION[names[0]].unit
    return Assumption(names[0], own, source, tuple(ends), unit, max(moved))


def _end(run: Row, letter: str, names: tuple[str, ...], value) -> End:
    letters = dict.fromkeys(names, value)
    new = run.call.again(**letters)
    is_of_first = names[0] in ("engine", *TRIED["unnamed"]) or "ttft" in entry_of(run).get("more", ())
    return End(value, letters, new[letter], new.get("ttft") if is_of_first else None)


def _nearest_end(run: Row, letter: str, names: tuple[str, ...], own: float, value: float) -> list[End]:
    """Return the possible value that is nearest to an impossible `value`, by bisection between it and the own value."""
    found, least, most = [], 0, STEPS
    while most - least > 1:
        middle = (least + most) // 2
        try:
            found, least = [_end(run, letter, names, own + (value - own) * middle / STEPS)], middle
        except (LookupError, TypeError, ValueError):
            most = middle
    return found


def _own(run: Row, name: str) -> tuple[Any, str]:
    """Return a value that a call does not give, and its source: a row of a table, a formula's source, or a default."""
    if name == "engine":
        return getattr(run.call.thing, "owner", run.call.thing).engine, "no engine is named"
    if name in WORDS:
        framework = framework_of(run.call.knowns, run.call.letters)
        said = words_of(framework) if framework else {}
        return said.get(name, WORDS[name].usual), framework.name if name in said else "the default"
    cell = cells_of(run)[name]
    if cell.origin == "usual":
        return cell.value, "the default"
    if cell.is_assumed:
        return cell.value, "assumed, as comparable devices have"
    if cell.origin == frameworks[UNNAMED].name:
        return cell.value, "half-way, no framework is named"
    return cell.value, ", ".join(cell.formula.sources) if cell.formula else cell.origin
