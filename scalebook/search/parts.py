"""Pricing the parts of a search, here or elsewhere, so that nothing priced is lost whatever happens to the rest."""

import math
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from functools import reduce

import numpy as np

from .pricing import EMPTY, Priced, joined, price
from .problem import Problem, Rows, rows_of

__all__ = ["run", "tasks"]

PART = 1 << 26  # candidates of a task: a second or so


def tasks(problem: Problem, whole: np.ndarray, combinations: list[tuple[int, dict]]) -> Iterator[tuple[list, Rows]]:
    """Parts of the space: combinations of words whose blocks are the same, with a number of rows."""
    groups = {}
    for place, words in combinations:
        block = tuple(x for n, x in words.items() if n not in problem.space.apart)
        groups.setdefault(block, []).append((place, words))
    number, on_axes = len(whole) * problem.in_layout, math.prod(len(problem.letters[x]) for x in problem.on_axes)
    for group in groups.values():
        step = max(1, PART // (on_axes * len(group)))
        if step > problem.in_layout:  # whole layouts: what they share is priced once
            step -= step % problem.in_layout
        for first in range(0, number, step):
            yield group, rows_of(problem, whole, first, first + step)


def run(problem: Problem, parts: list, executor: Executor | None, bar) -> tuple[Priced, int, str]:
    """What was found in the parts that came back, how many did not, and why.

    Raises the error of a part where none came back.
    """
    done: dict[Future, Priced] = {}
    futures, lost, counted = [], [], 0
    try:
        if executor:
            for part in parts:
                futures.append(executor.submit(price, problem, *part))
        for future in as_completed(futures) if executor else _here(problem, parts):
            try:
                done[future] = future.result()
            except Exception as error:
                lost.append(error)
            else:
                counted += done[future].count
                bar.set_postfix_str(f"{counted:,} strategies", refresh=False)
            bar.update()
    except KeyboardInterrupt as error:
        lost.insert(0, error)
    except Exception as error:  # submit's: a pool that has broken or is shut down takes no more
        lost.append(error)
    for future in futures:  # what had come back before it was asked for, and what may still be running
        if not future.cancel() and future not in done and future.done() and not future.exception():
            done[future] = future.result()
    if lost and not done and isinstance(lost[0], BrokenExecutor):
        raise RuntimeError(f"{_why(lost[0])}, and nothing had been priced") from lost[0]
    if lost and not done and not isinstance(lost[0], KeyboardInterrupt):
        raise lost[0]
    found = reduce(lambda a, b: joined(a, b, problem.best), done.values(), EMPTY)
    return found, len(parts) - len(done), _why(lost[0]) if lost else ""


def _here(problem, parts):
    for part in parts:
        future = Future()
        try:
            future.set_result(price(problem, *part))
        except Exception as error:
            future.set_exception(error)
        yield future


def _why(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, BrokenExecutor):
        return "a worker process was killed, often for want of memory"
    return f"{type(error).__name__}: {error}"
