"""A plain sheet as a search takes it: its letters are its choices.

>>> from scalebook.inference.tokens import decoding
>>> from scalebook.tables import accelerators, models
>>> thing = searchable(decoding, (models.llama3_8b, accelerators.h100), {"batch": 1.0})
>>> thing.name, thing.space.limits
('decoding', ('decode_memory <= hbm_capacity',))
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from scalebook.language import Formula, Row, Sheet
from scalebook.language.notation import nearest

from .space import Searchable, Space

__all__ = ["PlainSheet", "searchable"]

_HELD = ("memory", "device_memory", "train_memory", "decode_memory")  # what a device holds: the first that a sheet has


class PlainSheet:
    """A sheet whose letters can be searched, some of them known by name."""

    def __init__(self, sheet: Sheet, known: Iterable[str]):
        self.name, self._sheet, self._known = sheet.name, sheet, frozenset(known)

    def __reduce__(self):
        return _again, (self.name, tuple(self._sheet.formulas.values()), self._known)

    @cached_property
    def space(self) -> Space:
        """No words and no layout; what a device holds fits in it, where both are known."""
        held = [x for x in _HELD if x in self._sheet.formulas][:1] if "hbm_capacity" in self._known else []
        return Space(limits=tuple(f"{x} <= hbm_capacity" for x in held), reason=self._reason, is_signed=True)

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """The sheet itself; raises TypeError for a letter that it does not use."""
        used = {*self._sheet.inputs, *self._sheet.formulas}
        for name in letters:
            if name not in used:
                raise TypeError(f"{self.name} does not use {name}; {nearest(name, used)}")
        return self._sheet, knowns, dict(letters)

    def __call__(self, *knowns, **letters) -> Row:
        return self._sheet(*knowns, **letters)

    def _reason(self, values, sheet, lifted):
        """Which letter that is asked for has no value there, and why."""
        if sheet is not None:
            used = {*self._sheet.inputs, *self._sheet.formulas}
            missing = self._sheet(**{n: x for n, x in values.items() if n in used}).missing
            return next((f"{n} {missing[n]}" for n in sheet.formulas if n in missing), None)
        return None


def _again(name, formulas, known):
    return PlainSheet(Sheet(name, *formulas), known)


def searchable(thing, knowns: tuple, letters: Iterable[str]) -> Searchable:
    """The thing, or a sheet or formula made searchable, with the formulas among what is known in the place of its own.

    Raises TypeError, saying what a searchable thing offers, for anything else.
    """
    swapped = tuple(x for x in knowns if isinstance(x, Formula))
    known = {n for row in knowns if isinstance(row, Mapping) for n in row} | set(letters)
    if isinstance(thing, Formula):
        thing = Sheet(thing.name, thing._fill(frozenset(known), swapped))
    if isinstance(thing, Sheet):
        return PlainSheet(thing.using(*swapped) if swapped else thing, known)
    if isinstance(thing, type) or not (isinstance(thing, Searchable) and callable(thing)):
        raise TypeError(
            "a search takes a sheet, a formula, or what has a name, a space and a sheet for what is known, "
            "as training_step"
            f" has (scalebook.search.Searchable), not {_brief(thing)}"
        )
    return thing


def _brief(thing) -> str:
    said = repr(thing).partition("\n")[0]
    return said if len(said) < 80 else f"{said[:77]}..."
