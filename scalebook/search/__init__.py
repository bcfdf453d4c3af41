"""Search all strategies of a training step, or the letters of a sheet, for the best choices within given limits.

>>> from scalebook.tables import accelerators, models
>>> from scalebook.training import training_step
>>> found = search(training_step, models.llama3_8b, accelerators.h100.at("bf16"), devices=64, global_batch=256,
...                seq=8192)
>>> found.best[0].tp, found.count
(1.0, ...)
>>> from scalebook.inference.tokens import decoding
>>> known = dict(context=8192, kv_bits=16)
>>> search(decoding, models.llama3_8b, accelerators.h100.at("bf16"), maximize="batch", subject_to="token_time <= 20 ms",
...        batch=range(1, 257), weight_bits=[16, 8], **known).best[0]
batch 55, weight_bits=8
"""

import itertools
import math
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from numbers import Real
from types import ModuleType

from scalebook.language.notation import either

from .arguments import each, joined, problem_of
from .parts import run, tasks
from .pricing import built
from .problem import Problem, about, layouts, word_combinations
from .results import Devices, Search
from .space import Searchable, Space
from .sweeping import Sweep, sweep

__all__ = ["Search", "Searchable", "Space", "Sweep", "search", "sweep"]


def search(
    sheet,
    *knowns,
    minimize: str | None = None,
    maximize: str | None = None,
    against: str | None = None,
    subject_to: str | Iterable[str] = (),
    choices: Mapping[str, Iterable] | None = None,
    lift: str | Iterable[str] = (),
    best: int = 10,
    most: float = 1e9,
    executor: Executor | None = None,
    progress: bool | None = None,
    **letters,
) -> Search:
    """Price every strategy that can run.  Return the best ones, the Pareto front, and counts of why the others are out.

    `sheet` is a sheet, a formula, or any other `Searchable` (training_step, serve, Calculon's Strategies).  `knowns`
    are rows (a model, a device) and formulas that replace the sheet's own.  `letters` gives everything else that is
    known, by keyword.  A letter or word whose value is a list is searched over that list; `choices` takes such lists
    too.

    For a plain sheet, only the listed letters are searched, and `minimize` or `maximize` names the objective.
    Strategies for which the objective has no value are left out.  If the sheet computes the memory that a device holds,
    it must fit the device's capacity.

    For a training step, `devices` and `global_batch` must be given.  `seq` defaults to the model's longest sequence.
    The step's `space` lists the other defaults: what is searched, what is minimized, and which rules and limits apply.

    `against` is the second objective of the Pareto front; less of it is better.  `subject_to` adds limits ("memory <=
    70 GB", "mfu >= 0.4", "tp <= 8"), and `lift` drops rules and limits by name.  A letter or word that makes no
    difference to a strategy (an overlap of tensor parallelism at tp=1) keeps its first value, so that no strategy is
    counted twice.  Ties go to the strategy that comes first in the order of the choices.

    A list of devices may take the place of one device.  Each device is then searched separately, and each strategy
    found has a `device`.  For `serve`, `devices` is the largest number that may be used, `tpot` and `ttft` are targets,
    and every layout must be able to serve `rate` requests a second; `scalebook.inference.layouts` says what is
    searched.

    The search first counts the strategies to price and refuses more than `most` (one core prices a billion in a few
    minutes).  `executor` is any executor in the style of concurrent.futures; it does not change the result.  If the
    search is interrupted, or a worker fails, it returns the best strategies so far, and `note` says what is missing.
    `progress` shows a bar; by default it appears in notebooks and terminals.

    Raises LookupError for unknown names, TypeError for missing or unsuitable arguments, and ValueError if no strategy
    can run.
    """
    check_executor(executor)
    if isinstance(most, bool) or not isinstance(most, Real) or not most > 0:
        raise TypeError(f"most is a number of strategies, such as most=1e10, not {most!r}")
    cases = each(knowns)
    letters = joined(letters, choices)
    if hasattr(sheet, "posed"):
        sheet, letters = sheet.posed([x for x, _ in cases], letters)
    found: list[Search] = []
    for rows, device in cases:
        problem = problem_of(sheet, rows, minimize, maximize, against, subject_to, lift, best, letters)
        try:
            found.append(_searched(problem, most, executor, progress, device))
        except TypeError as error:
            raise (TypeError(f"{device}: {error}") if device else error) from None
        if found[-1].note:  # the search was interrupted, or its workers failed
            break
    if not any(x.best or x.note for x in found):
        rejected = {n for x in found for n in x.rejected}
        said = sheet.unmet([x for x, _ in cases], letters, rejected) if hasattr(sheet, "unmet") else ""
        why = "; ".join(f"{x.device}: {_nothing(x)}" if x.device else _nothing(x) for x in found)
        remarks = [x.remark for x in found if x.remark]
        raise ValueError("; ".join([said or f"no strategy can run; {why}", *remarks]))
    return found[0] if len(cases) == 1 else Devices(found, [x for _, x in cases[len(found) :]])


