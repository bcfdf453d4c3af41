"""Solving a formula for another letter: symbolically, else by bisection at the call."""

import numpy as np
import sympy
from sympy import Abs, Max, Min, Piecewise, ceiling, floor

from .formula import Formula
from .notation import NOTATION, symbol
from .units import show

__all__ = ["invert"]

_OBSTACLES = (Max, Min, ceiling, floor, Piecewise, Abs)


def invert(formula: Formula, unknown: str, between=None) -> Formula:
    """The formula for `unknown`: symbolic if one branch is the inverse everywhere, else numeric."""
    x, y = symbol(unknown), symbol(formula.letter)
    if formula.letter in formula.inputs:
        raise ValueError(f"{formula.name} has {formula.letter} on both sides")
    hidden = any(x in part.free_symbols for part in formula.rhs.atoms(*_OBSTACLES))
    if not hidden and between is None:
        try:
            branches = sympy.solve(sympy.Eq(y, formula.rhs), x)
        except NotImplementedError:
            branches = []
        for branch in branches:
            if len(branches) == 1 or _inverts(formula, unknown, branch):
                new = Formula(formula.name, unknown, branch, formula.sources, formula.__doc__, formula.given)
                new.method = "symbolic"
                return new
    return Numeric(formula, unknown, between)


def _inverts(formula, unknown, branch, trials=32):
    """Does the branch give back the unknown, wherever the other letters stand?"""
    rng = np.random.default_rng(0)
    names = formula.inputs
    for point in rng.uniform(0.5, 20, (trials, len(names))):
        values = dict(zip(map(symbol, names), point, strict=True))
        values[symbol(formula.letter)] = formula.rhs.subs(values)
        back = complex(branch.subs(values))
        if not np.isclose(back, values[symbol(unknown)], rtol=1e-8):
            return False
    return True


class Numeric(Formula):
    """A letter for which no closed form was found; needs all the others, and finds it by bisection."""

    method = "numeric"

    def __init__(self, formula: Formula, unknown: str, between=None):
        super().__init__(formula.name, unknown, formula.rhs, formula.sources, formula.__doc__, ())
        self.formula, self.between = formula, between or (1e-12, 1e36)

    @property
    def inputs(self):
        return tuple(sorted({*self.formula.inputs, self.formula.letter} - {self.letter}))

    def _put(self, values):
        lacking = ", ".join(x for x in self.inputs if x not in values)
        raise TypeError(f"{self.letter} is found numerically here and needs every other letter; it lacks {lacking or 'numbers'}")

    def _value(self, values):
        names = list(values)
        arrays = np.broadcast_arrays(*values.values())
        found = np.array([self._find(dict(zip(names, point, strict=True))) for point in zip(*map(np.ravel, arrays), strict=True)])
        return found.reshape(arrays[0].shape) if arrays[0].ndim else float(found[0])

    def _find(self, values):
        target = values.pop(self.formula.letter)

        def excess(x):
            with np.errstate(all="ignore"):
                return np.sign(self.formula.numpy(*(x if n == self.letter else values[n] for n in self.formula.inputs)) - target)

        grid = np.geomspace(*self.between, 769)
        signs = np.broadcast_to(excess(grid), grid.shape)
        crossings = np.flatnonzero(np.isfinite(signs[:-1]) & np.isfinite(signs[1:]) & (signs[:-1] != signs[1:]))
        # A value met exactly over a stretch changes the sign twice, into and out of zero: that is one solution.
        crossings = [i for i in crossings if signs[i] != 0]
        said = f"{self.formula.letter} = {show(target, NOTATION[self.formula.letter].unit)}"
        if len(crossings) != 1:
            many = f"{len(crossings)} values of" if crossings else "no"
            low, high = (show(x, NOTATION[self.letter].unit) for x in self.between)
            raise ValueError(f"{many} {self.letter} between {low} and {high} give {said}; narrow it with solve({self.letter!r}, between=(low, high))")
        low, high = grid[crossings[0]], grid[crossings[0] + 1]
        below = signs[crossings[0]]
        for _ in range(200):
            middle = np.sqrt(low * high)
            if not low < middle < high:
                break
            low, high = (middle, high) if excess(middle) == below else (low, middle)
        return float(high)

    @property
    def latex(self):
        return rf"{NOTATION[self.letter].tex}:\ {self.formula.latex}"

    @property
    def js(self):
        raise NotImplementedError(f"{self.letter} has no closed form here, so it has no JavaScript")

    def __repr__(self):
        return f"{self.letter} such that {self.formula!r} (found numerically)"
