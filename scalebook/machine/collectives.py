"""Time of collectives over two tiers of network: scale-up domains ("near") and the network between them ("far").

A collective costs a launch, its hops, its bytes at the achieved rate, and the chunking of its bytes. Rings pass all
near devices and cross to the next domain once for each, so that every device uses its own scale-out port. Both tiers
work at once, and the slower one sets the pace. In a mesh or a torus a group uses its members' links (`group_share`).
"""

from functools import cache, partial

from sympy import Add, Expr, Integer, Max, Min, Rational, floor

from scalebook.language import formula, formulas_of, symbol
from scalebook.language.notation import nearest, quoted, root
from scalebook.machine.collective_rates import FABRIC, doublings, group_share

# A device copies its own part within its memory, which was measured to take half the time of sending a part.
OWN_PART = Rational(1, 2)
_PAIR = Integer(2)  # a message uses the links between two devices, whatever the size of the group
_NCCL = "nccl §tuning.cc"
_INSIDE = {"no more devices near each other than take part": lambda near_ways, ways: near_ways <= ways}


@cache
def _one_if_any(count):
    return Min(1, count, evaluate=False)


def _time(ways, collective_launch, chunk_time, hops, wire):
    """Return the time of a collective from its launch, hops, transfer and chunking; 0 for a single device."""
    return Add(_one_if_any(ways - 1) * collective_launch, hops, wire, 2 * root(chunk_time * wire))


def _ring_hops(ways, near_ways, near_latency, far_latency):
    domains = ways / near_ways
    return (ways - domains) * near_latency + (domains - 1) * far_latency


# Seconds per byte of a part for which a device's scale-up and scale-out ports are busy.


@cache
def _share(near_ways, mesh_peers, torus_neighbours):
    return group_share.of(near_ways=near_ways, mesh_peers=mesh_peers, torus_neighbours=torus_neighbours)


@cache
def _ring_ports(ways, near_ways, share, near_rate, far_rate, passes=1):
    near = _one_if_any(near_ways - 1) * (passes * (ways - 1) / share + OWN_PART) / near_rate
    return near, _one_if_any(ways - near_ways) * passes * (ways - 1) / (near_ways * far_rate)


_reduce_ports = partial(_ring_ports, passes=2)


def _exchange_ports(ways, near_ways, share, near_rate, far_rate):
    near = _one_if_any(near_ways - 1) * ((near_ways - 1) / share + OWN_PART) / near_rate
    return near, (ways - near_ways) / far_rate


def _send_ports(ways, near_ways, share, near_rate, far_rate):  # per byte of the message, which is not divided
    return _one_if_any(near_ways - 1) / (share * near_rate), _one_if_any(ways - near_ways) / far_rate


def _wire(ports, collective_bytes, ways):
    return Max(*ports, evaluate=False) * (collective_bytes / ways)


# The kinds of collectives


