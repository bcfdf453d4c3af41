"""Evaluate arithmetic that data files contain, such as `"n_gpus / (tp * pp)"`. Nothing in it is run as Python."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache, reduce

import numpy as np

from scalebook.search.space import divisors

__all__ = ["Empty", "expression", "names", "written"]

Lookup = Callable[[str], float]


class Empty(ValueError):
    """Raised if a name in an expression has no value because its cell is empty."""


def _divisors(x: float, most: float = math.inf) -> list[float]:
    return [float(n) for n in divisors(x) if n <= most]


def _folded(scalar: Callable, array: Callable) -> Callable:
    return lambda *xs: reduce(array, xs) if any(map(np.ndim, xs)) else scalar(xs)


_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable] = {
    "max": _folded(max, np.maximum), "min": _folded(min, np.minimum), "divisors": _divisors,
    "ceil": lambda x: np.ceil(x) if np.ndim(x) else math.ceil(x), "round": round, "log2": math.log2,
}  # fmt: skip


def expression(text: str, value: Lookup):
    """Evaluate an expression given as text. `value` is called with each name and returns a number or an array.

    Arithmetic, comparisons, max, min, ceil, round, log2 and divisors are allowed, and `or` for a name without a value.
    Raises ValueError, naming the expression, for anything else.

    >>> expression("n_gpus / (tp * pp)", {"n_gpus": 64, "tp": 8, "pp": 2}.__getitem__)
    4.0
    """
    return _function(text)(value)


@cache
def _function(text: str) -> Callable[[Lookup], float]:
    return _of(_parsed(text), text)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _of(node: ast.expr, text: str) -> Callable[[Lookup], float]:
    match node:
        case ast.Constant(value=int() | float() | str() as x):
            return lambda value: x
        case ast.Name(id=name):
            return lambda value: value(name)
        case ast.UnaryOp(op=ast.USub()):
            inner = _of(node.operand, text)
            return lambda value: -inner(value)
        case ast.BinOp() if type(node.op) in _OPERATIONS:
            return _pair(_OPERATIONS[type(node.op)], _of(node.left, text), _of(node.right, text))
        case ast.Compare(ops=[op]) if type(op) in _OPERATIONS:
            return _pair(_OPERATIONS[type(op)], _of(node.left, text), _of(node.comparators[0], text))
        case ast.BoolOp(op=ast.Or()):
            choices = [_of(x, text) for x in node.values]
            return lambda value: _first(choices, value)
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
            function, inside = _FUNCTIONS[name], [_of(x, text) for x in node.args]
            return lambda value: function(*(x(value) for x in inside))
    raise ValueError(f"{text!r} is no arithmetic over columns: {ast.unparse(node)} cannot stand in it")


def _pair(operation, left, right):
    return lambda value: operation(left(value), right(value))


def _first(choices, value):
    """Return the first choice whose names all have values."""
    for x in choices[:-1]:
        try:
            return x(value)
        except Empty:
            continue
    return choices[-1](value)


@cache
def names(text: str) -> tuple[str, ...]:
    """Return the names in an expression: ("tp", "pp") for "64 / (tp * pp)"."""
    found = [x for x in ast.walk(_parsed(text)) if isinstance(x, ast.Name) and x.id not in _FUNCTIONS]
    return tuple(dict.fromkeys(x.id for x in sorted(found, key=lambda x: (x.lineno, x.col_offset))))


class _Short(float):
    def __repr__(self):
        return min(repr(float(self)), f"{self:g}".replace("e+", "e"), key=lambda x: (float(x) != self, len(x)))


class _Written(ast.NodeTransformer):
    def __init__(self, said: Mapping[str, str]):
        self.said = said

    def visit_Constant(self, node):
        return ast.Constant(_Short(node.value)) if isinstance(node.value, float) else node

    def visit_Name(self, node):
        return _parsed(self.said[node.id]) if node.id in self.said else node

    def visit_BoolOp(self, node):
        for x in node.values:
            if all(n.id in self.said for n in ast.walk(x) if isinstance(n, ast.Name) and n.id not in _FUNCTIONS):
                return self.visit(x)
        return self.visit(node.values[-1])


def written(text: str, said: Mapping[str, str]) -> str:
    """Return an expression as Python text, with each of its names replaced by the text that `said` gives for it.

    >>> written("2 * m * n / total", {"m": "64", "n": "128", "total": "run.matmul_time"})
    '2 * 64 * 128 / run.matmul_time'
    """
    return ast.unparse(_Written(said).visit(_parsed(text)))
