"""Terms of a step's time that only some engines or libraries have, as their table rows say."""

from collections.abc import Mapping
from functools import cache, partial
from operator import add

from sympy import Max

from scalebook.language import Formula, Sheet, formula

__all__ = ["TERMS", "engine_time_reading", "heads_time_alone", "own_sum_time", "with_engine_terms"]


@formula("heads_time", "trtllm-performance")
def heads_time_alone(device_batch, context, layers, heads, head_dim, tp, pp, head_efficiency, peak_vector):
    """Time of attention if each query head reads the cache by itself, on the vector units.

    >>> llama = dict(context=1024, layers=32, heads=32, head_dim=128, tp=1, pp=1, head_efficiency=0.11)
    >>> heads_time_alone(llama, device_batch=64, peak_vector="66.9 TFLOP/s").__round__(4)
    0.0047
    """
    pairs = 4 * device_batch * context * layers / pp * heads / tp * head_dim
    return pairs / (head_efficiency * peak_vector)


@formula("engine_time", "trtllm-performance")
def engine_time_reading(step_overhead, prompt_layer_overhead, layers):
    """Host time of a step that reads prompts, if the host launches the kernels of each block one by one.

    >>> engine_time_reading(step_overhead=0, prompt_layer_overhead="80 us", layers=32) * 1e3
    2.56
    """
    return step_overhead + prompt_layer_overhead * layers


@formula("own_sum_time", "rocm-vllm")
def own_sum_time(device_batch, hidden, layers, pp, result_bits, own_sum_rate):
    """Time that an engine's own all-reduces take longer than the library's in a step: two per block, charged per byte.

    >>> llama = dict(hidden=8192, layers=80, pp=1, result_bits=16)
    >>> own_sum_time(llama, device_batch=32, own_sum_rate="34.5 GB/s").__round__(5)
    0.00243
    """
    return 2 * layers / pp * device_batch * hidden * result_bits / 8 / own_sum_rate


_TERMS = {  # the cell, the phase, the letter of the sheet, and how the term changes it
    "head_efficiency": ("decode", "cache_time", "by_heads", heads_time_alone, partial(Max, evaluate=False)),
    "own_sum_rate": ("decode", "exchange_time", "by_engine", own_sum_time, add),
    "prompt_layer_overhead": ("prefill", "engine_time", "reading", engine_time_reading, lambda usual, own: own),
}
TERMS = (*_TERMS, "shared_heads")  # cells that only some steps use


def with_engine_terms(sheet: Sheet, phase: str, known: Mapping) -> Sheet:
    """Return a step's sheet, adding the terms for `phase` whose inputs an engine or a library gives in `known`."""
    cells = [x for x, (of, letter, *_) in _TERMS.items() if of == phase and x in known and letter in sheet.formulas]
    if "head_efficiency" in cells and known["heads"] == known.get("shared_heads", 0) * known["kv_heads"]:
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
