"""Training at several sites (local SGD): what sites exchange, the time over slow links, and the cost.

Each site trains the whole model on its own tokens. After `local_steps` steps (1 is synchronous training) the sites
exchange their parameter changes in a ring.
"""

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.runs import assumptions

_OWN, _RING = equations(__name__), "patarasuk2009"  # those of local_sgd.toml


@formula("site_bytes", _RING)
def site_bytes_ring(params, exchange_bits, sites):
    """Bytes that a site sends in a ring all-reduce: nearly twice the buffer, once to sum it and once to distribute it.

    >>> site_bytes_ring(params=405e9, exchange_bits=16, sites=2) / 1e9
    810.0
    """
    return 2 * (sites - 1) / sites * params * exchange_bits / 8


@formula("site_exchange", _RING, given=[site_bytes_ring, _OWN.site_latency_fibre])
def site_exchange_ring(site_bytes, site_bandwidth, sites, site_latency):
    """Time of an exchange: the bytes over the link, plus the latency of nearly two trips round the ring of sites.

    >>> site_exchange_ring(site_bytes="810 GB", site_bandwidth="10 GB/s", sites=2, site_latency="5 ms")
    81.01
    """
    return site_bytes / site_bandwidth + 2 * (sites - 1) * site_latency


def _is_enough(local_steps, step_time, sites, site_latency):
    return local_steps * step_time > 2 * (sites - 1) * site_latency


_ENOUGH = {"steps that take longer than the way round the ring": _is_enough}


@formula("half_site_bandwidth", _RING, "douillard2023", domain=_ENOUGH)
def half_site_bandwidth(site_bytes, local_steps, step_time, sites, site_latency):
    """Bandwidth that makes an exchange as long as a round of local steps, so waiting sites lose half their time.

    >>> known = dict(site_bytes="810 GB", step_time="6 s", sites=2, site_latency="5 ms")
    >>> round(half_site_bandwidth(known, local_steps=500) / 1e9, 2)
    0.27
    """
    return site_bytes / (local_steps * step_time - 2 * (sites - 1) * site_latency)


training_apart = Sheet(
    "training_apart", _OWN.step_time_apart, assumptions.fibre_delay_usual, _OWN.site_latency_fibre, site_bytes_ring,
    site_exchange_ring, _OWN.sites_lost_waiting, half_site_bandwidth, _OWN.sites_gain,
    doc="A model trained at several sites, which exchange updates over slow links and wait for each exchange.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "training_apart"]
