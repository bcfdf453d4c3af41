"""Fabrics: all-reduce over a full mesh and over a torus, and the devices that a fat tree of switches joins."""

from scalebook.language import formula

__all__ = ["fat_tree_devices", "mesh_all_reduce", "switch_hops", "torus_all_reduce"]


@formula("collective_time", "thakur2005")
def mesh_all_reduce(collective_bytes, ways, link_bandwidth, link_latency):
    """Time of an all-reduce in a full mesh, in two hops: devices send each other their parts to sum, then the sums.

    >>> mesh_all_reduce(collective_bytes="8 MB", ways=8, link_bandwidth="100 GB/s", link_latency="1 us")
    0.000142
    """
    return 2 * link_latency + 2 * (ways - 1) * collective_bytes / (ways * link_bandwidth)


@formula("collective_time", "jouppi2023")
def torus_all_reduce(collective_bytes, ways, link_bandwidth, link_latency, torus_dimensions):
    """Time of an all-reduce in a torus with equal sides: rings along each dimension, one part of the buffer per link.

    >>> known = dict(collective_bytes="8 MB", ways=64, link_bandwidth="100 GB/s", link_latency="1 us")
    >>> torus_all_reduce(known, torus_dimensions=3)
    0.0001755
    """
    hops = 2 * torus_dimensions * (ways ** (1 / torus_dimensions) - 1)
    return hops * link_latency + 2 * (ways - 1) * collective_bytes / (ways * link_bandwidth)


@formula("tree_devices", "alfares2008 §3")
def fat_tree_devices(switch_radix, switch_tiers):
    """Devices joined by a fat tree of switches: below the top tier, half of the ports face down and half face up.

    >>> [fat_tree_devices(switch_radix=64, switch_tiers=t) for t in (1, 2, 3)]
    [64.0, 2048.0, 65536.0]
    """
    return 2 * (switch_radix / 2) ** switch_tiers


@formula("switch_hops", "alfares2008 §3")
def switch_hops(switch_tiers):
    """Switches on the longest path of a fat tree: up to the top and down again.

    >>> switch_hops(switch_tiers=3)
    5.0
    """
    return 2 * switch_tiers - 1
