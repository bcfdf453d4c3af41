"""Plan all formulas of a search as one list of operations, each once, and apply it to rows of strategies.

Each value is stored once per combination of the inputs that it depends on.  A kernel's time depends on tp and batch, so
it is priced a few tens of times for millions of strategies.  The names of inputs alone decide the order of additions,
so a strategy's price does not change in the last digit if others are priced with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy

from .distinct import Columns

__all__ = ["Block", "Evaluated", "Mixed", "Plan", "Program", "cases", "evaluated", "program"]

_LARGE = 1 << 13  # of so many numbers an array that is written again saves time
_ARITHMETIC = frozenset({np.add, np.multiply, np.maximum, np.minimum})
_SHARED = 4  # with this many rows a combination or more, a value on axes is evaluated by combination


class Mixed(Exception):
    """Raised for cases that need different operations.  `holds` has True for cases of one kind, False for the other."""

    def __init__(self, holds: np.ndarray):
        super().__init__("some cases need other operations than others")
        self.holds = holds


class Plan:
    """A list of operations, in the order in which they run.  A value is known by its place, its index in this list.

    `columns` name inputs with a value in each row, `axes` map inputs to the values that every row tries, `solved`
    inputs are found later, and `letters` maps all names to places. A bit mask says which of them an operation needs. A
    constant may be an array with a value for each of several cases, in a dimension before the axes.
    """

    def __init__(self, columns: Sequence[str], axes: Mapping[str, tuple[float, ...]], solved: Sequence[str] = ()):
        self.operations: list[Callable | None] = []
        self.ordered: set[int] = set()  # values with a dimension of cases, which is kept together in memory
        self.args: list[tuple[int, ...]] = []
        self.bits: list[int] = []
        self._ranks: list[int] = []  # how many inputs each value depends on, and 64 more if on axes
        self.values: dict[int, np.ndarray | np.generic] = {}  # constants, and letters on axes
        self.columns, self.axes = tuple(columns), tuple(axes)
        self.shape = tuple(map(len, axes.values()))
        self.in_columns = (1 << len(self.columns)) - 1
        self._known, self._constants, self._added = {}, {}, {}
        self.uses: dict[int, int] = {}  # how many operations take a value; without entry, it is kept
        self.deep = (-1, *(1,) * (len(axes) + 1))  # the shape of one value for each case
        self.letters = {n: self._enter(None, (), 1 << i) for i, n in enumerate(self.columns)}
        for i, (name, values) in enumerate(axes.items()):
            self.letters[name] = self._enter(None, (), 1 << len(self.columns) + i)
            own = np.asarray(values, float).reshape([-1 if x == i else 1 for x in range(len(axes) + 1)])
            self.values[self.letters[name]] = own
        for i, name in enumerate(solved):
            self.letters[name] = self._enter(None, (), 1 << len(self.columns) + len(axes) + i)
        self.solved = sum(self.bits[self.letters[n]] for n in solved)

    def _enter(self, operation, args, bits):
        self.operations.append(operation)
        self.args.append(args)
        self.bits.append(bits)
        self._ranks.append(bits.bit_count() + 64 * (bits > self.in_columns))
        return len(self.bits) - 1

    def constant(self, value: float | np.generic | np.ndarray) -> int:
        """Return the place (index) of a constant in the plan, which is added if it is new."""
        value = np.float64(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
        said = value.tobytes()
        if value.ndim and said == said[: value.itemsize] * value.size:  # the same for all cases
            value, said = value.flat[0], said[: value.itemsize]
        key = (value.dtype.kind, said)
        if key not in self._constants:
            self._constants[key] = place = self._enter(None, (), 0)
            self.values[place] = value.reshape(self.deep) if value.ndim else value
            if value.ndim:
                self.ordered.add(place)
        return self._constants[key]

    def operate(self, operation: Callable, *args: int) -> int:
        """Add an operation on the values at `args` and return its place.  One on constants is evaluated at once."""
        if (place := self._known.get((operation, args))) is None:
            bits = 0
            for x in args:
                bits |= self.bits[x]
            if bits:
                place = self._enter(operation, args, bits)
                if not self.ordered.isdisjoint(args):
                    self.ordered.add(place)
            else:
                with np.errstate(all="ignore"):
                    value = operation(*(self.values[x] for x in args))
                place = self.constant(np.asarray(value)[()])
            self._known[operation, args] = place
        return place

    def fold(self, operation: Callable, args: Iterable[int]) -> int:
        """Return the place of a sum, product, maximum or minimum of values.  Those with fewest inputs come first."""
        first, *others = sorted(args, key=self._ranks.__getitem__)
        for x in others:
            first = self.operate(operation, first, x)
        return first

    def is_wide(self, place: int) -> bool:
        """Return True if the value at this place depends on a search axis or on a solved input."""
        return self.bits[place] > self.in_columns

    def add(self, expr: sympy.Expr, letters: Mapping[str, int]) -> int:
        """Add a SymPy expression and return the place of its value.  `letters` has the places of its symbols."""
        if id(expr) not in _PROGRAMS:  # by identity: comparing expressions would take longer
            if len(_PROGRAMS) > 1 << 14:
                _PROGRAMS.clear()
            _PROGRAMS[id(expr)] = expr, program(expr)
        own = _PROGRAMS[id(expr)][1]
        key = (id(own), *(letters[n] for n in own.letters))
        if key not in self._added:
            places = [*key[1:], *map(self.constant, own.constants)]
            for built, args in own.steps:
                places.append(built(self, [places[i] for i in args]))
            self._added[key] = places[-1], own  # keeping the program alive keeps its id unique
        return self._added[key][0]

    def above(self, places: Iterable[int], but: Callable[[int], bool] = lambda place: False) -> list[int]:
        """Return, sorted, the operations that compute the values at `places`, leaving out those where `but` is True."""
        found, todo, operations, args = set(), list(places), self.operations, self.args
        while todo:
            x = todo.pop()
            if x not in found and operations[x] is not None and not but(x):
                found.add(x)
                todo += args[x]
        return sorted(found)


def _power(plan, args):
    base, exponent = args
    known = plan.values.get(exponent)
    if plan.bits[exponent] == 0 and np.ndim(known):
        raise Mixed(known == known.flat[0])
    for value, operation in ((-1.0, np.reciprocal), (0.5, np.sqrt), (2.0, np.square)):
        if plan.bits[exponent] == 0 and known == value:
            return plan.operate(operation, base)
    return plan.operate(np.power, base, exponent)


def cases(plan: Plan, args: Sequence[int]) -> int:
    """Add a Piecewise and return its place.  `args` are the places of value, condition, value, condition, and so on."""
    found = plan.constant(np.nan)
    for value, holds in reversed(list(zip(args[::2], args[1::2], strict=True))):
        is_mixed = plan.bits[holds] == 0 and np.ndim(plan.values[holds]) > 0
        if is_mixed and plan.bits[value] | plan.bits[found]:  # which of the two it is decides the order of additions
            raise Mixed(plan.values[holds])
        if plan.bits[holds] == 0 and not is_mixed:
            found = value if plan.values[holds] else found
        else:
            found = plan.operate(np.where, holds, value, found)
    return found


def _folded(operation):
    return lambda plan, args: plan.fold(operation, args)


def _plain(operation):
    return lambda plan, args: plan.operate(operation, *args)


_BUILT: dict[type, Callable] = {
    sympy.Add: _folded(np.add), sympy.Mul: _folded(np.multiply), sympy.Pow: _power, sympy.Piecewise: cases,
    sympy.Max: _folded(np.maximum), sympy.Min: _folded(np.minimum),
    sympy.And: _folded(np.logical_and), sympy.Or: _folded(np.logical_or), sympy.Not: _plain(np.logical_not),
    sympy.ceiling: _plain(np.ceil), sympy.floor: _plain(np.floor), sympy.log: _plain(np.log), sympy.exp: _plain(np.exp),
    sympy.Abs: _plain(np.abs), sympy.Mod: _plain(np.mod), sympy.Ge: _plain(np.greater_equal),
    sympy.Gt: _plain(np.greater), sympy.Le: _plain(np.less_equal), sympy.Lt: _plain(np.less),
    sympy.Eq: _plain(np.equal), sympy.Ne: _plain(np.not_equal),
}  # fmt: skip


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
    """A SymPy expression as steps to enter into a plan: functions, and the indices of their arguments.

    Arguments are numbered: symbols first, then constants, then earlier results.
    """

    letters: tuple[str, ...]
    constants: tuple[np.generic, ...]
    steps: tuple[tuple[Callable, tuple[int, ...]], ...]


@lru_cache(4096)
def program(expr: sympy.Basic) -> Program:
    """Turn a SymPy expression into a list of steps.  Raises NotImplementedError for a function that no step can do."""
    nodes = list(_parts(expr, {}))
    letters = [x for x in nodes if x.is_Symbol]
    constants = {x: c for x in nodes if not x.is_Symbol and (c := _constant(x)) is not None}
    others = [x for x in nodes if not x.is_Symbol and x not in constants]
    place = {x: i for i, x in enumerate([*letters, *constants, *others])}
    steps = []
    for x in others:
        if x.func not in _BUILT:
            known = ", ".join(k.__name__ for k in _BUILT)
            raise NotImplementedError(f"a search cannot evaluate {x.func.__name__}: use {known}")
        steps.append((_BUILT[x.func], tuple(place[y] for y in _args(x))))
    if not others:
        steps.append((lambda plan, args: args[0], (place[expr],)))
    return Program(tuple(x.name for x in letters), tuple(constants.values()), tuple(steps))


_PROGRAMS: dict[int, tuple[sympy.Basic, Program]] = {}  # each beside its expression, whose id stays its own


def _spread(value: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the values at places of the last dimension.  Fast if the first dimension is contiguous."""
    return value.T.take(places, 0).T if value.flags.f_contiguous else value.take(places, -1)


