"""Rates of collectives: links within a group, chunked messages, shared ports, and the bus bandwidth of benchmarks."""

from sympy import Max, Min, log

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import stated

_DEFAULTS = stated(__name__)  # those of collective_rates.toml
globals().update(_DEFAULTS)

# Defaults for the links of a group, if a device's row does not give them.
FABRIC = _DEFAULTS["no_mesh"], _DEFAULTS["no_torus"]


def doublings(devices):
    """Return the base-2 logarithm of `devices`; for letters it stays unevaluated, because SymPy is slow at it."""
    return log(devices, 2) if devices.is_Number else log(devices, evaluate=False) / log(2)


@formula("group_share", "rocm-rccl", "scaling-book chapter 2", given=FABRIC)
def group_share(near_ways, mesh_peers, torus_neighbours):
    """Share of a device's bandwidth that a group can use: links of a full mesh or a torus lead to some peers only.

    A mesh has a link to each peer. In a torus each doubling of a group adds a neighbour, up to the number of links.
    Behind a switch `mesh_peers` and `torus_neighbours` are one, and a group has the whole bandwidth.

    >>> from scalebook.tables import accelerators
    >>> [round(group_share(device, near_ways=2), 2) for device in accelerators[["h100", "mi300x", "tpu_v5p"]].values()]
    [1.0, 0.14, 0.17]
    """
    mesh = Max(1, near_ways - 1, evaluate=False) / mesh_peers
    torus = Max(1, doublings(near_ways), evaluate=False) / torus_neighbours
    return Min(1, mesh, torus, evaluate=False)


__all__ = [*formulas_of(__name__), "FABRIC"]
