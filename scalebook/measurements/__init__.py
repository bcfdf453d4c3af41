"""Published measurements, and what the formulas say about them.

>>> from scalebook.measurements import confront
>>> list(confront("batch1_decode").groups)[:3]
['calibrated on', 'Apple', 'RTX workstation']
>>> confront("batch1_dcode")
Traceback (most recent call last):
    ...
LookupError: no confrontation is called 'batch1_dcode'; did you mean 'batch1_decode' or ...?
"""

from scalebook.language.notation import nearest, quoted, word

from . import (
    attention,
    attention_kernels,
    calculon,
    collectives,
    decode,
    devices,
    kernels,
    moe,
    moe_exchange,
    offload,
    pipeline,
    training,
    training_long_context,
    training_megatron,
    training_memory,
    training_papers,
    training_seconds,
    training_sweeps,
    training_torchtitan,
)
from .confrontation import Confrontation, Result

__all__ = ["CONFRONTATIONS", "Confrontation", "Result", "confront", "find"]


CONFRONTATIONS: dict[str, Confrontation] = {
    **decode.CONFRONTATIONS,
    **attention.CONFRONTATIONS,
    **collectives.CONFRONTATIONS,
    **attention_kernels.CONFRONTATIONS,
    **kernels.CONFRONTATIONS,
    **devices.CONFRONTATIONS,
    **moe.CONFRONTATIONS,
    **moe_exchange.CONFRONTATIONS,
    **offload.CONFRONTATIONS,
    **training_memory.CONFRONTATIONS,
    **pipeline.CONFRONTATIONS,
    **training.CONFRONTATIONS,
    **training_papers.CONFRONTATIONS,
    **training_seconds.CONFRONTATIONS,
    **training_megatron.CONFRONTATIONS,
    **training_sweeps.CONFRONTATIONS,
    **training_torchtitan.CONFRONTATIONS,
    **training_long_context.CONFRONTATIONS,
    **calculon.CONFRONTATIONS,
}


def find(name: str) -> Confrontation:
    """The confrontation of that name; raises LookupError, naming the nearest, where there is none."""
    if word(name, "a confrontation") not in CONFRONTATIONS:
        raise LookupError(f"no confrontation is called {quoted(name)}; {nearest(name, CONFRONTATIONS)}")
    return CONFRONTATIONS[name]


def confront(name: str, csv=None) -> Result:
    """Run a confrontation on the package's measurements, or on another CSV file with the same columns.

    Raises LookupError for an unknown name and ValueError for a file that does not fit.

    >>> confront("batch1_floor").summary["rows"]
    120
    """
    return find(name)(csv)
