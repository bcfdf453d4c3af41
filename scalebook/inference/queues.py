"""Queueing formulas of serving: latency and load of one server that reads prompts and writes answers.

A step takes `base_time + batch * added_time` and gives each sequence a token. A prompt is read between two steps in
`prompt_time`, which gives its first token. In an open loop `rate` requests arrive per second; in a closed loop each of
`users` users sends the next request when the last is answered. Memory is assumed to hold every sequence.
"""

from sympy import Max, S

from scalebook.inference.assumptions import batch_closed
from scalebook.language import Sheet, formula, formulas_of

# Conditions that several formulas share
SPARE_TIME = {"a load below 1": lambda load: load < 1}
TARGET_ABOVE_BASE = {
    "a target above the time of a step without sequences": lambda tpot_target, base_time: tpot_target > base_time
}
READABLE = {"prompts that take less than all of the time": lambda prompt_load: prompt_load < 1}
SEVERAL_TOKENS = {"answers of more than one token": lambda output: output > 1}
SOME_USER = {"at least one user": lambda users: users >= 1}


# Open and closed loops


@formula("token_time", "yu2022")
def token_time_linear(base_time, added_time, batch):
    """Time of a decode step: a fixed part, and what each sequence adds.

    >>> token_time_linear(base_time="10 ms", added_time="50 us", batch=64)
    0.0132
    """
    return base_time + batch * added_time


@formula("half_speed_batch", "yu2022")
def half_speed_batch(base_time, added_time):
    """Batch that doubles the time of an empty step. A token then costs twice the lowest cost that it can have.

    >>> half_speed_batch(base_time="10 ms", added_time="50 us")
    200.0
    """
    return base_time / added_time


@formula("ttft", "yu2022")
def ttft(queue_time, prompt_time):
    """Time to first token: the prompt waits and is read.

    >>> ttft(queue_time="10 ms", prompt_time="30 ms")
    0.04
    """
    return queue_time + prompt_time


@formula("end_to_end", "zhong2024")
def end_to_end(ttft, output, tpot):
    """Time of a whole answer: the first token, and `tpot` for each of the others.

    >>> end_to_end(ttft="40 ms", output=201, tpot="10 ms")
    2.04
    """
    return ttft + (output - 1) * tpot


@formula("tpot", "zhong2024", domain=SEVERAL_TOKENS)
def tpot_from_ends(end_to_end, ttft, output):
    """Time per output token, by definition: the time after the first token over the number of tokens after it.

    >>> tpot_from_ends(end_to_end="2.04 s", ttft="40 ms", output=201)
    0.01
    """
    return (end_to_end - ttft) / (output - 1)


@formula("users", "little1961")
def littles_law(rate, end_to_end):
    """Requests in the system, by Little's law: the arrival rate times the time that a request stays.

    >>> littles_law(rate=8, end_to_end="3 s")
    24.0
    """
    return rate * end_to_end


@formula("user_rate", "zhong2024")
def user_rate(tpot):
    """Tokens per second that one user sees after the first token.

    >>> user_rate(tpot="20 ms")
    50.0
    """
    return 1 / tpot


@formula("device_rate", "little1961")
def device_rate_served(rate, output, devices):
    """Output tokens per second and device, if `devices` share one server that keeps up with its requests.

    >>> device_rate_served(rate=8, output=200, devices=4)
    400.0
    """
    return rate * output / devices


# An open loop: requests arrive at random, whatever the server does


@formula("load", "kleinrock1975")
def load_open(rate, output, added_time, prompt_time):
    """Load of an open loop: the work per second that requests add, their prompts and their share of the steps.

    The fixed part of a step does not count, since more sequences share it if the server gets busier.

    >>> load_open(rate=8, output=200, added_time="50 us", prompt_time="30 ms")
    0.32
    """
    return rate * (output * added_time + prompt_time)


@formula("tpot", "kleinrock1975", "little1961", given=[load_open], domain=SPARE_TIME)
def tpot_open(base_time, load):
    """Mean time per output token in an open loop: the fixed time of a step over the share of time left for it.

    Simulated answers of 200 tokens are within 4 % up to a load of 0.8 with prompts of 30 ms; with prompts of 300 ms
    they take 18 % longer.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> [round(tpot_open(server, rate=x) * 1e3, 2) for x in (2, 8, 16)]
    [10.87, 14.71, 27.78]
    """
    return base_time / (1 - load)


