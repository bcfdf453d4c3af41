"""Words: the choices of a strategy that are names, not numbers; each is entered once, as letters are.

>>> word("weather", ["fair", "rain"], "what it is like outside")
Word(weather: 'fair' or 'rain')
>>> WORDS.pop("weather").value("snow")
Traceback (most recent call last):
    ...
ValueError: weather is 'fair' or 'rain', not 'snow'
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .notation import NOTATION, either, quoted

__all__ = ["WORDS", "Word", "word"]


@dataclass(frozen=True, repr=False)
class Word:
    """A choice by name: what it may be (the usual first), what it means, and where it says something.

    `values` leads from names to what they stand for: themselves, or objects such as schedules.  `says` is a function of
    letters and words that is true where the choice makes a difference; None where it always does.
    """

    name: str
    values: Mapping[Any, Any]
    meaning: str
    says: Callable | None = None

    def __repr__(self):
        return f"Word({self.name}: {either(map(repr, self.values))})"

    @property
    def usual(self):
        """What it is unless a call says otherwise."""
        return next(iter(self.values))

    def value(self, name):
        """What a name stands for; raises ValueError naming those that would have done."""
        if isinstance(name, str | bool) and name in self.values:
            return self.values[name]
        if any(name is x for x in self.values.values()):
            return name
        raise ValueError(f"{self.name} is {either(map(repr, self.values))}, not {quoted(name)}")


WORDS: dict[str, Word] = {}


def word(name: str, values: Mapping | Iterable, meaning: str, says: Callable | None = None) -> Word:
    """Enter a word.  Raises ValueError for a name that a letter or another word has."""
    if name in WORDS or name in NOTATION:
        raise ValueError(f"{name} is a {'word' if name in WORDS else 'letter'} already: choose another name")
    WORDS[name] = Word(name, values if isinstance(values, Mapping) else {x: x for x in values}, meaning, says)
    return WORDS[name]
