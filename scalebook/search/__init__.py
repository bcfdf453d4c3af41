"""Search all strategies of a training step, or values of any sheet's inputs, for the best within given limits.

The package is also the function `search`, so that both imports of it give one object.
"""

import math
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from scalebook import _shown_by
from scalebook.language import NOTATION, Formula, Sheet, show
from scalebook.language.arguments import checked, is_number
from scalebook.language.building import uncollected
from scalebook.language.guide import Guided, named_parameters
from scalebook.language.notation import quoted
from scalebook.language.renamed import renamed
from scalebook.language.tabular import callable_said

from .arguments import (
    each,
    not_running,
    problem_of,
    refuse_no_count,
    refuse_unused,
    running_on,
    sizes_of,
    within,
    without_unable,
)
from .devices import Devices, why_none
from .frames import Frame
from .parts import check_executor, run, tasks
from .planning import planned_for
from .problem import Problem, about, layouts, word_combinations
from .results import Search, order_of
from .space import NothingFits, Searchable, Space, searchable

if TYPE_CHECKING:
    from concurrent.futures import Executor  # loads `logging` and `threading`, which few searches need

__all__ = ["Search", "Searchable", "Space", "search"]

_FEW = 100_000  # of so many strategies, those that hold least are found at once

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
    rows (a model, a device, a framework or engine), or lists or whole tables of devices, frameworks and engines, and
    formulas that replace the sheet's own.  Frameworks and engines of a whole table are tried on devices that they run
    on.  `letters` gives quantities (`seq=8192`) and options (`recompute="full"`); lists of values are searched.  For
    training_step and serve, a default list is searched for the others; `training_step.space` lists it.  A training
    step needs `devices`, one number or several, and `global_batch`.  For `serve`, each layout must serve `rate` or
    `users`, `devices` is the most that may be used (by default the fewest that serve), and `tpot` and `ttft` are
    targets.

    `minimize` or `maximize` names the objective, and `against` the second one of the Pareto front, which is minimized.
    A plain sheet has no default objective.  `subject_to` adds limits ("memory <= 70 GB", "mfu >= 0.4"); tpot="< 30 ms"
    is a limit too.  Memory must always fit.  A training step's memory keeps below the capacity by the share
    `memory_margin`, by default the upper end of its prediction interval.  `lift` drops rules and limits by name.

    Strategies that differ only in an input without effect count once.  Ties go to the first strategy.  Options with
    equal results are listed once among the best, and `alike` counts the others.  With `pareto=False` there is no
    Pareto front, and only strategies within all limits are priced in full.  More than `most` strategies are refused
    (one core prices a billion in a few minutes).  `executor` is any executor in the style of concurrent.futures; it
    does not change the result.  If the search is interrupted, or a worker fails, it returns the best so far, and `note`
    says what is missing.

    Raises LookupError for unknown names, TypeError for unsuitable arguments, and ValueError if no strategy can run.

    >>> from scalebook import accelerators, decoding, models, training_step
    >>> search(training_step, models.llama3_8b, accelerators.h100, devices=64, global_batch=256, seq=8192).best[0].tp
    1.0
    >>> known = dict(context=8192, kv_bits=16, batch=range(1, 257), weight_bits=[16, 8])
    >>> search(decoding, models.llama3_8b, accelerators.h100, **known, maximize="batch", token_time="<20 ms").best[0]
    batch 55, weight_bits=8
    """
    check_executor(executor)
    _check_most(most)
    refuse_no_count(best)
    if not isinstance(sheet, Formula | Sheet) and not hasattr(sheet, "posed"):
        searchable(sheet, (), ())  # now, because a device is not to blame
    cases, letters, whole = each(knowns, letters)
    letters, subject_to = within(sheet, letters, subject_to)
    if hasattr(sheet, "posed"):
        is_plain = not (minimize or maximize or against or subject_to) and isinstance(lift, tuple | list) and not lift
        if not hasattr(sheet, "space") and not is_plain:
            raise TypeError("this search finds the cheapest session: limits are given as tpot=, ttft= or ttft_p95=")
        sheet, letters = sheet.posed([x for x, _ in cases], letters, minimize or maximize, subject_to)
        if isinstance(sheet, Frame):  # a result: each choice was priced by itself
            return sheet.first(best)
    lacking: dict[str, TypeError] = {}  # devices whose rows lack a cell
    own_sheet = getattr(sheet, "sized", lambda rows, letters: sheet)
    questions, (whole, unable) = [], without_unable(sheet, cases[0][0], whole)
    for rows, device in cases:
        able = running_on(rows, letters, whole)
        questions += [(own_sheet(rows, able), rows, device, own) for own in sizes_of(sheet, able)]
    aims = minimize, maximize, against, subject_to, lift, best
    found = _found(_groups(questions, aims, lacking), lacking, pareto, most, executor, progress)
    if not found:
        device, error = next(iter(lacking.items()))
        raise (TypeError(f"{device}: {error}") if device else error) from None
    if not any(x.best or x.note for x in found):
        able = [x for x, device in cases if device not in lacking]
        said = _nearest_to_limits(questions, lift, found)
        raise NothingFits(said or _why_nothing(questions[-1][0], able, letters, found))
    seen = {*lacking, *(x.device for x in found)}
    result = found[0] if len(questions) == 1 else Devices(found, lacking, [x for _, x in cases if x not in seen])
    result.unable = unable
    result.chosen = "; ".join(filter(None, [not_running(cases, whole), getattr(sheet, "chosen", "")]))
    return result


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


def _nearest_to_limits(questions, lift, found: list[Search]) -> str:
    """Say which of the call's limits on results no strategy meets, and which comes nearest; "" if they leave out none.

    A limit is judged together with those before it.
    """
    space, limits = found[0].problem.space, found[0].problem.limits
    own = [x for x in limits if x.name not in space.limits]
    if not any(x.name in y.rejected for x in own for y in found):
        return ""
    lifted = [x for x in found[0].problem.lifted if x in (*space.limits, *(x.name for x in space.rules))]
    for i, (letter, relation, bound, name, _) in enumerate(own):
        aim = (letter, None) if relation == "<=" else (None, letter)
        aims = *aim, letter, [x.name for x in own[:i]], lifted, 1
        try:
            again = _found(_groups(questions, aims, lacking := {}), lacking, True, math.inf, None, False)
        except (TypeError, LookupError):  # an input, which no search takes as its aim
            return ""
        near = min((x.best[0] for x in again if x.best), key=order_of(again[0].problem), default=None)
        if not near:
            return ""
        value = near.values[letter]
        if isinstance(bound, float) and (value > bound if relation == "<=" else value < bound):
            beside = "".join(f" with {x.name}" for x in own[:i])
            sizes = f" on {near.row.devices:g} devices" if "devices" in near.row else ""
            return f"{name} is met by no strategy{beside}: the nearest is {near!r}{sizes}"
    return ""


def _why_nothing(thing, able, letters, found) -> str:
    """Return why no strategy can run, in the thing's own words if it has some."""
    said = thing.unmet(able, letters, {n for x in found for n in x.rejected}) if hasattr(thing, "unmet") else ""
    has_sizes = len({x.problem.values.get("devices") for x in found}) > 1
    reasons: dict[str, list[str]] = {}  # each with the devices that have it
    for x in found:
        own = " on ".join(filter(None, [f"{x.problem.values.get('devices', 1):g} devices" * has_sizes, x.device]))
        reasons.setdefault("" if said else why_none(x, len(found) > 3), []).append(own)
    why = "; ".join(": ".join(filter(None, [", ".join(own), reason])) for reason, own in reasons.items())
    near = _nearest_to_fit(found[0]) if len(found) == 1 and not said else ""
    said = ": ".join(filter(None, [why, said])) if said else f"no strategy can run; {why}"
    return "; ".join([said, *filter(None, [near, *(x.remark for x in found)])])


