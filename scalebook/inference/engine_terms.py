"""Terms of a step's time that only some engines or libraries have, as their table rows say."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from operator import add

from sympy import Max

from scalebook.language import Formula, Row, Sheet
from scalebook.language.defaults import equations
from scalebook.language.row import one_number

_OWN = equations(__name__)  # those of engine_terms.toml
__all__ = [*vars(_OWN), "TERMS", "with_engine_terms"]
_TERMS = {  # the cell, the phase, the letter of the sheet, and how the term changes it
    "head_efficiency": ("decode", "cache_time", "by_heads", _OWN.heads_time_alone, partial(Max, evaluate=False)),
    "own_sum_rate": ("decode", "exchange_time", "by_engine", _OWN.own_sum_time, add),
    "prompt_layer_overhead": ("prefill", "engine_time", "reading", _OWN.engine_time_reading, lambda usual, own: own),
}
TERMS = (*_TERMS, "shared_heads")  # cells that only some steps use


def not_run(rows: Iterable[Mapping], engine: Row) -> str:
    """Return why an engine's kernels do not run the attention of the model among `rows`, or "".

    >>> from scalebook.tables import engines, models
    >>> not_run([models.deepseek_v3], engines.trtllm_0_8)
    'TensorRT-LLM 0.8 and 0.9 reads keys and values head by head (head_efficiency), and DeepSeek-V3 has no kv_heads'
    """
    if "head_efficiency" not in engine or any("kv_heads" in x for x in rows):
        return ""
    model = next((x.name for x in rows if "gating" in x), "the model")
    return f"{engine.name} reads keys and values head by head (head_efficiency), and {model} has no kv_heads"


def with_engine_terms(sheet: Sheet, phase: str, known: Mapping) -> Sheet:
    """Return a step's sheet, adding the terms for `phase` whose inputs an engine or a library gives in `known`."""
    cells = [x for x, (of, letter, *_) in _TERMS.items() if of == phase and x in known and letter in sheet.formulas]
    if "head_efficiency" in cells and "shared_heads" in known:
        heads, shared, kept = (one_number(x, known[x]) for x in ("heads", "shared_heads", "kv_heads"))
        if heads == shared * kept:
            cells.remove("head_efficiency")  # query heads share the reading of their key-value head
    return _with_terms(sheet, tuple(cells)) if cells else sheet


@cache
def _with_terms(sheet: Sheet, cells: tuple[str, ...]) -> Sheet:
    swapped = []
    for cell in cells:
        _, letter, name, term, change = _TERMS[cell]
        usual = sheet.formulas[letter]
        sources = (*usual.sources, *term.sources)
        swapped.append(Formula(f"{usual.name}_{name}", letter, change(usual.rhs, term.rhs), sources, term.__doc__))
    return sheet.using(*swapped)
