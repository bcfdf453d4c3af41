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
    """The strategies that a search goes through, for anything that has a `space`.

    What is searched, and in which order ("quantities" have numbers as values, "options" names):

    - `axes`: the default objectives, first and second; without any the call must name the first.
    - `words`: each option with its possible values. `spelled`: for an option that takes further values, a function that
      returns the value that a text stands for. `letters`: values of quantities that neither call nor rows give.
    - `usual`: function of the known quantities that returns the default choices to search. `stated`: choices that rows
      given by position, or options, imply for other options; they override `usual`.
    - `assumed`: function of the known quantities that returns some to treat as if the call had given them.
    - `needed`: quantities that a call must give. `elsewhere`: ones that it must not give, each with the reason.
    - `order`: sort key for the values of an input, if not in the order given. Ties go to the first strategy.
    - `wrong`: function that returns the sentence for a value that makes no sense, or None.

    How devices are laid out:

    - `layout`: quantities whose product, without `beside`, is `devices`; the last takes what the others leave.
    - `follows`: quantities that follow from others, each with a function of them.
    - `offloads`: quantities that move something out of device memory, 0 for nothing. With any, "offload" is an option.

    What is left out:

    - `rules` and `limits`: conditions on strategies. `within`: conditions for a strategy to be in the space at all.
    - `margins`: quantities that the space's limits keep below their bound by `memory_margin`, by default the upper end
      of the interval.
    - `reason`: function of values, a sheet (or None) and the limits the caller lifted, that says why a strategy is
      left out.
    - `is_signed`: True if results of a wrong sign, such as a negative time, are left out, as when a sheet is called.
    - `idle`: for an input, the condition under which it makes a difference; where it makes none, it keeps its first
      value.
    - `settle`: function that returns the values to change along with one choice, for a neighbouring strategy.

    How results are found and shown:

    - `solve`: a quantity that follows from the choices, the quantities it is found by, and a function of (`at`, shape)
      that returns its values. `at(name, values)` returns a quantity at trial values.
    - `is_front`: True if the Pareto front is the answer. `shown`: quantities to show next to a strategy's choices, if
      the first of them has a value.
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

    It may have `kind(knowns, letters)`, which returns a key that calls with the same formulas share, the sheet with
    default formulas of known letters too, and cells of all that the call knows.  A search prices a kind together.

    It may have `letters`, the names of all inputs, and `targets`, quantities whose values are upper bounds.  It may
    have `posed(cases, letters)`, which interprets a call whose inputs are not its choices: it returns the thing to
    search instead, and the remaining inputs, or a `Frame` with the result.  That thing may have `sized(rows, letters)`,
    which returns the thing to search for one device, and `unmet(cases, letters, rejected)`, the sentence to raise if
    nothing was found.  `cases` are the positional rows, once per device.
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
        like = "as training_step has (scalebook.search.Searchable)"
        has = f"what has a name, a space and a sheet for what is known, {like}"
        raise TypeError(f"a search takes a sheet, a formula, or {has}, not {quoted(thing)}")
    return thing
