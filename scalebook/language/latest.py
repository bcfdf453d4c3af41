"""Remember the latest results of calls with rows, which are told apart by identity.

>>> found, row = Latest(2), {"tp": 8}
>>> found.get(id(row), lambda: "made", row), found.get(id(row), lambda: "made anew", row)
('made', 'made')
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Latest"]


class Latest:
    """The results of the latest `most` keys.  A key has ids of rows, so the rows are kept as long as it is."""

    def __init__(self, most: int):
        self.most = most
        self.found: OrderedDict = OrderedDict()

    def get(self, key: Hashable, make: Callable, rows, lasts: Callable[[Any], bool] = lambda made: True):
        """Return the result of a key, made if it is new.  It is kept if it `lasts` and the key can be hashed."""
        try:
            made, _ = self.found.pop(key, (None, None))
        except TypeError:  # a list, an array or a mapping is part of the key
            return make()
        made = make() if made is None else made
        if lasts(made):
            self.found[key] = made, rows
        if len(self.found) > self.most:
            self.found.popitem(last=False)
        return made
