"""Results of a search: the best strategies, the Pareto front, and counts of why the others are out."""

import html
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from scalebook.language import NOTATION, Formula, Row
from scalebook.language.arguments import checked
from scalebook.language.row import gather
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.language.units import show

from .arguments import strangers
from .frames import Frame
from .planning import built, needed_for
from .space import called_with, divisors

__all__ = ["Best", "Found", "Neighbours", "Search", "order_of"]


class Found:
    """One strategy of a search.  Its inputs and results are attributes, such as `found.tp`; `found.run` is its row.

    Several combinations of options, such as frameworks, may give the same layout, letters and objectives.  `alike`
    counts the others.
    """

    def __init__(self, search: "Search", record: Iterable[float]):
        problem = search.problem
        value, second, place, row, axis, number = record
        if problem.is_rising:
            value, second = -value, -value if len(set(problem.axes)) == 1 else second
        self._search, self._problem, self.words = search, problem, search.combinations[int(place)]
        self.alike = int(number) - 1
        if search.device:
            self.device = search.device
        self.values = dict(zip(problem.axes, (float(value), float(second)), strict=False))
        row, own = _digits(int(row), problem.in_rows, problem.letters)
        _, others = _digits(int(axis), problem.on_axes, problem.letters)
        self.letters = dict(zip(problem.space.layout, map(float, search.layouts[row]), strict=True)) | own | others

    def __getattr__(self, name):
        for kind in ("letters", "words", "values"):
            if name in self.__dict__.get(kind, {}):
                return self.__dict__[kind][name]
        if "_problem" in self.__dict__ and name in self._problem.fixed:
            return self._problem.fixed[name]
        if name in NOTATION and name in self.billed:
            return self.billed[name]
        raise AttributeError(f"a strategy found has its letters, its words and what its run has, and no {name!r}")

    run = property(lambda self: self.row)

    @property
    def knowns(self) -> dict:
        """The strategy's inputs, to pass to the searched sheet by keyword."""
        solved = self._problem.space.solved
        return self._call_letters | {n: float(self.row[n]) for n in solved}

    @cached_property
    def _call_letters(self) -> dict:
        return _call_letters(self._problem, self.letters, self.words)

    @cached_property
    def row(self) -> Row:
        """Everything that the searched sheet computes for this strategy."""
        row = self._problem.sheet(*self._problem.knowns, **self._call_letters)
        row.within = self._problem.limits
        return row

    @cached_property
    def billed(self) -> Row:
        """All quantities of the row. Days, energy and dollars of training come from its bill, with failures."""
        return _with_bill(self.row)

    @cached_property
    def assumed(self) -> dict[str, list[str]]:
        """Shown quantities that depend on cells which no data sheet prints, each with the names of these cells."""
        problem = self._problem
        sheet, rows, letters = problem.sheet.sheet(problem.knowns, self._call_letters)
        cells = gather(tuple(x for x in rows if not isinstance(x, Formula)), letters)
        assumed = {n for n, x in cells.items() if x.is_assumed}
        if not assumed:
            return {}
        swapped = [x for x in problem.knowns if isinstance(x, Formula)]
        formulas = (sheet.using(*swapped) if swapped else sheet).formulas
        shown = dict.fromkeys([*problem.axes, *problem.space.shown])
        rests = {n: assumed & needed_for([n], formulas, cells) for n in shown if n in formulas or n in cells}
        return {n: sorted(x) for n, x in rests.items() if x}

    def _said(self, letters) -> list[str]:
        """Return the values of letters as text, marked if they rest on assumed cells."""
        values = {n: self.billed[n] for n in letters if n not in self.values and n in self.billed} | self.values
        said = {n: show(values[n], NOTATION[n].unit) for n in letters if n in values}
        return [f"≈ {said[n]}" if n in self.assumed else said.get(n, "") for n in letters]

    @checked
    def __call__(self, **letters) -> Row:
        """Return the row of this strategy with some letters or words changed."""
        return self._problem.sheet(*self._problem.knowns, **self._call_letters | letters)

    @property
    def call(self) -> str:
        """The call that returns this strategy's row, as text.  Positional arguments are shown as `...`."""
        said = ", ".join(f"{n}={x:g}" if isinstance(x, float) else f"{n}={x!r}" for n, x in self.knowns.items())
        return f"{self._problem.sheet.name}(..., {said})"

    def __repr__(self):
        said = [f"{n} {show(x, NOTATION[n].unit)}" for n, x in self.values.items()]
        return ", ".join([*said, *([self.device] if self._search.device else []), *_strategy(self)])

    def _repr_html_(self):
        said = html.escape(repr(self)), html.escape(self.call)
        follows = f"<p><small><code>{said[1]}</code>; <code>row</code> has what follows.</small></p>"
        return styled(f"<p>{said[0]}</p>{follows}")


def _with_bill(row: Row) -> Row:
    bill = getattr(row.answer, "bill", None)
    return Row(row.name, row.cells | bill.row.cells) if bill else row


