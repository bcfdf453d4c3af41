"""Rates of collectives: links within a group, chunked messages, shared ports, and the bus bandwidth of benchmarks."""

from sympy import Max, Min, log, sqrt

from scalebook.language import constant, formula

__all__ = [
    "FABRIC", "bus_bandwidth", "bus_bandwidth_reduce", "chunked_message", "group_share", "group_share_mesh",
    "group_share_switch", "group_share_torus", "issued_by_host", "message_chunks", "no_mesh", "no_torus",
    "shared_links", "shared_ports", "timed_by_host",
]  # fmt: skip

_HERE = "interconnects-and-memory-tiers"

no_mesh = constant(
    "no_mesh", "mesh_peers", 1, _HERE,
    "Default number of mesh peers: one, as if every link led to every peer (a switch, or unknown links).",
)  # fmt: skip

no_torus = constant(
    "no_torus", "torus_neighbours", 1, _HERE,
    "Default number of torus neighbours: one, as if every link led to every peer (a switch, or unknown links).",
)  # fmt: skip

# Defaults for the links of a group, if a device's row does not give them.
FABRIC = (no_mesh, no_torus)


# A device's links to its group over all of its links; above one if the group is larger than the links reach.


def _mesh(near_ways, mesh_peers):
    return Max(1, near_ways - 1, evaluate=False) / mesh_peers


def _torus(near_ways, torus_neighbours):
    return Max(1, doublings(near_ways), evaluate=False) / torus_neighbours


def doublings(devices):
    """Return how often a single device doubles to reach `devices`, that is, its base-2 logarithm.

    For letters the logarithm is not evaluated, since SymPy takes long to simplify it.

    >>> doublings(Integer(8))
    3
    """
    return log(devices, 2) if devices.is_Number else log(devices, evaluate=False) / log(2)


group_share_switch = constant(
    "group_share_switch", "group_share", 1, _HERE,
    "Share of a device's bandwidth that a group can use behind a switch: all, since every link reaches every peer.",
)  # fmt: skip


@formula("group_share", "rocm-rccl")
def group_share_mesh(near_ways, mesh_peers):
    """Share of a device's bandwidth that a group can use in a full mesh: only links to its own members.

    >>> [round(group_share_mesh(near_ways=n, mesh_peers=7), 2) for n in (2, 4, 8)]
    [0.14, 0.43, 1.0]
    """
    return Min(1, _mesh(near_ways, mesh_peers), evaluate=False)


@formula("group_share", "scaling-book chapter 2")
def group_share_torus(near_ways, torus_neighbours):
    """Share of a device's bandwidth that a group can use in a torus, where a group is a box.

    A pair has one neighbour, a square of four two, a cube of eight three. A box twice as large has one more neighbour,
    until there are as many as links. Longer sides without a wrap-around link are assumed to be as good.

    >>> [round(group_share_torus(near_ways=n, torus_neighbours=6), 2) for n in (2, 4, 8, 64)]
    [0.17, 0.33, 0.5, 1.0]
    """
    return Min(1, _torus(near_ways, torus_neighbours), evaluate=False)


@formula("group_share", _HERE, given=FABRIC)
def group_share(near_ways, mesh_peers, torus_neighbours):
    """Share of a device's bandwidth that a group can use, by its fabric: mesh, torus or switch.

    Behind a switch both the mesh peers and the torus neighbours are one, which gives the whole bandwidth.

    >>> from scalebook.tables import accelerators
    >>> [round(group_share(device, near_ways=2), 2) for device in accelerators[["h100", "mi300x", "tpu_v5p"]].values()]
    [1.0, 0.14, 0.17]
    """
    return Min(1, _mesh(near_ways, mesh_peers), _torus(near_ways, torus_neighbours), evaluate=False)


@formula("collective_time", _HERE)
def chunked_message(collective_bytes, link_bandwidth, chunk_time, chunk_count):
    """Time of a message sent in chunks, each fetched while the previous one is sent.

    While the first chunk is fetched nothing is sent.

    >>> chunked_message(collective_bytes="1 MB", link_bandwidth="100 GB/s", chunk_time="2.5 us", chunk_count=2)
    2e-05
    """
    return (1 + 1 / chunk_count) * collective_bytes / link_bandwidth + chunk_count * chunk_time


@formula("issued_time", "vidur")
def issued_by_host(collective_time, issue_time):
    """Time of one of a series of collectives that a framework's host issues: small ones wait for the host.

    A call checks its tensors, records events and launches a kernel. If the device is done earlier, it is idle
    meanwhile.

    >>> issued_by_host(collective_time="13 us", issue_time="48 us")
    4.8e-05
    """
    return Max(collective_time, issue_time, evaluate=False)


@formula("issued_time", "bekman-network")
def timed_by_host(collective_time, issue_time):
    """Time of a collective in a benchmark that waits for each one before the host issues the next.

    The host's time comes on top.

    >>> timed_by_host(collective_time="24 us", issue_time="17 us")
    4.1e-05
    """
    return collective_time + issue_time


@formula("chunk_count", _HERE)
def message_chunks(collective_bytes, link_bandwidth, chunk_time):
    """Number of chunks with the shortest time: a further chunk would cost the time that it saves in fetching the first.

    >>> message_chunks(collective_bytes="1 MB", link_bandwidth="100 GB/s", chunk_time="2.5 us")
    2.0
    """
    return Max(1, sqrt(collective_bytes / (link_bandwidth * chunk_time)), evaluate=False)


@formula("scaleout_bandwidth", _HERE)
def shared_ports(ports, link_bandwidth, crossing):
    """Scale-out bandwidth per device if the devices of a node whose collectives leave it share its ports evenly.

    A single such device would use all ports.

    >>> shared_ports(ports=8, link_bandwidth="50 GB/s", crossing=8)
    50000000000.0
    """
    return ports * link_bandwidth / crossing


@formula("scaleup_bandwidth", _HERE)
def shared_links(link_bandwidth, concurrent):
    """Scale-up bandwidth per collective if collectives of several dimensions share a device's links evenly.

    >>> shared_links(link_bandwidth="450 GB/s", concurrent=2)
    225000000000.0
    """
    return link_bandwidth / concurrent


@formula("bus_bandwidth", "nccl-tests §PERFORMANCE")
def bus_bandwidth(collective_bytes, ways, collective_time):
    """Bus bandwidth of an all-gather, a reduce-scatter or an all-to-all: bytes leaving a device over the time.

    >>> bus_bandwidth(collective_bytes="8 GB", ways=8, collective_time="20 ms")
    350000000000.0
    """
    return (ways - 1) * collective_bytes / (ways * collective_time)


@formula("bus_bandwidth", "nccl-tests §PERFORMANCE")
def bus_bandwidth_reduce(collective_bytes, ways, collective_time):
    """Bus bandwidth of an all-reduce: bytes leaving a device along a ring, over the time.

    All-reduces that sum in a switch may exceed the bandwidth of the link.

    >>> bus_bandwidth_reduce(collective_bytes="8 GB", ways=8, collective_time="40 ms")
    350000000000.0
    """
    return 2 * (ways - 1) * collective_bytes / (ways * collective_time)
