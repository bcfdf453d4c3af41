"""More devices for each token, or more copies of the model: what a step gains from tensor parallelism, and loses to it.

A model split over `tp` devices is read in a part of the time, and each device more makes every sum over the group
slower.  The step is shortest where both grow alike, and there half of what the devices could do is already lost; more
copies of the model share the requests instead, and lose nothing to each other but balance.

>>> from scalebook.tables import accelerators, models
>>> row = scaling_up(models.llama3_70b, accelerators.h100, weight_bits=16, tp=8)
>>> round(row.best_tp, 1), round(row.least_token_time * 1e3, 2), round(row.token_time * 1e3, 2)
(12.7, 6.3, 7.0)
"""

from sympy import log, sqrt

from scalebook.inference.tail import normal_largest
from scalebook.inference.tokens import latency_floor
from scalebook.language import Sheet, formula
from scalebook.tables.shapes import used_params

__all__ = [
    "best_replicas", "best_tp_ring", "best_tp_tree", "doubling_time_tree", "idle_tp_ring", "least_token_time_ring",
    "least_token_time_tree", "replica_imbalance", "scaling_efficiency", "scaling_up", "token_time_replicas",
    "token_time_ring", "token_time_tree", "way_time_ring",
]  # fmt: skip

_SMALL = {"steps that more than one device can shorten": lambda latency_floor, way_time: latency_floor > way_time}


# Rings: every device more is two hops more


@formula("way_time", "patarasuk2009", "pope2022 §3.2")
def way_time_ring(layers, near_latency):
    """Two sums over the group in every block; a ring passes each device twice.

    >>> from scalebook.tables import accelerators, models
    >>> round(way_time_ring(models.llama3_70b, accelerators.h100) * 1e3, 4)
    0.2592
    """
    return 2 * layers * 2 * near_latency


@formula("token_time", "erdil2025", given=[latency_floor, way_time_ring])
def token_time_ring(latency_floor, tp, way_time):
    """The weights that a token uses read by all devices at once, and the hops; few bytes go over the links.

    >>> round(token_time_ring(latency_floor="42.1 ms", tp=8, way_time="0.2592 ms") * 1e3, 2)
    7.08
    """
    return latency_floor / tp + way_time * (tp - 1)


@formula("best_tp", "erdil2025", given=[latency_floor, way_time_ring])
def best_tp_ring(latency_floor, way_time):
    """Where a device more saves as much reading as it adds in hops: it grows with the root of the model.

    Doubling the devices shortens the step as long as there are fewer than this over √2.

    >>> round(best_tp_ring(latency_floor="42.1 ms", way_time="0.2592 ms"), 1)
    12.7
    """
    return sqrt(latency_floor / way_time)


@formula("least_token_time", "erdil2025", given=[latency_floor, way_time_ring], domain=_SMALL)
def least_token_time_ring(latency_floor, way_time):
    """The step at that number: it grows with the root of what is read, and of the latency.

    >>> round(least_token_time_ring(latency_floor="42.1 ms", way_time="0.2592 ms") * 1e3, 2)
    6.35
    """
    return 2 * sqrt(latency_floor * way_time) - way_time


@formula("idle_tp", "erdil2025", given=[latency_floor, way_time_ring], domain=_SMALL)
def idle_tp_ring(latency_floor, way_time):
    """So many devices are as slow as one: all that they save is spent on hops.

    >>> round(idle_tp_ring(latency_floor="42.1 ms", way_time="0.2592 ms"))
    162
    """
    return latency_floor / way_time


@formula("scaling_efficiency", "erdil2025", given=[token_time_ring])
def scaling_efficiency(latency_floor, tp, token_time):
    """Speed-up over devices: what is left of a device's worth.  It is about a half where the step is shortest.

    >>> round(scaling_efficiency(latency_floor="42.1 ms", tp=12.74, way_time="0.2592 ms"), 2)
    0.52
    """
    return latency_floor / (tp * token_time)


# Trees: every doubling of the devices is two hops more


