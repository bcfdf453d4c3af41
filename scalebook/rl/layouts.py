"""The layouts of an update of reinforcement learning that a search compares, on one device or on several."""

import itertools
from collections.abc import Mapping
from math import prod

from scalebook.language import Row
from scalebook.search.space import NothingFits, Space
from scalebook.training.space import TRAINING

from .rollouts import update_sheet

__all__: list[str] = []

HELD = tuple(x for limit in TRAINING.limits for x in limit.split(" <= "))  # what learners hold, and of what
_LIMIT = 60  # layouts of a search


def posed(update, cases: list[tuple], letters: Mapping, *asked) -> tuple["_Layouts", dict]:
    """Return the layouts of a search on each device: all combinations of the values in the lists that can run.

    Raises ValueError if none can.
    """
    letters = dict(letters)
    kept = {n: letters.pop(n) for n in ("memory_margin",) if n in letters}  # of the search itself
    lists = {n: list(x) for n, x in letters.items() if isinstance(x, list | tuple)}
    if (number := len(cases) * prod(map(len, lists.values()))) > _LIMIT:
        each = "layouts" if len(cases) == 1 else f"layouts of all its {len(cases)} devices"
        raise ValueError(f"a search of rl_step takes at most {_LIMIT} {each}, and these lists have {number:,}")
    chosen = [dict(zip(lists, x, strict=True)) for x in itertools.product(*lists.values())]
    tried = [(rows, *_tried(update, rows, letters, chosen)) for rows in cases]
    if not any(found for _, found, _ in tried):
        why = tried[-1][2]
        why = f"no layout of the search runs: {why}" if why else "there is nothing to search: give lists"
        raise NothingFits(why)
    return _Layouts(tried), kept


def _tried(update, knowns: tuple, letters: Mapping, chosen: list[dict]) -> tuple[dict[str, Row], str]:
    """Return the updates of those layouts that can run, by name, and why the last of the others cannot."""
    found, why = {}, ""
    for own in chosen:
        try:
            found[", ".join(f"{n} {_said(x)}" for n, x in own.items())] = update(*knowns, **{**letters, **own})
        except ValueError as error:
            why = str(error)
    return found, why


def _said(x) -> str:
    return " ".join(f"{n}={y}" for n, y in x.items()) if isinstance(x, dict) else str(x)


class _Layouts:
    """The layouts of one device of a search. `tried` has the rows and updates of each, and why it has no more."""

    name = "rl_step"
    finds = ("update_time",)

    def __init__(self, tried: list[tuple[tuple, Mapping[str, Row], str]], place: int = 0):
        self.tried = tried
        _, self.found, self.why = tried[place]

    def sized(self, rows: tuple, letters: Mapping) -> "_Layouts":
        """Return the layouts of the device whose rows these are."""
        return _Layouts(self.tried, next(i for i, x in enumerate(self.tried) if x[0] is rows))

    @property
    def space(self) -> Space:
        if not self.found:
            raise TypeError(self.why)
        own, layout = dict(limits=TRAINING.limits, margins=TRAINING.margins), {"layout": tuple(self.found)}
        return Space(axes=("update_time", "update_cost"), words=layout, usual=lambda known: layout, **own)

    def sheet(self, knowns, letters):
        row = self.found[letters.get("layout", next(iter(self.found)))]
        sheet = update_sheet("staleness" in row)
        return sheet, (), {n: row[n] for n in (*sheet.inputs, "longest_response", "in_flight", *HELD) if n in row}

    def unmet(self, cases: list[tuple], letters: Mapping, rejected: set[str]) -> str:
        """Return what the learners hold in the layout that holds least, and the change that would let them fit."""
        if not rejected <= {*TRAINING.limits}:
            return ""
        every = [x for _, found, _ in self.tried for x in found.items()]
        layout, row = min(every, key=lambda x: x[1].memory / x[1].hbm_capacity)
        return f"no layout fits; {layout}{layout and ': '}{row.answer.lines()[0][1]}"

    def __call__(self, *knowns, **letters) -> Row:
        return self.found[letters["layout"]]
