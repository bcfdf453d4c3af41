"""Collectives over two tiers: some devices of a group share a scale-up domain ("near"), the others are "far".

A collective costs a start, its hops, its bytes at the rate achieved, and what cutting the bytes into chunks costs.
Rings run through all near devices and cross to the next domain once for each of them, so that every device's own
scale-out port is used; both tiers work at once, and the slower sets the pace.  `ways=1` costs nothing.  Of a mesh or a
torus a group uses the links between its own members (`group_share`); what a device keeps needs none.

>>> from scalebook.tables import accelerators
>>> known = dict(collective_bytes="256 MB", ways=16)
>>> [round(all_gather(accelerators.h100, known, near_ways=near) * 1e3, 2) for near in (16, 8, 1)]
[0.72, 0.74, 5.43]
"""

from functools import cache

from sympy import Expr, Integer, Max, Min, Mul, Rational, floor, sqrt
from sympy.utilities.iterables import sift

from scalebook.language import formula, symbol
from scalebook.language.notation import nearest
from scalebook.machine.collective_rates import FABRIC, doublings, group_share

__all__ = [
    "KINDS", "OWN_PART", "all_gather", "all_gather_hierarchical", "all_reduce", "all_reduce_hierarchical",
    "all_reduce_in_network", "all_reduce_ring", "all_to_all", "collective", "near_of", "port_times", "reduce_scatter",
    "send",
]  # fmt: skip

# A device's own part is not sent but copied within its memory, in the measured half of the time of a part that is.
OWN_PART = Rational(1, 2)
_PAIR = Integer(2)  # a message goes over the links between two devices, however many are in the group
_NCCL = "nccl §tuning.cc"
_INSIDE = {"no more devices near each other than take part": lambda near_ways, ways: near_ways <= ways}


@cache
def _some(count):
    """1 for a count of one or more, 0 for none."""
    return Min(1, count, evaluate=False)


def _time(ways, collective_launch, chunk_time, hops, wire):
    """What all kinds have in common: no group, no cost."""
    return _some(ways - 1) * collective_launch + hops + wire + 2 * _root(chunk_time * wire)


def _root(product):
    """Its square root, letter by letter: of a product as a whole SymPy asks in many ways whether it is imaginary."""
    letters, others = sift(Mul.make_args(product), _is_letter, binary=True)
    return Mul(*map(sqrt, letters), sqrt(Mul(*others)))


def _is_letter(factor):
    """Whether a factor is a number or a letter, the larger or smaller of some or a power of one, and not negative."""
    base = factor.base if factor.is_Pow else factor
    if base.func in (Max, Min):
        return all(map(_is_letter, base.args))
    return bool((base.is_Symbol or base.is_Number) and base.is_nonnegative)


def _ring_hops(ways, near_ways, near_latency, far_latency):
    domains = ways / near_ways
    return (ways - domains) * near_latency + (domains - 1) * far_latency


# Seconds that the scale-up and the scale-out ports of a device are busy with each byte of a part.


@cache
def _share(near_ways, mesh_peers, torus_neighbours):
    return group_share.of(near_ways=near_ways, mesh_peers=mesh_peers, torus_neighbours=torus_neighbours)


def _ring_ports(ways, near_ways, share, near_rate, far_rate):
    near = _some(near_ways - 1) * ((ways - 1) / share + OWN_PART) / near_rate
    return near, _some(ways - near_ways) * (ways - 1) / (near_ways * far_rate)


def _reduce_ports(ways, near_ways, share, near_rate, far_rate):
    near = _some(near_ways - 1) * ((2 * ways - 2) / share + OWN_PART) / near_rate
    return near, _some(ways - near_ways) * 2 * (ways - 1) / (near_ways * far_rate)


def _exchange_ports(ways, near_ways, share, near_rate, far_rate):
    near = _some(near_ways - 1) * ((near_ways - 1) / share + OWN_PART) / near_rate
    return near, (ways - near_ways) / far_rate


def _send_ports(ways, near_ways, share, near_rate, far_rate):  # each byte of the message, which goes whole
    return _some(near_ways - 1) / (share * near_rate), _some(ways - near_ways) / far_rate


def _wire(ports, collective_bytes, ways):
    return Max(*ports, evaluate=False) * collective_bytes / ways


