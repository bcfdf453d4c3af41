"""What a search asks of a thing, written once, and what describes the strategies that it goes through.

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

__all__ = ["Searchable", "Space", "divisors", "needs", "told"]


def divisors(number: float) -> tuple[int, ...]:
    """All of them, in order."""
    return tuple(sympy.divisors(int(number)))


def told(f: Callable, values: Mapping) -> Any:
    """A function of what its parameters are named after; None where something is not known."""
    return f(*(values[x] for x in needs(f))) if all(x in values for x in needs(f)) else None


def needs(f: Callable) -> tuple[str, ...]:
    """The letters and words that a condition is about."""
    return f.__code__.co_varnames[: f.__code__.co_argcount]


def _nothing(*_) -> dict:
    return {}


@dataclass(frozen=True)
class Space:
    """The strategies that a search goes through, of something that has a `space`.

    `axes`: what is minimized against what; without any, a call says it.  `words` and what each may be.
    `usual`: what is searched where nothing is said, of what is known; `stated`: what rows given by position, or words,
    say of other words, before that.  `letters`: known unless given; `assumed`: given unless known, of what is known.
    `needed`: letters that a call must give; `elsewhere`: those that it may not, each with the sentence that says why.
    `order`: by which key the values of a letter or word come, where not as given: of
    equal strategies the first is the better.  `wrong`: the sentence for a value that makes no sense.

    `layout`: letters that share the devices, the last of them what the others leave, and `beside`: those among them
    that take no devices of their own.  `follows`: letters that follow from the others, each by a function of them.
    `offloads`: letters that move something away, of which 0 moves nothing; where there are any, "offload" is a word.

    `rules` and `limits` leave strategies out, and `reason` is the sentence why (of values, a sheet or None, and the
    names of what is lifted).  `is_signed`: a letter must have a value of its sign, as where a sheet is called.
    `within`: conditions of what is of the space at all; `idle`, of a letter or word, whether it says anything: where
    not it keeps its first value, and is not counted again.  `apart`: words that change nothing in a block, so that
    what differs in them alone is priced together.  `settle`: what else changes with a step to a neighbour.

    `solve`: a letter that is no choice but follows from one, with the letters that it is found by and a function of
    (`at`, shape) that gives its values, where `at(letter, values)` is what a letter is with these.  `is_front`: the
    best are those of the front, since what is next best in the first value alone says little.  `shown`: letters of a
    strategy's row that stand beside its choices.  `remark`: what a reader should know of what was rejected, by name.
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
        """The letter that follows from a choice, if there is one."""
        return self.solve[:1] if self.solve else ()

    @property
    def ways(self) -> tuple[str, ...]:
        """The letters that multiply to the devices."""
        return tuple(x for x in self.layout if x not in self.beside)


@runtime_checkable
class Searchable(Protocol):
    """What a search asks of a thing; a sheet and a formula need none of it, for a search knows what their letters are.

    `name` is what sentences call it, `space` the strategies.  `sheet` gives, for rows (and formulas that replace the
    sheet's) and for letters and words (those searched at some value), the Sheet whose formulas price the strategies
    with these words, the rows to call it with, and the letters of it that are no words.  A call with rows, letters and
    words gives the Row of one strategy.
    To be searched in other processes it must pickle.

    It may have `posed(cases, letters)`, which reads a call itself, where letters are no choices of the thing as it
    stands: it gives what is searched instead, and the letters left.  What it gives may have
    `unmet(cases, letters, rejected)`, the sentence where nothing was found and what is `rejected` kept all out.
    `cases` are the rows by position, once for each device.
    """

    name: str

    @property
    def space(self) -> Space: ...

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]: ...

    def __call__(self, *knowns, **letters) -> Row: ...
