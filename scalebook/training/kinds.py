"""What calls of a training step share if they differ only in numbers, worked out at the first of them.

>>> from scalebook.tables import accelerators, models
>>> from scalebook.training import training_step
>>> rows = models.llama3_8b, accelerators.h100
>>> kind_of(training_step, rows, dict(tp=2, seq=8192)) is kind_of(training_step, rows, dict(tp=4, seq=4096))
True
"""

from collections.abc import Mapping
from typing import NamedTuple

from scalebook.language import Formula, Row, Sheet
from scalebook.language.building import uncollected
from scalebook.language.latest import Latest
from scalebook.language.row import Cell, joined, quantity, refuse_parts
from scalebook.training.frameworks import framework_of
from scalebook.training.rules import checked_values, refuse
from scalebook.training.strategy import WORDS

__all__: list[str] = []

OFFLOADS = ("weight_offload", "activation_offload", "optimizer_offload")
# A call's letters for products, and what a step calls them.
IN_TRAINING = {"matmul_efficiency": "training_efficiency", "matmul_bf16": "training_bf16"}
# Letters whose values, and not only their presence, decide which formulas a step has.
_DECIDING = frozenset({*WORDS, *OFFLOADS, "framework", "mtp_blocks", "experts", "chunks", "window_layers"})
_KINDS = Latest(256)


class Kind(NamedTuple):
    """What calls of `training_step` with the same rows, options and letters share."""

    ruled: Sheet  # whose conditions are checked
    sheet: Sheet  # with the call's own formulas
    cells: dict[str, Cell]  # of rows and defaults
    known: dict  # what rules read
    asked: dict[str, str]  # the letters that a call gives, and what the sheet calls them
    is_open: bool  # whether the call names no framework

    def evaluated(self, letters: Mapping) -> Row:
        """Return the step for a call's letters. Raises ValueError for a strategy that cannot run."""
        asked = {own: quantity(name, letters[name]) for name, own in self.asked.items()}
        for name, value in asked.items():
            refuse_parts(name, value)
        refuse(self.known | {n: x for n, x in asked.items() if n in self.known}, self.ruled)
        return self.sheet._evaluated(self.cells | {n: Cell(x) for n, x in asked.items()})


def kind_of(step, knowns: tuple, letters: Mapping) -> Kind:
    """Return what a call of `training_step` shares with calls that give other numbers for the same letters."""
    if not all(isinstance(x, Row | Formula) for x in knowns):  # a mapping may change
        return _new(step, knowns, letters)
    said = [(n, type(x), id(x) if isinstance(x, Row) else x) if n in _DECIDING else n for n, x in letters.items()]

    def lasts(kind: Kind) -> bool:  # a letter that is neither may be refused at another value
        return _DECIDING.union(kind.asked).issuperset(letters)

    rows = knowns, letters.get("framework")
    return _KINDS.get((*map(id, knowns), *said), lambda: _new(step, knowns, letters), rows, lasts)


def shape_of(rows: tuple, letters: Mapping, defaults: Mapping, deciding: frozenset[str]) -> tuple:
    """Return what decides a step's formulas: the `deciding` letters of rows, their precisions, model, and options."""
    own = [
        (id(x) if "layers" in x else deciding.intersection(x), getattr(x, "words", {}).get("precision")) for x in rows
    ]
    said = [(n, x) if n in _DECIDING else n for n, x in letters.items() if n not in ("framework", "mtp_blocks")]
    return (*own, *said, *((n, x) for n, x in defaults.items() if n not in letters))


@uncollected()
def _new(step, knowns: tuple, letters: Mapping) -> Kind:
    step._refuse_strange(letters)
    left, known = dict(letters), {}
    planned = step.plan(knowns, left)
    for row in knowns:  # a rule refers to the model's own blocks
        if isinstance(row, Mapping):
            known |= {n: x.value for n, x in row.cells.items()} if isinstance(row, Row) else row
    known = checked_values(known | left | planned.strategy.words, planned.sheet)
    sheet, rows, told = step._called(planned.sheet, planned.rows, left)
    if swapped := [x for x in rows if isinstance(x, Formula)]:
        sheet, rows = sheet.using(*swapped), tuple(x for x in rows if not isinstance(x, Formula))
    sheet = sheet.suited(*rows, told)
    sheet._refuse_unused(told)
    sheet._refuse_results(step, told)
    asked = {n: own for n in letters if (own := n if n in left else IN_TRAINING.get(n)) in told}
    cells = joined(rows, told) | {n: Cell(quantity(n, x)) for n, x in told.items() if n not in asked.values()}
    cells = {n: c for n, c in cells.items() if n in sheet.letters}
    return Kind(planned.sheet, sheet, cells, known, asked, framework_of(knowns, letters) is None)
