"""More devices per token, or more copies of the model: gains and losses of tensor parallelism.

Each further device shortens the reading of weights and lengthens every all-reduce. The step is shortest where both
balance. Copies of the model share the requests instead, and lose only load balance.
"""

from sympy import sqrt

from scalebook.inference.tail import normal_largest
from scalebook.inference.tokens import latency_floor
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.tables.shapes import used_params

_OWN = equations(__name__)  # those of scaling.toml


@formula("replica_imbalance", "david2003", domain={"two replicas or more": lambda replicas: replicas >= 2})
def replica_imbalance(users, replicas):
    """Load of the fullest copy over the mean, if requests go to copies at random and independently.

    The limit for many copies and users: 1 % too high for 8 copies with 64 users each.

    >>> round(replica_imbalance(users=512, replicas=8), 2)
    1.18
    """
    return 1 + normal_largest(replicas) * sqrt((replicas - 1) / users)


scaling_up = Sheet(
    "scaling_up", used_params, latency_floor, _OWN.way_time_ring, _OWN.token_time_ring, _OWN.best_tp_ring,
    _OWN.least_token_time_ring, _OWN.idle_tp_ring, _OWN.scaling_efficiency,
    doc="A step on tensor-parallel devices with ring all-reduces: the number of devices where more stop helping.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "scaling_up"]
