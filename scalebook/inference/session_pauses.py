"""Pauses of sessions by their law, and the time for which a cache outlives them."""

from sympy import Rational, exp, log, sqrt, tanh

from scalebook.language import formula, formulas_of
from scalebook.language.notation import expression


def normal_share(x):
    """Return the share of a normal distribution below `x` standard deviations, within 0.0002 (a logistic curve).

    >>> [round(float(normal_share(x)), 3) for x in (-1, 0, 1, 2)]  # they are 0.159, 0.5, 0.841 and 0.977
    [0.159, 0.5, 0.841, 0.977]
    """
    x = expression(x)
    return (1 + tanh((Rational("0.07056") * x**3 + Rational("1.5976") * x) / 2)) / 2


@formula("pause_mean", "kleinrock1975")
def pause_mean_lognormal(pause, pause_spread):
    """Mean of lognormal pauses, or of constant ones if their spread is 0.

    >>> round(pause_mean_lognormal(pause="5.2 s", pause_spread=1.18), 2)
    10.43
    """
    return pause * exp(pause_spread**2 / 2)


@formula("pause_deviation", "kleinrock1975", given=[pause_mean_lognormal])
def pause_deviation_lognormal(pause_mean, pause_spread):
    """Standard deviation of lognormal pauses.

    >>> round(pause_deviation_lognormal(pause_mean="10 s", pause_spread=0.3), 2)
    3.07
    """
    return pause_mean * sqrt(exp(pause_spread**2) - 1)


@formula("pause_deviation", "kleinrock1975")
def pause_deviation_exponential(pause_mean):
    """Standard deviation of exponential pauses: their mean.

    >>> pause_deviation_exponential(pause_mean="10 s")
    10.0
    """
    return pause_mean


@formula("pause_mean", "kleinrock1975")
def pause_mean_exponential(pause):
    """Mean of exponential pauses, given their median.

    >>> round(pause_mean_exponential(pause="5.2 s"), 2)
    7.5
    """
    return pause / log(2)


@formula("found_turns", "fricker2012", "bowling2009")
def found_turns_lognormal(kept_pause, pause, pause_spread):
    """Share of turns whose lognormal pause ends before their cache is evicted.

    >>> round(found_turns_lognormal(kept_pause="30 s", pause="5.2 s", pause_spread=1.18), 3)
    0.931
    """
    return normal_share(log(kept_pause / pause) / pause_spread)


@formula("found_turns", "fricker2012", given=[pause_mean_exponential])
def found_turns_exponential(kept_pause, pause_mean):
    """Share of turns whose exponential pause ends before their cache is evicted.

    >>> round(found_turns_exponential(kept_pause="10 s", pause_mean="10 s"), 3)
    0.632
    """
    return 1 - exp(-kept_pause / pause_mean)


@formula("pause_kept", "fricker2012", "bowling2009", given=[pause_mean_lognormal, found_turns_lognormal])
def pause_kept_lognormal(kept_pause, pause, pause_spread, pause_mean, found_turns):
    """Mean time of a lognormal pause that passes while its cache is kept.

    >>> round(pause_kept_lognormal(kept_pause="30 s", pause="5.2 s", pause_spread=1.18), 2)
    8.53
    """
    near = normal_share(log(kept_pause / pause) / pause_spread - pause_spread)
    return pause_mean * near + kept_pause * (1 - found_turns)


@formula("pause_kept", "fricker2012", given=[pause_mean_exponential])
def pause_kept_exponential(pause_mean, found_turns):
    """Mean time of an exponential pause that passes while its cache is kept.

    >>> pause_kept_exponential(pause_mean="10 s", found_turns=0.9)
    9.0
    """
    return pause_mean * found_turns


@formula("kept_time", "fricker2012")
def kept_time_of_pause(kept_pause, queue_time):
    """Time that an unused cache is kept: the longest pause that it outlives, and the wait that follows the pause.

    >>> kept_time_of_pause(kept_pause="30 s", queue_time="0.5 s")
    30.5
    """
    return kept_pause + queue_time


__all__ = [*formulas_of(__name__)]
