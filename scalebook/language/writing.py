"""Write expressions as Python code, quickly, for the operations that formulas use.

SymPy's own printers sort the terms of every sum, and its `cse` rebuilds every subexpression.  Together they took most
of the time of a first answer.  Here each subexpression is visited once and printed in SymPy's internal order.
"""

from collections.abc import Iterable, Mapping

import sympy
from sympy.core.relational import Relational
from sympy.printing.numpy import NumPyPrinter
from sympy.printing.pycode import PythonCodePrinter

__all__ = ["Point", "Vector", "repeated"]

_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # precedence of a text
_FUNCTIONS = {sympy.log: "log", sympy.exp: "exp", sympy.ceiling: "ceil", sympy.floor: "floor"}


class _Python:
    """The code shared by `Point` and `Vector`; `lines` assign names to shared subexpressions before their first use."""

    module = ""
    printer = PythonCodePrinter

    def __init__(self, shared: Mapping[sympy.Basic, str] | None = None):
        self.lines: list[str] = []
        self._shared, self._written = shared or {}, {}

    def text(self, expr: sympy.Basic, least: int = _SUM) -> str:
        text, holds = self._found(expr)
        return text if holds >= least else f"({text})"

    def _found(self, expr):
        """Return a subexpression as text, with its precedence.  A shared one is given by its name."""
        if (found := self._written.get(expr)) is None:
            found = self._write(expr)
            if name := self._shared.get(expr):
                self.lines.append(f"{name} = {found[0]}")
                found = name, _ATOM
            self._written[expr] = found
        return found

    def _write(self, x):
        if x.is_Symbol:
            return x.name, _ATOM
        if x.is_Number or x.is_NumberSymbol:
            return self._number(x)
        if x.is_Add:
            return self._sum(x), _SUM
        if x.is_Mul:
            return self._product(x)
        if x.is_Pow:
            return self._power(x.base, x.exp)
        if x.func in (sympy.Max, sympy.Min):
            return self._most(x.func is sympy.Max, [self.text(y) for y in x.args]), _ATOM
        if name := _FUNCTIONS.get(x.func):
            return f"{self.module}.{name}({self.text(x.args[0])})", _ATOM
        if isinstance(x, sympy.Piecewise):
            return self._cases(list(x.args)), _ATOM
        if x.func is sympy.Mod:
            return " % ".join(self.text(y, _ATOM) for y in x.args), _PRODUCT
        if isinstance(x, Relational):
            return f"({self.text(x.lhs)} {x.rel_op} {self.text(x.rhs)})", _ATOM
        if isinstance(x, sympy.And | sympy.Or):
            return self._both(isinstance(x, sympy.And), [self.text(y) for y in x.args]), _ATOM
        return self.printer().doprint(x), _SUM  # a function that none of our formulas uses

    def _number(self, x):
        if x.is_Integer:
            return str(x), _ATOM if x >= 0 else _SUM
        if x.is_Rational:
            return f"{x.p}/{x.q}", _PRODUCT if x.p > 0 else _SUM
        if x.is_finite:
            return repr(float(x)), _ATOM if x >= 0 else _SUM
        return {sympy.oo: f"{self.module}.inf", -sympy.oo: f"-{self.module}.inf"}.get(x, f"{self.module}.nan"), _SUM

    def _sum(self, x):
        first, *rest = [self.text(y) for y in x.args]
        return first + "".join(f" - {y[1:]}" if y[0] == "-" else f" + {y}" for y in rest)

    def _product(self, x):
        number, factors = x.as_coeff_mul()
        over = [] if abs(number) is sympy.S.One else [self.text(abs(number), _ATOM)]
        under = []
        for y in factors:
            if y.is_Pow and _is_below_zero(y.exp):
                text, holds = self._power(y.base, -y.exp)
                under.append(text if holds >= _POWER else f"({text})")
            else:
                over.append(self.text(y, _POWER))
        text = "*".join(over) or "1"
        if under:
            text += f"/({'*'.join(under)})" if len(under) > 1 else f"/{under[0]}"
        return (f"-{text}", _SUM) if _is_below_zero(number) else (text, _PRODUCT)

    def _power(self, base, exponent):
        if _is_below_zero(exponent):
            text, holds = self._power(base, -exponent)
            return f"1/{text if holds >= _POWER else f'({text})'}", _PRODUCT
        if exponent is sympy.S.One:
            return self._found(base)
        if exponent is sympy.S.Half:
            return f"{self.module}.sqrt({self.text(base)})", _ATOM
        # NumPy's power of an array may differ from Python's in the last digit; products and roots are exact in both.
        if exponent == sympy.Rational(1, 4):
            return f"{self.module}.sqrt({self.module}.sqrt({self.text(base)}))", _ATOM
        if exponent in (2, 4):
            square = _squared(self.text(base))
            return (square if exponent == 2 else _squared(square)), _PRODUCT
        return f"{self.text(base, _ATOM)}**{self.text(exponent, _ATOM)}", _POWER


