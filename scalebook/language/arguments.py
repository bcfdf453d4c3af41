"""One sentence for a call whose arguments a function does not take, or that lacks one.

>>> @checked
... def speed(*, path, seconds): return path / seconds
>>> speed(path=1, secnds=2)
Traceback (most recent call last):
    ...
TypeError: speed does not use secnds; did you mean 'seconds'?
"""

import inspect
from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from numbers import Integral
from typing import ParamSpec, TypeVar

from .notation import either, quoted, unused
from .row import Row

__all__ = ["checked"]

P = ParamSpec("P")
R = TypeVar("R")
# What a parameter with this annotation takes, in words
_KINDS = {
    str: "a text", Integral: "a whole number", Row: "a row, such as the result of training_step",
    Mapping: "a row of a table, or a mapping",
}  # fmt: skip
_ONE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a wrong, missing or repeated argument of a public function raises one sentence, like a sheet's."""
    own = inspect.signature(function).parameters.values()
    kinds = [(i, x.name, x.annotation) for i, x in enumerate(own) if x.annotation in _KINDS and x.kind in _ONE]

    @wraps(function)
    def called(*args: P.args, **letters: P.kwargs) -> R:
        for i, name, kind in kinds:
            value = args[i] if i < len(args) else letters.get(name)
            if not isinstance(value, kind) and (i < len(args) or name in letters):
                raise TypeError(f"{name} of {function.__name__} is {_KINDS[kind]}, not {quoted(value)}")
        try:
            return function(*args, **letters)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # raised inside, where the sentence was made
                raise
        raise TypeError(_misfit(function, args, letters))

    return called


def _misfit(function: Callable, args: tuple, letters: dict) -> str:
    """Say which argument a function does not take, or lacks."""
    own, name = [*inspect.signature(function).parameters.values()], function.__name__
    if own[0].name == "serve":  # a method of the service
        own, args, name = own[1:], args[1:], f"serve.{name}"
    placed = [x.name for x in own if x.kind == x.POSITIONAL_OR_KEYWORD]
    named = [x.name for x in own if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]
    if strange := [x for x in letters if x not in named and own[-1].kind != inspect.Parameter.VAR_KEYWORD]:
        return unused(name, quoted(strange[0])[1:-1], named)
    if len(args) > len(placed) and own[0].kind != inspect.Parameter.VAR_POSITIONAL:
        listed = either(named).replace(" or ", " and ")
        return f"{name} takes {len(placed) or 'no'} values by position, not {len(args)}; it takes {listed}"
    if twice := [x for x in placed[: len(args)] if x in letters]:
        return f"{name} is given {twice[0]} twice, by position and by keyword: give one"
    lacks = [x.name for x in own if x.default is x.empty and x.name in named]
    if lacks := [x for x in lacks if x not in (*placed[: len(args)], *letters)]:
        return f"{name} needs {either(lacks).replace(' or ', ' and ')}: give {lacks[0]}=..."
    given = [*args, *letters.values()]
    strange = next((x for x in given if not isinstance(x, Hashable) or x.__hash__ is None), given[0])
    return f"{name} does not take {quoted(strange)}: give one number, or one word"
