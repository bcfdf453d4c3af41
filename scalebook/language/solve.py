"""Solve a formula for another quantity, symbolically if possible, else by bisection in each call."""

import mpmath
import numpy as np
import sympy
from sympy import Abs, Max, Min, Piecewise, ceiling, floor, tanh

from .code import broadcast
from .domain import relaxed
from .formula import Formula
from .notation import NOTATION, nearest, quoted, symbol
from .row import quantity
from .units import show

__all__ = ["invert"]

_OBSTACLES = (Max, Min, ceiling, floor, Piecewise, Abs, tanh)  # of a normal share: a polynomial within


def invert(formula: Formula, unknown: str, between=None) -> Formula:
    """Return the formula for the quantity `unknown`: symbolic if one inverse holds everywhere, otherwise numeric."""
    x, y = symbol(unknown), symbol(formula.letter)
    if formula.letter in formula.inputs:
        raise ValueError(f"{formula.name} has {formula.letter} on both sides")
    hidden = any(x in part.free_symbols for part in formula.rhs.atoms(*_OBSTACLES))
    # SymPy takes too long for an unknown under a root, or in two sums that divide, in a long sum.
    powers = [part for part in formula.rhs.atoms(sympy.Pow) if x in part.free_symbols]
    dividing = [part for part in powers if part.exp.is_negative and part.base.is_Add]
    is_long = formula.rhs.is_Add and formula.rhs.count_ops() > 12
    hidden |= is_long and (len(dividing) > 1 or any(not part.exp.is_integer for part in powers))
    # SymPy finds no inverse if the unknown is in a logarithm and outside it, or in two.
    deep = {part: sympy.Dummy() for part in formula.rhs.atoms(sympy.log, sympy.exp) if x in part.free_symbols}
    hidden |= len(deep) > 1 or (bool(deep) and x in formula.rhs.xreplace(deep).free_symbols)
    if not hidden and between is None:
        # Replace parts without the unknown by symbols; otherwise SymPy compares them again at every step.
        others = (part for part in formula.rhs.atoms(*_OBSTACLES, sympy.log, sympy.exp) if x not in part.free_symbols)
        aside = {part: sympy.Dummy(nonnegative=part.is_nonnegative) for part in others}
        back = {dummy: part for part, dummy in aside.items()}
        expr = formula.rhs.xreplace(aside)
        left, right = _rooted(y, expr, x)
        if (branch := _undone(left, right, x)) is None:
            branch = next((b for b in _branches(left, right, x) if _inverts(y, expr, x, b)), None)
        if branch is not None:
            branch, domain = branch.xreplace(back), relaxed(formula.domain, x)
            new = Formula(formula.name, unknown, branch, formula.sources, formula.__doc__, formula.given, domain)
            new.method = "symbolic"
            return new
    return Numeric(formula, unknown, between)


def _branches(y, expr, x):
    """Return SymPy's solutions for `x` of expr = y.  Some may be wrong; `_inverts` checks them."""
    try:
        found = sympy.solve(sympy.Eq(y, expr), x, check=False)
    except NotImplementedError:
        return []
    return [branch for branch in found if not branch.has(sympy.zoo, sympy.nan, sympy.I)]


def _rooted(y, expr, x):
    """Take the root of both sides if `x` is in a high power of something positive, which SymPy would expand."""
    rest, part = expr.as_independent(x, as_Add=False)
    if part.is_Pow and part.exp.is_Integer and abs(part.exp) > 4 and part.base != x and part.base.is_positive:
        return (y / rest) ** (1 / part.exp), part.base
    return y, expr


def _undone(y, expr, x):
    """Solve by undoing one operation after another.  Return None if `x` occurs twice, or needs SymPy's solver."""
    while expr != x:
        if expr.is_Add or expr.is_Mul:
            rest, part = expr.as_independent(x, as_Add=expr.is_Add)
            if part.func is expr.func:
                return None
            y, expr = (y - rest if expr.is_Add else y / rest), part
        elif expr.is_Pow and expr.exp == -1:
            y, expr = 1 / y, expr.base
        elif expr.is_Pow and expr.base == x and expr.exp.is_Number:
            return y ** (1 / expr.exp)
        else:
            return None
    return y


def _inverts(y, expr, x, branch, trials=32):
    """Return True if the branch recovers the unknown at random points where the expression is real."""
    rng, names = np.random.default_rng(0), sorted(expr.free_symbols, key=str)
    shares = {letter.symbol for letter in NOTATION.values() if letter.sign == "share"}
    height, back = sympy.lambdify(names, expr, "mpmath"), sympy.lambdify([y, *names], branch, "mpmath")
    met = 0
    with mpmath.workdps(60):  # 1 - share has few digits if the share is close to 1
        for _ in range(trials):
            point = [mpmath.mpf(rng.uniform(*((0, 1) if n in shares else (0.5, 20)))) for n in names]
            at = mpmath.mpmathify(height(*point))
            if mpmath.isfinite(at) and at.imag == 0:
                met += 1
                if not mpmath.almosteq(back(at.real, *point), point[names.index(x)], 1e-8):
                    return False
    return met > 0


