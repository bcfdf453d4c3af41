"""Columns of inputs as codes, so that a value is computed once per combination of the inputs that it depends on.

>>> columns = Columns({"tp": np.array([1, 1, 2, 2]), "pp": np.array([1, 2, 1, 1])}, 4)
>>> first, inverse = columns.key(0b11)
>>> first.tolist(), inverse.tolist()
([0, 1, 2], [0, 1, 2, 2])
"""

from collections.abc import Mapping

import numpy as np

__all__ = ["Columns", "Partitions", "firsts", "numbered"]


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
        self.size, self.values = size, {}
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
            self._keys[bits] = firsts(inverse, count), inverse
        return self._keys[bits]

    def places(self, bits: int, more: int) -> np.ndarray:
        """Return, for each combination of the inputs in `more`, the index of the combination of `bits` in it."""
        if (bits, more) not in self._maps:
            self._maps[bits, more] = self.key(bits)[1][self.key(more)[0]]
        return self._maps[bits, more]


class Partitions:
    """Groups of a sheet's cases that know the same numbers.  A partition is known by its number.

    A value is computed once for each group.  If more than half of the cases have a group of their own, all have.

    >>> parts = Partitions()
    >>> devices, programs = parts.of(np.repeat([5, 7], 6)), parts.of(np.tile([1, 1, 2], 4))
    >>> parts.places(devices, parts.joint(devices, programs)).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self):
        self.known: list[tuple[np.ndarray, np.ndarray]] = []  # the first case of each group, and each case's group
        self._numbers: dict[bytes, int] = {}
        self._joint: dict[tuple[int, int], int] = {}

    def of(self, codes: np.ndarray) -> int:
        """Return the partition into cases with the same code."""
        _, first, group = np.unique(codes, return_index=True, return_inverse=True)
        if 2 * len(first) > len(codes):
            first = group = np.arange(len(codes))
        number = self._numbers.setdefault(first[group].tobytes(), len(self.known))
        if number == len(self.known):
            self.known.append((first, group))
        return number

    def joint(self, one: int, other: int) -> int:
        """Return the partition into cases that are in the same group of both."""
        if one == other:
            return one
        key = min(one, other), max(one, other)
        if key not in self._joint:
            groups = [self.known[x][1] for x in key]
            self._joint[key] = self.of(groups[0] * len(groups[1]) + groups[1])
        return self._joint[key]

    def places(self, one: int, finer: int | None = None) -> np.ndarray:
        """Return the group in `one` of each group of a finer partition, or of each case."""
        group = self.known[one][1]
        return group if finer is None else group[self.known[finer][0]]
