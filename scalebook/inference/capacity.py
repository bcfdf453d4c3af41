"""Capacity: the most requests per second that a model on devices serves within latency targets.

>>> from scalebook.inference.serving import serve
>>> from scalebook.tables import accelerators, models
>>> most = capacity(serve, models.llama3_70b, accelerators.h200.at("fp8"), tp=8, prompt=1000, output=300, tpot="20 ms")
>>> most.binds, most.users > 50, most.row.tpot <= 0.02
('tpot', True, True)
"""

from dataclasses import dataclass

import numpy as np

from scalebook.inference.rules import with_copies
from scalebook.language import Row, show
from scalebook.language.arguments import checked
from scalebook.language.row import one_number
from scalebook.search.arguments import at_most
from scalebook.search.problem import Limit

__all__ = ["LONG", "Capacity", "capacity", "valued"]

LONG = 10**6  # requests of each user, so many that the first burst no longer counts
_MOST = 10**6  # largest number of users tried


@dataclass(frozen=True)
class Capacity:
    """The result of `capacity`: the most requests per second, their `users`, what `binds`, and the service's `row`."""

    rate: float
    users: int
    binds: str
    row: Row

    answer = property(lambda self: self.row.answer)

    def __repr__(self):
        return f"{show(self.rate, 'request/s')} by {self.users:,} users, bound by {self.binds}"

    def to_dict(self) -> dict:
        """Return the service's row as data, as `row.to_dict()` does."""
        return self.row.to_dict()


def valued(row: Row, letter: str):
    """Return a quantity of a service's row. If it has no value, raise ValueError with the row's own reason."""
    try:
        return row[letter]
    except KeyError as error:
        raise ValueError(error.args[0]) from None


@checked
def capacity(serve, *knowns, ttft=None, tpot=None, **letters) -> Capacity:
    """Find the most users that a service can have within its targets `ttft` and `tpot`; return a `Capacity`.

    If no target is given, memory is the limit. Raises ValueError if not even one user meets a target, with the nearest
    value that can be met, and whatever `serve` raises.
    """
    targets = {letter: at_most(letter, x) for letter, x in (("ttft", ttft), ("tpot", tpot)) if x is not None}
    targets = {letter: one_number(letter, x) for letter, x in targets.items()}
    if found := next((x for x in ("users", "rate", "generations") if x in letters), None):
        what = "rate of users who never stop" if found == "generations" else found
        raise TypeError(f"capacity finds the {what}: leave {found} out, or ask serve what so many get")
    asked = {**with_copies(knowns, letters), "generations": LONG}
    fewest = 1
    if str(letters.get("overlap")) == "half_batches":  # each stage of each group needs a sequence for each half
        fewest = 2 * int(np.prod([np.max(asked.get(x, 1)) for x in ("pp", "attention_dp", "replicas")]))
    alone = serve(*knowns, **asked, users=fewest)
    if several := [n for n in (*letters, *alone) if np.ndim(alone.get(n, 0.0))]:
        raise TypeError(f"capacity is of one way to serve: give {several[0]} one value, and ask for each in turn")
    for letter, target in targets.items():
        if valued(alone, letter) > target:
            said, own = show(target, "s"), show(alone[letter], "s")
            has = "one alone has" if fewest == 1 else f"the fewest, {fewest}, have"
            raise ValueError(f"{letter}={said} is met by no user: {has} {own}, the nearest that can be")
    room = int(min(valued(alone, "max_users"), _MOST))

    def broken(users: int) -> str:
        row = serve(*knowns, **asked, users=users)
        return next((letter for letter, target in targets.items() if row[letter] > target), "")

    low, high, binds = fewest, room, "memory"
    if said := broken(high):
        binds = said
        while high - low > 1:
            middle = (low + high) // 2
            said = broken(middle)
            low, high, binds = (low, middle, said) if said else (middle, high, binds)
    else:
        low = high
    row = serve(*knowns, **asked, users=low)
    row.within = tuple(Limit(letter, "<=", target, letter) for letter, target in targets.items())
    return Capacity(float(np.asarray(valued(row, "request_rate"))), low, binds, row)