@formula("doubling_time", "thakur2005", "pope2022 §3.2")
def doubling_time_tree(layers, near_latency):
    """Two sums over the group in every block; a tree is gone up and down, a level deeper with each doubling.

    >>> from scalebook.tables import accelerators, models
    >>> round(doubling_time_tree(models.llama3_70b, accelerators.h100) * 1e3, 4)
    0.2592
    """
    return 2 * layers * 2 * near_latency


@formula("token_time", "thakur2005", "erdil2025", given=[latency_floor, doubling_time_tree])
def token_time_tree(latency_floor, tp, doubling_time):
    """The weights read by all devices at once, and the levels of a tree.

    >>> round(token_time_tree(latency_floor="42.1 ms", tp=64, doubling_time="0.2592 ms") * 1e3, 2)
    2.21
    """
    return latency_floor / tp + doubling_time * log(tp, 2)


@formula("best_tp", "thakur2005", "erdil2025", given=[latency_floor, doubling_time_tree])
def best_tp_tree(latency_floor, doubling_time):
    """Where a level more costs what it saves: it grows as the model does, and is seldom reached within a domain.

    >>> round(best_tp_tree(latency_floor="42.1 ms", doubling_time="0.2592 ms"))
    113
    """
    return latency_floor * log(2) / doubling_time


_DEEP = {
    "steps that more than one device can shorten": (
        lambda latency_floor, doubling_time: latency_floor * log(2) > doubling_time
    )
}


@formula("least_token_time", "thakur2005", "erdil2025", given=[latency_floor, doubling_time_tree], domain=_DEEP)
def least_token_time_tree(latency_floor, doubling_time):
    """The step at that number: it grows with the latency, and with the logarithm of the model.

    >>> round(least_token_time_tree(latency_floor="42.1 ms", doubling_time="0.2592 ms") * 1e3, 2)
    2.14
    """
    return doubling_time * (1 + log(latency_floor * log(2) / doubling_time)) / log(2)


# More copies of the model


_ENOUGH = {"no more replicas than devices": lambda devices, replicas: replicas <= devices}


@formula("token_time", "erdil2025", given=[latency_floor, way_time_ring], domain=_ENOUGH)
def token_time_replicas(latency_floor, way_time, added_time, users, devices, replicas):
    """The step of one of several copies that share devices and users evenly.

    A copy reads its weights with fewer devices, and has fewer hops.  What users add (`added_time`, of one device) is
    the same with any number of copies, since users and devices are divided alike.

    >>> known = dict(latency_floor="42.1 ms", way_time="0.2592 ms", added_time="50 us", users=256, devices=64)
    >>> [round(token_time_replicas(known, replicas=x) * 1e3, 2) for x in (1, 4, 8)]
    [17.19, 6.72, 7.28]
    """
    ways = devices / replicas
    return latency_floor / ways + added_time * users / devices + way_time * (ways - 1)


@formula("best_replicas", "erdil2025", given=[latency_floor, way_time_ring])
def best_replicas(devices, latency_floor, way_time):
    """As many as each can have its best number of devices: however many users there are, and whatever each adds.

    All users are in every step, so it gives the most tokens a second, too.  Each copy must hold the model.

    >>> round(best_replicas(devices=64, latency_floor="42.1 ms", way_time="0.2592 ms"), 1)
    5.0
    """
    return devices * sqrt(way_time / latency_floor)


@formula("replica_imbalance", "david2003", domain={"two replicas or more": lambda replicas: replicas >= 2})
def replica_imbalance(users, replicas):
    """The fullest copy over the mean where each request goes to any of them at random, independently.

    Loads are nearly normal, with a variance of their mean less the share of one copy; it is the limit for many copies
    and users, 1 % too much for 8 copies with 64 users each.  Sent to the least loaded it is about 1.

    >>> round(replica_imbalance(users=512, replicas=8), 2)
    1.18
    """
    return 1 + normal_largest(replicas) * sqrt((replicas - 1) / users)


scaling_up = Sheet(
    "scaling_up", used_params, latency_floor, way_time_ring, token_time_ring, best_tp_ring, least_token_time_ring,
    idle_tp_ring, scaling_efficiency,
    doc="A step on tensor-parallel devices whose sums run in rings: where more of them stop helping.",
)  # fmt: skip
