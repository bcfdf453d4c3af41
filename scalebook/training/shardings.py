"""Shardings: what devices of other tokens share of a model's state, and what they exchange for it, an object each.

>>> SHARDINGS["zero2"].parts("gradient"), SHARDINGS["zero2"].parts("weight")
(('all',), ('one',))
>>> SHARDINGS["zero3"].is_gathered, SHARDINGS["zero1"].is_each
(True, False)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sympy import Expr, S

from scalebook.language import symbol

__all__ = ["SHARDINGS", "Exchange", "Sharding"]

SHARDINGS: dict[str, "Sharding"] = {}  # by name, the usual first

EACH = symbol("microbatches")  # times a step


class Exchange(NamedTuple):
    """A collective of data parallelism: gradients summed (`dp_reduce`) or weights gathered (`dp_gather`).

    Among "all" devices that hold the same weights, within a "group" of `shard_group` of them, or over these "groups",
    each with its share.  By block, it moves one block after the other; else all that a device holds at once.
    """

    letter: str
    kind: str
    among: str
    times: Expr = S.One  # a step
    by_block: bool = False

    @property
    def bits(self) -> str:
        """The letter of the width of what moves."""
        return {"dp_reduce": "reduce_bits", "dp_gather": "weight_bits"}[self.letter]

    @property
    def is_each(self) -> bool:
        """Whether every micro-batch does it again."""
        return EACH in self.times.free_symbols


@dataclass(frozen=True, eq=False, repr=False)
class Sharding:
    """What is dealt out to whom, and what is exchanged how often.  Entered in `SHARDINGS` as it is made.

    `keeps` leads from "weight", "gradient" and "optimizer" to those that one copy is dealt out to: to "all" devices of
    other tokens, or to a "group" of them; what it does not name every device has, as dealt out to "one".
    """

    name: str
    source: str
    keeps: Mapping[str, tuple[str, ...]]
    exchanges: tuple[Exchange, ...]

    def __post_init__(self):
        if self.name in SHARDINGS:
            raise ValueError(f"a sharding is called {self.name!r} already")
        SHARDINGS[self.name] = self

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return SHARDINGS.__getitem__, (self.name,)

    def parts(self, what: str) -> tuple[str, ...]:
        """To whom each copy of weights, gradients or optimizer state is dealt out;
        of several, a device has its part of each.
        """
        return self.keeps.get(what, ("one",))

    @property
    def is_each(self) -> bool:
        """Whether every micro-batch exchanges something."""
        return any(x.is_each for x in self.exchanges)

    @property
    def gathers(self) -> bool:
        """Whether weights are gathered at all."""
        return any(x.letter == "dp_gather" for x in self.exchanges)

    @property
    def is_gathered(self) -> bool:
        """Whether blocks are made whole just before they are used."""
        return any(x.letter == "dp_gather" and x.is_each for x in self.exchanges)

    @property
    def has_groups(self) -> bool:
        """Whether `shard_group` says something."""
        return any(x.among != "all" for x in self.exchanges)


_REDUCE, _GATHER = ("dp_reduce", "reduce_scatter"), ("dp_gather", "all_gather")
_ALL = ("all",)
_STATE = ("weight", "gradient", "optimizer")

Sharding("zero1", "zero2020 §5.1", dict(optimizer=_ALL), (Exchange(*_REDUCE, "all"), Exchange(*_GATHER, "all")))
Sharding("replicated", "narayanan2021 §2.2", {}, (Exchange("dp_reduce", "all_reduce", "all"),))
Sharding(
    "zero2", "zero2020 §5.2", dict(gradient=_ALL, optimizer=_ALL),
    (Exchange(*_REDUCE, "all", EACH), Exchange(*_GATHER, "all")),
)  # fmt: skip
Sharding(
    "zero3", "zero2020 §5.3", dict.fromkeys(_STATE, _ALL),
    (Exchange(*_REDUCE, "all", EACH, by_block=True), Exchange(*_GATHER, "all", 2 * EACH, by_block=True)),
)  # fmt: skip
Sharding(
    "hybrid", "zhao2023 §3.2", dict.fromkeys(_STATE, ("group",)),
    (
        Exchange(*_REDUCE, "group", EACH, by_block=True),
        Exchange(*_GATHER, "group", 2 * EACH, by_block=True),
        Exchange("dp_reduce", "all_reduce", "groups", by_block=True),
    ),
)  # fmt: skip
# ZeRO++: all of ZeRO 3, and a second copy of the weights within a group, from which the backward pass gathers.
Sharding(
    "zero3_hpz", "wang2023 §3.2", dict.fromkeys(_STATE, _ALL) | dict(weight=("all", "group")),
    (
        Exchange(*_REDUCE, "all", EACH, by_block=True),
        Exchange(*_GATHER, "all", EACH, by_block=True),
        Exchange(*_GATHER, "group", EACH, by_block=True),
    ),
)  # fmt: skip
