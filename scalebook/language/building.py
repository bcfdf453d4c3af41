"""Build formulas and their code without pauses for garbage collection, and with quick sums and products."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from .canonical import quickly

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Build formulas: no garbage collection, and SymPy builds `quickly`.  A context manager and a decorator."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with quickly():
            yield
    finally:
        if was_enabled:
            gc.enable()
