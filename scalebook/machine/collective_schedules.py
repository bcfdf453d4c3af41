"""Collective algorithms on equal links: rings, trees, halving and doubling, in-switch reduction, all-to-all.

Every device has one port that sends and receives at `link_bandwidth` at the same time, and a hop costs `link_latency`.
`scalebook.machine.collectives` maps such collectives onto two tiers of network with measured rates.
"""

from sympy import Max, ceiling, log, sqrt

from scalebook.language import formula, formulas_of

_RING = "patarasuk2009"


@formula("collective_time", _RING)
def ring_all_gather(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of a ring all-gather: each device passes the part it received last to its neighbour.

    >>> ring_all_gather(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    7.7e-05
    """
    return (ways - 1) * (link_latency + collective_bytes / (ways * link_bandwidth))


@formula("collective_time", _RING)
def ring_reduce_scatter(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of a ring reduce-scatter, an all-gather run backward: every device adds its values to a part that passes.

    >>> ring_reduce_scatter(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    7.7e-05
    """
    return (ways - 1) * (link_latency + collective_bytes / (ways * link_bandwidth))


@formula("collective_time", _RING)
def ring_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of a ring all-reduce: a reduce-scatter, then an all-gather. It sends the fewest bytes over the most hops.

    >>> ring_all_reduce(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    0.000154
    """
    return 2 * (ways - 1) * (link_latency + collective_bytes / (ways * link_bandwidth))


@formula("collective_time", "thakur2005")
def halving_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of an all-reduce by recursive halving and doubling: swaps at distance 1, 2, 4, ... (`ways` a power of two).

    >>> halving_all_reduce(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    0.000146
    """
    hops = 2 * ceiling(log(ways, 2))
    return hops * link_latency + 2 * (ways - 1) * collective_bytes / (ways * link_bandwidth)


@formula("collective_time", "sanders2009")
def tree_all_reduce(collective_bytes, ways, link_bandwidth, link_latency, chunk_count):
    """Time of an all-reduce over two binary trees: each sums half of the buffer and sends it back, in chunks.

    >>> tree_all_reduce(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us", chunk_count=16)
    0.000216
    """
    depth = ceiling(log(ways, 2))
    step = link_latency + collective_bytes / (chunk_count * link_bandwidth)
    return 2 * (depth + chunk_count - 1) * step


@formula("chunk_count", "sanders2009")
def best_chunks(collective_bytes, ways, link_bandwidth, link_latency):
    """Number of chunks that makes `tree_all_reduce` fastest: more add latency, fewer keep the levels idle longer.

    >>> best_chunks(collective_bytes="8 MB", ways=9, link_bandwidth="100 GB/s", link_latency="1.5 us")
    12.649110640673516
    """
    depth = ceiling(log(ways, 2))
    return Max(1, sqrt((depth - 1) * collective_bytes / (link_latency * link_bandwidth)), evaluate=False)


@formula("collective_time", "klenk2020", "nccl-tests §PERFORMANCE")
def switch_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of an all-reduce that the switch sums and multicasts, with the same number of hops for any group.

    >>> switch_all_reduce(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    9.2e-05
    """
    return 2 * link_latency + (ways + 1) * collective_bytes / (ways * link_bandwidth)


@formula("collective_time", "vllm-custom-all-reduce")
def one_shot_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of a one-shot all-reduce: every device reads all other buffers and adds them up; it waits only once.

    >>> one_shot_all_reduce(collective_bytes="100 kB", ways=4, link_bandwidth="250 GB/s", link_latency="4 us")
    5.2e-06
    """
    return link_latency + (ways - 1) * collective_bytes / link_bandwidth


@formula("collective_time", "vllm-custom-all-reduce")
def two_shot_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of a two-shot all-reduce: every device sums its part of all buffers, waits, and reads the other sums.

    >>> two_shot_all_reduce(collective_bytes="1 MB", ways=4, link_bandwidth="250 GB/s", link_latency="4 us")
    1.4e-05
    """
    return 2 * link_latency + 2 * (ways - 1) * collective_bytes / (ways * link_bandwidth)


@formula("collective_time", "thakur2005")
def direct_all_to_all(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of an all-to-all in which every device sends every other its part, all messages at once.

    >>> direct_all_to_all(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    7.1e-05
    """
    return link_latency + (ways - 1) * collective_bytes / (ways * link_bandwidth)


__all__ = [*formulas_of(__name__)]
