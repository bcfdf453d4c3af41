"""Rows of inputs, stored so that each distinct combination of some inputs is found once."""

from collections.abc import Mapping

import numpy as np

__all__ = ["Columns", "firsts", "numbered"]


def numbered(mixed: np.ndarray, span: int) -> tuple[np.ndarray, int]:
    """Replace integers below `span` by their ranks 0, 1, 2, ...; return the ranks and how many integers differ."""
    if span > 16 * len(mixed) + 1024:
        values, inverse = np.unique(mixed, return_inverse=True)
        return inverse, len(values)
    there = np.zeros(span, bool)
    there[mixed] = True
    return (np.cumsum(there) - 1)[mixed], int(np.count_nonzero(there))


def firsts(inverse: np.ndarray, count: int) -> np.ndarray:
    """Return, for each number from 0 to `count` - 1, the index of its first occurrence in `inverse`."""
    first = np.empty(count, np.intp)
    first[inverse[::-1]] = np.arange(len(inverse) - 1, -1, -1)
    return first


class Columns:
    """Rows of inputs, stored as codes of each input's sorted distinct `values`.  Bit masks select inputs, in order."""

    def __init__(self, columns: Mapping[str, np.ndarray], size: int):
        self.size, self.values, self._every_row = size, {}, (np.arange(size),) * 2
        self._codes, self._keys, self._maps = [], {}, {}
        for name, column in columns.items():
            self.values[name], codes = np.unique(column, return_inverse=True)
            self._codes.append((codes, len(self.values[name])))

    def key(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return each distinct combination's first row, and each row's combination, for the inputs in `bits`."""
        if bits not in self._keys:
            mixed, span = np.zeros(self.size, np.int64), 1
            for place, (codes, count) in enumerate(self._codes):
                if bits >> place & 1:
                    if span * count > 2**62:
                        mixed, span = numbered(mixed, span)
                    mixed, span = mixed * count + codes, span * count
            inverse, count = numbered(mixed, span)
            is_whole = 4 * count > 3 * self.size and bits & bits - 1  # so few are equal that each row keeps its place
            self._keys[bits] = self._every_row if is_whole else (firsts(inverse, count), inverse)
        return self._keys[bits]

    def places(self, bits: int, more: int) -> np.ndarray:
        """Return, for each combination of the inputs in `more`, the index of the combination of `bits` in it."""
        if (bits, more) not in self._maps:
            self._maps[bits, more] = self.key(bits)[1][self.key(more)[0]]
        return self._maps[bits, more]
