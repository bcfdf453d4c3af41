"""Search all strategies of a training step, or values of any sheet's inputs, for the best within given limits.

>>> from scalebook.inference.tokens import decoding
>>> from scalebook.tables import accelerators, models
>>> known = dict(context=8192, kv_bits=16)
>>> search(decoding, models.llama3_8b, accelerators.h100.at("bf16"), maximize="batch", subject_to="token_time <= 20 ms",
...        batch=range(1, 257), weight_bits=[16, 8], **known).best[0]
batch 55, weight_bits=8
"""

import math
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING

from scalebook import _shown_by
from scalebook.language.arguments import checked, is_number
from scalebook.language.guide import named_parameters
from scalebook.language.notation import quoted
from scalebook.language.renamed import renamed

from .arguments import each, problem_of, refuse_unused, sizes_of, within
from .devices import Devices, why_none
from .frames import Frame
from .parts import check_executor, run, tasks
from .planning import planned_for
from .problem import Problem, about, layouts, word_combinations
from .results import Search
from .space import NothingFits, Searchable, Space

if TYPE_CHECKING:
    from concurrent.futures import Executor  # loads `logging` and `threading`, which few searches need

__all__ = ["Search", "Searchable", "Space", "search"]

__getattr__ = renamed(__name__)


@checked
def search(
    sheet,
    *knowns,
    minimize: str | None = None,
    maximize: str | None = None,
    against: str | None = None,
    subject_to: str | Iterable[str] = (),
    lift: str | Iterable[str] = (),
    best: int = 10,
    pareto: bool = True,
    most: float = 1e9,
    executor: "Executor | None" = None,
    progress: bool | None = None,
    **letters,
) -> Search:
    """Price every strategy that can run.  Return the best ones, the Pareto front, and counts of why the others are out.

    `sheet` is what to search: training_step, serve, a sheet, a formula, or any other `Searchable`.  `knowns` are table
    rows (a model, a device, a framework or engine, or a list of devices) and formulas that replace the sheet's own.
    `letters` gives quantities (`seq=8192`) and options (`recompute="full"`); those whose value is a list are searched.
    For training_step and serve, a default list is searched for the others; `training_step.space` lists it.  A training
    step needs `devices`, one number or several, and `global_batch`.  For `serve`, each layout must serve `rate` or
    `users`, `devices` is the most that may be used (by default the fewest that serve), and `tpot` and `ttft` are
    targets.

    `minimize` or `maximize` names the objective, and `against` the second one of the Pareto front, which is minimized.
    A plain sheet has no default objective.  `subject_to` adds limits ("memory <= 70 GB", "mfu >= 0.4"); tpot="< 30 ms"
    is a limit too.  Memory must always fit.  A training step's memory keeps below the capacity by the share
    `memory_margin`, by default the upper end of its prediction interval.  `lift` drops rules and limits by name.

    Strategies that differ only in an input without effect count once.  Ties go to the first strategy.  With
    `pareto=False` there is no Pareto front, and only strategies within all limits are priced in full.  More
    than `most` strategies are refused (one core prices a billion in a few minutes).  `executor` is any executor in the
    style of concurrent.futures; it does not change the result.  If the search is interrupted, or a worker fails, it
    returns the best so far, and `note` says what is missing.

    Raises LookupError for unknown names, TypeError for unsuitable arguments, and ValueError if no strategy can run.

    >>> from scalebook.tables import accelerators, models
    >>> from scalebook.training import training_step
    >>> search(training_step, models.llama3_8b, accelerators.h100, devices=64, global_batch=256, seq=8192).best[0].tp
    1.0
    """
    check_executor(executor)
    _check_most(most)
    cases, letters = each(knowns, letters)
    letters, subject_to = within(sheet, letters, subject_to)
    if hasattr(sheet, "posed"):
        if not hasattr(sheet, "space") and (minimize or maximize or against or subject_to or lift):
            raise TypeError("this search finds the cheapest session: limits are given as tpot=, ttft= or ttft_p95=")
        sheet, letters = sheet.posed([x for x, _ in cases], letters, minimize or maximize, subject_to)
        if isinstance(sheet, Frame):  # a result: each choice was priced by itself
            return sheet.first(best)
    lacking: dict[str, TypeError] = {}  # devices whose rows lack a cell
    own_sheet = getattr(sheet, "sized", lambda rows, letters: sheet)
    questions = [(own_sheet(x, letters), x, device, own) for x, device in cases for own in sizes_of(sheet, letters)]
    aims = minimize, maximize, against, subject_to, lift, best
    found = _found(_groups(questions, aims, lacking), lacking, pareto, most, executor, progress)
    if not found:
        device, error = next(iter(lacking.items()))
        raise (TypeError(f"{device}: {error}") if device else error) from None
    if not any(x.best or x.note for x in found):
        able = [x for x, device in cases if device not in lacking]
        raise NothingFits(_why_nothing(questions[-1][0], able, letters, found))
    if len(questions) == 1:
        return found[0]
    seen = {*lacking, *(x.device for x in found)}
    return Devices(found, lacking, [x for _, x in cases if x not in seen])


def _check_most(most) -> None:
    if not is_number(most) or not most > 0:
        raise TypeError(f"most is a number of strategies, such as most=1e10, not {quoted(most)}")


def _groups(questions, aims, lacking) -> dict:
    """Return the problems of each group of devices, size by size: what one plan can price. Fill in `lacking`."""
    together: dict = {}
    checked_rows: set[int] = set()
    for place, (thing, rows, device, own) in enumerate(questions):
        try:
            problem = problem_of(thing, rows, *aims, own)
            if id(rows) not in checked_rows:  # another number of devices changes none of it
                refuse_unused(problem, own)
                checked_rows.add(id(rows))
            alone = None if hasattr(problem.sheet, "kind") else device
            together.setdefault((problem.like, alone, own.get("devices")), {})[place] = problem
        except TypeError as error:
            lacking.setdefault(device, error)
    groups: dict = {}
    for (*key, _), problems in together.items():
        groups.setdefault((*key, *(questions[x][2] for x in problems)), []).append(problems)
    return groups


