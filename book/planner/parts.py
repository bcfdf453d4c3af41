"""Lists of parts with letters instead of numbers, so that a page prices other models that have these parts."""

from collections.abc import Mapping

import sympy
from sympy import S

from scalebook.block import Block, Hybrid, parts_of
from scalebook.block.counts import paired, totals
from scalebook.block.operations import DERIVED
from scalebook.language import NOTATION, Formula, symbol
from scalebook.language.notation import letter

__all__ = ["counted_parts", "lettered"]


def _own(name: str, number: int) -> sympy.Symbol:
    """Return the letter of a kind of block's own value: `window_1` is the window in the first kind of block."""
    x, which = NOTATION[name], f"{name}_{number}"
    return letter(which, x.unit, f"{x.meaning}, in kind {number} of the blocks", f"{{{x.tex}}}_{{({number})}}", x.sign)


def lettered(blocks: Hybrid | Block | None) -> Hybrid | Block | None:
    """Return a model's blocks with letters instead of the numbers of blocks of each kind and of their own values.

    >>> from scalebook.block import blocks_of
    >>> from scalebook.tables import models
    >>> kinds = lettered(blocks_of(models.nemotron_h_8b)[0]).kinds
    >>> [x.share for x in kinds]
    [layers_1/layers, layers_2/layers, layers_3/layers]
    """
    if not isinstance(blocks, Hybrid):
        return blocks
    kinds = []
    for number, kind in enumerate(blocks.kinds, 1):
        own = ((x, y if x.name == "window_layers" else _own(x.name, number)) for x, y in kind.letters)
        kinds.append(kind._replace(share=_own("layers", number) / symbol("layers"), letters=tuple(own)))
    return Hybrid(tuple(kinds))


def counted_parts(row: Mapping) -> list[Formula]:
    """Return what `counts` counts part by part, as formulas of the letters of a model's kinds of block."""
    parts = []
    for number, (_, names, own) in enumerate(paired(parts_of(row), row["layers"]), 1):
        parts += [(_own("layers", number), x, {y: _own(y, number) for y in own}) for x in names]
    letters = {x: symbol(x) for x in NOTATION if x not in DERIVED}
    total = totals(row, parts, letters | dict.fromkeys(("batch", "seq", "context", "picked"), 1))
    widths = total["window_layers"] * symbol("layers") / total["kv_width"] if total["kv_width"] else S.Zero
    found = {x: total[x] for x in ("kv_width", "attention_width", "linear_state")} | {"window_layers": widths}
    said = {x: f"{NOTATION[x].meaning}, counted part by part." for x in found}
    return [Formula(f"{x}_of_parts", x, sympy.sympify(y), ("scalebook",), said[x]) for x, y in found.items()]
