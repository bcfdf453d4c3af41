"""Training at several sites: closed forms beside the training step, beside executed rounds, and what must be true."""

import pytest

from scalebook import runs, training_step
from scalebook.runs import site_bytes_ring, training_apart
from scalebook.tables import accelerators, frameworks, models

H100 = accelerators.h100.at("bf16")
RUN = {"devices": 8192, "mfu": 0.4, "batch_tokens": 16e6, "exchange_bits": 16, "site_distance": 1000}


def apart(**changed):
    known = {**RUN, "sites": 2, "site_bandwidth": 10e9, "local_steps": 1, **changed}
    return training_apart(models.llama3_405b, H100, known)


@pytest.mark.parametrize("sites", [2, 4, 16])
@pytest.mark.parametrize(("port", "latency"), [(1e9, 1e-5), (1e7, 1e-5), (1e9, 0.04)])
def test_a_training_step_over_slow_links_says_the_same(sites, port, latency):
    """A node is a site, each device with its part of the line; gradients go out in 32 bits, weights come back in 16."""
    slow = dict(scaleout_bandwidth=port, far_latency=latency, far_efficiency=1, near_latency=0, collective_launch=0)
    run = training_step(models.llama3_8b, H100, frameworks.plain, tp=8, seq=8192, microbatches=16, dp=sites, **slow)
    sent = site_bytes_ring(params=models.llama3_8b.params, exchange_bits=24, sites=sites)
    said = runs.site_exchange_ring(site_bytes=sent, site_bandwidth=8 * port, sites=sites, site_latency=latency)
    assert run.dp_exposed == pytest.approx(said, rel=0.005)


@pytest.mark.parametrize("local_steps", [1, 10, 500])
@pytest.mark.parametrize("sites", [2, 8])
def test_half_is_lost_at_that_bandwidth(sites, local_steps):
    row = apart(sites=sites, local_steps=local_steps)
    again = apart(sites=sites, local_steps=local_steps, site_bandwidth=row.half_site_bandwidth)
    assert again.sites_lost == pytest.approx(0.5) and again.sites_gain == pytest.approx(sites / 2)
