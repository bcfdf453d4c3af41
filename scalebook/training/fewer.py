"""Fewer synchronisations: gradients compressed or late, and a batch dealt to devices of unequal speed.

Steps taken alone are in `apart`.  What is compressed is exchanged there with fewer bits a parameter
(`exchange_bits_compressed`).  Bytes, times and shares follow from what is done; what it does to learning does not, and
stands here only as the bound under which descent on a quadratic is stable at all.

>>> rank = compression_rank(gradient_rows=4096, gradient_columns=4096, gradient_rank=32)
>>> rank, exchange_bits_compressed(gradient_bits=32, compression=rank)
(64.0, 0.5)
"""

from sympy import Integer, ceiling, floor, pi, sin

from scalebook.language import formula

__all__ = [
    "compression_bits", "compression_rank", "compression_share_rank", "compression_time_passes", "compression_top",
    "exchange_bits_compressed", "passes_of_bits", "passes_of_rank", "paying_bandwidth_ring", "pool_gain_equal",
    "pool_gain_whole", "pool_lost_equal", "pool_lost_whole", "stable_rate_delayed", "staleness_exchange",
    "staleness_workers", "top_ways_gathered",
]  # fmt: skip

_RANK, _TOP = "vogels2019", "lin2018-dgc"


# Compressed gradients


@formula("compression", "alistarh2017")
def compression_bits(gradient_bits, exchange_bits):
    """Each gradient with fewer bits; scales that several share are left out.

    >>> compression_bits(gradient_bits=32, exchange_bits=8)
    4.0
    """
    return gradient_bits / exchange_bits


@formula("compression", _TOP)
def compression_top(gradient_bits, top_share, entry_bits):
    """The largest alone, each with its place; the rest is kept by its device and added to the next step's.

    >>> compression_top(gradient_bits=32, top_share=0.001, entry_bits=32)
    500.0
    """
    return gradient_bits / (top_share * (gradient_bits + entry_bits))


@formula("compression", _RANK + " §3")
def compression_rank(gradient_rows, gradient_columns, gradient_rank):
    """In place of a matrix two thin ones, whose product it nearly is.

    >>> compression_rank(gradient_rows=4096, gradient_columns=14336, gradient_rank=32).__round__(1)
    99.6
    """
    return gradient_rows * gradient_columns / (gradient_rank * (gradient_rows + gradient_columns))


@formula("exchange_bits", _RANK + " §3")
def exchange_bits_compressed(gradient_bits, compression):
    """Bits of an exchange for each parameter, as if all gradients were compressed alike.

    >>> exchange_bits_compressed(gradient_bits=32, compression=100)
    0.32
    """
    return gradient_bits / compression


@formula("top_ways", _TOP)
def top_ways_gathered(compression):
    """The largest gradients of one device are not those of another, so they are gathered and not summed: every device
    sends those of all, where a sum in a ring sends all gradients twice however many take part.

    >>> top_ways_gathered(compression=500)
    1000.0
    """
    return 2 * compression


@formula("compression_passes", "seide2014")
def passes_of_bits():
    """Gradients and what was left of the last are read, the sum's new rest is written, and what came is written back.

    >>> passes_of_bits()
    4.0
    """
    return Integer(4)


@formula("compression_passes", _RANK + " §3")
def passes_of_rank():
    """Three to add what was left, one for each of two products, and three to subtract and write what came of them.

    >>> passes_of_rank()
    8.0
    """
    return Integer(8)


@formula("compression_time", "williams2009 §3", given=[passes_of_rank])
def compression_time_passes(params, gradient_bits, compression_passes, hbm_bandwidth):
    """Streams through memory, `params` those of the device.  Products of few columns wait for memory as well.

    >>> compression_time_passes(params=8e9, gradient_bits=32, hbm_bandwidth="3.35 TB/s").__round__(3)
    0.076
    """
    return params * gradient_bits / 8 * compression_passes / hbm_bandwidth


