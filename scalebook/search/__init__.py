"""The search over all strategies: which layout, schedule and choices train a model fastest on so many devices.

>>> from scalebook.tables import accelerators, models
>>> from scalebook.training import training_step
>>> found = search(training_step, models.llama3_8b, accelerators.h100.at("bf16"), devices=64, global_batch=256, seq=8192)
>>> found.best[0].tp, found.count
(1.0, ...)
"""

import itertools
import math
import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, as_completed
from numbers import Real

import numpy as np

from scalebook.language import NOTATION
from scalebook.language.notation import either, nearest
from scalebook.language.row import gather, quantity
from scalebook.validity import COUNTS, not_whole

from .found import Search
from .pricing import EMPTY, joined, price
from .problem import Problem, layouts, word_combinations
from .space import LAYOUT, TRAINING

__all__ = ["Search", "search"]

PART = 1 << 26  # candidates of a task: a second or so


def search(
    sheet, *knowns, minimize: str | None = None, against: str | None = None, subject_to: str | Iterable[str] = (),
    choices: Mapping[str, Iterable] | None = None, lift: str | Iterable[str] = (), best: int = 10,
    executor: Executor | None = None, progress: bool | None = None, **letters,
) -> Search:  # fmt: skip
    """Every strategy that can run, priced: the best, the front, and why the others are out.

    `knowns` are rows (a model, a device) and formulas that replace the sheet's; `letters` what is known besides, with
    at least `devices` and `global_batch`; sequences are the model's longest unless `seq` is given.  A list of values, of
    a letter or a word, is searched; `choices` takes such lists too.  What is searched where nothing is said, what is
    minimized against what (step time against memory), and which rules and limits bind, the sheet brings as its `space`
    (`scalebook.search.space.Space`); that of training_step is `TRAINING` there, and that of Calculon
    `scalebook.calculon.Strategies`.  `subject_to` adds limits ("mfu >= 0.4", "tp <= 8"); `lift` leaves out rules and
    limits by name.  Letters and words that say nothing (an overlap of tensor parallelism where tp=1) keep their first
    value, so that no strategy counts twice.  Of equal strategies the first in the order of the choices is the better.

    `executor` is any of concurrent.futures' kind: the result is the same.  Interrupted, the search gives the best so
    far.  `progress` shows a bar; by default in a notebook or a terminal.  Raises LookupError for names that there are
    not, TypeError for what is lacking, ValueError if no strategy can run.
    """
    problem = _problem(sheet, knowns, minimize, against, subject_to, dict(choices or {}), lift, best, letters)
    start = time.perf_counter()
    all_layouts, combinations = layouts(problem), list(enumerate(word_combinations(problem)))
    tasks = list(_tasks(problem, all_layouts, combinations))
    priced, is_whole = EMPTY, True
    bar = _bar(len(tasks), progress)
    try:
        for part in _run(problem, tasks, executor):
            priced = joined(priced, part, best)
            bar.set_postfix_str(f"{priced.count:,} strategies", refresh=False)
            bar.update()
    except KeyboardInterrupt:
        is_whole = False
    finally:
        bar.close()
    if is_whole and not len(priced.best):
        raise ValueError(f"no strategy can run; {_nothing(problem, all_layouts, priced.rejected)}")
    return Search(problem, all_layouts, [x for _, x in combinations], priced, time.perf_counter() - start, is_whole)


RISING = ("mfu", "hfu", "train_rate", "sequence_rate", "useful_share")