def _call_letters(problem, letters: dict, words: dict) -> dict:
    """Return what to pass to the searched thing by keyword: the letters that a strategy's sheet uses, and words."""
    letters = {**problem.fixed, **letters}
    rows = tuple(x for x in problem.knowns if not isinstance(x, Formula))
    sheet, _, _ = problem.sheet.sheet(rows, letters | words)
    return {n: x for n, x in letters.items() if n in sheet.letters or n in getattr(problem.sheet, "billed", ())} | words


def _strategy(found: Found) -> list[str]:
    several = [n for n, x in {**found._problem.letters, **found._problem.words}.items() if len(x) > 1]
    chosen = {**found.letters, **found.words}
    above = (x for x in found._problem.space.layout if chosen[x] > 1)
    return [f"{n}={short(chosen[n])}" for n in dict.fromkeys([*above, *several]) if n not in found.values]


def short(x) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)


def _digits(place: int, names: tuple[str, ...], letters: dict) -> tuple[int, dict]:
    """Decode a mixed-radix place into the quotient left over and the letters' values (last letter fastest)."""
    found = {}
    for name in reversed(names):
        place, digit = divmod(place, len(letters[name]))
        found[name] = letters[name][digit]
    return place, dict(reversed(found.items()))


class Best(list):
    """A list of the best strategies.  An index beyond its end raises IndexError with the reason."""

    def __init__(self, strategies, note: str):
        super().__init__(strategies)
        self._note = note

    def __getitem__(self, place):
        try:
            return super().__getitem__(place)
        except (IndexError, TypeError):
            why = self._note or "best=... keeps more, where there are more"
            raise IndexError(f"{len(self) or 'no'} strategies are here; {why}") from None


class Search(Frame):
    """The result of a search.

    - `best`: the best strategies in order, each with a `row`. `pareto`: strategies that none beats in both objectives.
    - `rejected`: how many strategies each rule, limit, or formula without a value leaves out; the first one counts.
    - `count`: strategies that can run and were computed. `seconds`: how long the search took.
    - `note`: what is missing, and why, unless the search `is_whole`. `device`: its name, if several were searched.
    - `unable`: why programs of a whole table cannot run the model, by name.
    """

    unable: Mapping[str, str] = {}
    chosen = ""  # what the search chose by itself: programs of a whole table, or the number of users

    def __init__(self, problem, layouts, combinations, priced, seconds, note, device=""):
        self.problem, self.layouts, self.combinations, self.device = problem, layouts, combinations, device
        self.count, self.seconds, self.note, self.is_whole = priced.count, seconds, note, not note
        self.rejected: dict[str, int] = dict(sorted(priced.rejected.items(), key=lambda x: (-x[1], x[0])))
        self.front = priced.front
        best = [Found(self, x) for x in priced.best]
        if problem.space.is_front:
            best = sorted(self.pareto, key=order_of(problem))[: problem.best]
        self.best = Best(best, note)

    @cached_property
    def pareto(self) -> list[Found]:
        return [Found(self, x) for x in self.front]

    @property
    def fitting(self) -> int:
        """The number of strategies within all limits."""
        return self.count - sum(self.rejected.get(x.name, 0) for x in self.problem.limits)

    @checked
    def neighbours(self, place: int = 0):
        """List all single changes to one of the best strategies: what each costs, and why it is worse or impossible."""
        return Neighbours(self.best[place]._search, self.best[place])

    # Showing

    @property
    def _summary(self) -> str:
        number = self.fitting + sum(self.rejected.values())
        said = f"{self.count:,}" if number == self.count else f"{self.count:,} of {number:,}"
        many = "strategy" if number == 1 else "strategies"
        said = f"{said} {many}{' can run' * (number != self.count)}, {self.fitting:,} within all limits"
        kept = [x for x in self.problem.limits if x.margin]
        margins = (f"{x.letter} with a margin of {100 * x.margin:.2g} % (memory_margin)" for x in kept)
        return "; ".join(filter(None, [said, *margins, self.chosen, self.remark, *self.unable.values(), self.note]))

    @property
    def remark(self) -> str:
        """A sentence on the rejected strategies that a reader should know, or ""."""
        own = self.problem
        return "; ".join(filter(None, [strangers(own.knowns, own.words), own.space.remark(own, self.rejected)]))

    @property
    def _several(self) -> dict[str, tuple]:
        """Letters and words with several values, and layout letters above 1 in one of the best strategies."""
        several = {n: x for n, x in {**self.problem.letters, **self.problem.words}.items() if len(x) > 1}
        layout = self.problem.space.layout
        names = [n for n in layout if n in several or any(x.letters[n] > 1 for x in self.best if n in x.letters)]
        return dict.fromkeys([*names, *several])

    @checked
    def records(self) -> list[dict]:
        """Return the best strategies as dictionaries: device, objectives, inputs, and whatever else is shown.

        `alike` counts other options with equal results; it is left out if no strategy has any.  `assumed` names cells
        that no data sheet prints and that a shown value rests on.
        """
        more = [n for n in ("devices", *self._shown) if n not in self.problem.axes]
        return [
            ({"device": x.device} if x._search.device else {})
            | x.values | x.letters | x.words | {n: x.billed.get(n) for n in more}
            | ({"alike": x.alike} if any(y.alike for y in self.best) else {})
            | ({"assumed": _cells_of([x])} if x.assumed else {})
            for x in self.best
        ]  # fmt: skip

    @cached_property
    def _shown(self) -> tuple[str, ...]:
        """The letters that a space shows next to choices, if the first of them has a value."""
        shown = tuple(n for n in self.problem.space.shown if n not in self.problem.axes)
        return shown if shown and self.best and any(shown[0] in x.billed for x in self.best) else ()

    def _tables(self):
        axes, shown = dict.fromkeys(self.problem.axes), self._shown
        names = [n for n in self._several if n not in (*axes, *shown)]
        devices = ["device"] * any(x._search.device for x in self.best)
        alike = ["alike"] * any(x.alike for x in self.best)
        rows = []
        for i, x in enumerate(self.best):
            values, more = x._said(axes), x._said(shown)
            chosen = [short(getattr(x, n, "")) for n in names]
            same = (f"{x.alike} more" if x.alike else "" for _ in alike)
            rows.append([str(i + 1), *values, *(x.device for _ in devices), *chosen, *same, *more])
        yield ["", *axes, *devices, *names, *alike, *shown], rows, "best"
        yield ["by", "strategies"], [[n, f"{x:,}"] for n, x in self.rejected.items()], "left out"

    @property
    def _listed(self) -> list[Found]:
        """The strategies in the tables."""
        return self.best

    @property
    def _explained(self) -> list[str]:
        """Explain the marks of assumed values and of equal results."""
        cells = _cells_of(self._listed)
        marked = f"≈ rests on cells that no data sheet prints, assumed from comparable devices: {cells}"
        options = ", ".join(n for n, x in self.problem.words.items() if len(x) > 1)
        same = f"alike: further combinations of {options} with the same results"
        return [marked] * bool(cells) + [same] * any(x.alike for x in self.best)


