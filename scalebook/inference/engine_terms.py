"""Terms that a cell in the row of an engine, or of a library on a device, puts into a step's sheet."""

from collections.abc import Mapping
from functools import cache

from sympy import Max

from scalebook.language import Formula, Sheet, formula

__all__ = ["TERMS", "engine_time_reading", "heads_time_alone", "own_sum_time", "with_engine_terms"]

TERMS = ("head_efficiency", "prompt_layer_overhead", "shared_heads", "own_sum_rate")  # cells that some of the steps use


@formula("heads_time", "trtllm-performance")
def heads_time_alone(device_batch, context, layers, heads, head_dim, tp, pp, head_efficiency, peak_vector):
    """Time of attention if each query head reads the cache by itself, on the vector units.

    >>> heads_time_alone(device_batch=64, context=1024, layers=32, heads=32, head_dim=128, tp=1, pp=1,
    ...                  head_efficiency=0.11, peak_vector="66.9 TFLOP/s").__round__(4)
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
    """Extra time of an engine's own all-reduce over the library's: two messages per block, per byte sent.

    >>> llama = dict(hidden=8192, layers=80, pp=1, result_bits=16)
    >>> own_sum_time(llama, device_batch=32, own_sum_rate="34.5 GB/s").__round__(5)
    0.00243
    """
    return 2 * layers / pp * device_batch * hidden * result_bits / 8 / own_sum_rate


def with_engine_terms(sheet: Sheet, phase: str, known: Mapping) -> Sheet:
    """Return a step's sheet with the extra terms that the cells of its engine or library ask for."""
    terms = []
    if phase == "decode" and "head_efficiency" in known and _reads_alone(known):
        terms.append("cache_time")
    if phase == "decode" and "own_sum_rate" in known and "exchange_time" in sheet.formulas:
        terms.append("exchange_time")
    if phase == "prefill" and "prompt_layer_overhead" in known:
        terms.append("engine_time")
    return _with(sheet, tuple(terms)) if terms else sheet


def _reads_alone(known: Mapping) -> bool:
    """Return True if query heads do not share the reading of their key-value head."""
    return known["heads"] != known.get("shared_heads", 0) * known["kv_heads"]


@cache
def _with(sheet: Sheet, terms: tuple[str, ...]) -> Sheet:
    swapped = []
    for letter in terms:
        usual = sheet.formulas[letter]
        if letter == "engine_time":
            swapped.append(engine_time_reading)
            continue
        more, name = (heads_time_alone, "by_heads") if letter == "cache_time" else (own_sum_time, "by_engine")
        rhs = Max(usual.rhs, more.rhs, evaluate=False) if letter == "cache_time" else usual.rhs + more.rhs
        sources = (*usual.sources, *more.sources)
        swapped.append(Formula(f"{usual.name}_{name}", letter, rhs, sources, more.__doc__ or ""))
    return sheet.using(*swapped)