def _operated(operation: Callable, args: list, spare: np.ndarray | None) -> np.ndarray:
    """Operate on values whose cases are kept together in memory.  `spare` is an array that nothing else needs."""
    is_large = spare is not None and spare.size > _LARGE and operation in _ARITHMETIC
    if is_large and spare.shape == np.broadcast(*args).shape:  # memory in use is faster than new memory
        return operation(*args, out=spare)
    return operation(*args, order="F") if isinstance(operation, np.ufunc) else np.asfortranarray(operation(*args))


class Evaluated:
    """A plan applied to rows.  It computes values on demand, once per combination of the inputs that they depend on.

    `kept` says which rows have values.
    """

    def __init__(self, plan: Plan, columns: Mapping[str, np.ndarray], kept: np.ndarray):
        self.plan, self.kept, self.places = plan, kept, np.cumsum(kept) - 1  # of rows among those kept
        self.columns = Columns({n: columns[n][kept] for n in plan.columns}, np.count_nonzero(kept))
        self._values, self._uses = dict(plan.values), dict(plan.uses)
        self._values |= {plan.letters[n]: x for n, x in self.columns.values.items()}
        self._late: dict[int, bool] = {}
        self._paths: dict[int, list[int]] = {}

    def is_late(self, place: int) -> bool:
        """Return True if a value is computed row by row: it needs axes, and its inputs differ in almost every row."""
        bits = self.plan.bits[place]
        if bits not in self._late:
            own = bits & self.plan.in_columns
            is_late = bits > self.plan.in_columns
            if is_late and not bits & self.plan.solved:
                is_late = own != 0 and _SHARED * len(self.columns.key(own)[0]) > self.columns.size
            self._late[bits] = is_late
        return self._late[bits]

    def late(self, place: int) -> list[int]:
        """Return, in order, the operations behind the value at `place` that are computed row by row."""
        if place not in self._paths:
            self._paths[place] = self.plan.above([place], lambda x: not self.is_late(x))
        return self._paths[place]

    def value(self, place: int) -> np.ndarray:
        """Return a value that is not computed row by row.  The last dimension is over combinations of its columns."""
        if place not in self._values:
            plan, values, columns, uses = self.plan, self._values, self.columns, self._uses
            for x in plan.above([place], values.__contains__):
                own, args, spare = plan.bits[x] & plan.in_columns, [], None
                for y in plan.args[x]:
                    bits = plan.bits[y] & plan.in_columns
                    value = values[y]
                    if bits and columns.key(bits) is not columns.key(own):
                        value = spare = _spread(value, columns.places(bits, own))
                    elif uses.get(y) == 1:
                        spare = value
                    args.append(value)
                values[x] = (
                    _operated(plan.operations[x], args, spare) if x in plan.ordered else plan.operations[x](*args)
                )
                for y in plan.args[x]:  # memory that is used again is faster than new memory
                    if y in uses:
                        uses[y] -= 1
                        if not uses[y]:
                            values.pop(y, None)
        return self._values[place]

    def forget(self, places: Iterable[int]) -> None:
        """Free the memory of the values at these places."""
        for x in places:
            self._values.pop(x, None)