def _searched(problem: Problem, most: float, executor: Executor | None, progress: bool | None, device: str) -> Search:
    """Run the search of one problem."""
    start = time.perf_counter()
    whole, combinations = layouts(problem), word_combinations(problem)
    expected, is_exact = about(problem, whole, combinations)
    said = f"{'' if is_exact else 'about '}{_rounded(expected, is_exact):,} strategies"
    if expected > most:
        enough = f"most={2 * expected:.0e}"
        raise ValueError(
            f"this search would price {said}, and most={most:g} allows fewer: {_longest(problem)}, or say {enough}"
        )
    if combinations and len(whole):
        # Raise an error for missing letters before anything is priced.
        built(problem, combinations[0], problem.offloads(problem.letters))
    parts = list(tasks(problem, whole, list(enumerate(combinations)), executor is not None))
    bar = shown(len(parts), f"search of {said}{f' on {device}' if device else ''}", progress)
    try:
        priced, left, why = run(problem, parts, executor, bar)
    finally:
        bar.close()
    unpriced = _rounded(expected * left / max(len(parts), 1), False)
    note = f"the best so far, {why}: {left:,} of {len(parts):,} parts, about {unpriced:,} strategies, were not priced"
    return Search(problem, whole, combinations, priced, time.perf_counter() - start, note if left else "", device)


def _rounded(number: float, is_exact: bool) -> int:
    """Return an exact count as an integer, and an estimate rounded to two digits."""
    return round(number) if is_exact or number < 1 else int(float(f"{number:.1e}"))


def _longest(problem) -> str:
    """Name the longest lists of values, which the caller could shorten, as the middle of a sentence."""
    lists = sorted({**problem.letters, **problem.words}.items(), key=lambda x: -len(x[1]))[:3]
    return "shorten " + ", ".join(f"{n} ({len(x):,} values)" for n, x in lists if len(x) > 1)


def _nothing(search: Search) -> str:
    """Say why the search found no strategy."""
    problem, whole = search.problem, search.layouts
    if most := list(search.rejected.items())[:3]:
        return "what leaves out most: " + ", ".join(f"{n} ({x:,})" for n, x in most)
    space = problem.space
    if not space.layout:
        return "none has a value"
    if len(whole):
        told = {n: (x,) for n, x in problem.fixed.items() if n != "devices"} | {
            n: problem.letters[n] for n in problem.in_rows
        }
        said = ", ".join(f"{n}={_listed(x)}" for n, x in told.items())
        return f"no layout of the {problem.values['devices']:g} devices goes with {said}"
    rest = space.layout[-1]
    ways = [n for n in space.ways if n == rest or n in problem.letters]
    own = [problem.letters.get(n, (1.0,)) for n in ways]
    products = {math.prod(x) for x in itertools.product(*own)}
    devices = problem.values["devices"]
    if rest not in problem.letters:  # the last letter of the layout may then take any value
        products = {x * n for x in products for n in (devices // x, devices // x + 1) if n}
    near = sorted(sorted(products, key=lambda x: abs(x - devices))[:2])
    said = ", ".join(f"{n}={_listed(x)}" for n, x in zip(ways, own, strict=True) if n in problem.letters)
    return f"no {' · '.join(ways)} is {devices:g} with {said}: devices={_listed(near)} would do"


def _listed(values):
    return either([f"{x:g}" for x in values[:8]] + ["..."] * (len(values) > 8))


def check_executor(executor) -> None:
    """Raise TypeError for an executor without a `submit` method."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor is of concurrent.futures' kind, such as ProcessPoolExecutor(4), not {executor!r}")


def shown(total: int, says: str, progress: bool | None):
    """Return a progress bar over the parts of a search."""
    from tqdm.auto import tqdm

    return tqdm(total=total, desc=says, unit="part", disable=None if progress is None else not progress)


class _Called(ModuleType):
    """The type of this package, so that calling `scalebook.search` runs a search once anything has imported it."""

    __call__ = staticmethod(search)


sys.modules[__name__].__class__ = _Called