def _nearest_to_fit(found: Search) -> str:
    """Say what the strategy that holds least holds, and which offload would let one fit; "" if memory is not short."""
    problem, space = found.problem, found.problem.space
    short = [x for x in problem.limits if x.name in {*space.limits} & found.rejected.keys()]
    if not short or NOTATION[short[0].letter].unit != "B" or found.count > _FEW:
        return ""

    def best(**changed):
        own = replace(problem, best=1, is_rising=False, **changed)
        answer = _searched([[own]], [found.device], False, math.inf, None, False)[0][0]
        return answer.best if isinstance(answer, Search) else []  # an offload needs what the device's row lacks

    letter, _, bound, _, margin = short[0]
    least = best(axes=(letter, letter), limits=tuple(x for x in problem.limits if x not in short))
    if not least:
        return ""
    said = f"the strategy that holds least has {least[0]!r}, and {bound} is {show(least[0].row[bound], 'B')}"
    said += f" with a margin of {100 * margin:.2g} % (memory_margin)" if margin else ""
    away = ((n, {n: 1.0}) for n in reversed(space.offloads) if n not in problem.fixed and n not in problem.letters)
    would = next((n for n, x in away if best(fixed=problem.fixed | x, values=problem.values | x)), "")
    return f"{said}; {would}=1 would let one fit" if would else said


@uncollected()
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


class _Called(Guided, ModuleType):
    """The type of this package: it is called as the function `search`, and shows the letters of what it searches."""

    name, doc, own = "search", search.__doc__, named_parameters(search)
    __wrapped__ = staticmethod(search)
    _searched = property(lambda self: (_shown_by("training_step"), _shown_by("serve")))
    choices = property(lambda self: {n: x for thing in self._searched for n, x in thing.choices.items()})
    gives = property(lambda self: dict.fromkeys(n for x in self._searched for n in (*x.gives, *x.space.shown)))

    @property
    def takes(self) -> dict[str, None]:
        """The letters of a step and of a service, without defaults, because a search tries several values of many."""
        return dict.fromkeys(n for x in self._searched for n in (*x.takes, *getattr(x, "targets", ()), "memory_margin"))

    def __call__(self, *args, **letters) -> Search:
        return self.__wrapped__(*args, **letters)

    def __repr__(self):
        return callable_said(self.name, "training_step, model, device, devices=, global_batch=, ...", self.doc)

    def __reduce__(self):
        return import_module, (self.__name__,)


def _complete_aims(shell) -> None:
    """Let IPython complete the names inside minimize="...", maximize="...", against="..." and subject_to="..."."""
    aim = re.compile(r"""\b(?:minimize|maximize|against|subject_to)\s*=\s*\[?["']\w*$""")

    def aims(context):
        from IPython.core.completer import SimpleCompletion

        is_aim, things = aim.search(context.text_until_cursor), re.findall(r"search\(\s*(\w+)", context.full_text)
        found = getattr(shell.user_ns.get(things[-1] if things else ""), "gives", ()) or search.gives if is_aim else ()
        names = [SimpleCompletion(text=n) for n in found if n.startswith(context.token)]
        return {"completions": names, "suppress": bool(names)}

    aims.matcher_api_version = 2
    shell.Completer.custom_matchers.append(aims)


search = sys.modules[__name__]
search.__class__ = _Called
del __doc__  # a caller is shown the letters too
if shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
    _complete_aims(shell)
