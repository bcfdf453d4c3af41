"""A new generation of devices: a step gets faster by what it reads and by what it computes, and by nothing else.

Bandwidth speeds up a part of a step and FLOPS another.  What is left, launches and messages that wait for hops, stays,
so that neither ratio of two data sheets is the ratio of two steps.

>>> from scalebook.tables import accelerators
>>> row = next_generation(weights_time="3 ms", cache_time="1 ms", experts_time=0, streams_time=0, products_time=0,
...     pass_time="10 ms", bandwidth_ratio=accelerators.h200.hbm_bandwidth / accelerators.h100.hbm_bandwidth,
...     flops_ratio=1)
>>> round(row.reading_share, 2), round(row.generation_gain, 2)
(0.4, 1.14)
"""

from scalebook.language import Sheet, formula

__all__ = [
    "bandwidth_ratio", "computing_share", "flops_ratio", "generation_gain", "next_generation", "reading_share",
]  # fmt: skip

_PARTS = {
    "shares that come to no more than all": lambda reading_share, computing_share: reading_share + computing_share <= 1
}


@formula("bandwidth_ratio", "amdahl1967")
def bandwidth_ratio(next_bandwidth, hbm_bandwidth):
    """What the data sheets say of the memory.

    >>> round(bandwidth_ratio(next_bandwidth="8 TB/s", hbm_bandwidth="3.35 TB/s"), 2)
    2.39
    """
    return next_bandwidth / hbm_bandwidth


@formula("flops_ratio", "amdahl1967")
def flops_ratio(next_flops, peak_flops):
    """What the data sheets say of the arithmetic.

    >>> flops_ratio(next_flops="2 PFLOP/s", peak_flops="1 PFLOP/s")
    2.0
    """
    return next_flops / peak_flops


@formula("reading_share", "williams2009 §3")
def reading_share(weights_time, cache_time, experts_time, streams_time, pass_time):
    """Weights, caches, experts and what streams through memory between the products, of the whole step.

    Experts of few tokens are read and hardly computed, so all of their time counts as reading.

    >>> reading_share(weights_time="2 ms", cache_time="1 ms", experts_time=0, streams_time="1 ms", pass_time="10 ms")
    0.4
    """
    return (weights_time + cache_time + experts_time + streams_time) / pass_time


@formula("computing_share", "williams2009 §3")
def computing_share(products_time, pass_time):
    """What products take beyond the reading of their weights, of the whole step.

    >>> computing_share(products_time="1 ms", pass_time="10 ms")
    0.1
    """
    return products_time / pass_time


@formula(
    "generation_gain", "amdahl1967", given=[reading_share, computing_share, bandwidth_ratio, flops_ratio], domain=_PARTS
)
def generation_gain(reading_share, computing_share, bandwidth_ratio, flops_ratio):
    """How many times as fast the step is where a part of it gets faster as bandwidth does, a part as FLOPS do.

    The rest is taken to last as long as before: from the H100 to the B200 launches got a little shorter and hops
    longer.  Reading that arithmetic would hide counts as reading, so with many users it says a little too much.

    >>> generation_gain(reading_share=0.5, computing_share=0, bandwidth_ratio=2, flops_ratio=3)
    1.3333333333333333
    """
    rest = 1 - reading_share - computing_share
    return 1 / (reading_share / bandwidth_ratio + computing_share / flops_ratio + rest)


next_generation = Sheet(
    "a step on a new generation", bandwidth_ratio, flops_ratio, reading_share, computing_share, generation_gain,
    doc="What a step gains from a device's bandwidth and from its FLOPS.",
)  # fmt: skip
