"""What collectives reach: chunks of a message, ports and links that are shared, and the rate that benchmarks print.

>>> shared_ports(ports=4, link_bandwidth="50 GB/s", crossing=8)
25000000000.0
"""

from sympy import Max, sqrt

from scalebook.language import formula

__all__ = ["bus_bandwidth", "bus_bandwidth_reduce", "chunked_message", "message_chunks", "shared_links", "shared_ports"]

_HERE = "interconnects-and-memory-tiers"


@formula("collective_time", _HERE)
def chunked_message(collective_bytes, link_bandwidth, chunk_time, chunk_count):
    """A message in chunks, each sent while the next is fetched: nothing is sent while the first is.

    >>> chunked_message(collective_bytes="1 MB", link_bandwidth="100 GB/s", chunk_time="2.5 us", chunk_count=2)
    2e-05
    """
    return (1 + 1 / chunk_count) * collective_bytes / link_bandwidth + chunk_count * chunk_time


@formula("chunk_count", _HERE)
def message_chunks(collective_bytes, link_bandwidth, chunk_time):
    """Where a further chunk costs as much as it saves in fetching the first.

    >>> message_chunks(collective_bytes="1 MB", link_bandwidth="100 GB/s", chunk_time="2.5 us")
    2.0
    """
    return Max(1, sqrt(collective_bytes / (link_bandwidth * chunk_time)), evaluate=False)


@formula("scaleout_bandwidth", _HERE)
def shared_ports(ports, link_bandwidth, crossing):
    """The devices of a node whose collectives leave it at once share its ports evenly; one alone would use them all.

    >>> shared_ports(ports=8, link_bandwidth="50 GB/s", crossing=8)
    50000000000.0
    """
    return ports * link_bandwidth / crossing


@formula("scaleup_bandwidth", _HERE)
def shared_links(link_bandwidth, concurrent):
    """Collectives of several dimensions that run at the same time share a device's links evenly.

    >>> shared_links(link_bandwidth="450 GB/s", concurrent=2)
    225000000000.0
    """
    return link_bandwidth / concurrent


@formula("bus_bandwidth", "nccl-tests §PERFORMANCE")
def bus_bandwidth(collective_bytes, ways, collective_time):
    """Of an all-gather, a reduce-scatter or an all-to-all: what leaves a device, over the time.

    >>> bus_bandwidth(collective_bytes="8 GB", ways=8, collective_time="20 ms")
    350000000000.0
    """
    return (ways - 1) * collective_bytes / (ways * collective_time)


@formula("bus_bandwidth", "nccl-tests §PERFORMANCE")
def bus_bandwidth_reduce(collective_bytes, ways, collective_time):
    """Of an all-reduce: what leaves a device along a ring, over the time; sums in a switch may exceed their link.

    >>> bus_bandwidth_reduce(collective_bytes="8 GB", ways=8, collective_time="40 ms")
    350000000000.0
    """
    return 2 * (ways - 1) * collective_bytes / (ways * collective_time)
