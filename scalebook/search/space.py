"""The interface between a search and the things it can search, and the description of their strategies.

>>> divisors(12)
(1, 2, 3, 4, 6, 12)
>>> from scalebook.training import training_step
>>> isinstance(training_step, Searchable), training_step.space.axes
(True, ('step_time', 'memory'))
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import sympy

from scalebook.language import Row, Sheet

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Searchable", "Space", "called_with", "divisors", "needs"]


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

    - `axes`: the default objectives, first and second. If there are none, the call must name the first.
    - `words`: each word with its possible values.
    - `usual`: function of the known letters that returns the default choices to search.
    - `stated`: choices that rows given by position, or words, imply for other words. They override `usual`.
    - `letters`: values assumed for letters that nobody gives.
    - `assumed`: function of the known letters that returns letters to treat as if the call had given them.
    - `needed`: letters that a call must give. `elsewhere`: letters that it must not give, each with the reason.
    - `order`: sort key for the values of a letter or word, if not in the order given. Ties go to the first strategy.
    - `wrong`: function that returns the sentence for a value that makes no sense, or None.

    How devices are laid out:

    - `layout`: letters that share the devices among them. The last one takes what the others leave.
    - `beside`: letters of the layout that take no devices of their own.
    - `follows`: letters that follow from others, each with a function of them.
    - `offloads`: letters that move something out of device memory; 0 moves nothing. If there are any, "offload" is a
      word.

    What is left out:

    - `rules` and `limits`: conditions that leave strategies out.
    - `reason`: function of values, a sheet (or None) and the lifted names that says why a strategy is left out.
    - `is_signed`: True if each letter must have a value of its sign, as in a call of a sheet.
    - `within`: conditions for a strategy to be in the space at all.
    - `idle`: for a letter or word, the condition under which it makes a difference. Where it makes none, it keeps its
      first value and is not counted again.
    - `apart`: words that change nothing in a block. Strategies that differ only in these are priced together.
    - `settle`: what else changes with a step to a neighbour.

    How results are found and shown:

    - `solve`: a letter that follows from the choices, the letters it is found by, and a function of (`at`, shape) that
      returns its values. `at(letter, values)` returns a letter at trial values.
    - `is_front`: True if the Pareto front is the answer. Then the runners-up in the first objective alone are not
      interesting.
    - `shown`: letters of a strategy's row to show next to its choices.
    - `remark`: function that returns what a reader should know about the rejected strategies, counted by name.
    """

    axes: tuple[str, ...] = ()
    words: Mapping[str, tuple] = field(default_factory=dict)
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
    reason: Callable[[Mapping, Any, Iterable[str]], str | None] = lambda values, sheet, lifted: None
    is_signed: bool = False
    within: Callable[["Problem"], tuple[Callable, ...]] = lambda problem: ()
    idle: Mapping[str, Callable] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
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

    `name` is what error messages call it, and `space` describes its strategies.  `sheet(knowns, letters)` takes rows
    (and formulas that replace the sheet's own), letters and words (searched ones at any of their values).  It returns
    the Sheet that prices strategies with these words, the rows to call it with, and the letters that are not words.  A
    call with rows, letters and words returns the Row of one strategy.  To be searched in other processes, the thing
    must pickle.

    It may have `posed(cases, letters)`, which interprets a call itself if its letters are not choices of the thing as
    it stands.  It returns the thing to search instead, and the remaining letters.  That thing may have `unmet(cases,
    letters, rejected)`, which returns the sentence to raise if nothing was found and `rejected` kept everything out.
    `cases` are the positional rows, once per device.
    """

    name: str

    @property
    def space(self) -> Space: ...

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]: ...

    def __call__(self, *knowns, **letters) -> Row: ...
