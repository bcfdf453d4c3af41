"""Reinforcement learning: the time to write answers, the wall of a growing fleet, and the age of answers.

An update writes answers with an engine, takes their log-probabilities, learns from them and brings the new weights to
the engine. The longest answer takes as long on a thousand devices as on eight.

>>> fixed = dict(rollout_tail="141 s", sync_time="5 s", update_overhead="14 s")
>>> round(rollout_wall(fixed, rollout_work=20_000, learning_work=15_000))
219
"""

from sympy import Max, Min, Rational, exp, log, sqrt

from scalebook.inference.tail import normal_largest
from scalebook.language import Sheet, constant, formula

__all__ = [
    "expert_gathers_none", "forward_passes_two", "idle_share", "in_flight_of_age", "learning_work", "logprob_time",
    "longest_response_capped", "reward_time_rules", "rollout_share_best", "rollout_tail", "rollout_time_begun",
    "rollout_time_refilled", "rollout_wall", "rollout_work", "rollout_work_refilled", "staleness_in_flight",
    "sync_time", "update_apart", "update_cost", "update_rate", "update_time_apart", "update_time_together",
    "update_together",
]  # fmt: skip

_HERE = "verl-async"


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


@formula("rollout_time", _HERE)
def rollout_time_refilled(
    pass_base, pass_answer, pass_token, response_group, in_flight, responses, response, response_square, prompt
):
    """Time to write the answers of an update if a new answer takes the place of each that ends.

    >>> step = dict(pass_base="8 ms", pass_answer="30 us", pass_token="4 ns", response_group=256, in_flight=8192)
    >>> round(rollout_time_refilled(step, responses=8192, response=2000, response_square=6e6, prompt=500), 2)
    35.45
    """
    cached = prompt + (response_square / response - 1) / 2
    step = pass_base + response_group * (pass_answer + pass_token * cached)
    return responses / in_flight * response * step


@formula("rollout_tail", _HERE)
def rollout_tail(pass_base, longest_response):
    """Time for which the longest answer alone keeps an engine busy. No number of devices makes it shorter.

    >>> round(rollout_tail(pass_base="4.9 ms", longest_response=28_672))
    140
    """
    return pass_base * longest_response


@formula("rollout_work", _HERE)
def rollout_work(rollout_time, rollout_tail, rollout_devices):
    """Device-seconds of writing answers without the tail. More devices share them.

    >>> rollout_work(rollout_time="300 s", rollout_tail="140 s", rollout_devices=64)
    10240.0
    """
    return Max(0, rollout_time - rollout_tail) * rollout_devices


@formula("rollout_work", _HERE)
def rollout_work_refilled(rollout_time, rollout_devices):
    """Device-seconds of writing answers if a new answer takes the place of each that ends: there is no tail.

    >>> rollout_work_refilled(rollout_time="300 s", rollout_devices=64)
    19200.0
    """
    return rollout_time * rollout_devices


# Learning from them


forward_passes_two = constant(
    "forward_passes_two", "forward_passes", 2, _HERE, "Log-probabilities of the policy and of a reference."
)


@formula("logprob_time", _HERE, given=[forward_passes_two])
def logprob_time(learning_time, forward_passes):
    """Time of log-probabilities: a forward pass is a third of a training step's arithmetic.

    >>> logprob_time(learning_time="84 s", forward_passes=1)
    28.0
    """
    return learning_time * forward_passes / 3


reward_time_rules = constant(
    "reward_time_rules", "reward_time", 0, "nemo-rl-03", "Rules score answers; what they take is in `update_overhead`."
)


@formula("learning_work", _HERE)
def learning_work(learning_time, logprob_time, reward_time, train_devices):
    """Device-seconds of learning, of log-probabilities and of a reward model.

    >>> learning_work(learning_time="84 s", logprob_time="28 s", reward_time=0, train_devices=64)
    7168.0
    """
    return (learning_time + logprob_time + reward_time) * train_devices


expert_gathers_none = constant(
    "expert_gathers_none", "expert_gathers", 0, "verl-delta", "The trainer gathers experts' weights as it does others'."
)


@formula("sync_time", "verl-delta", given=[expert_gathers_none])
def sync_time(params, active_params, expert_gathers, weight_bits, scaleout_bandwidth, sync_share):
    """Time to bring new weights to the engines: each device gets them all through a share of one scale-out link.

    A trainer may gather the experts' weights once more. Experts' weights are counted as the weights that one token does
    not use.

    >>> known = dict(params="30.5e9", active_params="3.3e9", weight_bits=16, scaleout_bandwidth="50 GB/s")
    >>> round(sync_time(known, sync_share=0.5), 2), round(sync_time(known, sync_share=0.5, expert_gathers=1), 2)
    (2.44, 4.62)
    """
    gathered = params + expert_gathers * (params - active_params)
    return gathered * weight_bits / 8 / (scaleout_bandwidth * sync_share)


