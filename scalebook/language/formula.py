"""A formula is an equation for one quantity, and a function of others.  Call it with the values you know.

>>> @formula("ridge_intensity", "williams2009")
... def ridge(peak_flops, hbm_bandwidth):
...     '''Arithmetic and memory take equally long.'''
...     return peak_flops / hbm_bandwidth
>>> ridge(peak_flops="989 TFLOP/s", hbm_bandwidth="3.35 TB/s")  # values may be arrays
295.2238805970149
>>> ridge(peak_flops=1e15).solve("hbm_bandwidth")  # without all inputs, a formula that can be solved for any
hbm_bandwidth = 1000000000000000/ridge_intensity
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from itertools import chain

import numpy as np
import sympy

from scalebook import _shown_by

from . import code
from .arguments import checked
from .domain import Condition, guarded, refuse_long, refuse_outside, substituted
from .narrow import in_lines, on_page
from .notation import NOTATION, Latex, Text, expression, free, in_letters, nearest, quoted, symbol, tex, word
from .row import fitting, gather, quantity
from .units import Quantity, show, words_in
from .worked import Worked

__all__ = ["FORMULAS", "Formula", "entered", "formula"]

FORMULAS: dict[str, "Formula"] = {}


class Formula:
    """The equation of a quantity: `letter` is its name, `rhs` the SymPy expression.  Call it with known inputs.

    If an input is missing, a formula among `given` that computes it from the others is used.  Outside its `domain` of
    conditions, a formula has no value.
    """

    method = "stated"
    instead = ()  # pairs: a condition on known names, the formulas that then replace this
    _solved = None  # the original, if default formulas had to be put in to reach the unknown

    def __init__(self, name, letter, rhs, sources=(), doc="", given=(), domain=()):
        self.name = self.__name__ = name
        self.letter, self.sources, self.given = letter, tuple(dict.fromkeys(sources)), tuple(given)
        self.__doc__ = doc
        self._rhs, self._domain = rhs, domain
        self._filled = {}
        NOTATION[word(letter)]

    @cached_property
    def rhs(self) -> sympy.Expr:
        """The right-hand side.  The decorated function runs when it is first needed."""
        return in_letters(expression(self._rhs() if inspect.isfunction(self._rhs) else self._rhs))

    @cached_property
    def domain(self) -> tuple[Condition, ...]:
        stated = self._domain() if callable(self._domain) else self._domain
        return tuple(Condition(x.words, in_letters(x.relation)) for x in stated)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The quantities on the right-hand side, in alphabetical order."""
        in_domain = {n for x in self.domain for n in x.letters} - {self.letter}
        return tuple(sorted({x.name for x in free(self.rhs)} | in_domain))

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names of all inputs, and possibly of others. A decorated function's are known before it runs."""
        return frozenset(self.inputs)

    # Knowing

    def __call__(self, *knowns, **letters):
        """Return the value in base units, an array of values, or, if letters are unknown, the formula that remains.

        Positional arguments are rows of tables, results of sheets, mappings, and formulas that replace defaults.
        Keywords are numbers, arrays, strings with a unit, or SymPy expressions.
        """
        formula, values = self._know(knowns, letters)
        if len(values) < len(formula.inputs) or any(isinstance(x, sympy.Basic) for x in values.values()):
            return formula._substituted(values)
        return formula._value(values)

    def _know(self, knowns, letters):
        """Return the formula with its default formulas put in, and the values of its known inputs."""
        if assumed := tuple(x for x in knowns if isinstance(x, Formula)):
            knowns = tuple(x for x in knowns if not isinstance(x, Formula))
            known = {n for k in knowns if isinstance(k, Mapping) for n in k} | letters.keys()
            again = self._refit(known, assumed) if self._solved else None
            return (again or self._fill(known, assumed).compose(*assumed))._know(knowns, letters)
        for name in letters:
            NOTATION[name]
        cells = gather(knowns, letters)
        if other := next((new[0] for suits, new in self.instead if suits(cells)), None):
            return other._know(knowns, letters)
        formula = self._fill(cells.keys())
        if stray := [name for name in letters if name not in formula.inputs]:
            hint = nearest(stray[0], formula.inputs) if formula.inputs else "it is a constant"
            raise TypeError(f"{self.name} depends on {', '.join(formula.inputs)}, not on {', '.join(stray)}; {hint}")
        return formula, {name: cells[name].value for name in formula.inputs if name in cells}

    def _fill(self, known, assumed=()):
        """Substitute default formulas for letters that are missing but follow from the known ones."""
        if not self.given:
            return self
        key = (frozenset(known), assumed)
        if key not in self._filled:
            formula, taken = (self._solved and not assumed and self._refit(known)) or self, {x.letter for x in assumed}
            while pick := next(filter(None, (_usual(x, formula.given, known, taken) for x in formula.inputs)), None):
                formula = formula.compose(pick)
            self._filled[key] = formula
        return self._filled[key]

    def _substituted(self, values):
        if arrays := [name for name, x in values.items() if np.ndim(x)]:
            lacking = ", ".join(x for x in self.inputs if x not in values)
            said = f"needs every letter; it lacks {lacking or 'numbers'}"
            raise TypeError(f"{self.name} of an array ({', '.join(arrays)}) {said}")
        exact = {symbol(n): x if isinstance(x, sympy.Basic) else _exact(x) for n, x in values.items()}
        refuse_long(self.rhs, exact, self.name)
        try:
            rhs = self.rhs.subs(exact, simultaneous=True)
        except ValueError as error:  # a maximum of what is infinite
            raise ValueError(f"{self.name} has no value with {quoted(values)} ({error})") from None
        return self._with(rhs, substituted(self.domain, exact, self.name))

    def _value(self, values):
        if any(map(np.ndim, values.values())):
            [result] = code.blocks(lambda *x: (self.numpy(*x),), values)
            self._check(values, result)
            return fitting(self.letter, result, partial(_at, values))
        problem = None
        try:
            result = float(self._point(*values.values())[0])
        except (ArithmeticError, TypeError, ValueError) as error:  # TypeError: a complex number
            said = f"{self.letter} has no value{_at(values)} ({error.args[-1]})"
            problem = ValueError(f"{said}: {quoted(self.text())[1:-1]}")
        # A pole at the edge of the domain is reported as outside the domain.
        self._check(values, None if problem else result)
        if problem:
            raise problem
        return Quantity(fitting(self.letter, result, partial(_at, values)), self.unit)

    def _check(self, values, result=None):
        if self.domain:
            if result is None:
                with np.errstate(all="ignore"):
                    result = self.numpy(*(values[x] for x in self.inputs))
            refuse_outside(self.name, self.domain, {**values, self.letter: result})

    # Changing

    def of(self, **expressions: sympy.Expr) -> sympy.Expr:
        """Return the right-hand side with expressions in place of inputs, by running the decorated function again.

        This is faster than substituting into the result, where SymPy compares the arguments of every Max again.  An
        input that is left out stands for itself.  Raises TypeError for an unknown input, for something that is no
        expression, and for a formula not made from a function.
        """
        if not hasattr(self, "__wrapped__"):
            raise TypeError(f"{self.name} was not made of a function, which could run anew: use compose")
        names = _parameters(self.__wrapped__)
        if stray := [x for x in expressions if x not in names]:
            said = f"not of {quoted(', '.join(stray))}; {nearest(stray[0], names)}"
            raise TypeError(f"{self.name} is a function of {', '.join(names)}, {said}")
        given = {x: expression(value) for x, value in expressions.items()}
        for x, value in given.items():
            if value.is_number:
                quantity(x, int(value) if value.is_Integer else value)
        return expression(self.__wrapped__(**{x: given[x] if x in given else symbol(x) for x in names}))

    def compose(self, *formulas: "Formula") -> "Formula":
        """Replace inputs by formulas that compute them.  Raises ValueError if one is unused or in a circle."""
        for x in formulas:
            if not isinstance(x, Formula):
                said = f"such as other.solve(letter), not with {quoted(x)}"
                raise TypeError(f"{self.name} is composed with formulas, {said}")
        rhs, given = self.rhs, {x.letter: x for x in formulas}
        places = {symbol(n): x.rhs for n, x in given.items()}
        given_domains = (substituted(x.domain, {symbol(x.letter): x.rhs}, x.name) for x in formulas)
        domain = (*self.domain, *chain.from_iterable(given_domains))
        if len(given) < len(formulas):
            raise ValueError(f"two of these give the same letter: {', '.join(x.name for x in formulas)}")
        unused = dict(given)
        for _ in formulas:
            for x in rhs.free_symbols.union(*(c.relation.free_symbols for c in domain)):
                unused.pop(x.name, None)
            rhs, domain = rhs.xreplace(places), substituted(domain, places, self.name)
        for name, x in unused.items():
            raise ValueError(f"{x.name} gives {name}, which {self.name} does not use; it uses {', '.join(self.inputs)}")
        circle = [n for n in given if symbol(n) in rhs.free_symbols]
        if circle or symbol(self.letter) in rhs.free_symbols:
            raise ValueError(f"these formulas go in a circle: {', '.join(given[n].name for n in circle or given)}")
        return self._with(rhs, domain, *formulas)

    def solve(self, letter, between: tuple[float, float] | None = None) -> "Formula":
        """Return the formula that computes another quantity, `letter`, of the same equation.

        The solution is symbolic if SymPy finds an inverse that holds everywhere.  Otherwise each call finds the value
        by bisection, within `between` if given: the smallest, if a range of values solves the equation.  `method` says
        which.  Raises LookupError for an unknown quantity, and ValueError for one that the formula does not contain.
        """
        from .solve import invert

        unknown = NOTATION[word(letter)].name
        formula = self if unknown in self.inputs else self._fill({unknown})
        if unknown not in formula.inputs:
            raise ValueError(f"{self.name} does not depend on {unknown}; {nearest(unknown, formula.inputs)}")
        solved = invert(formula, unknown, between)
        if formula is not self:
            solved._solved = self, between
        return solved

    def _refit(self, known, assumed=()):
        """Solve a solved formula again, with the default formulas that suit the known letters."""
        formula, between = self._solved
        fits = formula._fill({*known, self.letter}, assumed)
        fits = fits.compose(*assumed) if assumed else fits
        return fits.solve(self.letter, between) if self.letter in fits.inputs else None

    def _with(self, rhs, domain, *others):
        given = dict.fromkeys(g for x in (self, *others) for g in x.given)
        sources = [s for x in (self, *others) for s in x.sources]
        return Formula(self.name, self.letter, rhs, sources, self.__doc__, given, domain)

    # Code

    @property
    def guarded(self) -> sympy.Expr:
        """The right-hand side, NaN where the formula does not hold."""
        return guarded(symbol(self.letter), self.rhs, self.domain)

    @cached_property
    def _point(self) -> Callable:
        return code.point(self.inputs, [(self.letter, self.rhs)], [self.letter])

    @cached_property
    def numpy(self) -> Callable:
        """The right-hand side as a NumPy function of the `inputs`, in order, unchecked."""
        function = code.vector(self.inputs, [(self.letter, self.rhs)], [self.letter])
        return lambda *values: function(*(np.asarray(x, float) for x in values))[0]

    @cached_property
    def js(self) -> str:
        """The formula as JavaScript: a function from an object of inputs to the value."""
        return code.javascript(self.inputs, [(self.letter, self.rhs)], [self.letter])

    # Showing

    @property
    def unit(self) -> str:
        return NOTATION[self.letter].unit

    @property
    def meaning(self) -> str:
        """What the formula computes: its docstring's first paragraph, or its quantity's meaning."""
        said = NOTATION[self.letter].meaning
        return inspect.cleandoc(self.__doc__ or f"{said[0].upper()}{said[1:]}.").split("\n\n")[0].replace("\n", " ")

    @cached_property
    def latex(self) -> str:
        return f"{NOTATION[self.letter].tex} = {self.typeset()}"

    @cached_property
    def narrow(self) -> str | None:
        """The equation as TeX in lines that fit a phone, with its large parts named; None if one line fits."""
        return in_lines(self.letter, self.rhs, _shown_by("coloured_terms"))

    def typeset(self) -> str:
        """The right-hand side as TeX, with the parts of a sum or maximum in their colours."""
        return tex(self.rhs, inks=_shown_by("coloured_terms")(self.rhs))

    def template(self) -> str:
        """The right-hand side as TeX, with a placeholder such as `⟦batch⟧` for the number of each input."""
        based = {p.base for p in self.rhs.atoms(sympy.Pow) if p.exp != -1}
        marks = {symbol(n): rf"\left(⟦{n}⟧\right)" if symbol(n) in based else f"⟦{n}⟧" for n in self.inputs}
        inks = _shown_by("coloured_terms")(self.rhs)
        return Latex({"symbol_names": marks, "mul_symbol": r"\times "}, inks).doprint(self.rhs)

    def text(self, numbers: dict[str, str] | None = None) -> str:
        """The right-hand side as text, with the texts of `numbers` in place of inputs."""

        if not isinstance(numbers, Mapping | None):
            raise TypeError(f"numbers holds a text for each letter, such as {{'batch': '8'}}, not {quoted(numbers)}")

        def put(word):
            number = str((numbers or {}).get(word, word))
            return number if number.replace(".", "").isalnum() or number == word else f"({number})"

        text = words_in(self._text, put)
        return re.sub(r"(?<=[(,])( ?)\(([^(),]*)\)(?=[,)])", r"\1\2", text)  # Max(1 ms, 2 ms), not Max((1 ms), (2 ms))

    @cached_property
    def _text(self) -> str:
        return Text().doprint(self.rhs)

    def worked(self, *knowns, **letters) -> "Worked":
        """Show the formula, with numbers, and the value.  Raises TypeError unless all inputs are numbers."""
        formula, values = self._know(knowns, letters)
        if lacking := [x for x in formula.inputs if x not in values]:
            raise TypeError(f"{self.name} needs {', '.join(lacking)} to be worked out")
        if any(np.ndim(x) or isinstance(x, sympy.Basic) for x in values.values()):
            raise TypeError(f"{self.name} is worked out at one point: give numbers, not arrays or symbols")
        return formula._work(values)

    def _work(self, values):
        return Worked(self, values, self._value(values))

    def __reduce__(self):
        return Formula, (self.name, self.letter, self.rhs, self.sources, self.__doc__, self.given, self.domain)

    def _repr_html_(self):
        return on_page(self)

    def __repr__(self):
        return f"{self.letter} = {self.text()}"

    def _sympy_(self):
        return self.rhs


