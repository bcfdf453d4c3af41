"""The joined result of one search on several devices, or at several numbers of devices."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from scalebook.language.notation import either

from .results import Best, Found, Search, order_of

__all__ = ["Devices", "why_none"]


def why_none(search: Search, is_brief: bool = False) -> str:
    """Say why the search found no strategy, by the three rules that leave out most; in brief without numbers."""
    problem, whole = search.problem, search.layouts
    if most := list(search.rejected.items())[:3]:
        return "what leaves out most: " + ", ".join(n if is_brief else f"{n} ({x:,})" for n, x in most)
    space = problem.space
    if not space.layout:
        return "none has a value"
    if len(whole):
        told = {n: (x,) for n, x in problem.fixed.items() if n != "devices"}
        told |= {n: problem.letters[n] for n in problem.in_rows}
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


class Devices(Search):
    """The joined result of one search on several devices; `searches` has one per device.  Each strategy has a `device`.

    `without` says why devices have no strategy. `lacking` has the errors of devices whose rows lack a cell.
    """

    def __init__(self, searches: list[Search], lacking: Mapping[str, TypeError], left: list[str]):
        self.searches, self.problem, self.device = searches, searches[0].problem, ""
        without = {n: str(x).partition(": give")[0].removeprefix("this search ") for n, x in lacking.items()}
        some = {x.device for x in searches if x.best} - {""}  # at another size
        nothing = [(x, f"{x.problem.values.get('devices', 1):g}") for x in searches if not x.best and not x.note]
        named = {f"{x.device} ({n} devices)" if x.device in some else x.device or n: why_none(x) for x, n in nothing}
        self.without = without | named
        self.count, self.seconds = sum(x.count for x in searches), sum(x.seconds for x in searches)
        notes = [f"{x.device}: {x.note}" for x in searches if x.note]
        if brief := [f"{n} ({why})" for n, why in self.without.items()]:
            named = {*lacking, *(x.device or n for x, n in nothing)}  # a device at several sizes counts once
            many = [f"{len(named)} {'devices' if searches[0].device else 'sizes'}, named below"]
            notes.append(f"without {'; '.join(brief if len(brief) <= 3 else many)}")
        notes += [f"not searched: {', '.join(left)}"] if left else []
        self.note, self.is_whole = "; ".join(notes), not left and all(x.is_whole for x in searches)
        rejected = sum((Counter(x.rejected) for x in searches), Counter())
        self.rejected = dict(sorted(rejected.items(), key=lambda x: (-x[1], x[0])))
        best = sorted((y for x in searches for y in x.best), key=order_of(self.problem))
        fronts = [(x, row) for x in searches for row in x.front]
        first, second = np.array([row[:2] for _, row in fronts]).reshape(-1, 2).T
        order = np.lexsort((second, first))  # sorted by the first objective, so each must improve the second
        least = np.minimum.accumulate([np.inf, *second[order][:-1]])
        self.pareto = [Found(*fronts[i]) for i in order[second[order] < least][::-1]] if fronts else []
        best = self.pareto[::-1] if self.problem.space.is_front else best
        self.best = Best(best[: self.problem.best], self.note)

    @property
    def remark(self):
        said = list(filter(None, (x.remark for x in self.searches)))
        return "; ".join(said) if len(said) <= 3 else ""  # of more, each stands with its device

    @property
    def _listed(self):
        return [x.best[0] for x in self.searches if x.best] + self.best

    def _tables(self):
        yield from super()._tables()
        axes, key = dict.fromkeys(self.problem.axes), order_of(self.problem)
        found = sorted((x for x in self.searches if x.best), key=lambda x: key(x.best[0]))
        named, sizes = any(x.device for x in self.searches), "devices" in self._several
        heads = ["device"] * named + ["devices"] * sizes
        rows = [
            [x.device] * named
            + [f"{x.problem.values.get('devices', 1):g}"] * sizes
            + [*x.best[0]._said(axes), x.remark]
            for x in found
        ]
        rows += [[n, *[""] * (len(heads) - 1 + len(axes)), why] for n, why in self.without.items()]
        yield [*heads, *axes, "without"], rows, "the best of each device"

    @property
    def _several(self):
        sizes = {x.problem.values.get("devices") for x in self.searches}
        several = (n for x in self.searches for n in x._several)
        return dict.fromkeys([*(["devices"] if len(sizes) > 1 else []), *several])
