"""Compressed or late gradients: bytes, times and shares. Their effect on learning is left out, except for a bound."""

from sympy import pi, sin

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.renamed import renamed
from scalebook.runs import assumptions

__getattr__ = renamed(__name__)
equations(__name__)  # those of compression.toml

# Compressed gradients


@formula("compression_time", "williams2009 §3", given=[assumptions.passes_of_rank])
def compression_time_passes(params, gradient_bits, compression_passes, hbm_bandwidth):
    """Time to compress gradients: passes over the gradients of a device's `params`, at memory bandwidth.

    >>> compression_time_passes(params=8e9, gradient_bits=32, hbm_bandwidth="3.35 TB/s").__round__(3)
    0.076
    """
    return params * gradient_bits / 8 * compression_passes / hbm_bandwidth


@formula("compression_share", "vogels2019 §3")
def compression_share_rank(gradient_rank, replica_tokens):
    """FLOPs of low-rank compression, 6 per parameter and unit of rank, over the FLOPs of a step.

    >>> compression_share_rank(gradient_rank=32, replica_tokens="32768 token")
    0.0009765625
    """
    return gradient_rank / replica_tokens


_SEVERAL = {"several ways": lambda ways: ways > 1}


@formula("paying_bandwidth", "patarasuk2009", "vogels2019", given=[assumptions.passes_of_rank], domain=_SEVERAL)
def paying_bandwidth_ring(ways, compression, compression_passes, hbm_bandwidth):
    """Bandwidth of each device below which compression pays in a ring all-reduce that nothing hides.

    >>> paying_bandwidth_ring(ways=16, compression=64, hbm_bandwidth="3.35 TB/s") / 1e9
    772.88818359375
    """
    return 2 * (ways - 1) / ways * (1 - 1 / compression) * hbm_bandwidth / compression_passes


# Late gradients


@formula("staleness", "koloskova2022")
def staleness_workers(ways):
    """Delay of a gradient, in updates, if workers exchange asynchronously: one update by every other worker on average.

    >>> staleness_workers(ways=64)
    63.0
    """
    return ways - 1


@formula("stable_rate", "yang2019-pipemare")
def stable_rate_delayed(staleness):
    """Largest stable learning rate of descent on a quadratic with late gradients, times its curvature: 2 without delay.

    >>> stable_rate_delayed(staleness=0), stable_rate_delayed(staleness=7).__round__(3)
    (2.0, 0.209)
    """
    return 2 * sin(pi / (4 * staleness + 2))


__all__ = [*formulas_of(__name__)]