def _nothing(problem, all_layouts, rejected):
    """Why there is no strategy."""
    if most := rejected.most_common(3):
        return "what leaves out most: " + ", ".join(f"{n} ({x:,})" for n, x in most)
    if len(all_layouts):
        asked = {n: (x,) for n, x in problem.fixed.items() if n != "devices"} | {n: problem.letters[n] for n in problem.in_rows}
        said = ", ".join(f"{n}={_listed(x)}" for n, x in asked.items())
        return f"no layout of the {problem.values['devices']:g} devices goes with {said}"
    ways = [n for n in LAYOUT if n != "ep" and (n == "dp" or n in problem.letters)]
    own = [problem.letters.get(n, (1.0,)) for n in ways]
    products = {math.prod(x) for x in itertools.product(*own)}
    devices = problem.values["devices"]
    if "dp" not in problem.letters:  # any dp would do
        products = {x * n for x in products for n in (devices // x, devices // x + 1) if n}
    near = sorted(sorted(products, key=lambda x: abs(x - devices))[:2])
    said = ", ".join(f"{n}={_listed(x)}" for n, x in zip(ways, own, strict=True) if n in problem.letters)
    return f"no {' · '.join(ways)} is {devices:g} with {said}: devices={_listed(near)} would do"


def _listed(values):
    return either([f"{x:g}" for x in values[:8]] + ["..."] * (len(values) > 8))


def _problem(sheet, knowns, minimize, against, subject_to, choices, lift, best, letters):
    space = getattr(sheet, "space", TRAINING)
    minimize, against = minimize or space.axes[0], against or space.axes[1]
    rows = [x for x in knowns if isinstance(x, Mapping)]
    several, fixed = {}, {}
    if best < 1:
        raise ValueError(f"best={best} keeps no strategy: best=1 is the least")
    if minimize in RISING:
        raise ValueError(f"a search looks for the least, and more {minimize} is better: minimize step_time instead")
    for name, x in {**letters, **choices}.items():
        many = isinstance(x, (list, tuple, set, range)) or np.ndim(x) == 1
        if name in space.words:
            several[name] = tuple(sorted(dict.fromkeys(x) if many else (x,), key=_is_later))
        else:
            NOTATION[name]
            if many:
                several[name] = tuple(dict.fromkeys(float(quantity(name, v)) for v in x))
                if name == "chunks":  # the fewest first: one stage has no more than one
                    several[name] = tuple(sorted(several[name]))
            elif name in LAYOUT:
                several[name] = (float(quantity(name, x)),)
            else:
                fixed[name] = x
        if not several.get(name, True):
            raise ValueError(f"{name} has no values to search: give at least one")
    if "offload" in several:
        raise TypeError("offload follows from weight_offload, activation_offload and optimizer_offload: give these")
    if "microbatches" in {*several, *fixed}:
        raise TypeError("microbatches follow from global_batch, dp and batch: give these")
    if "devices" in several:
        raise TypeError("a search is of one number of devices: search each and compare")
    cells = gather(tuple(rows), fixed)
    values = {n: c.value for n, c in cells.items() if isinstance(c.value, Real)}
    if "seq" not in values and "seq" not in several and "max_context" in values:
        fixed["seq"] = values["seq"] = values["max_context"]  # as training_step takes it
    for name in ("devices", "global_batch", "seq"):
        if name not in values and name not in several:
            raise TypeError(f"a search needs {name}: give {name}=...")
    values = {**space.letters, **values}
    usual = space.usual(values)
    for name, x in usual.items():
        if name not in several and name not in fixed and not any(name in row for row in rows):
            several[name] = x if name in space.words else tuple(map(float, x))
    words = {n: several[n] for n in space.words if n in several}
    searched = {n: several[n] for n in (*LAYOUT, *several) if n in several and n not in space.words}
    subject_to, lift = ([x] if isinstance(x, str) else x for x in (subject_to, lift))
    limits = [_limit(x) for x in (*space.limits, *subject_to)]
    for name, own in words.items():
        for word in own:
            if word not in space.words[name]:
                raise ValueError(f"{name} is {either(map(repr, space.words[name]))}, not {word!r}")
    names = [x.name for x in space.rules] + [x[3] for x in limits]
    for name in lift:
        if name not in names:
            raise LookupError(f"no rule or limit is called {name!r}; {nearest(name, names)}")
    fixed = {n: float(quantity(n, x)) for n, x in fixed.items()}
    for name in COUNTS:
        for x in (*searched.get(name, ()), *([fixed[name]] if name in fixed else [])):
            if said := not_whole(name, x):
                raise ValueError(said)
    axes = tuple(NOTATION[x].name for x in (minimize, against))
    limits = tuple(x for x in limits if x[3] not in set(lift))
    return Problem(sheet, knowns, fixed, values, words, searched, axes, limits, frozenset(lift), best)


def _is_later(word) -> bool:
    """Not first: where one stage makes all schedules 1F1B, or one shard leaves nothing to gather, it is the leanest."""
    return word in ("interleaved", "gpipe", "zb_h1", "zb_h2", "zb_v", "dualpipe", "zero3", "hybrid")


def _limit(text):
    """A limit of its text, such as "memory <= 70 GB"."""
    parts = re.fullmatch(r"\s*(\w+)\s*(<=|>=)\s*(.+?)\s*", text)
    if not parts:
        raise ValueError(f"a limit reads 'memory <= 70 GB' or 'mfu >= 0.4', not {text!r}")
    letter, relation, bound = parts.groups()
    name = f"{letter} {relation} {bound}"
    NOTATION[letter]
    if bound in NOTATION:
        return letter, relation, bound, name
    try:
        bound = float(bound)
    except ValueError:
        bound = quantity(letter, bound)
    return letter, relation, bound, name


def _tasks(problem, all_layouts, combinations):
    """Parts of the space: combinations of words whose blocks are the same, with a number of layouts."""
    groups = {}
    for place, words in combinations:
        block = tuple(x for n, x in words.items() if n not in problem.space.apart)
        groups.setdefault(block, []).append((place, words))
    per_layout = math.prod(len(problem.letters[x]) for x in (*problem.in_rows, *problem.on_axes))
    for group in groups.values():
        step = max(1, PART // (per_layout * len(group)))
        for start in range(0, len(all_layouts), step):
            yield group, all_layouts[start : start + step], start


def _run(problem, tasks, executor):
    if executor is None:
        for task in tasks:
            yield price(problem, *task)
        return
    futures = [executor.submit(price, problem, *task) for task in tasks]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _bar(total, progress):
    from tqdm.auto import tqdm

    return tqdm(total=total, desc="search", unit="part", disable=None if progress is None else not progress)
