"""Search at each of many numbers of devices, and price what does not depend on this number only once.

>>> from scalebook.calculon import Strategies, application, library
>>> model, machine = application(library.models["gpt3-1.3B"]), library.systems["h100_80g_nvl8"]
>>> found = sweep(Strategies(machine), model, devices=[8, 16, 24], global_batch=16, fused=True, progress=False)
>>> {n: float(f"{x:.3g}") for n, x in found.values.items()}
{8: 0.0062, 16: 0.00367, 24: 0.0031}
>>> found[24].fitting + sum(found[24].rejected.values())
637640
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial

from scalebook.language import NOTATION
from scalebook.language.arguments import as_list, checked
from scalebook.language.notation import quoted
from scalebook.language.row import one_number
from scalebook.language.tabular import aligned, page_table
from scalebook.language.units import show

from .arguments import problem_of, refuse_unused
from .parts import check_executor, gathered
from .problem import Problem, layouts, word_combinations
from .results import Search
from .task import Priced, price

__all__ = ["Sweep", "sweep"]

SIZES = 128  # of a task


class Sweep(Mapping):
    """The result of a sweep: a mapping from number of devices to its `Search` (whose Pareto front is empty).

    `values` maps each number that has a strategy within all limits to the best value of the objective.  `count`
    strategies have a price, and `fitting` are within all limits.  `note` says what is missing, unless it `is_whole`.
    """

    def __init__(self, question: Callable, found: Iterable[tuple[float, Priced]], problem: Problem, seconds, note):
        self._question, self.seconds, self.note, self.is_whole = question, seconds, note, not note
        self._found, self._letter = dict(sorted(found)), problem.axes[0]
        self.count = sum(x.count for x in self._found.values())
        self.fitting = self.count - sum(x.rejected[y.name] for x in self._found.values() for y in problem.limits)
        sign = -1 if problem.is_rising else 1
        self.values: dict[float, float] = {n: sign * float(x.best[0, 0]) for n, x in self._found.items() if len(x.best)}

    def __getitem__(self, devices) -> Search:
        if devices not in self._found:
            raise KeyError(f"{quoted(devices)} is none of the {len(self):,} sizes that were swept")
        problem = self._question(devices=devices)
        return Search(problem, layouts(problem), word_combinations(problem), self._found[devices], self.seconds, "")

    def __iter__(self) -> Iterator[float]:
        return iter(self._found)

    def __len__(self):
        return len(self._found)

    def _table(self):
        rows = [[f"{n:,}", show(x, NOTATION[self._letter].unit)] for n, x in self.values.items()]
        return ["devices", self._letter], rows[:10] + [["...", ""]] * (len(rows) > 10)

    @property
    def _summary(self):
        said = f"{len(self):,} sizes, {self.count:,} strategies, {self.fitting:,} within all limits"
        return "; ".join(filter(None, [said, self.note]))

    def __repr__(self):
        if not self.values:
            return self._summary
        heads, rows = self._table()
        return "\n\n".join([self._summary, aligned([heads, *rows], gap="  ")])

    def _repr_html_(self):
        return f"<p>{self._summary}</p>" + (page_table(*self._table(), "best at each size") if self.values else "")


@checked
def sweep(
    sheet,
    *knowns,
    devices: Iterable[int] = range(8, 16385, 8),
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: str | Iterable[str] = (),
    lift: str | Iterable[str] = (),
    best: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
    **letters,
) -> Sweep:
    """Search at each number of devices.  Much faster than separate searches, and their best strategies are the same.

    Takes the arguments of `search`, with a single device's row and a thing that lays out devices (a training step,
    Calculon's strategies), and raises what it raises.  A strategy is priced in full only if its lower bound over the
    values on axes (offloads, overlaps) lets it be among the best.  For Dask, `executor=client.get_executor()`.
    """
    check_executor(executor)
    if (many := as_list(devices)) is None:
        raise TypeError(
            f"a sweep goes over several sizes, as in devices=range(8, 99, 8), not devices={quoted(devices)}"
        )
    sizes = list(dict.fromkeys(one_number("devices", x) for x in many))
    if not sizes:
        raise ValueError("devices has no values to sweep: give at least one, as in devices=range(8, 1025, 8)")
    question = partial(problem_of, sheet, knowns, minimize, maximize, None, subject_to, lift, best, letters)
    start, first = time.perf_counter(), question(devices=sizes[0])
    if not first.space.layout or first.space.solve:
        raise TypeError(f"a sweep goes over devices in a layout, and {first.sheet.name} has none: search it instead")
    refuse_unused(first, letters)
    # each task gets sizes from the whole range, because small sizes take longer
    number = -(-len(sizes) // SIZES)
    calls = [(priced_sizes, question, sizes[i::number]) for i in range(number)]
    says = f"sweep of {len(sizes):,} sizes"
    done, why = gathered(calls, executor, says, progress, lambda x: sum(y.count for _, y in x))
    found = [y for x in done for y in x]
    left = len(sizes) - len(found)
    note = f"the sizes so far, {why}: {left:,} of {len(sizes):,} were not priced" if left else ""
    result = Sweep(question, found, first, time.perf_counter() - start, note)
    if not note and not result.values:
        raise ValueError(f"no strategy can run at any of the {len(sizes):,} sizes; search one of them to see why")
    return result


def priced_sizes(question: Callable, sizes: list[float]) -> list[tuple[float, Priced]]:
    """Compute one task of a sweep: search at these numbers of devices, and return each with what was found."""
    groups: dict = {}
    for n in sorted(sizes):
        problem = question(devices=n)
        groups.setdefault(problem.like, []).append(problem)
    found = []
    for like, problems in groups.items():
        combinations = list(enumerate(word_combinations(problems[0])))
        parts = [(i, range(len(layouts(x)) * x.in_layout)) for i, x in enumerate(problems)]
        own = price(problems, combinations, parts, (question, like[1:]))
        found += [(int(x.values["devices"]), y[0]) for x, y in zip(problems, own, strict=True)]
    return found