def _gather(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    share = _share(near_ways, mesh_peers, torus_neighbours)
    ports = _ring_ports(
        ways, near_ways, share, scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    )
    hops = _ring_hops(ways, near_ways, near_latency, far_latency)
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


# The kinds


@formula("collective_time", "patarasuk2009", _NCCL, "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def all_gather(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """Rings through the group: each part passes all devices but one, the near ports carry them all,
    the far ports share.

    `collective_bytes` is what every device ends with.

    >>> from scalebook.tables import accelerators
    >>> round(all_gather(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    2.52
    """
    return _gather(
        collective_bytes,
        ways,
        near_ways,
        mesh_peers,
        torus_neighbours,
        scaleup_bandwidth,
        near_efficiency,
        near_latency,
        scaleout_bandwidth,
        far_efficiency,
        far_latency,
        collective_launch,
        chunk_time,
    )


@formula("collective_time", "patarasuk2009", _NCCL, "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def reduce_scatter(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """The all-gather run backward.

    `collective_bytes` is what every device starts from.

    >>> from scalebook.tables import accelerators
    >>> round(reduce_scatter(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    2.52
    """
    return _gather(
        collective_bytes,
        ways,
        near_ways,
        mesh_peers,
        torus_neighbours,
        scaleup_bandwidth,
        near_efficiency,
        near_latency,
        scaleout_bandwidth,
        far_efficiency,
        far_latency,
        collective_launch,
        chunk_time,
    )


def _switch_or_ring(ways, near_ways, near_efficiency, switch_efficiency):
    """The faster of the two, as a share of the ring's bytes over the bandwidth."""
    summed = (2 * ways - 2 + OWN_PART) * near_ways / (ways * (near_ways + 1))
    return Max(near_efficiency, summed * switch_efficiency, evaluate=False)


def _reduce_hops(ways, near_ways, near_latency, far_latency):
    return 2 * ((near_ways - 1) * near_latency + doublings(ways / near_ways) * far_latency)


@formula("collective_time", "patarasuk2009", "klenk2020", _NCCL, "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def all_reduce(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    switch_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """Rings, or sums in the scale-up switch where these are faster; hops as of a tree between the domains.

    Where the switch sums nothing (`switch_efficiency` 0), this is a ring in every domain.

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
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """A reduce-scatter and an all-gather along rings, whatever the switch could do.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce_ring(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    4.79
    """
    share = _share(near_ways, mesh_peers, torus_neighbours)
    ports = _reduce_ports(
        ways, near_ways, share, scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    )
    hops = 2 * _ring_hops(ways, near_ways, near_latency, far_latency)
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


@formula("collective_time", "thakur2005", "aiconfigurator-nccl", given=FABRIC, domain=_INSIDE)
def all_to_all(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """Each device sends each other its part: near parts over the one tier, far parts over the other, at once.

    `collective_bytes` is what one device starts from, its own part included.

    >>> from scalebook.tables import accelerators
    >>> round(all_to_all(accelerators.h100, collective_bytes="1 GB", ways=8, near_ways=8) * 1e3, 2)
    2.52
    """
    share = _share(near_ways, mesh_peers, torus_neighbours)
    ports = _exchange_ports(
        ways, near_ways, share, scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    )
    hops = doublings(near_ways) * near_latency + doublings(ways / near_ways) * far_latency
    return _time(ways, collective_launch, chunk_time, hops, _wire(ports, collective_bytes, ways))


@formula("collective_time", "hockney1994", "vidur", given=FABRIC, domain=_INSIDE)
def send(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
):
    """One device to the next of its group, over the slowest link between neighbours; cutting it up costs nothing.

    >>> from scalebook.tables import accelerators
    >>> round(send(accelerators.h100, collective_bytes="1 GB", ways=2, near_ways=1) * 1e3, 1)
    21.1
    """
    share = _share(_PAIR, mesh_peers, torus_neighbours)
    ports = _send_ports(
        ways, near_ways, share, scaleup_bandwidth * near_efficiency, scaleout_bandwidth * far_efficiency
    )
    hops = Max(_some(near_ways - 1) * near_latency, _some(ways - near_ways) * far_latency, evaluate=False)
    return _some(ways - 1) * collective_launch + hops + Max(*ports, evaluate=False) * collective_bytes


# Other ways of an all-reduce


@formula(
    "collective_time",
    "klenk2020",
    "nccl-tests §PERFORMANCE",
    domain=_INSIDE | {"switches that sum": lambda switch_efficiency: switch_efficiency > 0},
)
def all_reduce_in_network(
    collective_bytes,
    ways,
    near_ways,
    scaleup_bandwidth,
    switch_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """Switches sum on both tiers: a near port sends the buffer and the sum of its part, a far port its part once.

    The hops are the same for any group.  What switches between nodes reach was not measured here.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce_in_network(accelerators.h100, collective_bytes="1 GB", ways=1024, near_ways=8) * 1e3, 2)
    4.04
    """
    inside, across = _some(near_ways - 1), _some(ways - near_ways)
    near = inside * (near_ways + 1) / (scaleup_bandwidth * switch_efficiency)
    wire = Max(near, across / (scaleout_bandwidth * far_efficiency), evaluate=False) * collective_bytes / near_ways
    hops = 2 * (inside * near_latency + across * far_latency)
    return _time(ways, collective_launch, chunk_time, hops, wire)


@formula("collective_time", "cho2019", given=FABRIC, domain=_INSIDE)
def all_reduce_hierarchical(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """Reduce-scatter in every domain, all-reduce of each part across them, all-gather: one after another.

    Fewer bytes cross than along rings, and the tiers wait for each other.

    >>> from scalebook.tables import accelerators
    >>> round(all_reduce_hierarchical(accelerators.h100, collective_bytes="1 GB", ways=16, near_ways=8) * 1e3, 2)
    7.66
    """
    domains = ways / near_ways
    share = _share(near_ways, mesh_peers, torus_neighbours)
    parts = _some(near_ways - 1) * ((near_ways - 1) / share + OWN_PART)
    near = parts / (near_ways * scaleup_bandwidth * near_efficiency)
    far = (domains - 1) / (ways * scaleout_bandwidth * far_efficiency)
    hops = 2 * ((near_ways - 1) * near_latency + (domains - 1) * far_latency)
    return _time(ways, collective_launch, chunk_time, hops, 2 * collective_bytes * (near + far))


@formula("collective_time", "cho2019", given=FABRIC, domain=_INSIDE)
def all_gather_hierarchical(
    collective_bytes,
    ways,
    near_ways,
    mesh_peers,
    torus_neighbours,
    scaleup_bandwidth,
    near_efficiency,
    near_latency,
    scaleout_bandwidth,
    far_efficiency,
    far_latency,
    collective_launch,
    chunk_time,
):
    """Across the domains first, then in every domain: half of the hierarchical all-reduce.

    >>> from scalebook.tables import accelerators
    >>> round(all_gather_hierarchical(accelerators.h100, collective_bytes="1 GB", ways=16, near_ways=8) * 1e3, 2)
    3.89
    """
    domains = ways / near_ways
    share = _share(near_ways, mesh_peers, torus_neighbours)
    parts = _some(near_ways - 1) * ((near_ways - 1) / share + OWN_PART)
    near = parts / (near_ways * scaleup_bandwidth * near_efficiency)
    far = (domains - 1) / (ways * scaleout_bandwidth * far_efficiency)
    hops = (near_ways - 1) * near_latency + (domains - 1) * far_latency
    return _time(ways, collective_launch, chunk_time, hops, collective_bytes * (near + far))


KINDS = {f.name: f for f in (all_reduce, reduce_scatter, all_gather, all_to_all, send)}
_PORTS = {
    "all_reduce": _reduce_ports, "reduce_scatter": _ring_ports, "all_gather": _ring_ports,
    "all_to_all": _exchange_ports,
    "send": _send_ports,
}  # fmt: skip


@cache
def collective(kind: str, collective_bytes: Expr, ways: Expr, near_ways: Expr) -> Expr:
    """The usual time of a kind of collective, with these expressions in the place of letters.

    Raises LookupError for a kind that there is not.

    >>> collective("send", symbol("traffic"), symbol("pp"), symbol("pp")).free_symbols >= {symbol("traffic"),
    ...                                                                                    symbol("pp")}
    True
    >>> collective("all_reduc", 1, 1, 1)
    Traceback (most recent call last):
        ...
    LookupError: no collective is called 'all_reduc'; did you mean 'all_reduce'?
    """
    if kind not in KINDS:
        raise LookupError(f"no collective is called {kind!r}; {nearest(kind, KINDS)}")
    return KINDS[kind].of(collective_bytes=collective_bytes, ways=ways, near_ways=near_ways)


@cache
def port_times(kind: str, collective_bytes: Expr, ways: Expr, near_ways: Expr) -> tuple[Expr, Expr]:
    """Seconds that a collective keeps a device's scale-up and its scale-out ports busy, starts and hops aside.

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
    """Devices of a group within one scale-up domain, where so many (`inner`) neighbours belong to other dimensions.

    >>> near_of(symbol("cp"), symbol("tp"))
    Min(cp, Max(1, floor(scaleup_size/tp)))
    """
    inside = floor(symbol("scaleup_size") / inner, evaluate=False)
    return Min(ways, Max(1, inside, evaluate=False), evaluate=False)