@checked
def formula(
    letter: str, *sources: str, given: Iterable[Formula] = (), domain: Mapping[str, Callable] | None = None
) -> Callable[[Callable], Formula]:
    """Decorator that makes a Formula for the quantity `letter` from a function, whose parameters are its inputs.

    The function returns a SymPy expression; its docstring is the formula's meaning.  Each source reads "key §place".
    `domain` maps words to a function of inputs that returns a SymPy relation: where the formula holds.  Raises
    LookupError for a parameter that the notation does not have.

    >>> @formula("bubble", "huang2019 §2.3", domain={"two stages or more": lambda pp: pp >= 2})
    ... def few(pp, microbatches):
    ...     return (pp - 1) / microbatches
    >>> few(pp=1, microbatches=4)
    Traceback (most recent call last):
        ...
    scalebook.language.domain.OutsideDomain: few holds for two stages or more, not at pp=1
    """
    NOTATION[word(letter)]

    def enter(function):
        names = frozenset(NOTATION[n].name for f in (function, *(domain or {}).values()) for n in _parameters(f))

        def called(f):
            return f(*(NOTATION[x].symbol for x in _parameters(f)))

        def holds():
            return [Condition(words, called(f)) for words, f in (domain or {}).items()]

        doc, made = inspect.getdoc(function), function.__code__
        new = Formula(function.__name__, letter, lambda: called(function), sources, doc, given, holds)
        new.parameters = names
        return entered(new, function, function.__module__, (made.co_filename, made.co_firstlineno))

    return enter