@formula("prompt_load", "kleinrock1975")
def prompt_load(rate, prompt_time):
    """Share of the time spent on prompts, which take precedence over decode steps.

    >>> prompt_load(rate=8, prompt_time="30 ms")
    0.24
    """
    return rate * prompt_time


def _excess(prompt_time, prompt_load):
    """Excess of the step that reads a prompt over the mean step: long steps cluster and meet more arrivals."""
    return prompt_time / (1 - prompt_load**2)


@formula("tpot", "kleinrock1975", given=[load_open, prompt_load], domain=SPARE_TIME)
def tpot_open_beside(base_time, added_time, prompt_time, output, load, prompt_load):
    """Mean time per output token in an open loop whose steps read prompts and decode together.

    It is within 5 % of simulated means up to a load of 0.7, for prompts as long as 30 steps.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200)
    >>> [round(tpot_open_beside(server, prompt_time=p, rate=8) * 1e3, 2) for p in ("3 ms", "30 ms", "60 ms")]
    [11.22, 14.85, 23.34]
    """
    own = base_time + added_time
    return (own + load * _excess(prompt_time, prompt_load) / output) / (1 - load)


@formula("ttft", "kleinrock1975", given=[tpot_open_beside, prompt_load], domain=READABLE)
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


@formula("headroom", "kleinrock1975", domain={"a rate within the capacity": lambda rate, capacity: rate <= capacity})
def headroom(rate, capacity):
    """Share of the capacity that is still free.

    >>> headroom(rate=8, capacity=12.5)
    0.36
    """
    return 1 - rate / capacity


@formula("queue_time", "kleinrock1975", given=[prompt_load], domain=READABLE)
def queue_time_prompts(prompt_time, prompt_load):
    """Mean time that prompts wait for each other (M/D/1): random arrivals, equal reading times.

    >>> round(queue_time_prompts(rate=8, prompt_time="30 ms") * 1e3, 2)
    4.74
    """
    return prompt_load * prompt_time / (2 * (1 - prompt_load))


@formula("queue_time", "kleinrock1975", "fuhrmann1985", given=[prompt_load], domain=READABLE)
def queue_time_open(prompt_time, prompt_load, token_time):
    """Mean waiting time of prompts on a server that runs decode steps when no prompt waits.

    It is the M/D/1 queue plus half a step, exactly so if steps are equally long.

    >>> round(queue_time_open(rate=8, prompt_time="30 ms", token_time="11.2 ms") * 1e3, 2)
    10.34
    """
    return queue_time_prompts.of(prompt_time=prompt_time, prompt_load=prompt_load) + token_time / 2


open_loop = Sheet(
    "open_loop", load_open, tpot_open, batch_open, token_time_linear, prompt_load, queue_time_open, ttft, end_to_end,
    littles_law, user_rate, device_rate_served, capacity_open, headroom, half_speed_batch,
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


@formula("rate", "little1961")
def rate_closed(users, end_to_end):
    """Requests per second of a closed loop, by Little's law.

    >>> rate_closed(users=32, end_to_end="3.2 s")
    10.0
    """
    return users / end_to_end


@formula("queue_time", "kleinrock1975", domain=SEVERAL_TOKENS | SOME_USER)
def queue_time_closed(users, output, prompt_time):
    """Mean waiting time of a prompt in a closed loop with users out of step.

    >>> round(queue_time_closed(users=32, output=200, prompt_time="30 ms") * 1e3, 2)
    2.34
    """
    return (users - 1) / Max(1, output - 1, evaluate=False) * prompt_time / 2


closed_loop = Sheet(
    "closed_loop", batch_closed, token_time_linear, end_to_end_closed, queue_time_closed, ttft, tpot_from_ends,
    rate_closed, user_rate, device_rate_served, half_speed_batch,
    doc="Users who each send the next request when the last is answered: latency and throughput.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "closed_loop", "open_loop"]
