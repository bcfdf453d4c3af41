"""Training at several sites: what they exchange, how long that takes over slow links, and what it costs them.

Each site holds the model and takes tokens of its own.  After so many steps on its own, one where training is
synchronous, it exchanges with all others how its parameters have changed.  The sites form a ring, as the devices of an
all-reduce do: what one sends hardly depends on how many there are.

>>> from scalebook.tables import accelerators, models
>>> row = training_apart(models.llama3_405b, accelerators.h100.at("bf16"), sites=2, devices=8192, mfu=0.4,
...                      batch_tokens=16e6, exchange_bits=16, site_bandwidth="10 GB/s", site_distance=1000,
...                      local_steps=1)
>>> round(row.step_time, 1), round(row.site_exchange), round(row.sites_lost, 3), round(row.sites_gain, 2)
(6.0, 81, 0.931, 0.14)
"""

from sympy import Max, S

from scalebook.language import Sheet, formula

__all__ = [
    "fibre_delay_usual", "half_site_bandwidth", "site_bytes_ring", "site_exchange_ring", "site_latency_fibre",
    "sites_gain", "sites_lost_overlapped", "sites_lost_waiting", "step_time_apart", "training_apart",
]  # fmt: skip

_RING = "patarasuk2009"


@formula("fibre_delay", "mapyourtech-fibre")
def fibre_delay_usual():
    """Light travels 200,000 km/s in glass: an index of refraction of 1.5, a little more than that of fibres.

    >>> fibre_delay_usual()
    5e-06
    """
    return S(5) / 10**6


@formula("site_latency", "mapyourtech-fibre", given=[fibre_delay_usual])
def site_latency_fibre(site_distance, fibre_delay):
    """What nothing can be faster than; routes have detours, and devices along them.

    >>> site_latency_fibre(site_distance=1000)
    0.005
    """
    return site_distance * fibre_delay


@formula("step_time", "kaplan2020 §2.1")
def step_time_apart(active_params, batch_tokens, sites, devices, peak_flops, mfu):
    """6 FLOP a parameter and token, and an equal part of the tokens at each site; `devices` are those of one.

    >>> step_time_apart(active_params=405e9, batch_tokens=16e6, sites=2, devices=8192, peak_flops="989.4 TFLOP/s",
    ...                 mfu=0.4).__round__(2)
    6.0
    """
    return 6 * active_params * batch_tokens / (sites * devices * peak_flops * mfu)


@formula("site_bytes", _RING)
def site_bytes_ring(params, exchange_bits, sites):
    """A ring sends nearly twice what is summed, however many take part: once to sum it, once to hand it round.

    >>> site_bytes_ring(params=405e9, exchange_bits=16, sites=2) / 1e9
    810.0
    """
    return 2 * (sites - 1) / sites * params * exchange_bits / 8


@formula("site_exchange", _RING, given=[site_bytes_ring, site_latency_fibre])
def site_exchange_ring(site_bytes, site_bandwidth, sites, site_latency):
    """Twice round the ring but for one link each time: bytes over the link, and the way to the next site.

    >>> site_exchange_ring(site_bytes="810 GB", site_bandwidth="10 GB/s", sites=2, site_latency="5 ms")
    81.01
    """
    return site_bytes / site_bandwidth + 2 * (sites - 1) * site_latency


@formula("sites_lost", "douillard2023")
def sites_lost_waiting(site_exchange, local_steps, step_time):
    """Sites that wait until an exchange is done: its share of a round of steps and one exchange.

    >>> sites_lost_waiting(site_exchange="81 s", local_steps=100, step_time="6 s").__round__(3)
    0.119
    """
    return site_exchange / (site_exchange + local_steps * step_time)


@formula("sites_lost", "douillard2025")
def sites_lost_overlapped(site_exchange, local_steps, step_time):
    """Sites that go on with the next steps meanwhile, and wait only where an exchange takes longer than these.

    >>> known = dict(site_exchange="81 s", step_time="6 s")
    >>> sites_lost_overlapped(known, local_steps=10).__round__(3), sites_lost_overlapped(known, local_steps=14)
    (0.259, 0.0)
    """
    return Max(0, 1 - local_steps * step_time / site_exchange, evaluate=False)


_ENOUGH = {
    "steps that take longer than the way round the ring": (
        lambda local_steps, step_time, sites, site_latency: local_steps * step_time > 2 * (sites - 1) * site_latency
    )
}


@formula("half_site_bandwidth", _RING, "douillard2023", domain=_ENOUGH)
def half_site_bandwidth(site_bytes, local_steps, step_time, sites, site_latency):
    """Where an exchange takes as long as the steps between two, so that sites which wait for it lose half.

    >>> known = dict(site_bytes="810 GB", step_time="6 s", sites=2, site_latency="5 ms")
    >>> [round(half_site_bandwidth(known, local_steps=x) / 1e9, 2) for x in (1, 500)]
    [135.23, 0.27]
    """
    return site_bytes / (local_steps * step_time - 2 * (sites - 1) * site_latency)


@formula("sites_gain", "douillard2023")
def sites_gain(sites, sites_lost):
    """What they do together over what one could do alone; below one it had better stay alone.

    >>> sites_gain(sites=2, sites_lost=0.5)
    1.0
    """
    return sites * (1 - sites_lost)


training_apart = Sheet(
    "training_apart", step_time_apart, fibre_delay_usual, site_latency_fibre, site_bytes_ring, site_exchange_ring,
    sites_lost_waiting, half_site_bandwidth, sites_gain,
    doc="A model trained at several sites that exchange their updates over slow links, and wait for it.",
)  # fmt: skip
