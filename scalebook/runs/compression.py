"""Compressed or late gradients: bytes, times and shares. Their effect on learning is left out, except for a bound."""

from sympy import pi, sin

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.renamed import renamed
from scalebook.runs import assumptions

__getattr__ = renamed(__name__)
equations(__name__)  # those of compression.toml

# Compressed gradients


_SEVERAL = {"several ways": lambda ways: ways > 1}


@formula("paying_bandwidth", "patarasuk2009", "vogels2019", given=[assumptions.passes_of_rank], domain=_SEVERAL)
def paying_bandwidth_ring(ways, compression, compression_passes, hbm_bandwidth):
    """Bandwidth of each device below which compression pays in a ring all-reduce that nothing hides.

    >>> paying_bandwidth_ring(ways=16, compression=64, hbm_bandwidth="3.35 TB/s") / 1e9
    772.88818359375
    """
    return 2 * (ways - 1) / ways * (1 - 1 / compression) * hbm_bandwidth / compression_passes


# Late gradients


@formula("stable_rate", "yang2019-pipemare")
def stable_rate_delayed(staleness):
    """Largest stable learning rate of descent on a quadratic with late gradients, times its curvature: 2 without delay.

    >>> stable_rate_delayed(staleness=0), stable_rate_delayed(staleness=7).__round__(3)
    (2.0, 0.209)
    """
    return 2 * sin(pi / (4 * staleness + 2))


__all__ = [*formulas_of(__name__)]
