"""Formulas over columns of strategies, each part evaluated once per distinct combination of the letters it rests on.

A kernel's time rests on tp, cp and batch, a step's on everything: among a million strategies the first has some tens
of values.  A value is therefore held with the letters it rests on, one entry for each of their combinations.

>>> from scalebook.language import symbol
>>> columns = Columns({"tp": np.array([1.0, 1.0, 2.0]), "dp": np.array([4.0, 2.0, 2.0])}, {"hidden": 8.0})
>>> half = columns.evaluate(symbol("hidden") / symbol("tp"))
>>> half.array, columns.spread(half)
(array([8., 4.]), array([8., 8., 4.]))
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import NamedTuple

import numpy as np
import sympy

__all__ = ["Columns", "Grid", "Held", "arguments", "combine", "constant"]


class Held(NamedTuple):
    """A value and the letters it rests on, as bits; the array has one entry for each of their combinations."""

    bits: int
    array: np.ndarray


def _sum(values):
    return reduce(np.add, sorted(values, key=np.size))  # what is small is added up first


def _product(values):
    return reduce(np.multiply, sorted(values, key=np.size))


def _power(base, exponent):
    if np.ndim(exponent) == 0:
        for known, function in ((-1.0, np.reciprocal), (0.5, np.sqrt), (2.0, np.square)):
            if exponent == known:
                return function(base)
    return np.power(base, exponent)


def _cases(values):
    cases = list(zip(values[::2], values[1::2], strict=True))
    return reduce(lambda other, case: np.where(case[1], case[0], other), reversed(cases), np.nan)


_OPERATIONS: dict[type, Callable] = {
    sympy.Add: _sum,
    sympy.Mul: _product,
    sympy.Pow: lambda x: _power(*x),
    sympy.Max: lambda x: reduce(np.maximum, sorted(x, key=np.size)),
    sympy.Min: lambda x: reduce(np.minimum, sorted(x, key=np.size)),
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


def combine(node: sympy.Basic, values: list):
    """One operation of an expression, of its arguments' values; raises NotImplementedError for one not known here."""
    if node.func not in _OPERATIONS:
        raise NotImplementedError(f"a search cannot evaluate {node.func.__name__}: use {', '.join(x.__name__ for x in _OPERATIONS)}")
    return _OPERATIONS[node.func](values)


def arguments(node: sympy.Basic) -> tuple:
    """What is evaluated before an operation; of a Piecewise the values and conditions in turn."""
    return tuple(x for case in node.args for x in case.args) if node.func is sympy.Piecewise else node.args


def constant(node: sympy.Basic) -> np.generic | None:
    """The value of a number or a truth, None for anything else."""
    if node.is_Boolean and node.is_Atom and not node.is_Symbol:
        return np.bool_(bool(node))
    return np.float64(node) if node.is_number and not node.is_Boolean and not node.is_Relational else None


