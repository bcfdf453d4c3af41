"""More devices per token, or more copies of the model: gains and losses of tensor parallelism.

Each further device shortens the reading of weights and lengthens every all-reduce. The step is shortest where both
balance. Copies of the model share the requests instead, and lose only load balance.
"""

from sympy import log, sqrt

from scalebook.inference.tail import normal_largest
from scalebook.inference.tokens import latency_floor
from scalebook.language import Sheet, formula, formulas_of
from scalebook.tables.shapes import used_params

_SMALL = {"steps that more than one device can shorten": lambda latency_floor, way_time: latency_floor > way_time}


# Rings: every further device adds two hops


@formula("way_time", "patarasuk2009", "pope2022 §3.2")
def way_time_ring(layers, near_latency):
    """Time that one further device adds to a step: two hops in each of the two ring all-reduces of a block.

    >>> round(way_time_ring(layers=80, near_latency="0.81 us") * 1e3, 4)
    0.2592
    """
    return 2 * layers * 2 * near_latency


@formula("token_time", "erdil2025", given=[latency_floor, way_time_ring])
def token_time_ring(latency_floor, tp, way_time):
    """Time of a step with ring all-reduces: reading the weights, and the hops; the bytes on the links are left out.

    >>> round(token_time_ring(latency_floor="42.1 ms", tp=8, way_time="0.2592 ms") * 1e3, 2)
    7.08
    """
    return latency_floor / tp + way_time * (tp - 1)


@formula("best_tp", "erdil2025", given=[latency_floor, way_time_ring])
def best_tp_ring(latency_floor, way_time):
    """Number of tensor-parallel devices with the shortest step for ring all-reduces; doubling pays up to this over √2.

    >>> round(best_tp_ring(latency_floor="42.1 ms", way_time="0.2592 ms"), 1)
    12.7
    """
    return sqrt(latency_floor / way_time)


@formula("least_token_time", "erdil2025", given=[latency_floor, way_time_ring], domain=_SMALL)
def least_token_time_ring(latency_floor, way_time):
    """Shortest step with ring all-reduces; it grows with the square root of the bytes read and of the latency.

    >>> round(least_token_time_ring(latency_floor="42.1 ms", way_time="0.2592 ms") * 1e3, 2)
    6.35
    """
    return 2 * sqrt(latency_floor * way_time) - way_time


@formula("idle_tp", "erdil2025", given=[latency_floor, way_time_ring], domain=_SMALL)
def idle_tp_ring(latency_floor, way_time):
    """Number of tensor-parallel devices that make a step as slow as on one device.

    >>> round(idle_tp_ring(latency_floor="42.1 ms", way_time="0.2592 ms"))
    162
    """
    return latency_floor / way_time


@formula("scaling_efficiency", "erdil2025", given=[token_time_ring])
def scaling_efficiency(latency_floor, tp, token_time):
    """Speed-up over the number of devices; about one half at the number with the shortest step.

    >>> round(scaling_efficiency(latency_floor="42.1 ms", tp=12.74, way_time="0.2592 ms"), 2)
    0.52
    """
    return latency_floor / (tp * token_time)


# Trees: every doubling of the devices adds two hops


@formula("doubling_time", "thakur2005", "pope2022 §3.2")
def doubling_time_tree(layers, near_latency):
    """Time that doubling the devices adds to a step: two tree all-reduces in every block, up and down one more level.

    >>> round(doubling_time_tree(layers=80, near_latency="0.81 us") * 1e3, 4)
    0.2592
    """
    return 2 * layers * 2 * near_latency


@formula("token_time", "thakur2005", "erdil2025", given=[latency_floor, doubling_time_tree])
def token_time_tree(latency_floor, tp, doubling_time):
    """Time of a step on tensor-parallel devices with tree all-reduces: reading the weights, and the trees' levels.

    >>> round(token_time_tree(latency_floor="42.1 ms", tp=64, doubling_time="0.2592 ms") * 1e3, 2)
    2.21
    """
    return latency_floor / tp + doubling_time * log(tp, 2)


@formula("best_tp", "thakur2005", "erdil2025", given=[latency_floor, doubling_time_tree])
def best_tp_tree(latency_floor, doubling_time):
    """Number of tensor-parallel devices with the shortest step, for tree all-reduces; seldom within a scale-up domain.

    >>> round(best_tp_tree(latency_floor="42.1 ms", doubling_time="0.2592 ms"))
    113
    """
    return latency_floor * log(2) / doubling_time


def _can_shorten(latency_floor, doubling_time):
    return latency_floor * log(2) > doubling_time


_DEEP = {"steps that more than one device can shorten": _can_shorten}


@formula("least_token_time", "thakur2005", "erdil2025", given=[latency_floor, doubling_time_tree], domain=_DEEP)
def least_token_time_tree(latency_floor, doubling_time):
    """Shortest step over all `tp`, from a one-device step (`latency_floor`) and the time a doubling of `tp` adds.

    >>> round(least_token_time_tree(latency_floor="42.1 ms", doubling_time="0.2592 ms") * 1e3, 2)
    2.14
    """
    return doubling_time * (1 + log(latency_floor * log(2) / doubling_time)) / log(2)


# More copies of the model


_ENOUGH = {"no more replicas than devices": lambda devices, replicas: replicas <= devices}


@formula("token_time", "erdil2025", given=[latency_floor, way_time_ring], domain=_ENOUGH)
def token_time_replicas(latency_floor, way_time, added_time, users, devices, replicas):
    """Time of a step if copies of the model share devices and users evenly, and a user adds `added_time` on one device.

    >>> known = dict(latency_floor="42.1 ms", way_time="0.2592 ms", added_time="50 us", users=256, devices=64)
    >>> [round(token_time_replicas(known, replicas=x) * 1e3, 2) for x in (1, 4, 8)]
    [17.19, 6.72, 7.28]
    """
    ways = devices / replicas
    return latency_floor / ways + added_time * users / devices + way_time * (ways - 1)


@formula("best_replicas", "erdil2025", given=[latency_floor, way_time_ring])
def best_replicas(devices, latency_floor, way_time):
    """Number of copies of the model with the shortest step, each on `best_tp` devices; whether they fit is not checked.

    >>> round(best_replicas(devices=64, latency_floor="42.1 ms", way_time="0.2592 ms"), 1)
    5.0
    """
    return devices * sqrt(way_time / latency_floor)


@formula("replica_imbalance", "david2003", domain={"two replicas or more": lambda replicas: replicas >= 2})
def replica_imbalance(users, replicas):
    """Load of the fullest copy over the mean, if requests go to copies at random and independently.

    The limit for many copies and users: 1 % too high for 8 copies with 64 users each.

    >>> round(replica_imbalance(users=512, replicas=8), 2)
    1.18
    """
    return 1 + normal_largest(replicas) * sqrt((replicas - 1) / users)


scaling_up = Sheet(
    "scaling_up", used_params, latency_floor, way_time_ring, token_time_ring, best_tp_ring, least_token_time_ring,
    idle_tp_ring, scaling_efficiency,
    doc="A step on tensor-parallel devices with ring all-reduces: the number of devices where more stop helping.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "scaling_up"]
