"""What a search needs to know of the things that it can search, and of their strategies.

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
from scalebook.language.guide import GuidedMethod
from scalebook.language.notation import quoted, unused

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["NothingFits", "PlainSheet", "Searchable", "Space", "called_with", "divisors", "needs", "searchable"]


class NothingFits(ValueError):
    """Raised if a search is well posed, but no strategy can run or the model does not fit."""


def divisors(number: float) -> tuple[int, ...]:
    """Return all divisors of a number, in increasing order."""
    return tuple(sympy.divisors(int(number)))


def called_with(f: Callable, values: Mapping) -> Any:
    """Call a function with the `values` that its parameters name.  Return None if one of them is missing."""
    return f(*(values[x] for x in needs(f))) if all(x in values for x in needs(f)) else None


def needs(f: Callable) -> tuple[str, ...]:
    """Return the names of a function's parameters: the inputs that a condition depends on."""
    return f.__code__.co_varnames[: f.__code__.co_argcount]


def _nothing(*_) -> dict:
    return {}


@dataclass(frozen=True)
class Space:
    """The strategies that a search goes through. Quantities have numbers as values, options ("words") have names."""

    # What is searched, and in which order
    axes: tuple[str, ...] = ()  # the default objectives, first and second; without any the call must name the first
    words: Mapping[str, tuple] = field(default_factory=dict)  # each option with its possible values
    spelled: Mapping[str, Callable] = field(default_factory=dict)  # reads further values of an option from text
    usual: Callable[[Mapping[str, Any]], dict[str, tuple]] = _nothing  # of what is known: the default choices to search
    letters: Mapping[str, float] = field(default_factory=dict)  # values that neither the call nor its rows give
    assumed: Callable[[Mapping[str, Any]], dict[str, float]] = _nothing  # treated as if the call had given them
    # choices that rows given by position, or options, imply for other options; they override `usual`
    stated: Callable[[tuple, Mapping[str, tuple]], dict[str, tuple]] = _nothing
    needed: tuple[str, ...] = ()  # quantities that a call must give
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # ones that it must not give, each with the reason
    order: Mapping[str, Callable] = field(default_factory=dict)  # sort keys of values; ties go to the first strategy
    wrong: Callable[[str, float], str | None] = lambda name, value: None  # the sentence for a value without sense
    # of rows by position and one of a whole table: why what the table's row describes cannot run here, or ""
    unable: Callable[[tuple, Row], str] = lambda knowns, program: ""
    # How devices are laid out
    layout: tuple[str, ...] = ()  # their product, without `beside`, is `devices`; the last takes what the others leave
    beside: tuple[str, ...] = ()
    follows: Mapping[str, Callable] = field(default_factory=dict)  # quantities that are functions of others
    offloads: tuple[str, ...] = ()  # they move something out of device memory; with any, "offload" is an option
    # What is left out
    rules: tuple[Any, ...] = ()  # each with a name, what it needs, and `of`, whether it holds
    limits: tuple[str, ...] = ()
    margins: tuple[str, ...] = ()  # the limits keep these below their bound by `memory_margin`
    # of values, a sheet (or None) and the limits that the caller lifted: why a strategy is left out
    reason: Callable[[Mapping, Any, Iterable[str]], str | None] = lambda values, sheet, lifted: None
    is_signed: bool = False  # results of a wrong sign, such as a negative time, are left out
    worded: Mapping[str, str] = field(default_factory=dict)  # what it means that a formula or a quantity has a value
    within: Callable[["Problem"], tuple[Callable, ...]] = lambda problem: ()  # conditions to be in the space at all
    idle: Mapping[str, Callable] = field(default_factory=dict)  # when an input matters; else it keeps its first value
    settle: Callable[["Problem", Mapping, Mapping], dict] = _nothing  # what changes along with one choice
    # How results are found and shown
    # a quantity that follows from the choices, those it is found by, and a function of (at, shape) that returns its
    # values; at(name, values) returns a quantity at trial values
    solve: tuple[str, tuple[str, ...], Callable] | None = None
    is_front: bool = False  # the Pareto front is the answer
    shown: tuple[str, ...] = ()  # quantities to show next to a strategy's choices, if the first has a value
    shown_with: str = ""  # the input without which none of `shown` has a value
    # what a reader should know about the rejected strategies, counted by name
    remark: Callable[["Problem", Mapping[str, int]], str] = lambda problem, rejected: ""

    @property
    def solved(self) -> tuple[str, ...]:
        """The name of the quantity that is solved for, in a tuple; empty if there is none."""
        return self.solve[:1] if self.solve else ()

    @property
    def ways(self) -> tuple[str, ...]:
        """The names of the quantities whose product is the number of devices, such as tp, pp and dp."""
        return tuple(x for x in self.layout if x not in self.beside)


