"""Queueing formulas of serving: latency and load of one server that reads prompts and writes answers.

A step takes `base_time + batch * added_time` and gives each sequence a token. A prompt is read between two steps in
`prompt_time`, which gives its first token. In an open loop `rate` requests arrive per second; in a closed loop each of
`users` users sends the next request when the last is answered. Memory is assumed to hold every sequence.
"""

from sympy import S

from scalebook.inference.assumptions import batch_closed
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of queues.toml

SPARE_TIME = {"a load below 1": lambda load: load < 1}
READABLE = {"prompts that take less than all of the time": lambda prompt_load: prompt_load < 1}


# An open loop: requests arrive at random, whatever the server does


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


@formula("queue_time", "kleinrock1975", "fuhrmann1985", given=[_OWN.prompt_load], domain=READABLE)
def queue_time_open(prompt_time, prompt_load, token_time):
    """Mean waiting time of prompts on a server that runs decode steps when no prompt waits.

    It is the M/D/1 queue plus half a step, exactly so if steps are equally long.

    >>> round(queue_time_open(rate=8, prompt_time="30 ms", token_time="11.2 ms") * 1e3, 2)
    10.34
    """
    return _OWN.queue_time_prompts.of(prompt_time=prompt_time, prompt_load=prompt_load) + token_time / 2


open_loop = Sheet(
    "open_loop", _OWN.load_open, _OWN.tpot_open, _OWN.batch_open, _OWN.token_time_linear, _OWN.prompt_load,
    queue_time_open, _OWN.ttft, _OWN.end_to_end, _OWN.littles_law, _OWN.user_rate, _OWN.device_rate_served,
    _OWN.capacity_open, _OWN.headroom, _OWN.half_speed_batch,
    doc="Requests that arrive at random at one server: latency, requests in the system, and capacity.",
)  # fmt: skip


# A closed loop: each user sends the next request when the last is answered

closed_loop = Sheet(
    "closed_loop", batch_closed, _OWN.token_time_linear, _OWN.end_to_end_closed, _OWN.queue_time_closed, _OWN.ttft,
    _OWN.tpot_from_ends, _OWN.rate_closed, _OWN.user_rate, _OWN.device_rate_served, _OWN.half_speed_batch,
    doc="Users who each send the next request when the last is answered: latency and throughput.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "closed_loop", "open_loop"]