class Columns:
    """Strategies as columns of letters, letters that are the same for all, and what is evaluated of them."""

    def __init__(self, columns: Mapping[str, np.ndarray], constants: Mapping[str, float]):
        self.size = len(next(iter(columns.values())))
        self.letters: dict[str, Held] = {n: Held(0, np.float64(x)) for n, x in constants.items()}
        self._codes, self._keys, self._maps = [], {}, {}
        for place, (name, column) in enumerate(columns.items()):
            values, codes = np.unique(column, return_inverse=True)
            self._codes.append((codes, len(values)))
            self.letters[name] = Held(1 << place, values)

    def evaluate(self, expr: sympy.Expr, letters: Mapping[str, Held] | None = None) -> Held:
        """The value of an expression in letters that are known here or given."""
        return self._value(expr, self.letters if letters is None else letters, {})

    def _value(self, node, letters, memo):
        found = memo.get(node)
        if found is None:
            if node.is_Symbol:
                found = letters[node.name]
            elif (number := constant(node)) is not None:
                found = Held(0, number)
            else:
                found = self.combine(node, [self._value(x, letters, memo) for x in arguments(node)])
            memo[node] = found
        return found

    def combine(self, node: sympy.Basic, args: list[Held]) -> Held:
        """One operation."""
        bits = reduce(int.__or__, [x.bits for x in args])
        return Held(bits, combine(node, [self.align(x, bits) for x in args]))

    # Combinations

    def _key(self, bits):
        """For each combination its first row, and for each row the place of its combination."""
        if bits not in self._keys:
            mixed, span = np.zeros(self.size, np.int64), 1
            for place, (codes, count) in enumerate(self._codes):
                if bits >> place & 1:
                    if span * count > 2**62:
                        values, mixed = np.unique(mixed, return_inverse=True)
                        span = len(values)
                    mixed, span = mixed * count + codes, span * count
            _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
            self._keys[bits] = first, inverse
        return self._keys[bits]

    def align(self, held: Held, bits: int) -> np.ndarray:
        """The value with an entry for each combination of more letters."""
        if held.bits in (0, bits):
            return held.array
        if (held.bits, bits) not in self._maps:
            self._maps[held.bits, bits] = self._key(held.bits)[1][self._key(bits)[0]]
        return held.array[self._maps[held.bits, bits]]

    def spread(self, held: Held, rows: np.ndarray | None = None) -> np.ndarray:
        """The value at each row, or at some of them."""
        if held.bits == 0:
            return held.array
        places = self._key(held.bits)[1]
        return held.array[places if rows is None else places[rows]]


class Grid:
    """Some rows of columns, times all combinations of further letters with few values, each along an axis of its own.

    A value that rests on none of these is held as in the columns; any other is an array, one long along the axes it
    does not rest on.

    >>> columns = Columns({"dp": np.array([4.0, 2.0])}, {})
    >>> grid = Grid(columns, np.array([1, 0]), {"tp_overlap": (0.0, 0.5)})
    >>> from scalebook.language import symbol
    >>> grid.array(grid.evaluate((1 - symbol("tp_overlap")) * symbol("dp"), {**columns.letters, **grid.axes}, {}))
    array([[2., 1.],
           [4., 2.]])
    """

    def __init__(self, columns: Columns, rows: np.ndarray, axes: Mapping[str, tuple[float, ...]]):
        self.columns, self.rows = columns, rows
        self.shape = (len(rows), *map(len, axes.values()))
        self.axes: dict[str, np.ndarray] = {}
        for place, (name, values) in enumerate(axes.items()):
            shape = [1] * len(self.shape)
            shape[1 + place] = len(values)
            self.axes[name] = np.reshape(values, shape)

    def evaluate(self, expr: sympy.Basic, letters: Mapping, held: dict) -> Held | np.ndarray:
        """The value of an expression; `held` keeps what rests on columns alone, for the next grid of the same letters."""
        return self._value(expr, letters, held, {})

    def _value(self, node, letters, held, memo):
        found = held.get(node)
        if found is None and (found := memo.get(node)) is None:
            if node.is_Symbol:
                found = letters[node.name]
            elif (number := constant(node)) is not None:
                found = Held(0, number)
            else:
                found = self._combine(node, [self._value(x, letters, held, memo) for x in arguments(node)])
            (held if isinstance(found, Held) else memo)[node] = found
        return found

    def _combine(self, node, args):
        kept = [x for x in args if isinstance(x, Held)]
        if len(kept) == len(args):
            return self.columns.combine(node, args)
        if len(kept) > 1 and node.func in (sympy.Add, sympy.Mul):  # what columns can do together is done there
            args = [x for x in args if not isinstance(x, Held)] + [self.columns.combine(node, kept)]
        return combine(node, [self.array(x) if isinstance(x, Held) else x for x in args])

    def array(self, value: Held | np.ndarray) -> np.ndarray:
        """A value as an array of as many dimensions as the grid has."""
        if not isinstance(value, Held):
            return value
        found = self.columns.spread(value, self.rows)
        return found.reshape(np.shape(found) + (1,) * (len(self.shape) - np.ndim(found)))
