"""Fabrics: an all-reduce over links to every peer and over a torus, and how many devices a tree of switches joins.

Rings, trees and sums in a switch stand in `scalebook.machine.collective_schedules`; `link_bandwidth` is here, as there,
all that a device can send at once, and a hop costs `link_latency`.

>>> known = dict(collective_bytes="1 GB", ways=4096, link_bandwidth="450 GB/s", link_latency="1 us")
>>> [round(torus_all_reduce(known, torus_dimensions=d) * 1e3, 2) for d in (1, 2, 3)]
[12.63, 4.7, 4.53]
"""

from scalebook.language import formula

__all__ = ["fat_tree_devices", "mesh_all_reduce", "switch_hops", "torus_all_reduce"]


@formula("collective_time", "thakur2005")
def mesh_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Every device has a link to each other: it sends each its part to be summed, and then its own sum to all.

    Two hops, whatever the group, and no device sends more than along a ring.

    >>> mesh_all_reduce(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    0.000142
    """
    return 2 * link_latency + 2 * (ways - 1) * collective_bytes / (ways * link_bandwidth)


@formula("collective_time", "jouppi2023")
def torus_all_reduce(collective_bytes, ways, link_bandwidth, link_latency, torus_dimensions):
    """Rings along one dimension after another, there and back; equal sides, wrapped around.

    The buffer is cut into as many parts as there are links, and each begins along another, so that all are busy.

    >>> torus_all_reduce(
    ...     collective_bytes="8 MB", ways=64, link_bandwidth="100 GB/s", link_latency="1 us", torus_dimensions=3
    ... )
    0.0001755
    """
    hops = 2 * torus_dimensions * (ways ** (1 / torus_dimensions) - 1)
    return hops * link_latency + 2 * (ways - 1) * collective_bytes / (ways * link_bandwidth)


@formula("tree_devices", "alfares2008 §3")
def fat_tree_devices(switch_radix, switch_tiers):
    """Switches with so many ports in so many tiers, of which none carries less than the one below.

    In all tiers but the top one half of the ports look down and half up.

    >>> [fat_tree_devices(switch_radix=64, switch_tiers=t) for t in (1, 2, 3)]
    [64.0, 2048.0, 65536.0]
    """
    return 2 * (switch_radix / 2) ** switch_tiers


@formula("switch_hops", "alfares2008 §3")
def switch_hops(switch_tiers):
    """Up to the top and down again: the farthest devices meet only there.

    >>> switch_hops(switch_tiers=3)
    5.0
    """
    return 2 * switch_tiers - 1
