"""Results of a search: the best strategies, the Pareto front, and counts of why the others are out."""

import html
from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from scalebook.language import NOTATION, Formula, Row
from scalebook.language.notation import either
from scalebook.language.tabular import aligned, page_table, styled
from scalebook.language.units import show

__all__ = ["Devices", "Found", "Search", "short"]


class Found:
    """One strategy.  Its letters, its words and the two values it was ranked by are attributes.

    `row` evaluates the whole sheet for this strategy.  `call` is the text of the call that gives that row.
    """

    def __init__(self, search: "Search", record: Iterable[float]):
        problem = search.problem
        value, second, place, row, axis = record
        if problem.is_rising:
            value, second = -value, -value if len(set(problem.axes)) == 1 else second
        self._search, self._problem, self.words = search, problem, search.combinations[int(place)]
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
        raise AttributeError(f"a strategy found has letters, words and values, and no {name!r}; its `row` has the rest")

    @property
    def knowns(self) -> dict:
        """Letters and words to pass to the sheet by keyword.  Letters that the sheet does not use are left out."""
        solved = self._problem.space.solved
        return self._call_letters | {n: float(self.row[n]) for n in solved}

    @cached_property
    def _call_letters(self) -> dict:
        letters = {**self._problem.fixed, **self.letters}
        rows = tuple(x for x in self._problem.knowns if not isinstance(x, Formula))
        sheet, _, _ = self._problem.sheet.sheet(rows, letters | self.words)
        return {n: x for n, x in letters.items() if n in sheet.letters} | self.words

    @cached_property
    def row(self) -> Row:
        """Everything that the sheet computes for this strategy."""
        return self._problem.sheet(*self._problem.knowns, **self._call_letters)

    @property
    def call(self) -> str:
        """The call that gives this strategy's row, as text.  Positional arguments are shown as `...`."""
        said = ", ".join(f"{n}={x:g}" if isinstance(x, float) else f"{n}={x!r}" for n, x in self.knowns.items())
        return f"{self._problem.sheet.name}(..., {said})"

    def __repr__(self):
        said = [f"{n} {show(x, NOTATION[n].unit)}" for n, x in self.values.items()]
        return ", ".join([*said, *([self.device] if self._search.device else []), *_strategy(self)])

    def _repr_html_(self):
        said = html.escape(repr(self)), html.escape(self.call)
        return styled(
            f"<p>{said[0]}</p><p><small><code>{said[1]}</code>; <code>row</code> has what follows.</small></p>"
        )


def _strategy(found: Found) -> list[str]:
    several = [n for n, x in {**found._problem.letters, **found._problem.words}.items() if len(x) > 1]
    chosen = {**found.letters, **found.words}
    above = (x for x in found._problem.space.layout if chosen[x] > 1)
    return [f"{n}={short(chosen[n])}" for n in dict.fromkeys([*above, *several]) if n not in found.values]


def short(x) -> str:
    """Format a number or a word briefly."""
    return f"{x:g}" if isinstance(x, float) else str(x)


def _digits(place: int, names: tuple[str, ...], letters: dict) -> tuple[int, dict]:
    """Decode a mixed-radix place into the quotient left over and the letters' values (last letter fastest)."""
    found = {}
    for name in reversed(names):
        place, digit = divmod(place, len(letters[name]))
        found[name] = letters[name][digit]
    return place, dict(reversed(found.items()))


class Best(list):
    """The best strategies, as a list.  An index beyond its end raises IndexError with the reason."""

    def __init__(self, strategies, note: str):
        super().__init__(strategies)
        self._note = note

    def __getitem__(self, place):
        try:
            return super().__getitem__(place)
        except IndexError:
            why = self._note or "best=... keeps more, where there are more"
            raise IndexError(f"{len(self) or 'no'} strategies are here; {why}") from None