def _found(groups, lacking, *how) -> list[Search]:
    """Return the results of all groups, in the order of their questions. Fill in `lacking`."""
    done: dict[int, Search] = {}
    for (_, _, *devices), sizes in groups.items():
        sizes.sort(key=lambda x: next(iter(x.values())).values.get("devices", 0))
        answers = _searched([[*x.values()] for x in sizes], devices, *how)
        for own, found in zip(sizes, answers, strict=True):
            done |= {x: y for x, y in zip(own, found, strict=True) if isinstance(y, Search)}
            for device, answer in zip(devices, found, strict=True):
                if isinstance(answer, TypeError):
                    lacking.setdefault(device, answer)
        if any(x.note for x in done.values()):  # the search was interrupted, or its workers failed
            break
    return [done[x] for x in sorted(done)]


def _why_nothing(thing, able, letters, found) -> str:
    """Return why no strategy can run, in the thing's own words if it has some."""
    said = thing.unmet(able, letters, {n for x in found for n in x.rejected}) if hasattr(thing, "unmet") else ""
    why = "; ".join(dict.fromkeys(f"{x.device}: {why_none(x)}" if x.device else why_none(x) for x in found))
    return "; ".join([said or f"no strategy can run; {why}", *(x.remark for x in found if x.remark)])


def _searched(sizes: list[list[Problem]], devices: list, pareto: bool, most: float, executor, progress):
    """Search the problems of some devices at some sizes, which one plan can price.

    Return a `Search` for each, or the TypeError of a missing letter, in lists by size.
    """
    start, joint = time.perf_counter(), [replace(x[0], others=tuple(x[1:])) for x in sizes]
    whole, combinations = [*map(layouts, joint)], word_combinations(joint[0])
    expected = cache(lambda i, j: about(sizes[i][j], whole[i], combinations))
    (number, is_exact), several = expected(0, 0), len(sizes) * len(devices)
    is_exact = is_exact and several == 1  # of others about as many
    for i, one in enumerate(joint):
        if len(whole[i]) * len(combinations) * math.prod(map(len, one.letters.values())) > most:
            number, is_exact = max([(number, is_exact), *(expected(i, j) for j in range(len(devices)))])
    said = f"{'' if is_exact else 'about '}{_rounded(number, is_exact):,} strategies"
    if number > most:
        how = f"{_longest(joint[0])}, or say most={2 * number:.0e}"
        raise ValueError(f"this search would price {said}, and most={most:g} allows fewer: {how}")
    if not pareto and joint[0].space.solve:
        raise TypeError(f"the answer of a search of {joint[0].sheet.name} is its Pareto front: leave out pareto=False")
    numbered = list(enumerate(combinations))
    lacking = planned_for(joint[0], numbered).lacking if any(map(len, whole)) else {}
    if lacking:
        able = [j for j in range(len(devices)) if j not in lacking]
        names = [devices[j] for j in able]
        kept = [[x[j] for j in able] for x in sizes]
        rest = _searched(kept, names, pareto, most, executor, progress) if able else kept
        return [[lacking[j] if j in lacking else x[able.index(j)] for j in range(len(devices))] for x in rest]
    parts = tasks(joint, [*map(len, whole)], len(combinations), executor is not None, pareto)
    on = f" on {devices[0] if len(devices) == 1 else f'each of {len(devices)} devices'}" if devices[0] else ""
    on += f" at each of {len(sizes)} sizes" if len(sizes) > 1 else ""
    priced, left, why = run(joint, numbered, parts, executor, f"search of {said}{on}", progress, pareto)
    seconds, says = (time.perf_counter() - start) / several, f"the best so far, {why}: {left:,} of {len(parts):,} parts"

    def found(i, j):
        lost = _rounded(expected(i, j)[0] * left / len(parts), False) if left else 0
        note = f"{says}, about {lost:,} strategies, were not priced" if left else ""
        return Search(sizes[i][j], whole[i], combinations, priced[i][j], seconds, note, devices[j])

    return [[found(i, j) for j in range(len(devices))] for i in range(len(sizes))]


def _rounded(number: float, is_exact: bool) -> int:
    """Return an exact count as an integer, and an estimate rounded to two digits."""
    return round(number) if is_exact or number < 1 else int(float(f"{number:.1e}"))


def _longest(problem) -> str:
    """Name the longest lists of values, which the caller could shorten."""
    lists = sorted({**problem.letters, **problem.words}.items(), key=lambda x: -len(x[1]))[:3]
    return "shorten " + ", ".join(f"{n} ({len(x):,} values)" for n, x in lists if len(x) > 1)


class _Search:
    """The function `search`, whose signature has the letters of a training step and of a service too."""

    def __call__(self, *args, **letters) -> Search:
        return search(*args, **letters)

    @property
    def __signature__(self) -> Signature:
        own, searched = named_parameters(search), (_shown_by("training_step"), _shown_by("serve"))
        letters = {n: x for thing in searched for n, x in named_parameters(thing).items() if n not in own}
        *first, rest = signature(search).parameters.values()
        return Signature([*first, *(x.replace(default=None) for x in letters.values()), rest])


class _Called(ModuleType):
    """The type of this package, so that calling `scalebook.search` runs a search once anything has imported it."""

    __call__ = _Search()


sys.modules[__name__].__class__ = _Called
