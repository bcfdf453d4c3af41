"""Building formulas and their code, which stay: nothing of it is garbage to look for."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Put off Python's collections of garbage while something is built that stays; also a decorator.

    Every 70,000 new objects a collection looks through all that there are: 50 ms where SymPy is loaded, more than half
    of what a first training step takes.  What is garbage is found by the next collection.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
