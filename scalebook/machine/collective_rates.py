"""Rates of collectives: links within a group, chunked messages, shared ports, and the bus bandwidth of benchmarks."""

from sympy import Max, Min, log, sqrt

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import stated

_DEFAULTS = stated(__name__)  # those of collective_rates.toml
globals().update(_DEFAULTS)
_HERE = "interconnects-and-memory-tiers"

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


@formula("collective_time", _HERE)
def chunked_message(collective_bytes, link_bandwidth, chunk_time, chunk_count):
    """Time of a message in chunks: its bytes, one chunk more to fill the pipeline, and `chunk_time` per chunk.

    >>> chunked_message(collective_bytes="1 MB", link_bandwidth="100 GB/s", chunk_time="2.5 us", chunk_count=2)
    2e-05
    """
    return (1 + 1 / chunk_count) * collective_bytes / link_bandwidth + chunk_count * chunk_time


@formula("chunk_count", _HERE)
def message_chunks(collective_bytes, link_bandwidth, chunk_time):
    """Number of chunks that makes a message fastest: more cost more overhead, fewer expose a longer first fetch.

    >>> message_chunks(collective_bytes="1 MB", link_bandwidth="100 GB/s", chunk_time="2.5 us")
    2.0
    """
    return Max(1, sqrt(collective_bytes / (link_bandwidth * chunk_time)), evaluate=False)


@formula("scaleout_bandwidth", _HERE)
def shared_ports(ports, link_bandwidth, crossing):
    """Scale-out bandwidth per device if `crossing` devices of a node send beyond it at once and share its ports evenly.

    >>> shared_ports(ports=8, link_bandwidth="50 GB/s", crossing=8)
    50000000000.0
    """
    return ports * link_bandwidth / crossing


@formula("bus_bandwidth", "nccl-tests §PERFORMANCE")
def bus_bandwidth(collective_bytes, ways, collective_time):
    """Bus bandwidth of an all-gather, a reduce-scatter or an all-to-all: bytes leaving a device over the time.

    >>> bus_bandwidth(collective_bytes="8 GB", ways=8, collective_time="20 ms")
    350000000000.0
    """
    return (ways - 1) * collective_bytes / (ways * collective_time)


@formula("bus_bandwidth", "nccl-tests §PERFORMANCE")
def bus_bandwidth_reduce(collective_bytes, ways, collective_time):
    """Bus bandwidth of an all-reduce: bytes that a ring sends per device, over time. Summing switches can beat a link.

    >>> bus_bandwidth_reduce(collective_bytes="8 GB", ways=8, collective_time="40 ms")
    350000000000.0
    """
    return 2 * (ways - 1) * collective_bytes / (ways * collective_time)


__all__ = [*formulas_of(__name__), "FABRIC"]
