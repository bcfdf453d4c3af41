"""A formula worked out for given values: with symbols, with numbers, and the result."""

from .notation import NOTATION
from .units import show, show_tex

__all__ = ["Worked"]


class Worked:
    """A formula with values, shown in three steps: with symbols, with numbers, and the result with its unit."""

    def __init__(self, formula, values: dict[str, float], value: float):
        self.formula, self.values, self.value = formula, values, value

    def __repr__(self):
        f = self.formula
        numbers = {n: show(x, NOTATION[n].unit) for n, x in self.values.items()}
        pad = " " * len(f.letter)
        return f"{f.letter} = {f.text()}\n{pad} = {f.text(numbers)}\n{pad} = {show(self.value, f.unit)}"

    def _repr_latex_(self):
        f, numbers = self.formula, self.formula.template()
        for n, x in self.values.items():
            numbers = numbers.replace(f"⟦{n}⟧", show_tex(x, NOTATION[n].unit))
        left, right = f.latex.split(" = ", 1)
        steps = rf"{left} &= {right} \\ &= {numbers} \\ &= {show_tex(self.value, f.unit)}"
        return rf"$$\begin{{aligned}}{steps}\end{{aligned}}$$"
