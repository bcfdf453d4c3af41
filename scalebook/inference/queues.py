"""Queueing formulas of serving: latency and load of one server that reads prompts and writes answers.

A step takes `base_time + batch * added_time` and gives each sequence a token. A prompt is read between two steps in
`prompt_time`, which gives its first token. In an open loop `rate` requests arrive per second; in a closed loop each of
`users` users sends the next request when the last is answered. Memory is assumed to hold every sequence.
"""

from sympy import Max, S

from scalebook.inference.assumptions import batch_closed
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of queues.toml

# Conditions that several formulas share
SPARE_TIME = {"a load below 1": lambda load: load < 1}
TARGET_ABOVE_BASE = {
    "a target above the time of a step without sequences": lambda tpot_target, base_time: tpot_target > base_time
}
READABLE = {"prompts that take less than all of the time": lambda prompt_load: prompt_load < 1}
SEVERAL_TOKENS = {"answers of more than one token": lambda output: output > 1}
SOME_USER = {"at least one user": lambda users: users >= 1}


@formula("tpot", "zhong2024", domain=SEVERAL_TOKENS)
def tpot_from_ends(end_to_end, ttft, output):
    """Time per output token, by definition: the time after the first token over the number of tokens after it.

    >>> tpot_from_ends(end_to_end="2.04 s", ttft="40 ms", output=201)
    0.01
    """
    return (end_to_end - ttft) / (output - 1)


# An open loop: requests arrive at random, whatever the server does


@formula("tpot", "kleinrock1975", "little1961", given=[_OWN.load_open], domain=SPARE_TIME)
def tpot_open(base_time, load):
    """Mean time per output token in an open loop: the fixed time of a step over the share of time left for it.

    Simulated answers of 200 tokens are within 4 % up to a load of 0.8 with prompts of 30 ms; with prompts of 300 ms
    they take 18 % longer.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> [round(tpot_open(server, rate=x) * 1e3, 2) for x in (2, 8, 16)]
    [10.87, 14.71, 27.78]
    """
    return base_time / (1 - load)


def _excess(prompt_time, prompt_load):
    """Excess of the step that reads a prompt over the mean step: long steps cluster and meet more arrivals."""
    return prompt_time / (1 - prompt_load**2)


@formula("tpot", "kleinrock1975", given=[_OWN.load_open, _OWN.prompt_load], domain=SPARE_TIME)
def tpot_open_beside(base_time, added_time, prompt_time, output, load, prompt_load):
    """Mean time per output token in an open loop whose steps read prompts and decode together.

    It is within 5 % of simulated means up to a load of 0.7, for prompts as long as 30 steps.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200)
    >>> [round(tpot_open_beside(server, prompt_time=p, rate=8) * 1e3, 2) for p in ("3 ms", "30 ms", "60 ms")]
    [11.22, 14.85, 23.34]
    """
    own = base_time + added_time
    return (own + load * _excess(prompt_time, prompt_load) / output) / (1 - load)


@formula("ttft", "kleinrock1975", given=[tpot_open_beside, _OWN.prompt_load], domain=READABLE)
def ttft_beside(tpot, prompt_time, prompt_load):
    """Time to first token if steps read prompts and decode: the rest of the running step, then the prompt's own step.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> round(ttft_beside(server, rate=8) * 1e3, 1)
    57.9
    """
    met = tpot + prompt_load * _excess(prompt_time, prompt_load)
    return tpot * (1 - prompt_load) + prompt_time + (S.Half + prompt_load) * met


@formula("batch", "little1961", given=[tpot_open])
def batch_open(rate, output, tpot):
    """Answers in progress at once, by Little's law.

    >>> round(batch_open(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms", rate=8), 1)
    23.5
    """
    return rate * output * tpot


@formula("capacity", "kleinrock1975", domain=TARGET_ABOVE_BASE)
def capacity_open(base_time, added_time, prompt_time, output, tpot_target):
    """Highest request rate that lets an open loop meet a target for the time per output token.

    >>> capacity_open(base_time="10 ms", added_time="50 us", prompt_time="30 ms", output=200, tpot_target="20 ms")
    12.5
    """
    return (1 - base_time / tpot_target) / (output * added_time + prompt_time)


@formula("queue_time", "kleinrock1975", given=[_OWN.prompt_load], domain=READABLE)
def queue_time_prompts(prompt_time, prompt_load):
    """Mean time that prompts wait for each other (M/D/1): random arrivals, equal reading times.

    >>> round(queue_time_prompts(rate=8, prompt_time="30 ms") * 1e3, 2)
    4.74
    """
    return prompt_load * prompt_time / (2 * (1 - prompt_load))


@formula("queue_time", "kleinrock1975", "fuhrmann1985", given=[_OWN.prompt_load], domain=READABLE)
def queue_time_open(prompt_time, prompt_load, token_time):
    """Mean waiting time of prompts on a server that runs decode steps when no prompt waits.

    It is the M/D/1 queue plus half a step, exactly so if steps are equally long.

    >>> round(queue_time_open(rate=8, prompt_time="30 ms", token_time="11.2 ms") * 1e3, 2)
    10.34
    """
    return queue_time_prompts.of(prompt_time=prompt_time, prompt_load=prompt_load) + token_time / 2


open_loop = Sheet(
    "open_loop", _OWN.load_open, tpot_open, batch_open, _OWN.token_time_linear, _OWN.prompt_load, queue_time_open,
    _OWN.ttft, _OWN.end_to_end, _OWN.littles_law, _OWN.user_rate, _OWN.device_rate_served, capacity_open,
    _OWN.headroom, _OWN.half_speed_batch,
    doc="Requests that arrive at random at one server: latency, requests in the system, and capacity.",
)  # fmt: skip


# A closed loop: each user sends the next request when the last is answered


@formula("end_to_end", "little1961", domain=SOME_USER)
def end_to_end_closed(users, output, token_time, prompt_time):
    """Time from a user's request to the next in a closed loop: the steps of one answer, and one prompt of every user.

    >>> end_to_end_closed(users=32, output=200, token_time="11.6 ms", prompt_time="30 ms")
    3.2684
    """
    return (output - 1) * token_time + users * prompt_time


@formula("queue_time", "kleinrock1975", domain=SEVERAL_TOKENS | SOME_USER)
def queue_time_closed(users, output, prompt_time):
    """Mean waiting time of a prompt in a closed loop with users out of step.

    >>> round(queue_time_closed(users=32, output=200, prompt_time="30 ms") * 1e3, 2)
    2.34
    """
    return (users - 1) / Max(1, output - 1, evaluate=False) * prompt_time / 2


closed_loop = Sheet(
    "closed_loop", batch_closed, _OWN.token_time_linear, end_to_end_closed, queue_time_closed, _OWN.ttft,
    tpot_from_ends, _OWN.rate_closed, _OWN.user_rate, _OWN.device_rate_served, _OWN.half_speed_batch,
    doc="Users who each send the next request when the last is answered: latency and throughput.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "closed_loop", "open_loop"]