@formula("compression_share", _RANK + " §3")
def compression_share_rank(gradient_rank, replica_tokens):
    """Two products to compress a matrix and one to restore it, 6 FLOP a parameter and unit of rank; a step takes 6 a
    parameter and token.

    >>> compression_share_rank(gradient_rank=32, replica_tokens="32768 token")
    0.0009765625
    """
    return gradient_rank / replica_tokens


_SEVERAL = {"several ways": lambda ways: ways > 1}


@formula("paying_bandwidth", "patarasuk2009", _RANK, given=[passes_of_rank], domain=_SEVERAL)
def paying_bandwidth_ring(ways, compression, compression_passes, hbm_bandwidth):
    """Where a ring's all-reduce takes as much longer as compressing takes: the parameters cancel.

    Of exchanges that nothing hides.  The bandwidth is that of each device that compresses.

    >>> paying_bandwidth_ring(ways=16, compression=64, hbm_bandwidth="3.35 TB/s") / 1e9
    772.88818359375
    """
    return 2 * (ways - 1) / ways * (1 - 1 / compression) * hbm_bandwidth / compression_passes


# Late gradients


@formula("staleness", "koloskova2022")
def staleness_workers(ways):
    """Workers that exchange each for itself: between its start and its use all others have been used once, on the mean.

    >>> staleness_workers(ways=64)
    63.0
    """
    return ways - 1


@formula("staleness", "douillard2025")
def staleness_exchange(site_exchange, local_steps, step_time):
    """Exchanges beside steps: the rounds of steps that pass until one is done, as a pipeline delays its weights.

    >>> staleness_exchange(site_exchange="81 s", local_steps=10, step_time="6 s")
    2.0
    """
    return ceiling(site_exchange / (local_steps * step_time))


@formula("stable_rate", "yang2019-pipemare")
def stable_rate_delayed(staleness):
    """Descent on a quadratic with gradients that are so many updates old: 2 of fresh ones, then as one over the delay.

    >>> stable_rate_delayed(staleness=0), stable_rate_delayed(staleness=7).__round__(3)
    (2.0, 0.209)
    """
    return 2 * sin(pi / (4 * staleness + 2))


# Devices of unequal speed


@formula("pool_lost", "jia2022-whale")
def pool_lost_equal(fast_devices, slow_devices, speed_ratio):
    """All with as many tokens: the faster wait for the slower.

    >>> pool_lost_equal(fast_devices=8, slow_devices=8, speed_ratio=0.5).__round__(3)
    0.333
    """
    return fast_devices * (1 - speed_ratio) / (fast_devices + slow_devices * speed_ratio)


@formula("pool_lost", "jia2022-whale")
def pool_lost_whole(fast_devices, slow_devices, speed_ratio, fast_microbatches):
    """In proportion to speed, but whole micro-batches: what the slower could have done in the faster ones' time.

    >>> pool_lost_whole(fast_devices=8, slow_devices=8, speed_ratio=0.32, fast_microbatches=8).__round__(3)
    0.053
    """
    own = floor(speed_ratio * fast_microbatches)
    left = slow_devices * (speed_ratio - own / fast_microbatches)
    return left / (fast_devices + slow_devices * speed_ratio)


@formula("pool_gain", "jia2022-whale")
def pool_gain_equal(fast_devices, slow_devices, speed_ratio):
    """All with as many tokens; below one the slower had better stay out.

    >>> pool_gain_equal(fast_devices=8, slow_devices=8, speed_ratio=0.32)
    0.64
    """
    return speed_ratio * (fast_devices + slow_devices) / fast_devices


@formula("pool_gain", "jia2022-whale")
def pool_gain_whole(fast_devices, slow_devices, speed_ratio, fast_microbatches):
    """In proportion to speed, in whole micro-batches; slower devices with none had better stay out.

    >>> pool_gain_whole(fast_devices=8, slow_devices=8, speed_ratio=0.32, fast_microbatches=8)
    1.25
    """
    own = floor(speed_ratio * fast_microbatches)
    return 1 + slow_devices * own / (fast_devices * fast_microbatches)
