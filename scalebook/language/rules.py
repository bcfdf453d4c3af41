"""Rules on strategies, such as "tp divides heads", for numbers and for arrays, each with its error message.

>>> even = Rule("even", "tp", lambda tp, heads: heads % tp == 0, "tp={tp} does not divide the {heads} heads")
>>> even.needs, even.of({"tp": 7, "heads": 64}), even.of({"tp": 7})
(('tp', 'heads'), False, None)
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from .notation import either
from .stanzas import tables_of

__all__ = ["Rule", "condition", "not_whole", "refuse_rows", "stated_rules"]


class Rule:
    """A condition on the inputs of a call: a name, the input to change, a test, and the sentence if it is broken.

    Rules marked `advice` say what is sensible, not what can run; only searches apply them.
    """

    def __init__(self, name: str, letter: str, holds: Callable, says: str, advice: bool = False):
        self.name, self.letter, self.holds, self.says, self.advice = name, letter, holds, says, advice

    @cached_property
    def needs(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.holds).parameters)

    def known(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values together with others that follow from them. Subclasses add some; here there are none."""
        return values

    def of(self, values: Mapping[str, Any]):
        """Return whether the rule holds, as a truth value or an array; None if an input that it needs is missing."""
        values = self.known(values)
        return self.holds(*(values[x] for x in self.needs)) if all(x in values for x in self.needs) else None

    def __repr__(self):
        return f"{self.name}: {', '.join(self.needs)}"


def condition(text: str, also: Iterable[str] = (), **functions: Callable) -> Callable:
    """Return an expression that is written as text, such as a condition, as a function of its quantities.

    It may call `functions`. The quantities `also` are arguments too, although the text lacks them.

    >>> condition("heads % tp == 0")(64, 8)
    True
    """
    text = " ".join(text.split())
    named = [x for x in compile(text, "a condition", "eval").co_names if x not in functions]
    letters = dict.fromkeys([*named, *also])
    return eval(f"lambda {', '.join(letters)}: {text}", functions)


def stated_rules(module: str, kind: type[Rule] = Rule, **functions: Callable) -> tuple[Rule, ...]:
    """Return the rules that the TOML file next to a module states, whose conditions may call `functions`."""
    package, _, file = module.rpartition(".")
    made = []
    for name, x in tables_of(package, f"{file}.toml").items():
        holds = condition(x["holds"], x.get("also", ()), **functions)
        made.append(kind(name, x["letter"], holds, " ".join(x["says"].split()), "advice" in x))
    return tuple(made)


def refuse_rows(fails: np.ndarray, values: Mapping[str, Any], says: Callable[[Mapping], str | None]) -> None:
    """Raise ValueError if any element fails: how many of them, and what `says` returns for the values of the first."""
    if fails.any():
        shape, place = fails.shape, fails.argmax()
        first = {n: float(np.broadcast_to(x, shape).flat[place]) if np.ndim(x) else x for n, x in values.items()}
        head = f"in {fails.sum():,} of {fails.size:,} rows, the first: " if shape else ""
        raise ValueError(f"{head}{says(first)}")


def not_whole(letter: str, value: float) -> str | None:
    """Return an error message if the value is not a positive whole number, otherwise None."""
    if not value % 1 and value >= 1:
        return None
    near = [f"{x:g}" for x in (np.floor(value), np.ceil(value)) if x >= 1] or ["1"]
    return f"{letter}={value:.12g} is no whole number, as {either(near)} is"
