"""Print statements as Python for one point, as NumPy for arrays, and as JavaScript for a page.

A statement is `(name, expression)`.  Its expression may use the names of earlier statements.  Substituting all into one
expression would, for a large sheet, take longer than all its evaluations.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import sympy
from sympy.printing.jscode import JavascriptCodePrinter

from .building import uncollected
from .writing import Point, Vector, repeated

__all__ = ["BLOCK", "blocks", "broadcast", "expression", "javascript", "point", "vector"]

BLOCK = 16_384  # rows evaluated at a time: the intermediate arrays then stay in the core's cache

Statements = Sequence[tuple[str, sympy.Expr]]


class _JavaScript(JavascriptCodePrinter):
    """Print every digit of a float.  SymPy's own printer stops at 15."""

    def _print_Float(self, expr):
        return repr(float(expr))

    def _print_NaN(self, expr):
        return "NaN"

    def emptyPrinter(self, expr):
        raise NotImplementedError(f"{type(expr).__name__} has no JavaScript: expand it first (.doit())")

    _print_Sum = _print_Product = _print_Integral = emptyPrinter


@lru_cache(1 << 14)
def expression(expr: sympy.Expr) -> str:
    """Print one SymPy expression as JavaScript, with symbols as variables."""
    return _JavaScript().doprint(expr)


def point(inputs: Sequence[str], statements: Statements, outputs: Sequence[str]) -> Callable:
    """Compile statements to a Python function of floats that returns the outputs as a tuple."""
    return _compiled(Point, tuple(inputs), tuple(statements), tuple(outputs))


def vector(inputs: Sequence[str], statements: Statements, outputs: Sequence[str]) -> Callable:
    """Compile statements to a function of float64 arrays that returns the outputs as a tuple of arrays.

    >>> a, b = sympy.symbols("a b")
    >>> vector(["a"], [("b", a + 1), ("c", sympy.Max(b, 3) / 2)], ["c"])(np.array([1.0, 9.0]))
    (array([1.5, 5. ]),)
    """
    return _compiled(Vector, tuple(inputs), tuple(statements), tuple(outputs))


@lru_cache(1 << 12)  # sheets of several models and devices often have the same statements
@uncollected()
def _compiled(kind: type[Point | Vector], inputs, statements, outputs) -> Callable:
    writer = kind(repeated((expr for _, expr in statements), cases=kind is Vector))
    for letter, expr in statements:
        writer.lines.append(f"{letter} = {writer.text(expr)}")
    lines = [f"def f({', '.join(inputs)}):", *writer.lines, f"return ({''.join(f'{x}, ' for x in outputs)})"]
    space = {"math": math, "numpy": np}
    exec("\n    ".join(lines), space)
    return space["f"]


def javascript(inputs: Sequence[str], statements: Statements, outputs: Sequence[str]) -> str:
    """Print statements as a JavaScript function from an object of inputs to an object of outputs, by name.

    >>> a = sympy.Symbol("a")
    >>> print(javascript(["a"], [("b", a / 2)], ["b"]))
    ({a}) => { const b = (1/2)*a; return {b}; }
    """
    body = " ".join(f"const {letter} = {expression(expr)};" for letter, expr in statements)
    return f"({{{', '.join(inputs)}}}) => {{ {body} return {{{', '.join(outputs)}}}; }}"


def broadcast(values: dict[str, np.ndarray | float]) -> tuple[int, ...]:
    """Return the common shape of values by name.  Raises ValueError, naming them, if their shapes do not fit."""
    shapes = {name: np.shape(x) for name, x in values.items() if not isinstance(x, (float, int, str)) and np.ndim(x)}
    if not shapes:
        return ()
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {s}" for name, s in shapes.items())
        raise ValueError(f"these arrays do not broadcast together: {said}") from None


def blocks(function: Callable, values: dict[str, np.ndarray | float]) -> list[np.ndarray]:
    """Evaluate a function made by `vector`, a block of values at a time.  Return one array per output."""
    shape = broadcast(values)
    size = math.prod(shape)
    values = {n: np.float64(x) if type(x) is float else x for n, x in values.items()}  # which overflow to infinity
    with np.errstate(all="ignore"):
        if size <= 2 * BLOCK:
            return [np.array(np.broadcast_to(x, shape), float) for x in function(*values.values())]
        flat = [np.broadcast_to(x, shape).reshape(-1) if np.ndim(x) else x for x in values.values()]
        out = None
        for start in range(0, size, BLOCK):
            part = slice(start, start + BLOCK)
            results = function(*(x[part] if np.ndim(x) else x for x in flat))
            out = out or [np.empty(size) for _ in results]
            for whole, piece in zip(out, results, strict=True):
                whole[part] = piece
    return [x.reshape(shape) for x in out]
