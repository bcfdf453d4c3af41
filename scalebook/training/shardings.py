"""Shardings: how data-parallel devices share a model's state, and what they exchange for it. One object each.

>>> SHARDINGS["zero2"].parts("gradient"), SHARDINGS["zero2"].parts("weight"), SHARDINGS["zero3"].is_gathered
(('all',), ('one',), True)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sympy import Expr, S

from scalebook.language import symbol
from scalebook.language.stanzas import tables_of
from scalebook.language.words import Named

__all__ = ["SHARDINGS", "Exchange", "Sharding"]

EACH = symbol("microbatches")  # times per step: once per micro-batch


class Exchange(NamedTuple):
    """A data-parallel collective: it sums gradients (`dp_reduce`) or gathers weights (`dp_gather`)."""

    letter: str
    kind: str
    among: str  # "all" that hold the same weights, a "group" of `shard_group` of them, or "groups": one of each
    times: Expr = S.One  # per step
    by_block: bool = False

    @property
    def bits(self) -> str:
        """The name of the quantity that says how many bits per parameter the exchange moves."""
        return {"dp_reduce": "reduce_bits", "dp_gather": "weight_bits"}[self.letter]

    @property
    def is_each(self) -> bool:
        """True if every micro-batch repeats this exchange."""
        return EACH in self.times.free_symbols


@dataclass(frozen=True, eq=False, repr=False)
class Sharding(Named):
    """A way for data-parallel devices to divide state and exchange it, as a stanza of `shardings.toml` describes."""

    name: str
    source: str
    keeps: Mapping[str, tuple[str, ...]]
    exchanges: tuple[Exchange, ...]

    def parts(self, what: str) -> tuple[str, ...]:
        """Return which devices share each copy of a kind of state: "all", "group" or "one"."""
        return self.keeps.get(what, ("one",))

    @property
    def is_each(self) -> bool:
        """True if every micro-batch exchanges something."""
        return any(x.is_each for x in self.exchanges)

    @property
    def gathers(self) -> bool:
        """True if devices gather weights from each other."""
        return any(x.letter == "dp_gather" for x in self.exchanges)

    @property
    def is_gathered(self) -> bool:
        """True if each block's weights are gathered just before the block runs."""
        return any(x.letter == "dp_gather" and x.is_each for x in self.exchanges)

    @property
    def has_groups(self) -> bool:
        """True if the sharding depends on the group size `shard_group`."""
        return any(x.among != "all" for x in self.exchanges)


for _name, _said in tables_of(__package__, "shardings.toml").items():
    _kept = {what: tuple(among) for what, among in _said["keeps"].items()}
    _sent = [x | {"times": x["times"] * EACH} if "times" in x else x for x in _said["exchanges"]]
    Sharding(_name, _said["source"], _kept, tuple(Exchange(**x) for x in _sent))
SHARDINGS = Sharding.known  # by name, the default first
