"""Training at several sites (local SGD): what sites exchange, the time over slow links, and the cost.

Each site trains the whole model on its own tokens. After `local_steps` steps (1 is synchronous training) the sites
exchange their parameter changes in a ring.
"""

from scalebook.language import Sheet, formula, formulas_of
from scalebook.runs import assumptions

_RING = "patarasuk2009"


@formula("site_latency", "mapyourtech-fibre", given=[assumptions.fibre_delay_usual])
def site_latency_fibre(site_distance, fibre_delay):
    """Least latency between two sites. Real routes are longer and pass through network devices.

    >>> site_latency_fibre(site_distance=1000)
    0.005
    """
    return site_distance * fibre_delay


@formula("step_time", "kaplan2020 §2.1")
def step_time_apart(active_params, batch_tokens, sites, devices, peak_flops, mfu):
    """Time of a site's step: 6 FLOPs per parameter and token on an equal part of the tokens. `devices` are one site's.

    >>> step_time_apart(active_params=1e12, batch_tokens=16e6, sites=2, devices=8000, peak_flops=1e15, mfu=0.5)
    12.0
    """
    return 6 * active_params * batch_tokens / (sites * devices * peak_flops * mfu)


@formula("site_bytes", _RING)
def site_bytes_ring(params, exchange_bits, sites):
    """Bytes that a site sends in a ring all-reduce: nearly twice the buffer, once to sum it and once to distribute it.

    >>> site_bytes_ring(params=405e9, exchange_bits=16, sites=2) / 1e9
    810.0
    """
    return 2 * (sites - 1) / sites * params * exchange_bits / 8


@formula("site_exchange", _RING, given=[site_bytes_ring, site_latency_fibre])
def site_exchange_ring(site_bytes, site_bandwidth, sites, site_latency):
    """Time of an exchange: the bytes over the link, plus the latency of nearly two trips round the ring of sites.

    >>> site_exchange_ring(site_bytes="810 GB", site_bandwidth="10 GB/s", sites=2, site_latency="5 ms")
    81.01
    """
    return site_bytes / site_bandwidth + 2 * (sites - 1) * site_latency


@formula("sites_lost", "douillard2023")
def sites_lost_waiting(site_exchange, local_steps, step_time):
    """Share of time lost if sites wait for each exchange: exchange time over the time of local steps and exchange.

    >>> sites_lost_waiting(site_exchange="81 s", local_steps=100, step_time="6 s").__round__(3)
    0.119
    """
    return site_exchange / (site_exchange + local_steps * step_time)


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


@formula("sites_gain", "douillard2023")
def sites_gain(sites, sites_lost):
    """Speedup of all sites together over one site alone. Below 1 a site should train alone.

    >>> sites_gain(sites=2, sites_lost=0.5)
    1.0
    """
    return sites * (1 - sites_lost)


training_apart = Sheet(
    "training_apart", step_time_apart, assumptions.fibre_delay_usual, site_latency_fibre, site_bytes_ring,
    site_exchange_ring, sites_lost_waiting, half_site_bandwidth, sites_gain,
    doc="A model trained at several sites, which exchange updates over slow links and wait for each exchange.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "training_apart"]
