"""Training frameworks: a row of `tables.frameworks` sets defaults of a training step, next to model and device."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from scalebook.language import Row
from scalebook.language.interval import Between
from scalebook.language.latest import Latest
from scalebook.language.notation import either, quoted, word
from scalebook.language.row import Call, as_rows, one_number, quantity
from scalebook.language.stanzas import tables_of
from scalebook.language.words import WORDS
from scalebook.tables import Framework, cells_of_libraries, frameworks

__all__ = ["ENDS", "FASTEST", "SLOWEST", "UNNAMED", "AnyFramework", "framework_of", "settled", "words_of"]

# The row used if a call names no framework, and the two rows between which the result may lie.
UNNAMED, FASTEST, SLOWEST = "unnamed", "fastest", "slowest"
ENDS = (UNNAMED, FASTEST, SLOWEST, "plain")  # rows that are not programs
# A framework may have other cells for models with experts.
_WITH_EXPERTS = ("element_passes", "block_wait", "block_launch")
_TAKEN_UP = ("layers", "moe_layers")  # for blocks that predict further tokens
_LONGER = Latest(64)  # models with such blocks


def framework_of(knowns: tuple, letters: Mapping) -> Framework | None:
    """Return the framework that a call's rows or keywords name, or None. Raises TypeError if they name two."""
    rows = [x for x in knowns if isinstance(x, Framework)]
    said = letters.get("framework")
    if isinstance(said, Framework):
        rows.append(said)
    elif said is not None:
        if not isinstance(said, str):
            kinds = f"{either(map(repr, frameworks))}, or a row of tables.frameworks"
            raise TypeError(f"framework is {kinds}, not {quoted(said)}")
        rows.append(frameworks[word(said, "a framework")])
    if len(rows) > 1:
        raise TypeError(f"a step is of one framework, not of {rows[0].name} and {rows[1].name}")
    return rows[0] if rows else None


def settled(knowns: tuple, letters: Mapping) -> tuple[tuple, dict]:
    """Return a call's rows, with the framework's row last, and the framework's default for each option of a strategy.

    Values of the framework and of its libraries for this device override the device's own; `letters` override both.
    """
    framework = framework_of(knowns, letters) or frameworks[UNNAMED]
    rows = [x for x in as_rows(knowns) if not isinstance(x, Framework)]
    device = next((x for x in rows if isinstance(x, Mapping) and "peak_flops" in x), None)
    model = next((x for x in rows if isinstance(x, Mapping) and "layers" in x), {})
    cells = dict(framework.cells) | cells_of_libraries(device, framework.words.get("libraries", "").split())
    said = quantity("experts", letters["experts"]) if "experts" in letters else model.get("experts", 0)
    has_experts = bool(np.any(np.asarray(said)))
    for name in _WITH_EXPERTS:
        own = cells.pop(f"moe_{name}", None)
        if has_experts:
            cells.pop(name, None)
            if own:
                cells[name] = own
    rows = [_without(x, cells) if x is device else _with_further_tokens(x, letters) if x is model else x for x in rows]
    return (*rows, Row(framework.name, cells)), words_of(framework)


def _without(device: Row, cells: Mapping) -> Row:
    if device is None or cells.keys().isdisjoint(device.cells):
        return device
    kept = {n: c for n, c in device.cells.items() if n not in cells}
    return getattr(device, "_with", Row)(device.name, kept, device.words)


def _with_further_tokens(model: Mapping, letters: Mapping) -> Mapping:
    more = one_number("mtp_blocks", letters.get("mtp_blocks", model.get("mtp_blocks", 0)))
    if not isinstance(model, Row) or not more:
        return model
    return _LONGER.get((id(model), more), lambda: _longer(model, more), model)


def _longer(model: Row, more) -> Row:
    note = f"with {more:g} that predict further tokens"
    taken_up = {n: replace(model.cells[n], value=model.cells[n].value + more, note=note) for n in _TAKEN_UP}
    return Row(model.name, {**model.cells, **taken_up}, model.words)


def words_of(framework: Framework) -> dict:
    """Return the framework's defaults for the options of a strategy, such as {"sharding": "zero3"}."""
    said = {n: x for n, x in framework.words.items() if n in WORDS}
    return {n: next((v for v in WORDS[n].values if str(v) == x), x) for n, x in said.items()}


def _ends() -> list[Framework]:
    """Return the fast end (all hidden and fused) and the slow end (nothing hidden, old libraries)."""
    return [frameworks[FASTEST], frameworks[SLOWEST]]


class AnyFramework(Between):
    """The range of a training step whose call names no framework."""

    def __init__(self, call: Call):
        super().__init__(call, "framework", _ends)

    def causes(self, letter: str) -> list[tuple[str, str, float, float]]:
        """Return (name, meaning, fast, slow) of each assumption: `letter` with only this one at either end."""
        found = []
        middle = frameworks[UNNAMED]
        for names, meaning in tables_of(__package__, "defaults.toml")["unnamed"].items():
            rows = (_changed(middle, x, names.split()) for x in _ends())
            ends = (self.call.thing(*self.call.knowns, x, **self.call.letters).get(letter) for x in rows)
            found.append((names.split()[0], meaning, *ends))
        return found


def _changed(middle: Framework, end: Framework, names: list[str]) -> Framework:
    cells = {n: c for n, c in middle.cells.items() if n not in names}
    cells |= {n: end.cells[n] for n in names if n in end.cells}
    libraries = (end if "libraries" in names else middle).words.get("libraries", "")
    return Framework(middle.name, cells, middle.words | {"libraries": libraries})