# An update


@formula("update_time", _HERE, given=[logprob_time, reward_time_rules, sync_time])
def update_time_together(rollout_time, reward_time, logprob_time, learning_time, sync_time, update_overhead):
    """Time of an update whose parts run one after another.

    >>> rest = dict(logprob_time=28, learning_time=84, sync_time=5, update_overhead=14)
    >>> update_time_together(rest, rollout_time=300, reward_time=10)
    441.0
    """
    return rollout_time + reward_time + logprob_time + learning_time + sync_time + update_overhead


@formula("update_time", _HERE, given=[logprob_time, reward_time_rules, sync_time])
def update_time_apart(rollout_time, reward_time, logprob_time, learning_time, sync_time, update_overhead):
    """Time of an update if some devices write answers while others learn from earlier ones.

    >>> rest = dict(logprob_time=28, learning_time=84, sync_time=5, update_overhead=14)
    >>> update_time_apart(rest, rollout_time=300, reward_time=10)
    300.0
    """
    return Max(rollout_time, reward_time + logprob_time + learning_time + sync_time + update_overhead)


@formula("idle_share", _HERE)
def idle_share(update_time, rollout_work, learning_work, devices):
    """Share of the device time of an update in which devices wait: for the longest answer, for weights or for others.

    >>> idle_share(update_time="431 s", rollout_work=10_240, learning_work=7168, devices=64).__round__(2)
    0.37
    """
    return Max(0, 1 - (rollout_work + learning_work) / (devices * update_time))


@formula("rollout_wall", _HERE)
def rollout_wall(rollout_work, learning_work, rollout_tail, sync_time, update_overhead):
    """Number of devices that makes the longest answer, the weight transfer and the overhead half of an update.

    If parts run one after another, doubling these devices shortens the update by a quarter.

    >>> round(rollout_wall(rollout_work=10_240, learning_work=7168, rollout_tail=140, sync_time=5, update_overhead=14))
    109
    """
    return (rollout_work + learning_work) / (rollout_tail + sync_time + update_overhead)


@formula("rollout_share", _HERE)
def rollout_share_best(rollout_work, learning_work):
    """Share of the devices that should write answers, so that engines and learners take equally long.

    >>> round(rollout_share_best(rollout_work=10_240, learning_work=7168), 2)
    0.59
    """
    return rollout_work / (rollout_work + learning_work)


@formula("in_flight", "little1961")
def in_flight_of_age(responses, age):
    """Answers in flight that make answers this old, on average, when the trainer uses them.

    >>> in_flight_of_age(responses=2048, age=8)
    16384.0
    """
    return responses * age


@formula("staleness", "little1961")
def staleness_in_flight(in_flight, responses):
    """Mean age, in updates, of the answers that are trained on, by Little's law. Their lengths do not matter.

    >>> staleness_in_flight(in_flight=16_384, responses=2048)
    8.0
    """
    return in_flight / responses


@formula("update_rate", _HERE)
def update_rate(responses, response, update_time):
    """Tokens of answers that are trained on per second.

    >>> round(update_rate(responses=8192, response=5000, update_time="431 s"))
    95035
    """
    return responses * response / update_time


@formula("update_cost", _HERE)
def update_cost(update_time, devices, price_hour):
    """Cost of an update: the rent of all its devices.

    >>> round(update_cost(update_time="431 s", devices=64, price_hour="3 $/h"), 2)
    22.99
    """
    return update_time * devices * price_hour / 3600


_BOTH = (
    forward_passes_two, logprob_time, reward_time_rules, learning_work, expert_gathers_none, sync_time,
    rollout_share_best, idle_share, update_rate, update_cost,
)  # fmt: skip
update_together = Sheet(
    "update together", rollout_time_begun, longest_response_capped, rollout_tail, rollout_work, rollout_wall, *_BOTH,
    update_time_together, doc="An update of reinforcement learning whose parts run one after another.",
)  # fmt: skip
update_apart = Sheet(
    "update apart", in_flight_of_age, rollout_time_refilled, rollout_work_refilled, *_BOTH, update_time_apart,
    staleness_in_flight, doc="An update of reinforcement learning in which some devices write while others learn.",
)  # fmt: skip


def update_sheet(is_apart: bool) -> Sheet:
    """Return the sheet of an update: parts one after another, or devices that write while others learn.

    >>> update_sheet(True).formulas["update_time"].name
    'update_time_apart'
    """
    return update_apart if is_apart else update_together