@formula("collective_time", "patarasuk2009", _NCCL, "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def all_gather(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an all-gather along rings; `collective_bytes` is the size of the result on every device.

    >>> from scalebook.tables import accelerators
    >>> round(all_gather(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    2.52
    """
    share = _share(near_ways, mesh_peers, torus_neighbours)
    rates = scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    ports = _ring_ports(ways, near_ways, share, *rates)
    hops = _ring_hops(ways, near_ways, near_latency, far_latency)
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


@formula("collective_time", "patarasuk2009", _NCCL, "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def reduce_scatter(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of a reduce-scatter, an all-gather run backward; `collective_bytes` is the input of every device.

    >>> from scalebook.tables import accelerators
    >>> round(reduce_scatter(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    2.52
    """
    return all_gather.of(collective_bytes=collective_bytes, ways=ways, near_ways=near_ways)


def _switch_or_ring(ways, near_ways, near_efficiency, switch_efficiency):
    """Return the faster of in-switch reduction and a ring, as achieved share of the bandwidth for the ring's bytes."""
    summed = (2 * ways - 2 + OWN_PART) * near_ways / (ways * (near_ways + 1))
    return Max(near_efficiency, summed * switch_efficiency, evaluate=False)


def _reduce_hops(ways, near_ways, near_latency, far_latency):
    return 2 * ((near_ways - 1) * near_latency + doublings(ways / near_ways) * far_latency)


@formula("collective_time", "patarasuk2009", "klenk2020", _NCCL, "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def all_reduce(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    switch_efficiency, near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an all-reduce by rings, or by sums in the scale-up switch if that is faster.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    4.03
    """
    near_rate = scaleup_bandwidth * _switch_or_ring(ways, near_ways, near_efficiency, switch_efficiency)
    share = _share(near_ways, mesh_peers, torus_neighbours)
    ports = _reduce_ports(ways, near_ways, share, near_rate, scaleout_bandwidth * far_efficiency)
    hops = _reduce_hops(ways, near_ways, near_latency, far_latency)
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


@formula("collective_time", "patarasuk2009", _NCCL, given=FABRIC, domain=_INSIDE)
def all_reduce_ring(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an all-reduce as a ring reduce-scatter and a ring all-gather, even if the fabric's switches can sum.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce_ring(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    4.79
    """
    share = _share(near_ways, mesh_peers, torus_neighbours)
    rates = scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    ports = _reduce_ports(ways, near_ways, share, *rates)
    hops = 2 * _ring_hops(ways, near_ways, near_latency, far_latency)
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


@formula("collective_time", "thakur2005", "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def all_to_all(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an all-to-all over both tiers at once; `collective_bytes` is a device's input, with the part it keeps.

    >>> from scalebook.tables import accelerators
    >>> round(all_to_all(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    2.52
    """
    share = _share(near_ways, mesh_peers, torus_neighbours)
    rates = scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    ports = _exchange_ports(ways, near_ways, share, *rates)
    hops = doublings(near_ways) * near_latency + doublings(ways / near_ways) * far_latency
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


@formula("collective_time", "hockney1994", "vidur", given=FABRIC, domain=_INSIDE)
def send(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch,
):  # fmt: skip
    """Time to send a message to the next device of a group, over the slowest link to a neighbour, without chunk time.

    >>> from scalebook.tables import accelerators
    >>> round(send(accelerators.h100, collective_bytes="1 GB", ways=2, near_ways=1) * 1e3, 1)
    21.1
    """
    share = _share(_PAIR, mesh_peers, torus_neighbours)
    rates = scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    ports = _send_ports(ways, near_ways, share, *rates)
    hops = Max(_one_if_any(near_ways - 1) * near_latency, _one_if_any(ways - near_ways) * far_latency, evaluate=False)
    return _one_if_any(ways - 1) * collective_launch + hops + Max(*ports, evaluate=False) * collective_bytes


# Other all-reduce algorithms


_SUMMED = _INSIDE | {"switches that sum": lambda switch_efficiency: switch_efficiency > 0}


@formula("collective_time", "klenk2020", "nccl-tests §PERFORMANCE", domain=_SUMMED)
def all_reduce_in_network(
    collective_bytes, ways, near_ways, scaleup_bandwidth, switch_efficiency, near_latency, scaleout_bandwidth,
    far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an all-reduce that switches sum on both tiers. The efficiency between nodes was not measured here.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce_in_network(accelerators.h100, collective_bytes="1 GB", ways=1024, near_ways=8) * 1e3, 2)
    4.04
    """
    inside, across = _one_if_any(near_ways - 1), _one_if_any(ways - near_ways)
    near = inside * (near_ways + 1) / (scaleup_bandwidth * switch_efficiency)
    wire = Max(near, across / (scaleout_bandwidth * far_efficiency), evaluate=False) * collective_bytes / near_ways
    hops = 2 * (inside * near_latency + across * far_latency)
    return _time(ways, collective_launch, chunk_time, hops, wire)


@formula("collective_time", "cho2019", given=FABRIC, domain=_INSIDE)
def all_reduce_hierarchical(
    collective_bytes, ways, near_ways, mesh_peers, torus_neighbours, scaleup_bandwidth, near_efficiency,
    near_latency, scaleout_bandwidth, far_efficiency, far_latency, collective_launch, chunk_time,
):  # fmt: skip
    """Time of an all-reduce in three phases: reduce-scatter in domains, all-reduce across, all-gather in domains.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce_hierarchical(accelerators.h100, collective_bytes="1 GB", ways=16, near_ways=8) * 1e3, 2)
    7.66
    """
    domains = ways / near_ways
    share = _share(near_ways, mesh_peers, torus_neighbours)
    parts = _one_if_any(near_ways - 1) * ((near_ways - 1) / share + OWN_PART)
    near = parts / (near_ways * scaleup_bandwidth * near_efficiency)
    far = (domains - 1) / (ways * scaleout_bandwidth * far_efficiency)
    hops = 2 * ((near_ways - 1) * near_latency + (domains - 1) * far_latency)
    return _time(ways, collective_launch, chunk_time, hops, 2 * collective_bytes * (near + far))


KINDS = {f.name: f for f in (all_reduce, reduce_scatter, all_gather, all_to_all, send)}
_PORTS = {
    "all_reduce": _reduce_ports, "reduce_scatter": _ring_ports, "all_gather": _ring_ports,
    "all_to_all": _exchange_ports, "send": _send_ports,
}  # fmt: skip


@cache
def collective(kind: str, collective_bytes: Expr, ways: Expr, near_ways: Expr) -> Expr:
    """Return the time of a collective, such as "all_gather", in seconds, as an expression in the given expressions.

    >>> collective("all_reduc", 1, 1, 1)
    Traceback (most recent call last):
        ...
    LookupError: no collective is called 'all_reduc'; did you mean 'all_reduce', 'all_gather' or 'reduce_scatter'?
    """
    if kind not in KINDS:
        raise LookupError(f"no collective is called {quoted(kind)}; {nearest(kind, KINDS)}")
    return KINDS[kind].of(collective_bytes=collective_bytes, ways=ways, near_ways=near_ways)


@cache
def port_times(kind: str, collective_bytes: Expr, ways: Expr, near_ways: Expr) -> tuple[Expr, Expr]:
    """Return the seconds that a collective occupies a device's scale-up and scale-out ports, without launches and hops.

    >>> port_times("send", symbol("traffic"), symbol("pp"), symbol("pp"))[1]
    traffic*Min(0, 1)/(far_efficiency*scaleout_bandwidth)
    """
    x = symbol
    near = x("near_efficiency")
    if kind == "all_reduce":
        near = _switch_or_ring(ways, near_ways, near, x("switch_efficiency"))
    rates = x("scaleup_bandwidth") * near, x("scaleout_bandwidth") * x("far_efficiency")
    size = collective_bytes if kind == "send" else collective_bytes / ways
    share = _share(_PAIR if kind == "send" else near_ways, x("mesh_peers"), x("torus_neighbours"))
    near, far = (port * size for port in _PORTS[kind](ways, near_ways, share, *rates))
    return near, far


@cache
def near_of(ways: Expr, inner: Expr) -> Expr:
    """Return how many of a group's `ways` devices are in one scale-up domain, if its members are `inner` devices apart.

    >>> near_of(symbol("cp"), symbol("tp"))
    Min(cp, Max(1, floor(scaleup_size/tp)))
    """
    inside = floor(symbol("scaleup_size") / inner, evaluate=False)
    return Min(ways, Max(1, inside, evaluate=False), evaluate=False)


@formula("any_slow", "dean2013")
def any_slow(slow_share, ways):
    """Probability that at least one of `ways` devices is slow, if each is slow independently.

    >>> round(any_slow(slow_share=0.005, ways=128), 3)
    0.474
    """
    return 1 - (1 - slow_share) ** ways


__all__ = [*formulas_of(__name__), "KINDS", "OWN_PART", "collective", "near_of", "port_times"]