def entered(new: Formula, function: Callable, module: str, place: tuple[str, int]) -> Formula:
    """Register a formula by its name, and record the function, module, file and line that define it.  Return it."""
    new.__wrapped__, new.__module__, new.place = function, module, place
    old = FORMULAS.get(new.name, new)
    if old.__module__ == new.__module__ or old.__module__ == "__main__":
        FORMULAS[new.name] = new
    elif new.__module__ != "__main__":  # formulas of a reader's session are not registered and may have any name
        raise ValueError(f"{new.name} of {module} needs another name: {old.__module__} has a formula of this one")
    return new


def _parameters(function) -> tuple[str, ...]:
    compiled = function.__code__  # inspect.signature says the same in a hundred times as long
    return compiled.co_varnames[: compiled.co_argcount + compiled.co_kwonlyargcount]


def _usual(name, given, known, taken):
    """Return the default formula for a letter: the first with all inputs known, else the last with some known."""
    if name in known or name in taken:
        return None
    options = [g for g in given if g.letter == name]
    reach = {g: [i in known or bool(_usual(i, g.given, known, taken)) for i in g.inputs] for g in options}
    whole, part = [g for g in options if all(reach[g])], [g for g in reversed(options) if any(reach[g])]
    return next(iter(whole + part), None)


def _exact(value):
    return sympy.Integer(int(value)) if float(value).is_integer() else sympy.Float(value)


def _at(values):
    said = ", ".join(f"{n}={show(x, NOTATION[n].unit)}" for n, x in values.items() if not np.ndim(x))
    return f" at {said}" if said else ""
