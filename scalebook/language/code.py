"""Printing statements as Python for a point, as NumPy for arrays and as JavaScript for a page.

A statement is `(letter, expression)`; an expression may use the letters of the statements before
it.  One statement a letter keeps the code straight: the single substituted expression of a large
sheet would take longer to form than all its evaluations.
"""

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import sympy
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.numpy import NumPyPrinter
from sympy.printing.pycode import PythonCodePrinter

__all__ = ["BLOCK", "blocks", "broadcast", "expression", "javascript", "point", "vector"]

BLOCK = 16_384  # rows evaluated at a time: the intermediate arrays then stay in the core's cache

Statements = Sequence[tuple[str, sympy.Expr]]


class _Exact:
    """Write every digit of a float: SymPy's printers stop at 15."""

    def _print_Float(self, expr):
        return repr(float(expr))


class _Point(_Exact, PythonCodePrinter):
    """Plain Python and `math`: 20 times faster than NumPy for one point."""

    def _print_Max(self, expr):
        return f"max({', '.join(map(self._print, expr.args))})"

    def _print_Min(self, expr):
        return f"min({', '.join(map(self._print, expr.args))})"


class _Vector(_Exact, NumPyPrinter):
    def _nest(self, function, args):
        first, *rest = map(self._print, args)
        return f"numpy.{function}({first}, {self._nest_text(function, rest)})" if rest else first

    def _nest_text(self, function, texts):
        return texts[0] if len(texts) == 1 else f"numpy.{function}({texts[0]}, {self._nest_text(function, texts[1:])})"

    def _print_Max(self, expr):
        return self._nest("maximum", expr.args)

    def _print_Min(self, expr):
        return self._nest("minimum", expr.args)

    def _print_Piecewise(self, expr):
        (value, condition), *rest = expr.args
        if condition == True:  # noqa: E712  (a SymPy truth is not Python's)
            return self._print(value)
        other = self._print(expr.func(*rest)) if rest else "numpy.nan"
        return f"numpy.where({self._print(condition)}, {self._print(value)}, {other})"


class _JavaScript(_Exact, JavascriptCodePrinter):
    def _print_NaN(self, expr):
        return "NaN"

    def emptyPrinter(self, expr):
        raise NotImplementedError(f"{type(expr).__name__} has no JavaScript: expand it first (.doit())")

    _print_Sum = _print_Product = _print_Integral = emptyPrinter


@lru_cache(1 << 14)
def _printed(printer, expr):
    """An expression as code, kept: the sheets of two strategies, and two plans of one sheet,
    share most of their formulas.
    """
    return printer().doprint(expr)


def _compile(printer, module, name, inputs, statements, outputs) -> Callable:
    lines = [f"def f({', '.join(inputs)}):"]
    lines += [f"    {letter} = {_printed(printer, expr)}" for letter, expr in statements]
    lines += [f"    return ({''.join(f'{x}, ' for x in outputs)})"]
    space = {name: module}
    exec("\n".join(lines), space)
    return space["f"]


def point(inputs: Sequence[str], statements: Statements, outputs: Sequence[str]) -> Callable:
    """A Python function of floats that returns the outputs as a tuple.

    >>> a, b = sympy.symbols("a b")
    >>> point(["a"], [("b", a + 1), ("c", sympy.Max(b, 3) / 2)], ["b", "c"])(1.0)
    (2.0, 1.5)
    """
    return _compile(_Point, math, "math", inputs, statements, outputs)


def _unevaluated(kind):
    return type(kind.__name__, (kind,), {"__new__": lambda cls, *args: kind.__new__(cls, *args, evaluate=False)})


_STILL = {kind: _unevaluated(kind) for kind in (sympy.Max, sympy.Min)}


@lru_cache(1 << 15)
def _still(expr):
    """An expression whose Max and Min compare nothing: `cse` puts every part together anew,
    and comparing took most of it.
    """
    if not expr.args:
        return expr
    args = [_still(x) for x in expr.args]
    func = _STILL.get(expr.func, expr.func)
    return expr if func is expr.func and all(map(operator.is_, args, expr.args)) else func(*args)


def vector(inputs: Sequence[str], statements: Statements, outputs: Sequence[str]) -> Callable:
    """The same for float64 arrays; what several statements share is computed once.

    >>> a, b = sympy.symbols("a b")
    >>> vector(["a"], [("b", a + 1), ("c", sympy.Max(b, 3) / 2)], ["c"])(np.array([1.0, 9.0]))
    (array([1.5, 5. ]),)
    """
    shared, reduced = sympy.cse(
        [_still(expr) for _, expr in statements], symbols=sympy.numbered_symbols("_x"), order="none"
    )
    # A shared part stands just before the first statement that uses it: it may use earlier letters.
    lines, placed, parts = [], set(), dict(shared)

    def place(expr):
        for x in sorted(expr.free_symbols & parts.keys() - placed, key=lambda x: int(x.name[2:])):
            place(parts[x])
            if x not in placed:
                placed.add(x)
                lines.append((x.name, parts[x]))

    for (letter, _), expr in zip(statements, reduced, strict=True):
        place(expr)
        lines.append((letter, expr))
    return _compile(_Vector, np, "numpy", inputs, lines, outputs)


def javascript(inputs: Sequence[str], statements: Statements, outputs: Sequence[str]) -> str:
    """A JavaScript function from an object of letters to an object of letters.

    >>> a = sympy.Symbol("a")
    >>> print(javascript(["a"], [("b", a / 2)], ["b"]))
    ({a}) => { const b = (1/2)*a; return {b}; }
    """
    body = " ".join(f"const {letter} = {_printed(_JavaScript, expr)};" for letter, expr in statements)
    return f"({{{', '.join(inputs)}}}) => {{ {body} return {{{', '.join(outputs)}}}; }}"


def expression(expr: sympy.Expr) -> str:
    """An expression as JavaScript, its letters by name.

    >>> expression(sympy.Max(sympy.Symbol("a") / 2, 3))
    'Math.max(3, (1/2)*a)'
    """
    return _printed(_JavaScript, expr)


def broadcast(values: dict[str, np.ndarray | float]) -> tuple[int, ...]:
    """The shape that the letters' values have together; raise ValueError, naming the letters, if they have none."""
    shapes = {name: np.shape(x) for name, x in values.items() if np.ndim(x)}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {s}" for name, s in shapes.items())
        raise ValueError(f"these arrays do not broadcast together: {said}") from None


def blocks(function: Callable, values: dict[str, np.ndarray | float]) -> list[np.ndarray]:
    """Evaluate a vector function of letters in blocks; raise ValueError for shapes that do not broadcast."""
    shape = broadcast(values)
    size = math.prod(shape)
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
