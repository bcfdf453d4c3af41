"""Sheets of the planner as short text: the numbers of their formulas, with what several sheets share written once."""

from collections.abc import Iterable, Mapping

__all__ = ["nested", "parted", "runs"]


def runs(numbers: Iterable[int]) -> str:
    """Return numbers as text: each begins at its distance from the last, and "-2" says that the next two follow it.

    >>> runs([3, 1, 2, 7])
    '1-2 4'
    """
    found: list[list[int]] = []
    for n in sorted(numbers):
        if found and n == found[-1][1] + 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    lasts = [0, *(b for _, b in found)]
    return " ".join(f"{a - last}-{b - a}".removesuffix("-0") for last, (a, b) in zip(lasts, found, strict=False))


def parted(sheets: Mapping[str, set[int]], of) -> dict[str, str]:
    """Return sheets as texts, with formulas common to a group only under the group's name; `of` maps a sheet to it."""
    groups: dict[str, set[int]] = {}
    for key, numbers in sheets.items():
        groups[of(key)] = groups.get(of(key), numbers) & numbers
    return {x: runs(y) for x, y in groups.items()} | {x: runs(y - groups[of(x)]) for x, y in sheets.items()}


def nested(flat: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return texts by what stands before the first "|" of their keys, and by the rest of these."""
    found: dict[str, dict[str, str]] = {}
    for key, text in flat.items():
        kind, _, rest = key.partition("|")
        found.setdefault(kind, {})[rest] = text
    return found
