"""Which framework trains: its row becomes defaults of letters and words, beside a model's and a device's.

>>> from scalebook.tables import accelerators, frameworks, models
>>> rows, words = settled((models.llama3_8b, accelerators.h100, frameworks.llm_foundry), {})
>>> rows[-1].library_rate, rows[-1].attention_short, words["sharding"]
(0.915, 0.24, 'zero3')
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from scalebook.language import Row
from scalebook.language.notation import either, quoted, word
from scalebook.language.words import WORDS
from scalebook.tables import Framework, cells_of_libraries, frameworks

__all__ = ["ENDS", "FASTEST", "SLOWEST", "UNNAMED", "Between", "framework_of", "settled", "words_of"]

# What a call that names no framework is priced with, and the two ends that it may lie between.
UNNAMED, FASTEST, SLOWEST = "unnamed", "fastest", "slowest"
ENDS = (UNNAMED, FASTEST, SLOWEST, "plain")  # rows that are no program
# Of models with experts a framework may say otherwise.
_WITH_EXPERTS = ("element_passes", "block_wait", "block_launch")
_TAKEN_UP = ("layers", "moe_layers")  # by blocks that predict further tokens


def framework_of(knowns: tuple, letters: Mapping) -> Framework | None:
    """The framework that a call names, as a row or by `framework=`; None where it names none.

    Raises TypeError for what is no framework, and where two are named.
    """
    rows = [x for x in knowns if isinstance(x, Framework)]
    said = letters.get("framework")
    if isinstance(said, Framework):
        rows.append(said)
    elif said is not None:
        if not isinstance(said, str):
            raise TypeError(
                f"framework is {either(map(repr, frameworks))}, or a row of tables.frameworks, not {quoted(said)}"
            )
        rows.append(frameworks[word(said, "a framework")])
    if len(rows) > 1:
        raise TypeError(f"a step is of one framework, not of {rows[0].name} and {rows[1].name}")
    return rows[0] if rows else None


def settled(knowns: tuple, letters: Mapping) -> tuple[tuple, dict]:
    """The rows of a call with its framework's row last, and the framework's default of each word of a strategy.

    The framework's cells are completed by those of its libraries on the call's device, and stand before the device's
    own.  `letters` of the call stand before both.
    """
    framework = framework_of(knowns, letters) or frameworks[UNNAMED]
    rows = [x for x in knowns if not isinstance(x, Framework)]
    device = next((x for x in rows if isinstance(x, Mapping) and "peak_flops" in x), None)
    model = next((x for x in rows if isinstance(x, Mapping) and "layers" in x), {})
    cells = dict(framework.cells) | cells_of_libraries(device, framework.words.get("libraries", "").split())
    has_experts = bool(np.any(np.asarray(letters.get("experts", model.get("experts", 0)))))
    for name in _WITH_EXPERTS:
        own = cells.pop(f"moe_{name}", None)
        if has_experts:
            cells.pop(name, None)
            if own:
                cells[name] = own
    rows = [_without(x, cells) if x is device else _with_further_tokens(x, letters) if x is model else x for x in rows]
    return (*rows, Row(framework.name, cells)), words_of(framework)


def _without(device: Row, cells: Mapping) -> Row:
    """A device without the cells that others stand before."""
    if cells.keys().isdisjoint(device.cells):
        return device
    kept = {n: c for n, c in device.cells.items() if n not in cells}
    return (
        device._with(device.name, kept, device.words)
        if hasattr(device, "_with")
        else Row(device.name, kept, device.words)
    )


def _with_further_tokens(model: Mapping, letters: Mapping) -> Mapping:
    """A model with the blocks that predict further tokens while it is trained."""
    more = letters.get("mtp_blocks", model.get("mtp_blocks", 0))
    if not isinstance(model, Row) or not np.any(np.asarray(more)):
        return model
    note = f"with {more:g} that predict further tokens"
    cells = dict(model.cells)
    for name in _TAKEN_UP:
        cells[name] = replace(cells[name], value=cells[name].value + more, note=note)
    return Row(model.name, cells, model.words)


def words_of(framework: Framework) -> dict:
    """The framework's defaults of a strategy's words, each as one of the word's values."""
    said = {n: x for n, x in framework.words.items() if n in WORDS}
    return {n: next(v for v in WORDS[n].values if str(v) == x) for n, x in said.items()}


class Between:
    """The two ends of a call that names no framework, and what each of its assumptions moves.

    `call` prices the call again with other rows or letters.
    """

    def __init__(self, call: Callable[..., Row]):
        self._call = call

    @cached_property
    def ends(self) -> tuple[Row, Row]:
        """The call with everything hidden and fused, and with nothing hidden, eager kernels and older libraries."""
        return self._call(frameworks[FASTEST]), self._call(frameworks[SLOWEST])

    def causes(self, letter: str) -> list[tuple[str, str, float, float]]:
        """For each assumption its letter, its meaning, and the result with it alone at its fast and its slow end."""
        found = []
        middle = frameworks[UNNAMED]
        for names, meaning in _ASSUMED.items():
            ends = [self._call(_changed(middle, frameworks[x], names.split())).get(letter) for x in (FASTEST, SLOWEST)]
            found.append((names.split()[0], meaning, *ends))
        return found


# What the two ends differ in: letters, or "libraries", each with how it is said.
_ASSUMED = {
    "dp_overlap": "no framework named: data-parallel collectives hidden, or not",
    "tp_pieces tp_beside": "no framework named: tensor-parallel collectives in pieces, or waited for",
    "ep_overlap": "no framework named: exchanges of experts hidden, or not",
    "pp_overlap": "no framework named: transfers between stages hidden, or not",
    "element_passes moe_element_passes": "no framework named: element-wise steps fused, or eager",
    "library_rate libraries": "no framework named: libraries of today, or of 2023",
}


def _changed(middle: Framework, end: Framework, names: list[str]) -> Framework:
    """The middle row with these letters as one of the ends has them."""
    cells = {n: c for n, c in middle.cells.items() if n not in names}
    cells |= {n: end.cells[n] for n in names if n in end.cells}
    libraries = (end if "libraries" in names else middle).words.get("libraries", "")
    return Framework(middle.name, cells, middle.words | {"libraries": libraries})
