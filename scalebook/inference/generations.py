"""Speed-up of a step on a new generation of devices, by Amdahl's law: launches and latencies stay as they are."""

from scalebook.language import Sheet, formula

__all__ = ["bandwidth_ratio", "computing_share", "flops_ratio", "generation_gain", "next_generation", "reading_share"]

_PARTS = {
    "shares that come to no more than all": lambda reading_share, computing_share: reading_share + computing_share <= 1
}


@formula("bandwidth_ratio", "amdahl1967")
def bandwidth_ratio(next_bandwidth, hbm_bandwidth):
    """Memory bandwidth of the new device over the old one, from the data sheets.

    >>> round(bandwidth_ratio(next_bandwidth="8 TB/s", hbm_bandwidth="3.35 TB/s"), 2)
    2.39
    """
    return next_bandwidth / hbm_bandwidth


@formula("flops_ratio", "amdahl1967")
def flops_ratio(next_flops, peak_flops):
    """Peak FLOP/s of the new device over the old one, from the data sheets.

    >>> flops_ratio(next_flops="2 PFLOP/s", peak_flops="1 PFLOP/s")
    2.0
    """
    return next_flops / peak_flops


@formula("reading_share", "williams2009 §3")
def reading_share(weights_time, cache_time, experts_time, streams_time, pass_time):
    """Share of a step's time spent on memory: weights, caches, streams, and experts (too few tokens to compute long).

    >>> reading_share(weights_time="2 ms", cache_time="1 ms", experts_time=0, streams_time="1 ms", pass_time="10 ms")
    0.4
    """
    return (weights_time + cache_time + experts_time + streams_time) / pass_time


@formula("computing_share", "williams2009 §3")
def computing_share(products_time, pass_time):
    """Share of a step's time spent on arithmetic: the time of products, less the time to read their weights.

    >>> computing_share(products_time="1 ms", pass_time="10 ms")
    0.1
    """
    return products_time / pass_time


@formula(
    "generation_gain", "amdahl1967", given=[reading_share, computing_share, bandwidth_ratio, flops_ratio], domain=_PARTS
)
def generation_gain(reading_share, computing_share, bandwidth_ratio, flops_ratio):
    """Speed-up of a step on the new device: memory time shrinks with bandwidth, arithmetic with FLOP/s.

    The rest is assumed to last as long as before. With many users the gain is slightly too large.

    >>> generation_gain(reading_share=0.5, computing_share=0, bandwidth_ratio=2, flops_ratio=3)
    1.3333333333333333
    """
    rest = 1 - reading_share - computing_share
    return 1 / (reading_share / bandwidth_ratio + computing_share / flops_ratio + rest)


next_generation = Sheet(
    "a step on a new generation", bandwidth_ratio, flops_ratio, reading_share, computing_share, generation_gain,
    doc="Speed-up of a step from a new device's bandwidth and FLOP/s.",
)  # fmt: skip