class Search:
    """The result of a search.

    - `best`: the best strategies in order, each with a `row`.
    - `pareto`: the strategies that no other strategy beats in both objectives.
    - `rejected`: the number of strategies that each rule or limit rules out, or a formula that has no value there.
      Each strategy is counted once, under the first that rejects it: rules come before pricing, limits after.
    - `count`: the number of strategies that have a price. `seconds`: how long the search took.
    - `note`: what is missing, and why, if the search was interrupted or a worker failed. It is empty if the search
      `is_whole`.
    - `device`: the name of the device, if several were searched.
    """

    def __init__(self, problem, layouts, combinations, priced, seconds, note, device=""):
        self.problem, self.layouts, self.combinations, self.device = problem, layouts, combinations, device
        self.count, self.seconds, self.note, self.is_whole = priced.count, seconds, note, not note
        self.rejected: dict[str, int] = dict(sorted(priced.rejected.items(), key=lambda x: (-x[1], x[0])))
        self.pareto = [Found(self, x) for x in priced.front]
        best = [Found(self, x) for x in priced.best]
        self.best = Best(_cheapest(self.pareto, problem) if problem.space.is_front else best, note)

    @property
    def fitting(self) -> int:
        """Number of strategies within all limits."""
        return self.count - sum(self.rejected.get(x.name, 0) for x in self.problem.limits)

    def neighbours(self, place: int = 0):
        """List each single change to a strategy, by default the best: its cost, and why it is worse or impossible."""
        from .neighbours import Neighbours

        return Neighbours(self.best[place]._search, self.best[place])

    # Showing

    @property
    def _summary(self) -> str:
        said = f"{self.count:,} strategies, {self.fitting:,} within all limits"
        return "; ".join(filter(None, [said, self.remark, self.note]))

    @property
    def remark(self) -> str:
        """A remark for the reader on the strategies that were left out, or ""."""
        return self.problem.space.remark(self.problem, self.rejected)

    @property
    def _several(self) -> dict[str, tuple]:
        """Letters and words with several values, and layout letters above 1 in one of the best strategies."""
        several = {n: x for n, x in {**self.problem.letters, **self.problem.words}.items() if len(x) > 1}
        layout = self.problem.space.layout
        names = [n for n in layout if n in several or any(x.letters[n] > 1 for x in self.best if n in x.letters)]
        return dict.fromkeys([*names, *several])

    def _tables(self):
        shown = self.problem.space.shown
        names = [n for n in self._several if n not in (*self.problem.axes, *shown)]
        rows = [
            [
                str(i + 1),
                *(show(x.values[n], NOTATION[n].unit) for n in x.values),
                *([x.device] if x._search.device else []),
                *(short(getattr(x, n, "")) for n in names),
                *(show(x.row[n], NOTATION[n].unit) for n in shown if n not in x.values),
            ]
            for i, x in enumerate(self.best)
        ]
        axes = dict.fromkeys(self.problem.axes)
        is_of_several = any(x._search.device for x in self.best)
        yield [
            "", *axes, *["device"] * is_of_several, *names, *(n for n in shown if n not in axes)
        ], rows, "best"  # fmt: skip
        yield ["by", "strategies"], [[n, f"{x:,}"] for n, x in self.rejected.items()], "left out"

    def __repr__(self):
        return "\n\n".join([self._summary, *(aligned([heads, *rows], gap="  ") for heads, rows, _ in self._tables())])

    def _repr_html_(self):
        return styled(f"<p>{html.escape(self._summary)}</p>", *(page_table(*x) for x in self._tables()))


def _order(problem):
    first, second = (problem.axes * 2)[:2]
    sign = -1 if problem.is_rising else 1
    return lambda x: (sign * x.values[first], x.values.get(second, 0.0))


def _cheapest(front: list[Found], problem) -> list[Found]:
    return sorted(front, key=_order(problem))[: problem.best]


class Devices(Search):
    """The joined result of one search on several devices.

    Each strategy found has a `device`; `searches` has the results.

    `note` names the devices that have no strategy within all limits, and devices left out by an interruption.
    """

    def __init__(self, searches: list[Search], left: list[str]):
        self.searches, self.problem, self.device = searches, searches[0].problem, ""
        self.count, self.seconds = sum(x.count for x in searches), sum(x.seconds for x in searches)
        idle = [x.device for x in searches if not x.best and not x.note]
        notes = [f"{x.device}: {x.note}" for x in searches if x.note]
        notes += [f"none of them on {either(idle)}"] if idle else []
        notes += [f"not searched: {', '.join(left)}"] if left else []
        self.note, self.is_whole = "; ".join(notes), not left and all(x.is_whole for x in searches)
        rejected = sum((Counter(x.rejected) for x in searches), Counter())
        self.rejected = dict(sorted(rejected.items(), key=lambda x: (-x[1], x[0])))
        key = _order(self.problem)
        best, front = (sorted((y for x in searches for y in getattr(x, n)), key=key) for n in ("best", "pareto"))
        self.pareto, least = [], float("inf")
        for x in front:  # sorted by the first objective, so each must improve the second
            if key(x)[1] < least or not self.pareto:
                self.pareto.append(x)
                least = key(x)[1]
        self.pareto.reverse()
        best = self.pareto[::-1] if self.problem.space.is_front else best
        self.best = Best(best[: self.problem.best], self.note)

    @property
    def remark(self):
        return "; ".join(filter(None, (x.remark for x in self.searches)))

    @property
    def _several(self):
        return dict.fromkeys(n for x in self.searches for n in x._several)
