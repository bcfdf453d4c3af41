"""Run the tasks of a search, in this process or in others, and keep their results even if some tasks fail."""

import math
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from scalebook.language.notation import quoted

from .problem import Problem
from .task import EMPTY, joined, price

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["check_executor", "gathered", "run", "tasks"]

PART = 1 << 26  # candidates of a task; they take about a second
SIZES = 128  # of a task without a Pareto front
WORKED, WORTH = 16, 64  # with several workers: parts, each at least a 64th of PART


def check_executor(executor) -> None:
    """Raise TypeError for an executor without the `submit` method of concurrent.futures."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        kind = "concurrent.futures' kind, such as ProcessPoolExecutor(4)"
        raise TypeError(f"executor is of {kind}, not {quoted(executor)}")


def tasks(sizes: list[Problem], layouts: list[int], combinations: int, shared: bool = False, pareto=True) -> list[list]:
    """Split a search into tasks.  Each is a list of pairs: the index of a size, and a range of its rows.

    `layouts` is the number of layouts of each size. `combinations` counts the combinations of options; each task has
    all of them, because they share most work. With `shared`, tasks are smaller, so that several workers get some. If
    `pareto` is false, each task has whole sizes, small and large ones.
    """
    if not pareto:
        number = -(-len(sizes) // SIZES)
        rows = [range(n * x.in_layout) for n, x in zip(layouts, sizes, strict=True)]
        return [list(enumerate(rows))[first::number] for first in range(number)]
    found: list[list[tuple[int, range]]] = []
    room = 0
    for i, problem in enumerate(sizes):
        number, on_axes = layouts[i] * problem.in_layout, math.prod(len(problem.letters[x]) for x in problem.on_axes)
        each = on_axes * max(combinations, 1)
        step = max(1, PART // each)
        if shared:
            step = max(min(step, -(-number // WORKED)), PART // WORTH // each, 1)
        if step > problem.in_layout:  # take whole layouts, because their rows share work
            step -= step % problem.in_layout
        for first in range(0, number, step):
            part = range(first, min(first + step, number))
            if not found or shared or len(part) > room:
                found.append([])
                room = step
            found[-1].append((i, part))
            room -= len(part)
    return found


def run(sizes: list[Problem], combinations: list, parts: list[list], executor, says: str, progress, pareto=True):
    """Run all tasks. Return the joined results by size and problem, how many tasks failed, and why ("" if none)."""
    calls = [(price, sizes, combinations, x, pareto) for x in parts]
    done, why = gathered(calls, executor, says, progress, lambda x: sum(z.count for y in x for z in y))
    empty = [[EMPTY] * len(x.each) for x in sizes]
    own = [zip(*x, strict=True) for x in zip(empty, *done, strict=True)]
    best = sizes[0].best
    return [[reduce(lambda a, b: joined(a, b, best), y) for y in x] for x in own], len(parts) - len(done), why


def gathered(calls: list[tuple], executor: "Executor | None", says: str, progress: bool | None, counted: Callable):
    """Run calls `(function, *arguments)`, here or in an executor. Return results, and why some are missing (or "").

    If all fail, the first error is raised.  `counted` counts the strategies in a result, for the progress bar.
    """
    from concurrent.futures import BrokenExecutor, Future, as_completed

    from tqdm.auto import tqdm

    if not isinstance(progress, bool | None):
        raise TypeError(f"progress is True, False or None, not {quoted(progress)}")

    done: dict[Future, Any] = {}
    futures, lost, number = [], [], 0
    bar = tqdm(total=len(calls), desc=says, unit="part", disable=None if progress is None else not progress)
    try:
        if executor:
            for call in calls:
                futures.append(executor.submit(*call))
        for future in as_completed(futures) if executor else _here(calls):
            try:
                done[future] = future.result()
            except Exception as error:
                lost.append(error)
            else:
                number += counted(done[future])
                bar.set_postfix_str(f"{number:,} strategies", refresh=False)
            bar.update()
    except KeyboardInterrupt as error:
        lost.insert(0, error)
    except Exception as error:  # raised by submit if the pool is broken or shut down
        lost.append(error)
    finally:
        bar.close()
    for future in futures:  # keep results that came back unread; cancel what has not started
        if not future.cancel() and future not in done and future.done() and not future.exception():
            done[future] = future.result()
    if lost and not done and isinstance(lost[0], BrokenExecutor):
        raise RuntimeError(f"{_why(lost[0])}, and nothing had been priced") from lost[0]
    if lost and not done and not isinstance(lost[0], KeyboardInterrupt):
        raise lost[0]
    return list(done.values()), _why(lost[0]) if lost else ""


def _here(calls):
    from concurrent.futures import Future

    for call, *args in calls:
        future = Future()
        try:
            future.set_result(call(*args))
        except Exception as error:
            future.set_exception(error)
        yield future


def _why(error: BaseException) -> str:
    from concurrent.futures import BrokenExecutor

    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, BrokenExecutor):
        return "a worker process was killed, often for want of memory"
    return f"{type(error).__name__}: {error}"
