"""Where the known letters of a result are from: its call, a row, another result, a default, or what was called."""

from collections.abc import Mapping

import numpy as np

__all__ = ["not_given"]


def not_given(row) -> dict[str, str]:
    """Return the sources of the known letters of a result that its call did not give, although they were passed on.

    A service passes numbers of its engine to the sheet of its sessions, for example.

    >>> from scalebook import accelerators, models
    >>> from scalebook.inference import serve
    >>> known = dict(tp=1, engine="vllm", sessions=4, turns=10, appended=1000, output=500, pause=10)
    >>> said = not_given(serve.sessions(models.llama3_8b, accelerators.h100, **known))
    >>> said["price_hour"], said["prefix"], said["base_time"]
    ('aws-prices p5.48xlarge', 'usual', 'set by serve.sessions')
    """
    call = row.asked or row.call
    if call is None:
        return {}
    knowns = [x for x in call.knowns if isinstance(x, Mapping)]
    cells = {n: cell for x in knowns if hasattr(x, "cells") for n, cell in x.cells.items()}
    given = {*call.letters}.union(*(x for x in knowns if not hasattr(x, "cells")))
    usual, found = getattr(call.thing, "takes", {}), {}
    for name, cell in row.cells.items():
        if cell.formula or cell.origin != "given" or name in given:
            continue
        if name in row.made_of:
            made, letter = row.made_of[name]
            found[name] = made.sources[letter]
        elif name in cells and np.array_equal(cells[name].value, cell.value):
            found[name] = cells[name].source or cells[name].origin
        else:
            found[name] = "usual" if np.array_equal(usual.get(name), cell.value) else f"set by {call.thing.name}"
    return found
