"""Make a plain sheet searchable: its letters are the choices.

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

# Memory that a device holds: the first of these in the sheet.
_HELD = ("memory", "device_memory", "train_memory", "decode_memory")


class PlainSheet:
    """A sheet whose letters can be searched.  `known` names the letters that the caller gives."""

    def __init__(self, sheet: Sheet, known: Iterable[str]):
        self.name, self._sheet, self._known = sheet.name, sheet, frozenset(known)

    def __reduce__(self):
        return _again, (self.name, tuple(self._sheet.formulas.values()), self._known)

    @cached_property
    def space(self) -> Space:
        """A space without words or a layout.  If memory and capacity are both known, memory must fit the capacity."""
        held = [x for x in _HELD if x in self._sheet.formulas][:1] if "hbm_capacity" in self._known else []
        return Space(limits=tuple(f"{x} <= hbm_capacity" for x in held), reason=self._reason, is_signed=True)

    def sheet(self, knowns: tuple, letters: Mapping) -> tuple[Sheet, tuple, dict]:
        """Return the sheet, the rows and the letters unchanged.

        Raises TypeError for a letter that the sheet does not use.
        """
        used = {*self._sheet.inputs, *self._sheet.formulas}
        for name in letters:
            if name not in used:
                raise TypeError(f"{self.name} does not use {name}; {nearest(name, used)}")
        return self._sheet, knowns, dict(letters)

    def __call__(self, *knowns, **letters) -> Row:
        return self._sheet(*knowns, **letters)

    def _reason(self, values, sheet, lifted):
        """Name the first letter that has no value at these values, and say why; None if all have one."""
        if sheet is not None:
            used = {*self._sheet.inputs, *self._sheet.formulas}
            missing = self._sheet(**{n: x for n, x in values.items() if n in used}).missing
            return next((f"{n} {missing[n]}" for n in sheet.formulas if n in missing), None)
        return None


def _again(name, formulas, known):
    return PlainSheet(Sheet(name, *formulas), known)


def searchable(thing, knowns: tuple, letters: Iterable[str]) -> Searchable:
    """Return `thing` if it is Searchable, and wrap a sheet or a formula so that it is.

    Formulas among `knowns` replace the sheet's own.

    Raises TypeError for anything else, and says what a Searchable must have.
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