@runtime_checkable
class Searchable(Protocol):
    """What an object needs so that `search` can search it.  Sheets and formulas are wrapped and need none of it.

    `sheet(knowns, letters)` takes table rows (and formulas that replace the sheet's own), quantities and options.  It
    returns the Sheet that prices strategies with these options, the rows to call it with, and the quantities.  Calling
    the object returns the Row of one strategy.  It must pickle, so that other processes can price strategies.

    It may also have these:

    - `kind(knowns, letters)`: a key of the formulas, the sheet, and all known cells. A search prices a kind together.
    - `letters`, the names of all inputs, and `targets`, quantities whose values are upper bounds.
    - `posed(cases, letters, aim, limits)`: the thing to search instead and the rest of the call, or a `Frame` with the
      result.
    - `sized(rows, letters)`, the thing to search for one device, and `unmet(cases, letters, rejected)`, the sentence to
      raise if nothing was found. `cases` are the positional rows, once per device.
    """

    name: str

    @property
    def space(self) -> Space: ...

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]: ...

    def __call__(self, *knowns, **letters) -> Row: ...


# Memory that a device holds: the first of these in the sheet.
_HELD = ("memory", "device_memory", "train_memory", "decode_memory")


class PlainSheet:
    """Wraps a sheet so that its inputs can be searched.  `known` names the inputs that the caller gives."""

    def __init__(self, sheet: Sheet, known: Iterable[str]):
        self.name, self._sheet, self._known = sheet.name, sheet, frozenset(known)

    def __reduce__(self):
        return _again, (self.name, tuple(self._sheet.formulas.values()), self._known)

    @cached_property
    def space(self) -> Space:
        """A space without options or layout.  If the sheet has memory and capacity, the memory must fit."""
        held = [x for x in _HELD if x in self._sheet.formulas][:1] if "hbm_capacity" in self._known else []
        return Space(limits=tuple(f"{x} <= hbm_capacity" for x in held), reason=self._reason, is_signed=True)

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """Return the sheet, the rows to call it with, and the inputs.  Raises TypeError for an unused input."""
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
    """Return `thing` if it is Searchable; wrap a sheet or a formula so that it is.  Raises TypeError for all else.

    Formulas among `knowns` replace the sheet's own.
    """
    swapped = tuple(x for x in knowns if isinstance(x, Formula))
    known = {n for row in knowns if isinstance(row, Mapping) for n in row} | set(letters)
    if isinstance(thing, Formula):
        thing = Sheet(thing.name, thing._fill(frozenset(known), swapped))
    if isinstance(thing, Sheet):
        thing = thing.suited(dict.fromkeys(known))
        return PlainSheet(thing.using(*swapped) if swapped else thing, known)
    if isinstance(thing, type) or not (isinstance(thing, Searchable) and callable(thing)):
        if isinstance(thing, GuidedMethod):
            raise TypeError(f"{thing.name} searches by itself: call it; a search takes {thing.owner.name}")
        raise TypeError(f"a search takes training_step, serve, a sheet or a formula, not {quoted(thing)}")
    return thing
