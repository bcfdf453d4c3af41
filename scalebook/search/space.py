"""The interface between a search and the things it can search, and the description of their strategies.

>>> from scalebook.training import training_step
>>> isinstance(training_step, Searchable), training_step.space.axes
(True, ('step_time', 'memory'))
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import sympy

from scalebook.language import Formula, Row, Sheet
from scalebook.language.notation import quoted, unused

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["NothingFits", "PlainSheet", "Searchable", "Space", "called_with", "divisors", "needs", "searchable"]


class NothingFits(ValueError):
    """The question is clear, but no strategy can run, or the model does not fit."""


def divisors(number: float) -> tuple[int, ...]:
    """Return all divisors of a number, in increasing order."""
    return tuple(sympy.divisors(int(number)))


def called_with(f: Callable, values: Mapping) -> Any:
    """Call a function with the values its parameters are named after.  Return None if one of them is unknown."""
    return f(*(values[x] for x in needs(f))) if all(x in values for x in needs(f)) else None


def needs(f: Callable) -> tuple[str, ...]:
    """Return the letters and words that a condition depends on: the names of its parameters."""
    return f.__code__.co_varnames[: f.__code__.co_argcount]


def _nothing(*_) -> dict:
    return {}


@dataclass(frozen=True)
class Space:
    """The strategies that a search goes through, for anything that has a `space`.

    What is searched, and in which order:

    - `axes`: the default objectives, first and second; without any the call must name the first.
    - `words`: each word with its possible values. `spelled`: for a word that takes further values, a function that
      returns the value that a text stands for. `letters`: values of letters that neither call nor rows give.
    - `usual`: function of the known letters that returns the default choices to search. `stated`: choices that rows
      given by position, or words, imply for other words; they override `usual`.
    - `assumed`: function of the known letters that returns letters to treat as if the call had given them.
    - `needed`: letters that a call must give. `elsewhere`: letters that it must not give, each with the reason.
    - `order`: sort key for the values of a letter or word, if not in the order given. Ties go to the first strategy.
    - `wrong`: function that returns the sentence for a value that makes no sense, or None.

    How devices are laid out:

    - `layout`: letters whose product, without `beside`, is `devices`; the last takes what the others leave.
    - `follows`: letters that follow from others, each with a function of them.
    - `offloads`: letters that move something out of device memory, 0 for nothing. With any, "offload" is a word.

    What is left out:

    - `rules` and `limits`: conditions on strategies. `within`: conditions for a strategy to be in the space at all.
    - `margins`: letters that the space's limits keep below their bound by `memory_margin`, by default the upper end of
      the letter's interval.
    - `reason`: function of values, a sheet (or None) and the lifted names that says why a strategy is left out.
    - `is_signed`: True if each letter must have a value of its sign, as in a call of a sheet.
    - `idle`: for a letter or word, the condition under which it makes a difference; where it makes none, it keeps its
      first value. `settle`: what else changes with a step to a neighbour.

    How results are found and shown:

    - `solve`: a letter that follows from the choices, the letters it is found by, and a function of (`at`, shape) that
      returns its values. `at(letter, values)` returns a letter at trial values.
    - `is_front`: True if the Pareto front is the answer. `shown`: letters of a row to show next to its choices, if the
      first of them has a value.
    - `remark`: function that returns what a reader should know about the rejected strategies, counted by name.
    """

    axes: tuple[str, ...] = ()
    words: Mapping[str, tuple] = field(default_factory=dict)
    spelled: Mapping[str, Callable] = field(default_factory=dict)
    usual: Callable[[Mapping[str, Any]], dict[str, tuple]] = _nothing
    letters: Mapping[str, float] = field(default_factory=dict)
    assumed: Callable[[Mapping[str, Any]], dict[str, float]] = _nothing
    stated: Callable[[tuple, Mapping[str, tuple]], dict[str, tuple]] = _nothing
    needed: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, Callable] = field(default_factory=dict)
    wrong: Callable[[str, float], str | None] = lambda name, value: None
    layout: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    follows: Mapping[str, Callable] = field(default_factory=dict)
    offloads: tuple[str, ...] = ()
    rules: tuple[Any, ...] = ()  # each with a name, what it needs, and `of`, whether it holds
    limits: tuple[str, ...] = ()
    margins: tuple[str, ...] = ()
    reason: Callable[[Mapping, Any, Iterable[str]], str | None] = lambda values, sheet, lifted: None
    is_signed: bool = False
    within: Callable[["Problem"], tuple[Callable, ...]] = lambda problem: ()
    idle: Mapping[str, Callable] = field(default_factory=dict)
    settle: Callable[["Problem", Mapping, Mapping], dict] = _nothing
    solve: tuple[str, tuple[str, ...], Callable] | None = None
    is_front: bool = False
    shown: tuple[str, ...] = ()
    remark: Callable[["Problem", Mapping[str, int]], str] = lambda problem, rejected: ""

    @property
    def solved(self) -> tuple[str, ...]:
        """The letter that follows from the choices, if there is one, as a tuple."""
        return self.solve[:1] if self.solve else ()

    @property
    def ways(self) -> tuple[str, ...]:
        """The letters whose product is the number of devices."""
        return tuple(x for x in self.layout if x not in self.beside)


@runtime_checkable
class Searchable(Protocol):
    """Protocol of a thing that a search can search.  Sheets and formulas need none of it.

    `sheet(knowns, letters)` takes rows (and formulas that replace the sheet's own), letters and words (searched ones at
    any of their values).  It returns the Sheet that prices strategies with these words, the rows to call it with, and
    the letters that are not words.  A call returns the Row of one strategy.  For other processes, it must pickle.

    It may have `letters`, all that it takes, and `targets`, letters whose values are the most that may be.  It may have
    `posed(cases, letters)`, which interprets a call whose letters are not its choices: it returns the thing to search
    instead, and the remaining letters.  That thing may have `unmet(cases, letters, rejected)`, the sentence
    to raise if nothing was found.  `cases` are the positional rows, once per device.
    """

    name: str

    @property
    def space(self) -> Space: ...

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]: ...

    def __call__(self, *knowns, **letters) -> Row: ...


# Memory that a device holds: the first of these in the sheet.
_HELD = ("memory", "device_memory", "train_memory", "decode_memory")


class PlainSheet:
    """A sheet whose letters can be searched.  `known` names the letters that the caller gives."""

    def __init__(self, sheet: Sheet, known: Iterable[str]):
        self.name, self._sheet, self._known = sheet.name, sheet, frozenset(known)

    def __reduce__(self):
        return _again, (self.name, tuple(self._sheet.formulas.values()), self._known)

    @cached_property
    def space(self) -> Space:
        """A space without words or a layout.  If memory and capacity are known, memory must fit."""
        held = [x for x in _HELD if x in self._sheet.formulas][:1] if "hbm_capacity" in self._known else []
        return Space(limits=tuple(f"{x} <= hbm_capacity" for x in held), reason=self._reason, is_signed=True)

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """Return (sheet, rows to call it with, letters).  Raises TypeError for a letter that the sheet does not use."""
        if stray := next((x for x in letters if x not in self._sheet.letters), None):
            raise TypeError(unused(self.name, stray, self._sheet.letters))
        return self._sheet, knowns, dict(letters)

    def __call__(self, *knowns, **letters) -> Row:
        return self._sheet(*knowns, **letters)

    def _reason(self, values, sheet, lifted):
        """Name the first letter that has no value at these values, and say why; None if all have one."""
        if sheet is None:
            return None
        missing = self._sheet(**{n: x for n, x in values.items() if n in self._sheet.letters}).missing
        return next((f"{n} {missing[n]}" for n in sheet.formulas if n in missing), None)


def _again(name, formulas, known):
    return PlainSheet(Sheet(name, *formulas), known)


def searchable(thing, knowns: tuple, letters: Iterable[str]) -> Searchable:
    """Return `thing` if it is Searchable, and wrap a sheet or a formula so that it is.  Raises TypeError for all else.

    Formulas among `knowns` replace the sheet's own.
    """
    swapped = tuple(x for x in knowns if isinstance(x, Formula))
    known = {n for row in knowns if isinstance(row, Mapping) for n in row} | set(letters)
    if isinstance(thing, Formula):
        thing = Sheet(thing.name, thing._fill(frozenset(known), swapped))
    if isinstance(thing, Sheet):
        return PlainSheet(thing.using(*swapped) if swapped else thing, known)
    if isinstance(thing, type) or not (isinstance(thing, Searchable) and callable(thing)):
        like = "as training_step has (scalebook.search.Searchable)"
        has = f"what has a name, a space and a sheet for what is known, {like}"
        raise TypeError(f"a search takes a sheet, a formula, or {has}, not {quoted(thing)}")
    return thing
