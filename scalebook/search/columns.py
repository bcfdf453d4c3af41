"""Evaluate formulas over columns of strategies, each part once per distinct combination of the letters it depends on.

A kernel's time depends on tp, cp and batch; a step's time depends on everything.  Among a million strategies the
kernel's time has only a few tens of distinct values.  So each value is stored with the set of letters that it depends
on, and its array has one entry per combination of these letters.

>>> from scalebook.language import symbol
>>> columns = Columns({"tp": np.array([1.0, 1.0, 2.0]), "dp": np.array([4.0, 2.0, 2.0])}, {"hidden": 8.0})
>>> half = columns.evaluate(symbol("hidden") / symbol("tp"))
>>> half.array, columns.spread(half)
(array([8., 4.]), array([8., 8., 4.]))
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
import sympy

__all__ = ["Columns", "Held", "Program", "firsts", "numbered", "program"]


class Held(NamedTuple):
    """A value and, as a bit mask, the letters it depends on.

    The array has one entry per combination of these letters.
    """

    bits: int
    array: np.ndarray


def _sum(values):
    return reduce(np.add, values if len(values) < 3 else sorted(values, key=np.size))  # small arrays are added up first


def _product(values):
    return reduce(np.multiply, values if len(values) < 3 else sorted(values, key=np.size))


def _power(base, exponent):
    if np.ndim(exponent) == 0:
        for known, function in ((-1.0, np.reciprocal), (0.5, np.sqrt), (2.0, np.square)):
            if exponent == known:
                return function(base)
    return np.power(base, exponent)


def _cases(values):
    cases = list(zip(values[::2], values[1::2], strict=True))
    return reduce(lambda other, case: np.where(case[1], case[0], other), reversed(cases), np.nan)


_OPERATIONS: dict[type | None, Callable] = {
    None: lambda x: x[0],
    sympy.Add: _sum,
    sympy.Mul: _product,
    sympy.Pow: lambda x: _power(*x),
    sympy.Max: lambda x: reduce(np.maximum, x),
    sympy.Min: lambda x: reduce(np.minimum, x),
    sympy.ceiling: lambda x: np.ceil(x[0]),
    sympy.floor: lambda x: np.floor(x[0]),
    sympy.log: lambda x: np.log(x[0]),
    sympy.exp: lambda x: np.exp(x[0]),
    sympy.Abs: lambda x: np.abs(x[0]),
    sympy.Mod: lambda x: np.mod(*x),
    sympy.Piecewise: _cases,
    sympy.Ge: lambda x: np.greater_equal(*x),
    sympy.Gt: lambda x: np.greater(*x),
    sympy.Le: lambda x: np.less_equal(*x),
    sympy.Lt: lambda x: np.less(*x),
    sympy.Eq: lambda x: np.equal(*x),
    sympy.Ne: lambda x: np.not_equal(*x),
    sympy.And: lambda x: reduce(np.logical_and, x),
    sympy.Or: lambda x: reduce(np.logical_or, x),
    sympy.Not: lambda x: np.logical_not(x[0]),
}


def _constant(node: sympy.Basic) -> np.generic | None:
    """Return the value of a number or a truth value, or None for anything else."""
    if node.is_Boolean and node.is_Atom and not node.is_Symbol:
        return np.bool_(bool(node))
    return np.float64(node) if node.is_Number or not (node.is_Boolean or node.args or node.is_Symbol) else None


def _parts(expr: sympy.Basic, found: dict) -> dict:
    """Collect all subexpressions, each once and after its own subexpressions."""
    if expr not in found:
        for x in _args(expr):
            _parts(x, found)
        found[expr] = None
    return found


def _args(expr: sympy.Basic) -> Sequence[sympy.Basic]:
    """Return the arguments of an operation.  A Piecewise gives its values and conditions in turn."""
    return [x for case in expr.args for x in case.args] if expr.func is sympy.Piecewise else expr.args


class Program(NamedTuple):
    """An expression as a list of operations.

    Each operation has a kind and the places of its arguments, which index the letters, then the constants, then earlier
    results.  A single letter or number becomes one operation of kind None.
    """

    letters: tuple[str, ...]
    constants: tuple[np.generic, ...]
    steps: tuple[tuple[type | None, tuple[int, ...]], ...]


@lru_cache(4096)
def program(expr: sympy.Basic) -> Program:
    """Turn an expression into a list of operations, each subexpression once.

    Raises NotImplementedError for an operation that has no NumPy counterpart here.

    >>> from scalebook.language import symbol
    >>> program(symbol("tp") ** 2 / 3).letters
    ('tp',)
    """
    nodes = list(_parts(expr, {}))
    letters = [x for x in nodes if x.is_Symbol]
    constants = {x: c for x in nodes if not x.is_Symbol and (c := _constant(x)) is not None}
    others = [x for x in nodes if not x.is_Symbol and x not in constants]
    place = {x: i for i, x in enumerate([*letters, *constants, *others])}
    steps = []
    for x in others:
        if x.func not in _OPERATIONS:
            raise NotImplementedError(
                f"a search cannot evaluate {x.func.__name__}: use {', '.join(k.__name__ for k in _OPERATIONS if k)}"
            )
        places = tuple(place[y] for y in _args(x))
        steps.append((x.func, places))
    if not others:
        steps.append((None, (place[expr],)))
    return Program(tuple(x.name for x in letters), tuple(constants.values()), tuple(steps))


def numbered(mixed: np.ndarray, span: int) -> tuple[np.ndarray, int]:
    """Renumber integers below `span` as 0, 1, 2, ... in increasing order.

    Return the new numbers and how many there are.
    """
    if span > 16 * len(mixed) + 1024:
        values, inverse = np.unique(mixed, return_inverse=True)
        return inverse, len(values)
    there = np.zeros(span, bool)
    there[mixed] = True
    return (np.cumsum(there) - 1)[mixed], int(np.count_nonzero(there))


def firsts(inverse: np.ndarray, count: int) -> np.ndarray:
    """Return, for each number below `count`, the place where it first occurs."""
    first = np.empty(count, np.intp)
    first[inverse[::-1]] = np.arange(len(inverse) - 1, -1, -1)
    return first


class Columns:
    """Strategies as columns of letters, constant letters, and the expressions evaluated over them."""

    def __init__(self, columns: Mapping[str, np.ndarray], constants: Mapping[str, float], size: int | None = None):
        self.size = len(next(iter(columns.values()))) if size is None else size  # there may be rows without any column
        self.letters: dict[str, Held] = {n: Held(0, np.float64(x)) for n, x in constants.items()}
        self._codes, self._keys, self._maps = [], {}, {}
        for place, (name, column) in enumerate(columns.items()):
            values, codes = np.unique(column, return_inverse=True)
            self._codes.append((codes, len(values)))
            self.letters[name] = Held(1 << place, values)

    def evaluate(self, expr: sympy.Expr, letters: Mapping[str, Held] | None = None) -> Held:
        """Evaluate an expression in the letters of these columns, or in `letters` if given."""
        own, letters = program(expr), self.letters if letters is None else letters
        values = [*(letters[n] for n in own.letters), *(Held(0, x) for x in own.constants)]
        for kind, places in own.steps:
            values.append(self.combine(_OPERATIONS[kind], [values[i] for i in places]))
        return values[-1]

    def combine(self, operation: Callable, args: list[Held]) -> Held:
        """Apply one operation to values that may depend on different letters."""
        bits = 0
        for x in args:
            bits |= x.bits
        return Held(bits, operation([x.array if x.bits in (0, bits) else self._align(x, bits) for x in args]))

    # Combinations

    def key(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return each combination's first row, and each row's combination, for the letters in `bits`."""
        if bits not in self._keys:
            mixed, span = np.zeros(self.size, np.int64), 1
            for place, (codes, count) in enumerate(self._codes):
                if bits >> place & 1:
                    if span * count > 2**62:
                        mixed, span = numbered(mixed, span)
                    mixed, span = mixed * count + codes, span * count
            inverse, count = numbered(mixed, span)
            self._keys[bits] = firsts(inverse, count), inverse
        return self._keys[bits]

    def places(self, bits: int, more: int) -> np.ndarray:
        """Map each combination of the letters in `more` to its combination of the letters in `bits`, a subset."""
        if (bits, more) not in self._maps:
            self._maps[bits, more] = self.key(bits)[1][self.key(more)[0]]
        return self._maps[bits, more]

    def _align(self, held, bits):
        """Expand a value to one entry per combination of a larger set of letters."""
        return held.array[self.places(held.bits, bits)]

    def spread(self, held: Held, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the value at every row, or at the given rows."""
        if held.bits == 0:
            return held.array
        places = self.key(held.bits)[1]
        return held.array[places if rows is None else places[rows]]