class Point(_Python):
    """Print expressions as plain Python with `math`.  For a single point that runs 20 times faster than NumPy."""

    module = "math"

    def _most(self, greatest, texts):
        return f"{'max' if greatest else 'min'}({', '.join(texts)})"

    def _both(self, all_of, texts):
        return f"({(' and ' if all_of else ' or ').join(texts)})"

    def _cases(self, cases):
        (value, condition), *rest = cases
        if condition == True:  # noqa: E712  (a SymPy truth is not Python's)
            return self.text(value, _ATOM)
        other = self._cases(rest) if rest else "math.nan"
        return f"({self.text(value)} if {self.text(condition)} else {other})"


class Vector(_Python):
    """Print expressions as NumPy code for float64 arrays of one shape."""

    module, printer = "numpy", NumPyPrinter

    def _nested(self, function, texts):
        first, *rest = texts
        return f"numpy.{function}({first}, {self._nested(function, rest)})" if rest else first

    def _most(self, greatest, texts):
        return self._nested("maximum" if greatest else "minimum", texts)

    def _both(self, all_of, texts):
        return self._nested("logical_and" if all_of else "logical_or", texts)

    def _cases(self, cases):
        (value, condition), *rest = cases
        if condition == True:  # noqa: E712
            return self.text(value, _ATOM)
        other = self._cases(rest) if rest else "numpy.nan"
        return f"numpy.where({self.text(condition)}, {self.text(value)}, {other})"


def repeated(expressions: Iterable[sympy.Basic], cases: bool = True) -> dict[sympy.Basic, str]:
    """Give a name to every operation that occurs more than once in the expressions, so that code computes it once.

    With `cases=False`, operations inside a Piecewise are skipped, since they may have no value outside their case.
    """
    met, waiting = {}, list(expressions)
    while waiting:
        part = waiting.pop()
        if part.args:
            met[part] = is_again = part in met
            if not is_again and (cases or not isinstance(part, sympy.Piecewise)):
                waiting += part.args
    # Powers in a denominator and negated terms are printed in place, not named.
    parts = [x for x, is_again in met.items() if is_again and not _written_in_place(x)]
    return {x: f"_x{i}" for i, x in enumerate(parts)}


def _squared(text: str) -> str:
    """Return the code of a square that evaluates an operation once.  Squares within it use the name before it does."""
    return f"{text}*{text}" if text.isidentifier() else f"(_base := {text})*_base"


def _is_below_zero(x):
    """Return True for a negative number, without SymPy's slower derivation of signs."""
    return x.is_Number and (x.p < 0 if x.is_Rational else x.is_negative)


def _written_in_place(part):
    if part.is_Boolean or isinstance(part, sympy.functions.elementary.piecewise.ExprCondPair):
        return True
    if part.is_Pow:
        return _is_below_zero(part.exp)
    return part.is_Mul and len(part.args) == 2 and part.args[0].is_Number