def _cells_of(found: Iterable[Found]) -> str:
    return ", ".join(sorted({n for x in found for own in x.assumed.values() for n in own}))


def order_of(problem) -> Callable[[Found], tuple[float, float]]:
    """Return a sort key for strategies: the first objective, best first, then the second."""
    first, second = (problem.axes * 2)[:2]
    sign = -1 if problem.is_rising else 1
    return lambda x: (sign * x.values[first], x.values.get(second, 0.0))


class Neighbours:
    """Single changes to a strategy.  Possible changes come first, best objective first, then impossible ones.

    `steps` are triples: what changes, the objective (None if impossible), and why it is worse or which rule forbids it.
    """

    def __init__(self, search: Search, found: Found):
        self.found, self._problem = found, search.problem
        self._objective = search.problem.axes[0]
        own = {**found.letters, **found.words}
        steps = {said: x for said, x in _steps(search, own) if x != own}
        self._sheets: dict = {}
        rows = [(said, *self._why(x)) for said, x in steps.items()]
        sign = -1 if search.problem.is_rising else 1
        self.steps = sorted(rows, key=lambda x: (x[1] is None, sign * (x[1] or 0)))

    def _why(self, strategy):
        """Return the objective after a step (None if it is impossible), and the reason against the step."""
        problem, words = self._problem, {n: strategy[n] for n in self._problem.words}
        letters = {n: x for n, x in strategy.items() if n not in words}
        key = (*words.values(), problem.offloads({n: (x,) for n, x in letters.items()}))
        if key not in self._sheets:
            self._sheets[key] = built(problem, words, key[-1])
        sheet = self._sheets[key]
        if said := problem.space.reason(_all_values(problem, strategy), sheet, problem.lifted):
            return None, said
        try:
            values = _with_bill(problem.sheet(*problem.knowns, **_call_letters(problem, letters, words)))
            found = values[self._objective]
        except (KeyError, ValueError) as error:
            return None, str(error.args[0])
        if breach := next(filter(None, (x.breach(values) for x in problem.limits)), ""):
            return None, breach
        return found, self._parts(sheet, values)

    def _parts(self, sheet, values):
        """Name the two parts of the objective that change most."""
        whole, parts = self._objective, [self._objective]
        # a cost is time at a price: show the parts of the time
        while len(parts) == 1 and (own := [x for x in _inputs(sheet, parts[0]) if x in sheet.formulas]):
            whole, parts = parts[0], own
        changes = {x: values[x] - self.found.billed.get(x, 0.0) for x in parts}
        most = sorted(changes.items(), key=lambda x: -abs(x[1]))[:2]
        seen = [(n, x) for n, x in most if abs(x) > 1e-9 * abs(self.found.billed[whole])]
        said = (f"{n} {'+' if x > 0 else '−'}{show(abs(x), NOTATION[n].unit)}" for n, x in seen)
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
    """Yield what a step changes, and the strategy after it. A prime factor moves, or one letter or word changes."""
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
