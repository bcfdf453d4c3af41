"""Sums, products and powers of letters: the objects that SymPy's operators make, built in less time.

SymPy's constructors allow for infinities, matrices, roots of numbers and factors that do not commute. Here letters,
rational numbers and whole powers are collected; whatever else comes is left to SymPy.

>>> a, b = sympy.symbols("a b")
>>> with quickly():
...     print(2 * a * b**2 / a * a, a + 1 + b + a)
2*a*b**2 2*a + b + 1
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import sympy
from sympy import Add, Expr, Integer, Max, Min, Mul, Pow, Rational, S, Symbol, ceiling, floor, log
from sympy.core.basic import Basic, ordering_of_classes

__all__ = ["quickly"]

_PLACES = {name: (place, "") for place, name in enumerate(ordering_of_classes)}
_BASES = frozenset([Symbol, Add, Max, Min, ceiling, floor])  # of which SymPy leaves a whole power as it is
_FACTORS = _BASES | {log, sympy.Piecewise}


@lru_cache(1 << 15)
def _key(part: Basic) -> tuple:
    """Return what orders parts as `Basic.compare` does: the kind of part, then what it is made of."""
    made_of, kind = part._hashable_content(), type(part).__name__
    place = _PLACES.get(kind) or (len(_PLACES) + 1, kind)
    return place, len(made_of), *(_key(x) if isinstance(x, Basic) else x for x in made_of)


def _new(kind: type[Expr], args) -> Expr:
    made = Expr.__new__(kind, *args)
    made.is_commutative = True
    return made


@lru_cache(1 << 13)
def _power(base: Expr, exponent: int) -> Expr:
    return _new(Pow, (base, Integer(exponent)))


def _product(factors) -> Expr | None:
    above = below = 1
    powers: dict[Expr, int] = {}
    waiting = list(factors)
    for part in waiting:
        kind = type(part)
        if kind in _FACTORS:
            powers[part] = powers.get(part, 0) + 1
        elif kind is Mul:
            waiting += part.args
        elif kind is int:
            above *= part
        elif getattr(part, "is_Rational", False):
            above, below = above * part.p, below * part.q
        elif kind is Pow and type(part.args[0]) in _BASES and part.args[1].is_Integer:
            base, exponent = part.args
            powers[base] = powers.get(base, 0) + exponent.p
        else:
            return None
    if not above or (len(factors) == 2 and (above, below) != (1, 1) and any(map(_has_sum_left, factors))):
        return None
    if any(n not in (0, 1) and type(x) not in _BASES for x, n in powers.items()):
        return None
    parts = sorted([x if n == 1 else _power(x, n) for x, n in powers.items() if n], key=_key)
    if above != below:
        if len(parts) == 1 and parts[0].is_Add:
            return None
        parts.insert(0, Integer(above) if below == 1 else Rational(above, below))
    return _new(Mul, parts) if len(parts) > 1 else parts[0] if parts else S.One


def _has_sum_left(part) -> bool:
    """Return True for a sum, or a number times a sum, which SymPy multiplies out or keeps as it is."""
    return not isinstance(part, int) and (
        part.is_Add or (part.is_Mul and len(part.args) == 2 and part.args[0].is_Number and part.args[1].is_Add)
    )


def _total(terms) -> Expr | None:
    number, found, waiting = S.Zero, {}, list(terms)
    for part in waiting:
        kind = type(part)
        if kind is Add:
            waiting += part.args
        elif kind is int or getattr(part, "is_Rational", False):
            number += part
        elif kind is Mul:
            count = part.args[0]
            if not count.is_Number:
                count, factors = S.One, part.args
            elif count.is_Rational:
                factors = part.args[1:]
            else:
                return None
            found.setdefault(factors, []).append((count, part))
        elif kind in _FACTORS or (kind is Pow and not part.args[0].is_Number):
            found.setdefault((part,), []).append((S.One, part))
        else:
            return None
    parts = [own[0][1] if len(own) == 1 else _times(sum(n for n, _ in own), x) for x, own in found.items()]
    parts = sorted((x for x in parts if x is not S.Zero), key=_key)
    if number is not S.Zero:
        parts.insert(0, number)
    return _new(Add, parts) if len(parts) > 1 else parts[0] if parts else S.Zero


def _times(count: Expr, factors: tuple) -> Expr:
    parts = factors if count == 1 else (count, *factors)
    return S.Zero if count == 0 else _new(Mul, parts) if len(parts) > 1 else parts[0]


def _of_power(base, exponent) -> Expr | None:
    whole = type(base) in _BASES and (exponent if type(exponent) is int else getattr(exponent, "is_Integer", 0))
    return _power(base, int(exponent)) if whole and exponent not in (0, 1) else None


def _constructor(kind: type[Expr], build: Callable) -> Callable:
    """Return a `__new__` that returns what `build` makes of the arguments, or else what SymPy's own makes."""
    slow = kind.__new__

    @lru_cache(1 << 14, typed=True)
    def quick(*args):
        return build(*args) or slow(kind, *args)

    def new(cls, *args, **options):
        if cls is kind and not options:
            try:
                return quick(*args)
            except TypeError:  # a list, which has no hash
                pass
        return slow(cls, *args, **options)

    return new


_QUICK = {
    Mul: _constructor(Mul, lambda *x: _product(x)),
    Add: _constructor(Add, lambda *x: _total(x)),
    Pow: _constructor(Pow, _of_power),
}
_SLOW = {kind: kind.__dict__.get("__new__") for kind in _QUICK}
_inside = 0  # how many building functions run


@contextmanager
def quickly() -> Iterator[None]:
    """Let SymPy build sums, products and powers in less time, with the same results.  Also a decorator."""
    global _inside
    _inside += 1
    if _inside == 1:
        for kind, new in _QUICK.items():
            kind.__new__ = new
    try:
        yield
    finally:
        _inside -= 1
        if not _inside:
            for kind, new in _SLOW.items():
                if new is None:
                    del kind.__new__
                else:
                    kind.__new__ = new
