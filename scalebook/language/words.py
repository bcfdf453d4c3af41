"""Options: choices that have names as values, such as recompute="full".  Each is entered once, as quantities are.

>>> word("weather", ["fair", "rain"], "what it is like outside"), WORDS.pop("weather").value("rain")
(Word(weather: 'fair' or 'rain'), 'rain')
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .notation import NOTATION, either, known_as, quoted

__all__ = ["WORDS", "Named", "Word", "word"]


@dataclass(frozen=True, repr=False)
class Word:
    """An option of a call, such as `recompute`: its values (the default first) and its meaning.

    `values` maps each name to itself or to an object, such as a schedule.  `says` is a function of inputs that returns
    True if the option makes a difference; None if it always does. Some of `parts` may be chosen together instead, as
    text with commas or as a list.

    >>> Word("wood", {"none": "none"}, "trees to cut", parts=("ash", "elm", "oak")).value(["oak", "ash"])
    'ash,oak'
    """

    name: str
    values: Mapping[Any, Any]
    meaning: str
    says: Callable | None = None
    parts: tuple[str, ...] = ()

    def __repr__(self):
        return f"Word({self.name}: {either(map(repr, self.values))})"

    @property
    def usual(self):
        return next(iter(self.values))

    def value(self, name):
        """Return the value of an option that a caller names, or the combined name if several parts may be chosen.

        Raises ValueError, listing the values, for an unknown name.
        """
        name = known_as(name, self.values)
        if isinstance(name, str | bool) and name in self.values:
            return self.values[name]
        if any(name is x for x in self.values.values()):
            return name
        chosen = name.split(",") if isinstance(name, str) else name if isinstance(name, list | tuple) else ()
        chosen = [x.strip() if isinstance(x, str) else x for x in chosen]
        if chosen and all(x in self.parts for x in chosen):
            return ",".join(x for x in self.parts if x in chosen)
        some = f", or some of {', '.join(self.parts)} with commas between," if self.parts else ","
        raise ValueError(f"{self.name} is {either(map(repr, self.values))}{some} not {quoted(name)}")


class Named:
    """A choice with a name, such as a schedule. Each kind has a register, `known`: by name, the default first."""

    def __init_subclass__(cls):
        cls.known = {}

    def __post_init__(self):
        kind = type(self).__name__.lower()
        if self.name in self.known:
            raise ValueError(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} is called {self.name!r} already")
        self.known[self.name] = self

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return _named, (type(self), self.name)


def _named(kind: type[Named], name: str) -> Named:
    return kind.known[name]


WORDS: dict[str, Word] = {}


def word(
    name: str, values: Mapping | Iterable, meaning: str, says: Callable | None = None, parts: Iterable[str] = ()
) -> Word:
    """Enter an option.  Raises ValueError if a quantity or another option has this name."""
    if name in WORDS or name in NOTATION:
        raise ValueError(f"{name} is a {'word' if name in WORDS else 'letter'} already: choose another name")
    WORDS[name] = Word(
        name, values if isinstance(values, Mapping) else {x: x for x in values}, meaning, says, tuple(parts)
    )
    return WORDS[name]
