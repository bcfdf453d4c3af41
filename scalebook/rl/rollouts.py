"""Reinforcement learning: the time to write answers, the wall of a growing fleet, and the age of answers.

An update writes answers with an engine, takes their log-probabilities, learns from them and brings the new weights to
the engine. The longest answer takes as long on a thousand devices as on eight.

>>> fixed = dict(rollout_tail="141 s", sync_time="5 s", update_overhead="14 s")
>>> round(rollout_wall(fixed, rollout_work=20_000, learning_work=15_000))
219
"""

from sympy import Max, Min, Rational, exp, log, sqrt

from scalebook.inference.tail import normal_largest
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

_HERE = "verl-async"
_OWN = equations(__name__)  # those of rollouts.toml


# Writing answers


@formula("longest_response", "david2003")
def longest_response_capped(response_typical, response_spread, response_most, responses):
    """Tokens of the longest of an update's answers, of lognormal lengths with a cap.

    It is up to 12 % too long if about one answer of an update reaches the cap, and within 2 % otherwise.

    >>> longest_response_capped(response_typical=3757, response_spread=0.8, response_most=28_672, responses=8192)
    28672.0
    """
    return Min(response_most, response_typical * exp(response_spread * normal_largest(responses)))


@formula("rollout_time", _HERE)
def rollout_time_begun(
    pass_base, pass_answer, pass_token, longest_response, responses, response_group, response, response_square, prompt
):
    """Time to write answers that begin together, for any lengths, until the slowest engine has ended.

    A decode step takes `pass_base`, and more for each answer still being written and for each of their tokens. Summed
    over all steps of one engine this is exact: an answer of n tokens is part of n steps, and has p + 0, ..., p + n - 1
    cached tokens. With several engines the slowest counts: its sum of lengths is the largest of one normal draw per
    engine.

    >>> step = dict(pass_base="8 ms", pass_answer="30 us", pass_token="4 ns", longest_response=8000, prompt=500)
    >>> one = dict(response_group=256, response=2000, response_square=6e6)
    >>> round(rollout_time_begun(step, one, responses=256), 2), round(rollout_time_begun(step, one, responses=4096), 2)
    (83.45, 85.05)
    """
    cached = prompt * response + (response_square - response) / 2
    spread = sqrt(response_group * Max(0, response_square - response**2))
    slowest = Rational("1.06") * sqrt(log(Max(1, responses / response_group))) * spread
    each = pass_answer * response + pass_token * cached
    return (
        pass_base * longest_response
        + response_group * each
        + slowest * (pass_answer + pass_token * (prompt + response))
    )


@formula("rollout_tail", _HERE)
def rollout_tail(pass_base, longest_response):
    """Time for which the longest answer alone keeps an engine busy. No number of devices makes it shorter.

    >>> round(rollout_tail(pass_base="4.9 ms", longest_response=28_672))
    140
    """
    return pass_base * longest_response


# An update


@formula("rollout_wall", _HERE)
def rollout_wall(rollout_work, learning_work, rollout_tail, sync_time, update_overhead):
    """Number of devices that makes the longest answer, the weight transfer and the overhead half of an update.

    If parts run one after another, doubling these devices shortens the update by a quarter.

    >>> round(rollout_wall(rollout_work=10_240, learning_work=7168, rollout_tail=140, sync_time=5, update_overhead=14))
    109
    """
    return (rollout_work + learning_work) / (rollout_tail + sync_time + update_overhead)


@formula("staleness", "little1961")
def staleness_in_flight(in_flight, responses):
    """Mean age, in updates, of the answers that are trained on, by Little's law. Their lengths do not matter.

    >>> staleness_in_flight(in_flight=16_384, responses=2048)
    8.0
    """
    return in_flight / responses


_BOTH = (
    _OWN.forward_passes_two, _OWN.logprob_time, _OWN.reward_time_rules, _OWN.learning_work, _OWN.expert_gathers_none,
    _OWN.sync_time, _OWN.rollout_share_best, _OWN.idle_share, _OWN.update_rate, _OWN.update_cost,
)  # fmt: skip
update_together = Sheet(
    "update together", rollout_time_begun, longest_response_capped, rollout_tail, _OWN.rollout_work, rollout_wall,
    *_BOTH, _OWN.update_time_together, doc="An update of reinforcement learning whose parts run one after another.",
)  # fmt: skip
update_apart = Sheet(
    "update apart", _OWN.in_flight_of_age, _OWN.rollout_time_refilled, _OWN.rollout_work_refilled, *_BOTH,
    _OWN.update_time_apart, staleness_in_flight,
    doc="An update of reinforcement learning in which some devices write while others learn.",
)  # fmt: skip


def update_sheet(is_apart: bool) -> Sheet:
    """Return the sheet of an update: parts one after another, or devices that write while others learn.

    >>> update_sheet(True).formulas["update_time"].name
    'update_time_apart'
    """
    return update_apart if is_apart else update_together


__all__ = [*formulas_of(__name__), "update_apart", "update_together"]
