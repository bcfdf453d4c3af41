"""Explain why the neighbours of a strategy are worse.

A neighbour differs by one step.  Each step shows what it costs, and which part of the objective grows or which rule
forbids it.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from scalebook.language import NOTATION
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.language.units import show

from .plan import evaluated
from .pricing import built
from .results import Found, Search, short
from .space import called_with, divisors

__all__ = ["Neighbours"]


class Neighbours:
    """Steps away from a strategy: possible ones first, the least bad first, then the impossible ones.

    `steps` are triples: what changes, the value of the objective (None if the step is impossible), and why it is worse.
    """

    def __init__(self, search: Search, found: Found):
        self.found, self._problem = found, search.problem
        self._objective = search.problem.axes[0]
        own = {**found.letters, **found.words}
        steps = {said: x for said, x in _steps(search, own) if x != own}
        prices = self._prices([own, *steps.values()])
        here = prices[0]
        rows = [(said, *self._why(x, price, here)) for (said, x), price in zip(steps.items(), prices[1:], strict=True)]
        sign = -1 if search.problem.is_rising else 1
        self.steps = sorted(rows, key=lambda x: (x[1] is None, sign * (x[1] or 0)))

    def _prices(self, strategies):
        """Return the sheet and the letters of each strategy.  Strategies with the same words are evaluated together."""
        problem, found = self._problem, [None] * len(strategies)
        groups = {}
        for place, x in enumerate(strategies):
            words = {n: x[n] for n in problem.words}
            offload = problem.offloads({n: (v,) for n, v in x.items() if n not in words})
            groups.setdefault((*words.values(), offload), (words, offload, []))[2].append(place)
        for words, offload, places in groups.values():
            sheet = built(problem, words, offload)
            names = [n for n in strategies[0] if n not in problem.words]
            columns = {n: np.array([strategies[i][n] for i in places]) for n in names}
            columns = {n: np.broadcast_to(x, len(places)) for n, x in problem.columns(columns).items()}
            if problem.space.solve:
                columns |= self._solved(sheet, columns, len(places))
            values = evaluated(sheet.formulas, columns, sheet.constants, len(places))
            for row, i in enumerate(places):
                found[i] = sheet, {n: float(x[row]) for n, x in values.items()}
        return found

    def _solved(self, sheet, columns, size):
        """Solve for the letter that follows from each strategy."""
        name, _, solve = self._problem.space.solve

        def at(letter, values, places=None):
            places = np.arange(size) if places is None else places
            some = {n: x[places] for n, x in columns.items()} | {name: np.broadcast_to(values, len(places))}
            return evaluated(sheet.formulas, some, sheet.constants, len(places))[letter]

        return {name: solve(at, (size,))}

    def _why(self, strategy, price, here):
        """Return the objective after a step (None if it is impossible), and the reason against the step."""
        problem, (sheet, values) = self._problem, price
        if said := problem.space.reason(_all_values(problem, strategy), sheet, problem.lifted):
            return None, said
        for letter, relation, bound, _ in problem.limits:
            if letter in values:
                least = values[bound] if isinstance(bound, str) else bound
                if values[letter] > least if relation == "<=" else values[letter] < least:
                    unit, than = NOTATION[letter].unit, "above" if relation == "<=" else "below"
                    named = f"{bound} = " if isinstance(bound, str) else ""
                    return None, f"{letter} = {show(values[letter], unit)} is {than} {named}{show(least, unit)}"
        return values[self._objective], self._parts(sheet, values, here)

    def _parts(self, sheet, values, here):
        """Name the two parts of the objective that change most."""
        whole, parts = self._objective, [self._objective]
        # a cost is time at a price: show the parts of the time
        while len(parts) == 1 and (own := [x for x in _inputs(sheet, parts[0]) if x in sheet.formulas]):
            whole, parts = parts[0], own
        changes = {x: values[x] - here[1].get(x, 0.0) for x in parts}
        most = sorted(changes.items(), key=lambda x: -abs(x[1]))[:2]
        said = [
            f"{n} {'+' if x > 0 else '−'}{show(abs(x), NOTATION[n].unit)}"
            for n, x in most
            if abs(x) > 1e-9 * abs(here[1][whole])
        ]
        return ", ".join(said) or "nothing changes"

    def _table(self):
        unit, own = NOTATION[self._objective].unit, self.found.values[self._objective]
        rows = [["(here)", show(own, unit), ""]]
        for said, value, why in self.steps:
            rows.append([said, "" if value is None else f"{show(value, unit)} ({100 * (value / own - 1):+.1f} %)", why])
        return ["step", self._objective, "why"], rows

    def __repr__(self):
        heads, rows = self._table()
        return aligned([heads, *rows], gap="  ")

    def _repr_html_(self):
        return styled(page_table(*self._table(), "one step away"))


def _inputs(sheet, letter: str) -> tuple[str, ...]:
    return sheet.formulas[letter].inputs if letter in sheet.formulas else ()


def _steps(search: Search, own: dict) -> Iterator[tuple[str, dict]]:
    """Yield what each step changes and the strategy after it.

    A step moves a prime factor from one parallel dimension to another, moves a letter to its next value, or changes one
    word.
    """
    problem, layout = search.problem, search.problem.space.layout
    known = {tuple(x) for x in search.layouts.tolist()}
    primes = [x for x in divisors(problem.values["devices"]) if len(divisors(x)) == 2] if layout else ()
    for (a, b), factor in itertools.product(itertools.permutations(problem.space.ways, 2), primes):
        if own[a] % factor == 0:
            changed = {a: own[a] / factor, b: own[b] * factor}
            if tuple({**own, **changed}[x] for x in layout) in known:
                yield _step(problem, own, changed)
    for name in (*problem.space.beside, *problem.in_rows, *problem.on_axes):
        values = problem.letters.get(name, ())
        lower, higher = sorted(x for x in values if x < own[name]), sorted(x for x in values if x > own[name])
        for side in (lower[::-1], higher):
            steps = [x for x in (_step(problem, own, {name: x}) for x in side) if x[1] != own]
            fine = (x for x in steps if not problem.space.reason(_all_values(problem, x[1]), None, problem.lifted))
            if steps:  # the nearest step that can run, or else the nearest step
                yield next(fine, steps[0])
    for name, words in problem.words.items():
        for word in words:
            if word != own[name]:
                yield _step(problem, own, {name: word})


def _all_values(problem, strategy):
    offload = problem.offloads({n: (x,) for n, x in strategy.items() if isinstance(x, float)})
    return {**problem.values, **strategy, "offload": offload}


def _step(problem, own, changed):
    changed = changed | problem.space.settle(problem, {**own, **changed}, changed)
    said = ", ".join(f"{n} {short(own[n])} → {short(x)}" for n, x in changed.items() if x != own[n])
    new = {**own, **changed}
    for name, says in problem.space.idle.items():  # what no longer makes a difference keeps its first value
        live = called_with(says, dict.fromkeys(problem.space.offloads, 0.0) | problem.values | new)
        if name in new and live is not None and not live:
            new[name] = problem.first(name)
    return said, new
