"""Number the distinct combinations of letters among rows of strategies.

A kernel's time depends on tp, cp and batch; a step's time depends on everything.  Among a million strategies the
kernel's time has only a few tens of distinct values.  So a value is stored once per combination of its letters.

>>> columns = Columns({"tp": np.array([1.0, 1.0, 2.0]), "dp": np.array([4.0, 2.0, 2.0])}, 3)
>>> columns.values["tp"], columns.key(0b01)
(array([1., 2.]), (array([0, 2]), array([0, 0, 1])))
"""

from collections.abc import Mapping

import numpy as np

__all__ = ["Columns", "firsts", "numbered"]


def numbered(mixed: np.ndarray, span: int) -> tuple[np.ndarray, int]:
    """Renumber integers below `span` as 0, 1, 2, ... in increasing order.

    Return the new numbers and how many there are.
    """
    if span > 16 * len(mixed) + 1024:
        values, inverse = np.unique(mixed, return_inverse=True)
        return inverse, len(values)
    there = np.zeros(span, bool)
    there[mixed] = True
    return (np.cumsum(there) - 1)[mixed], int(np.count_nonzero(there))


def firsts(inverse: np.ndarray, count: int) -> np.ndarray:
    """Return, for each number below `count`, the place where it first occurs."""
    first = np.empty(count, np.intp)
    first[inverse[::-1]] = np.arange(len(inverse) - 1, -1, -1)
    return first


class Columns:
    """Rows of letters.  `values` are the distinct values of each letter, in increasing order.

    Sets of letters are bit masks, in the order of `columns`.  There may be rows without any column.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], size: int):
        self.size, self.values = size, {}
        self._codes, self._keys, self._maps = [], {}, {}
        for name, column in columns.items():
            self.values[name], codes = np.unique(column, return_inverse=True)
            self._codes.append((codes, len(self.values[name])))

    def key(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return each combination's first row, and each row's combination, for the letters in `bits`."""
        if bits not in self._keys:
            mixed, span = np.zeros(self.size, np.int64), 1
            for place, (codes, count) in enumerate(self._codes):
                if bits >> place & 1:
                    if span * count > 2**62:
                        mixed, span = numbered(mixed, span)
                    mixed, span = mixed * count + codes, span * count
            inverse, count = numbered(mixed, span)
            self._keys[bits] = firsts(inverse, count), inverse
        return self._keys[bits]

    def places(self, bits: int, more: int) -> np.ndarray:
        """Map each combination of the letters in `more` to its combination of the letters in `bits`, a subset."""
        if (bits, more) not in self._maps:
            self._maps[bits, more] = self.key(bits)[1][self.key(more)[0]]
        return self._maps[bits, more]