class Block:
    """A plan applied to so few rows that the arrays stay in the core's cache."""

    def __init__(self, evaluated: Evaluated, rows: np.ndarray):
        self.evaluated, self.rows = evaluated, rows
        self._values: dict[int, np.ndarray] = {}

    def value(self, place: int) -> np.ndarray:
        """Return the value at a place as an array over the axes and, last, the rows; other dimensions have length 1."""
        if place not in self._values:
            plan, values = self.evaluated.plan, self._values
            for x in self.evaluated.late(place):
                if x not in values:
                    args = [values[y] if y in values else self._early(y) for y in plan.args[x]]
                    values[x] = plan.operations[x](*args)
            if place not in values:
                self._early(place)
        return self._values[place]

    def _early(self, place):
        value, bits = self.evaluated.value(place), self.evaluated.plan.bits[place] & self.evaluated.plan.in_columns
        if bits:
            value = _spread(value, self.evaluated.columns.key(bits)[1][self.evaluated.places[self.rows]])
        self._values[place] = value
        return value

    def solved(self, values: Mapping[int, np.ndarray]) -> "Block":
        """Return this block with new `values`, by place, for the inputs that a solver tries."""
        plan = self.evaluated.plan
        block = Block(self.evaluated, self.rows)
        block._values = {x: v for x, v in self._values.items() if not plan.bits[x] & plan.solved} | dict(values)
        return block


