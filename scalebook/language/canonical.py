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
from threading import Lock

import sympy
from sympy import Add, Expr, Integer, Max, Min, Mul, Pow, Rational, S, Symbol, ceiling, floor, log
from sympy.core.basic import Basic, ordering_of_classes

__all__ = ["quickly"]

_PLACES = {name: (place, "") for place, name in enumerate(ordering_of_classes)}
_BASES = frozenset([Symbol, Add, Max, Min, ceiling, floor])  # of which SymPy leaves a whole power as it is
_FACTORS = _BASES | {log, sympy.Piecewise}


@lru_cache(1 << 15)
def _key(part: Basic) -> tuple:
    """Return a key that sorts parts as `Basic.compare` does: by class, then by arguments."""
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
    if not above:
        return S.Zero  # letters are finite
    if len(factors) == 2 and any(map(_is_number, factors)) and any(map(_has_sum_left, factors)):
        return None
    if any(n not in (0, 1) and type(x) not in _BASES for x, n in powers.items()):
        return None
    parts = sorted([x if n == 1 else _power(x, n) for x, n in powers.items() if n], key=_key)
    if above != below:
        if len(parts) == 1 and parts[0].is_Add:
            return None
        parts.insert(0, Integer(above) if below == 1 else Rational(above, below))
    return _new(Mul, parts) if len(parts) > 1 else parts[0] if parts else S.One


def _is_number(part) -> bool:
    return isinstance(part, int) or part.is_Number


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
            elif count.is_Rational and not part.args[1].is_Mul:
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


def _raised(base, exponent) -> Expr | None:
    """Return a whole power of a sum, a letter or a product of these."""
    whole = exponent if type(exponent) is int else exponent.p if getattr(exponent, "is_Integer", False) else 0
    if whole in (0, 1):
        return None
    if type(base) in _BASES:
        return _power(base, whole)
    if type(base) is not Mul:
        return None
    pairs = [x.args if type(x) is Pow else (x, S.One) for x in base.args]
    if not all((type(x) in _BASES or x.is_Rational) and n.is_Integer for x, n in pairs):
        return None
    return _product([Pow(x, n.p * whole) for x, n in pairs])


@lru_cache(1 << 15)
def _nodes(part: Basic) -> float:
    return 0.5 if part.is_Float else 1 + sum(map(_nodes, part.args))


def _most(kind: type[Expr], options) -> Expr | None:
    """Return a maximum or minimum that is not evaluated, its options in SymPy's order: the shorter first."""
    options = {Integer(x) if type(x) is int else x for x in options}
    by_size = {_nodes(x): x for x in options}
    if len(by_size) < len(options) or len(options) < 2:
        return None
    made = Expr.__new__(kind, *(by_size[n] for n in sorted(by_size)))
    made._argset = frozenset(options)
    return made


_ONE_ARGUMENT = sympy.FiniteSet(1)


def _rounded(kind: type[Expr], count: Expr, evaluate: bool) -> Expr | None:
    """Return a ceiling or floor of a product of letters without SymPy's long questions whether it is an integer."""
    if not isinstance(count, Expr) or (evaluate and not (count.is_Mul and all(map(_is_of_a_letter, count.args)))):
        return None
    made = Expr.__new__(kind, count)
    made.nargs = _ONE_ARGUMENT
    return made


def _is_of_a_letter(part: Expr) -> bool:
    return part.is_Rational or (part.base if type(part) is Pow and part.exp.is_Integer else part).is_Symbol


# How to build each kind from arguments, evaluated or not; None leaves it to SymPy.
_BUILT: dict[type[Expr], Callable] = {
    Mul: lambda evaluate, *x: _product(x) if evaluate else None,
    Add: lambda evaluate, *x: _total(x) if evaluate else None,
    Pow: lambda evaluate, *x: _raised(*x) if evaluate else None,
    ceiling: lambda evaluate, x: _rounded(ceiling, x, evaluate),
    floor: lambda evaluate, x: _rounded(floor, x, evaluate),
    Max: lambda evaluate, *x: None if evaluate else _most(Max, x),
    Min: lambda evaluate, *x: None if evaluate else _most(Min, x),
}


def _constructor(kind: type[Expr]) -> Callable:
    """Return a `__new__` that returns what our function builds, or else what SymPy's own does."""
    slow, build = kind.__new__, _BUILT[kind]

    @lru_cache(1 << 14, typed=True)
    def quick(evaluate, *args):
        made = build(evaluate, *args)
        return (slow(kind, *args) if evaluate else slow(kind, *args, evaluate=False)) if made is None else made

    def new(cls, *args, **options):
        if cls is kind and (not options or options == {"evaluate": False}):
            try:
                return quick(not options, *args)
            except (TypeError, AttributeError):  # something that is no expression
                pass
        return slow(cls, *args, **options)

    return new


_QUICK = {kind: _constructor(kind) for kind in _BUILT}
_SLOW = {kind: kind.__dict__.get("__new__") for kind in _QUICK}
_inside, _lock = [], Lock()  # the building functions that run, in any thread


@contextmanager
def quickly() -> Iterator[None]:
    """Let SymPy build sums, products and powers in less time, with the same results.  Also a decorator."""
    with _lock:
        _inside.append(True)
        for kind, new in _QUICK.items():
            kind.__new__ = new
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            for kind, new in _SLOW.items() if not _inside else ():
                if new is None:
                    del kind.__new__
                else:
                    kind.__new__ = new
