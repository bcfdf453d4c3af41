"""Pauses of sessions by their law, and the time for which a cache outlives them."""

from sympy import Rational, log, tanh

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.notation import expression


def normal_share(x):
    """Return the share of a normal distribution below `x` standard deviations, within 0.0002 (a logistic curve).

    >>> [round(float(normal_share(x)), 3) for x in (-1, 0, 1, 2)]  # they are 0.159, 0.5, 0.841 and 0.977
    [0.159, 0.5, 0.841, 0.977]
    """
    x = expression(x)
    return (1 + tanh((Rational("0.07056") * x**3 + Rational("1.5976") * x) / 2)) / 2


_OWN = equations(__name__)  # those of session_pauses.toml


@formula("found_turns", "fricker2012", "bowling2009")
def found_turns_lognormal(kept_pause, pause, pause_spread):
    """Share of turns whose lognormal pause ends before their cache is evicted.

    >>> round(found_turns_lognormal(kept_pause="30 s", pause="5.2 s", pause_spread=1.18), 3)
    0.931
    """
    return normal_share(log(kept_pause / pause) / pause_spread)


@formula("pause_kept", "fricker2012", "bowling2009", given=[_OWN.pause_mean_lognormal, found_turns_lognormal])
def pause_kept_lognormal(kept_pause, pause, pause_spread, pause_mean, found_turns):
    """Mean time of a lognormal pause that passes while its cache is kept.

    >>> round(pause_kept_lognormal(kept_pause="30 s", pause="5.2 s", pause_spread=1.18), 2)
    8.53
    """
    near = normal_share(log(kept_pause / pause) / pause_spread - pause_spread)
    return pause_mean * near + kept_pause * (1 - found_turns)


__all__ = [*formulas_of(__name__)]