def evaluated(formulas: Mapping, columns: Mapping[str, np.ndarray], constants: Mapping, size: int) -> dict:
    """Evaluate formulas, in order, at `size` rows.  Return an array of that length for each quantity, by name.

    `columns` has inputs with a value per row, `constants` inputs with one value; formulas for either are skipped.

    >>> from scalebook.memory.serving import weight_memory
    >>> columns, constants = {"params": np.array([1e9, 8e9])}, {"weight_bits": 16.0}
    >>> evaluated({"weight_memory": weight_memory}, columns, constants, 2)["weight_memory"]
    array([2.0e+09, 1.6e+10])
    """
    plan, letters = _planned(tuple(formulas.items()), tuple(columns), tuple(constants.items()))
    with np.errstate(all="ignore"):
        rows = Block(Evaluated(plan, columns, np.ones(size, bool)), np.arange(size))
        return {n: np.broadcast_to(rows.value(x), size) for n, x in letters.items()}


@lru_cache(8)  # a search for the fewest users evaluates the same formulas at many rows
def _planned(formulas: tuple, columns: tuple, constants: tuple) -> tuple[Plan, dict[str, int]]:
    plan = Plan(list(columns), {})
    letters = {n: plan.constant(x) for n, x in constants} | plan.letters
    for name, f in formulas:
        if name not in letters:
            letters[name] = plan.add(f.rhs, letters)
    return plan, letters
