"""Which measured kernels run the attention of a hybrid model in a serving step: `tables/parts.toml` for its letters.

>>> from scalebook.tables import accelerators, engines
>>> row = measured_kernels(["kimi delta"], engines.sglang, accelerators.h100.at("bf16"))
>>> round(1e6 * row.state_core_prompts, 9), row.cells["state_core_prompts"].origin
(8.4, 'kda_flash on NVIDIA H100 SXM at bf16')
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from sympy import Rational

from scalebook.block import Block, Hybrid, core_kernels, kinds_of
from scalebook.inference.assumptions import INDEXED, LINEAR
from scalebook.language import NOTATION, Formula, Row, symbol
from scalebook.language.row import quantity
from scalebook.language.stanzas import tables_of
from scalebook.tables import Device, accelerators, cells_of_libraries

__all__ = ["DEFAULTS", "SCALED", "STATES", "kind_of_attention", "kinds_of_attention", "measured_kernels"]

_TABLE = tables_of("scalebook.tables", "parts.toml")
STATES = ("delta", "kimi delta", "mamba")


# By what a core's time on the H100 is scaled on a device without rows: the H100's rate per core over the device's.
# Chunks of linear attention are products, and a convolution moves what it reads.
SCALED = {"state_core_prompts": "peak", "conv_core_prompts": "bandwidth", "conv_core_steps": "bandwidth"}


def _default(letter: str, value: str) -> Formula:
    """Return a letter's default formula: a value of `parts.toml` for an engine without rows of its own."""

    def rhs():  # here, so that an import reads no row
        number = Rational(repr(quantity(letter, value)))
        cores, peak, bandwidth = (Rational(repr(accelerators.h100[n])) for n in ("cores", "peak_bf16", "hbm_bandwidth"))
        scales = {"peak": peak / symbol("attention_peak"), "bandwidth": bandwidth / symbol("hbm_bandwidth")}
        return number * symbol("cores") / cores * scales[SCALED[letter]] if letter in SCALED else number

    said = f"Default {NOTATION[letter].meaning}, about as on the H100."
    return Formula(f"{letter}_usual", letter, rhs, ("aiconfigurator-2026",), said)


def _defaults(kind: str) -> tuple[Formula, ...]:
    return tuple(_default(letter, value) for letter, value in _TABLE["usual"][kind].items())


_SPARSE, _STATE = (*INDEXED, *_defaults("sparse")), (*LINEAR, *_defaults("state"))
# Default formulas of a step's letters, by an index of blocks that need them
DEFAULTS = dict(
    linear_conv=_STATE, linear_key_dim=_STATE, index_heads=_SPARSE, entries=_SPARSE, streams=_defaults("streams")
)


@cache
def kind_of_attention(block: Block) -> str:
    """Return the kind of a block's attention that has kernels of its own, a key of `parts.toml`, or "".

    >>> from scalebook.block import LLAMA, block
    >>> [kind_of_attention(x) for x in (LLAMA, block("linear", "gated"), block("compressed, indexed", "gated"))]
    ['', 'delta', 'compressed, indexed']
    """
    makers, cores = block.makers, core_kernels(block)
    if "r_left" in makers:
        return "hyper-connections"
    if "recalled" in makers:
        return "kimi delta" if "linear_key_dim" in makers["l_decay"].outs[0].indices else "delta"
    if "change" in makers:
        return "mamba"
    if "entries" in cores:
        return "compressed, indexed" if "index" in cores else "compressed"
    picks = "index" in cores or "picked" in block.indices  # by its own indexer, or by that of an earlier block
    return ("indexed" if "kv_rank" in block.indices else "blocks") if picks else ""


def kinds_of_attention(*blocks: Block | Hybrid | None) -> list[str]:
    """Return the kinds of attention in a model's blocks that have kernels of their own."""
    return [kind for x in blocks for k in kinds_of(x) if (kind := kind_of_attention(k.block))]


def measured_kernels(kinds: Iterable[str], engine: Row | None, *rows: Mapping) -> Row:
    """Return the measured quantities of these kinds of attention, as an engine runs them on a device.

    The device is the first row of `rows` that is a device. The result is empty if nothing was measured.
    """
    found, name = {}, getattr(engine, "kin", ("",))[-1]
    device = next((row for row in rows if isinstance(row, Device)), None)
    for kind in kinds if device is not None else ():
        for phase, libraries in _TABLE["parts"][kind].items():
            library, *taken = libraries.get(name) or libraries.get("any", [""])
            letters: Mapping[str, str] = _TABLE["letters"][phase]
            for cell, value in cells_of_libraries(device, [library] if library else []).items():
                if cell in letters and (not taken or cell in taken):
                    found[letters[cell]] = replace(value, origin=f"{library} on {device.name}")
    return Row("kernels of the engine", found)