class Numeric(Formula):
    """A formula without a closed form: each call finds the value by bisection in an equation."""

    method = "numeric"

    def __init__(self, formula: Formula, unknown: str, between=None):
        domain = relaxed(formula.domain, symbol(unknown))
        super().__init__(formula.name, unknown, None, formula.sources, formula.__doc__, formula.given, domain)
        if unknown not in formula.inputs:
            raise ValueError(f"{formula.name} does not depend on {unknown}; {nearest(unknown, formula.inputs)}")
        high = 1 if NOTATION[unknown].sign == "share" else 1e36
        self.formula, between = formula, (1e-12, high) if between is None else between
        is_pair = isinstance(between, list | tuple) and len(between) == 2
        self.between = tuple(quantity(unknown, x) for x in between) if is_pair else ()
        if not is_pair or any(map(np.ndim, self.between)):
            raise TypeError(f"between is two numbers, (low, high), not {quoted(between)}")
        if any(isinstance(x, sympy.Basic) for x in self.between) or not 0 < self.between[0] < self.between[1]:
            raise ValueError(f"between is (low, high) with 0 < low < high, not {quoted(between)}")

    @property
    def rhs(self):
        raise TypeError(f"{self.letter} has no closed form here, so it can be called but not put into anything else")

    @property
    def inputs(self):
        return tuple(sorted({*self.formula.inputs, self.formula.letter} - {self.letter}))

    def compose(self, *formulas):
        return Numeric(self.formula.compose(*formulas), self.letter, self.between)

    def solve(self, letter, between=None):
        return self.formula if letter == self.formula.letter else self.formula.solve(letter, between)

    def _substituted(self, values):
        lacking = ", ".join(x for x in self.inputs if x not in values)
        needs = f"is found numerically here and needs every other letter; it lacks {lacking or 'numbers'}"
        raise TypeError(f"{self.letter} {needs}")

    def _value(self, values):
        shape, names = broadcast(values), list(values)
        points = zip(*(np.broadcast_to(x, shape).ravel() for x in values.values()), strict=True)
        found = np.array([self._find(dict(zip(names, point, strict=True))) for point in points])
        found = found.reshape(shape) if shape else float(found[0])
        self._check(values, found)
        return found

    def _work(self, values):
        return self.formula._work({n: values[n] if n in values else self._value(values) for n in self.formula.inputs})

    def _find(self, values):
        target = values.pop(self.formula.letter)

        def at(x):
            with np.errstate(all="ignore"):
                return self.formula.numpy(*(x if n == self.letter else values[n] for n in self.formula.inputs))

        grid = np.geomspace(*self.between, 769)
        heights = np.broadcast_to(at(grid), grid.shape)
        signs = np.sign(heights - target)
        # If a range of points meets the value, the sign changes twice, into and out of zero: take the first.
        before, after = signs[:-1], signs[1:]
        changes = np.flatnonzero(np.isfinite(before * after) & (before != after) & (before != 0))
        ends = [(self._bisect(lambda x: np.sign(at(x) - target), grid[i], grid[i + 1]), i) for i in changes]
        # At a pole or a step the sign changes, but the value is not met.
        found = [x for x, i in ends if abs(at(x) - target) <= 1e-9 * np.abs(heights[i : i + 2]).max()]
        found = [grid[0], *found] if signs[0] == 0 else found
        if len(found) == 1 and not (signs[0] == signs[1] == 0):
            inside = found[0] * (1 + 1e-13)  # step inside the range, away from rounding at its edge
            return float(inside if at(inside) == at(found[0]) else found[0])
        many = "many values of" if signs[0] == signs[1] == 0 else f"{len(found)} values of" if found else "no"
        low, high = (show(x, NOTATION[self.letter].unit) for x in self.between)
        said = f"give{'' if found else 's'} {self.formula.letter} = {show(target, NOTATION[self.formula.letter].unit)}"
        hint = f"; narrow it with solve({self.letter!r}, between=(low, high))" if len(found) > 1 else ""
        raise ValueError(f"{many} {self.letter} between {low} and {high} {said}{hint}")

    @staticmethod
    def _bisect(sign, low, high):
        before = sign(low)
        while low < (middle := np.sqrt(low) * np.sqrt(high)) < high:
            low, high = (middle, high) if sign(middle) == before else (low, middle)
        return high

    def __reduce__(self):
        return Numeric, (self.formula, self.letter, self.between)

    @property
    def latex(self):
        return rf"{NOTATION[self.letter].tex}:\ {self.formula.latex}"

    @property
    def js(self):
        raise NotImplementedError(f"{self.letter} has no closed form here, so it has no JavaScript")

    def __repr__(self):
        return f"{self.letter} such that {self.formula!r} (found numerically)"
