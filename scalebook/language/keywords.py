"""One sentence for a call whose arguments a function does not take, or that lacks one.

>>> @by_keyword
... def speed(*, path, seconds): return path / seconds
>>> speed(path=1, secnds=2)
Traceback (most recent call last):
    ...
TypeError: speed does not use secnds; did you mean 'seconds'?
>>> speed(path=1)
Traceback (most recent call last):
    ...
TypeError: speed needs seconds: give seconds=...
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .notation import either, quoted, unused

__all__ = ["by_keyword"]

P = ParamSpec("P")
R = TypeVar("R")


def by_keyword(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator for a function that is no sheet: arguments that it does not take raise a sentence like a sheet's."""

    @wraps(function)
    def called(*args: P.args, **letters: P.kwargs) -> R:
        try:
            return function(*args, **letters)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # raised inside, where the sentence was made
                raise
        raise TypeError(_misfit(function, args, letters))

    return called


def _misfit(function: Callable, args: tuple, letters: dict) -> str:
    """Say which argument a function does not take, or lacks."""
    own = [*inspect.signature(function).parameters.values()]
    name = function.__name__
    if own[0].name == "serve":  # a method of the service
        own, args, name = own[1:], args[1:], f"serve.{name}"
    placed = [x.name for x in own if x.kind == x.POSITIONAL_OR_KEYWORD]
    named = [x.name for x in own if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]
    if strange := [x for x in letters if x not in named and named == [x.name for x in own]]:
        return unused(name, quoted(strange[0])[1:-1], named)
    listed = either(named).replace(" or ", " and ")
    if len(args) > len(placed) and own[0].kind != inspect.Parameter.VAR_POSITIONAL:
        return f"{name} takes {len(placed) or 'no'} values by position, not {len(args)}; it takes {listed}"
    if twice := [x for x in placed[: len(args)] if x in letters]:
        return f"{name} is given {twice[0]} twice, by position and by keyword: give one"
    lacks = [x.name for x in own if x.default is x.empty and x.name in named]
    lacks = [x for x in lacks if x not in (*placed[: len(args)], *letters)]
    return f"{name} needs {either(lacks).replace(' or ', ' and ')}: give {lacks[0]}=..."
