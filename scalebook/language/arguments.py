"""One sentence for a call whose arguments a function does not take, or that lacks one.

>>> @checked
... def speed(*, path, seconds): return path / seconds
>>> speed(path=1, secnds=2)
Traceback (most recent call last):
    ...
TypeError: speed does not use secnds; did you mean 'seconds' or 'path'?
"""

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

import numpy as np

from .notation import NOTATION, either, quoted, unused
from .row import Row, gather

__all__ = ["as_list", "checked", "is_number", "is_whole"]

P = ParamSpec("P")
R = TypeVar("R")
# What a parameter with this annotation takes, in words
_KINDS = {
    str: "one text", str | None: "one text", Integral: "a whole number", bool: "True or False",
    Row: "a row, such as the result of training_step", Mapping: "a row of a table, or a mapping",
}  # fmt: skip
_ONE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a wrong, missing or repeated argument raises one sentence.  Mappings are read as rows."""

    @wraps(function)
    def called(*args: P.args, **letters: P.kwargs) -> R:
        for i, x in _checkable(function):
            placed = x.kind != x.KEYWORD_ONLY and i < len(args)
            if not placed and x.name not in letters:
                continue
            value, kind = args[i] if placed else letters[x.name], x.annotation
            if not (is_whole(value) if kind is Integral else isinstance(value, kind)):
                raise TypeError(f"{x.name} of {function.__name__} is {_KINDS[kind]}, not {quoted(value)}")
            if kind is Mapping and not isinstance(value, Row) and placed:
                args = (*args[:i], _row(value), *args[i + 1 :])
            elif kind is Mapping and not isinstance(value, Row):
                letters[x.name] = _row(value)
        try:
            return function(*args, **letters)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # raised inside, where the sentence was made
                raise
        raise TypeError(_misfit(function, args, letters))

    return called


@cache  # at the first call: all signatures would take a twentieth of an import
def _checkable(function: Callable) -> list[tuple[int, inspect.Parameter]]:
    own = inspect.signature(function).parameters.values()
    return [(i, x) for i, x in enumerate(own) if x.annotation in _KINDS and x.kind in _ONE]


def _row(mapping: Mapping) -> Row:
    """Return a mapping of letters as a row. Texts whose names are no letters are its words."""
    words = {n: x for n, x in mapping.items() if isinstance(n, str) and isinstance(x, str) and n not in NOTATION}
    rest = mapping if hasattr(mapping, "columns") else {n: x for n, x in mapping.items() if n not in words}
    return Row("the row", gather((rest,), {}), words)


def is_number(x) -> bool:
    """Return True for one real number. True is not a number here, nor is NumPy's timedelta64."""
    return type(x) is float or (isinstance(x, Real) and not isinstance(x, bool | np.timedelta64))


def is_whole(x) -> bool:
    """Return True for one integer."""
    return is_number(x) and isinstance(x, Integral)


def as_list(given) -> list | None:
    """Return a list, an array or an iterator as a list, and None for one value, such as a text, a row or a number."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else None


def _misfit(function: Callable, args: tuple, letters: dict) -> str:
    own, name = [*inspect.signature(function).parameters.values()], function.__name__
    if own[0].name in ("self", "serve"):  # a method
        name = f"serve.{name}" if own[0].name == "serve" else name.replace("__call__", "a strategy found")
        own, args = own[1:], args[1:]
    is_open = bool(own) and own[-1].kind == inspect.Parameter.VAR_KEYWORD
    placed = [x.name for x in own if x.kind == x.POSITIONAL_OR_KEYWORD]
    named = [x.name for x in own if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]
    if strange := [x for x in letters if x not in named and not is_open]:
        letter = quoted(strange[0])[1:-1]
        return unused(name, letter, named) if named else f"{name} does not use {letter}: it takes nothing"
    if len(args) > len(placed) and not (own and own[0].kind == inspect.Parameter.VAR_POSITIONAL):
        listed = either(named or ["letters by keyword" if is_open else "nothing"]).replace(" or ", " and ")
        return f"{name} takes {len(placed) or 'no'} values by position, not {len(args)}; it takes {listed}"
    if twice := [x for x in placed[: len(args)] if x in letters]:
        return f"{name} is given {twice[0]} twice, by position and by keyword: give one"
    lacks = [x.name for x in own if x.default is x.empty and x.name in named]
    if lacks := [x for x in lacks if x not in (*placed[: len(args)], *letters)]:
        return f"{name} needs {either(lacks).replace(' or ', ' and ')}: give {lacks[0]}=..."
    given = [*args, *letters.values()]
    strange = next((x for x in given if not isinstance(x, Hashable) or x.__hash__ is None), given[0])
    return f"{name} does not take {quoted(strange)}: give one number, or one word"


for _name in ("interval", "to_dict", "why"):  # of rows, which stand below this module
    setattr(Row, _name, checked(getattr(Row, _name)))
