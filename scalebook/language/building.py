"""Build formulas and their code without pauses for garbage collection."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch off Python's garbage collector while building objects that stay.  A context manager and a decorator.

    After every 70,000 new objects a collection looks through all objects there are.  That takes 50 ms once SymPy is
    loaded, and more than half the time of a first training step.  The next collection finds whatever is garbage.

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
