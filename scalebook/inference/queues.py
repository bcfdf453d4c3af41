"""Queues of serving: what users and requests a second make of one server that reads prompts and writes answers.

A server takes steps.  A step with `batch` sequences takes `base_time + batch * added_time` and gives each of them a
token; a prompt is read between two steps, takes `prompt_time`, gives its request the first token, and holds up all
others.  `tpot` is the time per output token without the first one, which `ttft` has: so they add up to `end_to_end`.
In an open loop requests come at their own times, `rate` a second; in a closed loop each of `users` sends the next
when the last is answered.  There is room for all: a batch that memory limits (`max_batch`) is not seen here.

>>> server = dict(base_time="10 ms", added_time="50 us", prompt_time="30 ms", output=200)
>>> row = open_loop(server, rate=8, tpot_target="20 ms")
>>> round(row.tpot * 1e3, 2), round(row.ttft * 1e3, 1), round(row.batch, 1), row.capacity
(14.71, 40.3, 23.5, 12.5)
>>> row = closed_loop(server, users=32)
>>> round(row.tpot * 1e3, 2), round(row.ttft * 1e3, 1), round(row.rate, 2)
(16.26, 32.3, 9.79)
"""

from sympy import Max, S

from scalebook.language import Sheet, formula

__all__ = [
    "batch_closed", "batch_open", "batch_together", "capacity_open", "closed_loop", "device_rate_served", "end_to_end",
    "end_to_end_closed", "half_price_batch", "headroom", "littles_law", "load_open", "load_together", "met_batch",
    "open_loop", "prompt_load", "queue_time_burst", "queue_time_closed", "queue_time_open",
    "queue_time_prompts", "rate_closed", "response_time_together", "token_time_linear", "tpot_from_ends", "tpot_open",
    "tpot_open_beside", "tpot_open_swinging", "ttft", "ttft_beside", "user_rate",
]  # fmt: skip

# What can be: conditions that several formulas share.
SPARE_TIME = {"a load below 1": lambda load: load < 1}
TARGET_ABOVE_BASE = {
    "a target above the time of a step without sequences": lambda tpot_target, base_time: tpot_target > base_time
}
READABLE = {"prompts that take less than all of the time": lambda prompt_load: prompt_load < 1}
SEVERAL_TOKENS = {"answers of more than one token": lambda output: output > 1}
SOME_USER = {"at least one user": lambda users: users >= 1}


# Whatever the loop


@formula("token_time", "yu2022")
def token_time_linear(base_time, added_time, batch):
    """A decode step: what it takes anyway, and what each sequence adds.

    >>> token_time_linear(base_time="10 ms", added_time="50 us", batch=64)
    0.0132
    """
    return base_time + batch * added_time


@formula("half_price_batch", "yu2022")
def half_price_batch(base_time, added_time):
    """The step is then twice what its sequences add to it, and a token costs twice what no batch goes below.

    >>> half_price_batch(base_time="10 ms", added_time="50 us")
    200.0
    """
    return base_time / added_time


@formula("ttft", "yu2022")
def ttft(queue_time, prompt_time):
    """The first token comes when the prompt has waited and been read.

    >>> ttft(queue_time="10 ms", prompt_time="30 ms")
    0.04
    """
    return queue_time + prompt_time


@formula("end_to_end", "zhong2024")
def end_to_end(ttft, output, tpot):
    """The first token, and the others: `tpot` is defined without the first.

    >>> end_to_end(ttft="40 ms", output=201, tpot="10 ms")
    2.04
    """
    return ttft + (output - 1) * tpot


@formula("tpot", "zhong2024", domain=SEVERAL_TOKENS)
def tpot_from_ends(end_to_end, ttft, output):
    """The definition: the time after the first token over the tokens after it.

    >>> tpot_from_ends(end_to_end="2.04 s", ttft="40 ms", output=201)
    0.01
    """
    return (end_to_end - ttft) / (output - 1)


@formula("users", "little1961")
def littles_law(rate, end_to_end):
    """Little's law: those in the system are those who come in the time that one stays, whatever the order.

    >>> littles_law(rate=8, end_to_end="3 s")
    24.0
    """
    return rate * end_to_end


@formula("user_rate", "zhong2024")
def user_rate(tpot):
    """What one user sees after the first token.

    >>> user_rate(tpot="20 ms")
    50.0
    """
    return 1 / tpot


@formula("device_rate", "little1961")
def device_rate_served(rate, output, devices):
    """What is asked for is what is written, as long as the server keeps up; `devices` share one server.

    >>> device_rate_served(rate=8, output=200, devices=4)
    400.0
    """
    return rate * output / devices


# An open loop: requests come at random, whatever the server does


@formula("load", "kleinrock1975")
def load_open(rate, output, added_time, prompt_time):
    """The time that each second's requests add: their prompts, and their share of the steps.

    What steps take anyway is not in it: there is always time for that, a longer step with more sequences in it.
    Every token is counted as a step, the first too, which the prompt gives: on the safe side by one in `output`.

    >>> load_open(rate=8, output=200, added_time="50 us", prompt_time="30 ms")
    0.32
    """
    return rate * (output * added_time + prompt_time)


@formula("tpot", "kleinrock1975", "little1961", given=[load_open], domain=SPARE_TIME)
def tpot_open(base_time, load):
    """The mean of an open loop: what a step takes anyway, over the share of the time that is left for it.

    Prompts leave `1 - rate * prompt_time` of the time for steps, so a token takes `token_time` over that; by Little's
    law `rate * output * tpot` sequences are in the batch, and the equation solved is this.  It takes batches at their
    mean: simulated answers of 200 tokens are within 4 % of it up to a load of 0.8 with prompts of 30 ms.  Long prompts
    are further off: of 300 ms it is 18 % too short at a load of 0.7, for answers begin just after long steps.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> [round(tpot_open(server, rate=x) * 1e3, 2) for x in (2, 8, 16)]
    [10.87, 14.71, 27.78]
    >>> tpot_open(server, rate=30)
    Traceback (most recent call last):
        ...
    scalebook.language.domain.OutsideDomain: tpot_open holds for a load below 1,
    not at added_time=50 µs, output=200, prompt_time=30 ms, rate=30 request/s
    """
    return base_time / (1 - load)


@formula("tpot", "cohen1979", given=[load_open], domain=SPARE_TIME)
def tpot_open_swinging(base_time, added_time, prompt_time, output, load):
    """The mean where batches swing: one finds the others there, and adds to the load itself.

    Exact where each sequence slows all others a little all the time: a step's rate is shared, and the numbers of
    sequences are then distributed as a negative binomial, whatever the lengths.  Prompts are taken as spread over the
    answer, so it is a little above where they go first.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> [round(tpot_open_swinging(server, rate=x) * 1e3, 2) for x in (2, 8, 16)]
    [11.09, 15.0, 28.33]
    """
    return (base_time + added_time + prompt_time / output) / (1 - load)


@formula("prompt_load", "kleinrock1975")
def prompt_load(rate, prompt_time):
    """Prompts alone, which go before steps.

    >>> prompt_load(rate=8, prompt_time="30 ms")
    0.24
    """
    return rate * prompt_time


def _excess(prompt_time, prompt_load):
    """By how much the step that reads a prompt is longer than the mean step, whatever else steps take.

    All prompts that came in a step are read in the next, so long steps follow each other; and a request is the more
    likely to meet a step, the longer it is.
    """
    return prompt_time / (1 - prompt_load**2)


@formula("tpot", "kleinrock1975", given=[load_open, prompt_load], domain=SPARE_TIME)
def tpot_open_beside(base_time, added_time, prompt_time, output, load, prompt_load):
    """The mean of an open loop where prompts are read beside the sequences that decode: long prompts too.

    One finds the mean batch there and adds oneself, and what came while one's own prompt was read is read before one's
    second token.  Within 5 % of simulated means up to a load of 0.7, for prompts as long as 30 steps.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200)
    >>> [round(tpot_open_beside(server, prompt_time=p, rate=8) * 1e3, 2) for p in ("3 ms", "30 ms", "60 ms")]
    [11.22, 14.85, 23.34]
    """
    own = base_time + added_time
    return (own + load * _excess(prompt_time, prompt_load) / output) / (1 - load)


@formula("ttft", "kleinrock1975", given=[tpot_open_beside, prompt_load], domain=READABLE)
def ttft_beside(tpot, prompt_time, prompt_load):
    """Half of the step that a request meets, and the step that reads its prompt beside the sequences that decode.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> round(ttft_beside(server, rate=8) * 1e3, 1)
    57.9
    """
    met = tpot + prompt_load * _excess(prompt_time, prompt_load)
    return tpot * (1 - prompt_load) + prompt_time + (S.Half + prompt_load) * met


@formula("batch", "little1961", given=[tpot_open])
def batch_open(rate, output, tpot):
    """Answers that are being written at once, by Little's law.

    >>> round(batch_open(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms", rate=8), 1)
    23.5
    """
    return rate * output * tpot


@formula("capacity", "kleinrock1975", domain=TARGET_ABOVE_BASE)
def capacity_open(base_time, added_time, prompt_time, output, tpot_target):
    """Requests a second at which an open loop just keeps to a target; twice `base_time` takes a load of a half.

    >>> capacity_open(base_time="10 ms", added_time="50 us", prompt_time="30 ms", output=200, tpot_target="20 ms")
    12.5
    """
    return (1 - base_time / tpot_target) / (output * added_time + prompt_time)


@formula("headroom", "kleinrock1975", domain={"a rate within the capacity": lambda rate, capacity: rate <= capacity})
def headroom(rate, capacity):
    """What could still come.

    >>> headroom(rate=8, capacity=12.5)
    0.36
    """
    return 1 - rate / capacity


@formula("queue_time", "kleinrock1975", given=[prompt_load], domain=READABLE)
def queue_time_prompts(prompt_time, prompt_load):
    """M/D/1: prompts that come at random, are read in the same time each, and wait for each other alone.

    >>> round(queue_time_prompts(rate=8, prompt_time="30 ms") * 1e3, 2)
    4.74
    """
    return prompt_load * prompt_time / (2 * (1 - prompt_load))


@formula("queue_time", "kleinrock1975", "fuhrmann1985", given=[prompt_load], domain=READABLE)
def queue_time_open(prompt_time, prompt_load, token_time):
    """Prompts on a server that takes steps where it has none: half a step more, exactly so if steps are equally long.

    All prompts that wait are read before the next step; to the queue of prompts, steps are vacations of its server.
    Where they are read beside a step, as in `simulate_serving`, the first token comes at least that step later.

    >>> round(queue_time_open(rate=8, prompt_time="30 ms", token_time="11.2 ms") * 1e3, 2)
    10.34
    """
    return queue_time_prompts.of(prompt_time=prompt_time, prompt_load=prompt_load) + token_time / 2


open_loop = Sheet(
    "open_loop", load_open, tpot_open, batch_open, token_time_linear, prompt_load, queue_time_open, ttft, end_to_end,
    littles_law, user_rate, device_rate_served, capacity_open, headroom, half_price_batch,
    doc="Requests that come at random to one server: how long tokens take, who is in the system, and what it can take.",
)  # fmt: skip


# A closed loop: each user sends the next request when the last is answered


@formula("batch", "yu2022")
def batch_closed(users):
    """Prompts are read between steps, so every user has a sequence in every step.

    >>> batch_closed(users=32)
    32.0
    """
    return users


@formula("end_to_end", "little1961", domain=SOME_USER)
def end_to_end_closed(users, output, token_time, prompt_time):
    """From one request of a user to the next: the steps of an answer, and one prompt of every user.

    Whoever's prompt is read, all others wait, before their first token or after it: so this holds in step and out of
    step, and only how it divides into `ttft` and `tpot` depends on that.

    >>> end_to_end_closed(users=32, output=200, token_time="11.6 ms", prompt_time="30 ms")
    3.2684
    """
    return (output - 1) * token_time + users * prompt_time


@formula("rate", "little1961")
def rate_closed(users, end_to_end):
    """Little's law, solved for the requests a second.

    >>> rate_closed(users=32, end_to_end="3.2 s")
    10.0
    """
    return users / end_to_end


@formula("queue_time", "kleinrock1975", domain=SEVERAL_TOKENS | SOME_USER)
def queue_time_closed(users, output, prompt_time):
    """Users out of step: of those whose answers end with the same step as mine, half are read before me.

    Answers of many lengths bring users out of step in time; each of the others ends with a given step once in
    `output - 1`, and never with more than each.

    >>> round(queue_time_closed(users=32, output=200, prompt_time="30 ms") * 1e3, 2)
    2.34
    """
    return (users - 1) / Max(1, output - 1, evaluate=False) * prompt_time / 2


@formula("queue_time", "kleinrock1975", domain=SOME_USER)
def queue_time_burst(users, prompt_time):
    """All users at once, as a benchmark begins: half of the others are read before me.  Equal answers stay in step.

    >>> queue_time_burst(users=32, prompt_time="30 ms")
    0.465
    """
    return (users - 1) * prompt_time / 2


closed_loop = Sheet(
    "closed_loop", batch_closed, token_time_linear, end_to_end_closed, queue_time_closed, ttft, tpot_from_ends,
    rate_closed, user_rate, device_rate_served, half_price_batch,
    doc="Users who each send the next request when the last is answered: how long tokens take, and how many there are.",
)  # fmt: skip


# Served together: all that wait make the next batch, which is answered as one (embeddings, rankings, pools of prompts)


@formula("load", "inoue2019")
def load_together(rate, added_time):
    """What requests add to batches: the rest of the time is for what each batch takes anyway.

    >>> load_together(rate=0.6, added_time=1)
    0.6
    """
    return rate * added_time


@formula("batch", "inoue2019", given=[load_together], domain=SPARE_TIME)
def batch_together(rate, base_time, load):
    """The least that the mean batch can be: one, and what comes while as much is served.

    >>> batch_together(rate=0.6, base_time=5, added_time=1)
    7.5
    """
    return Max(1, rate * base_time / (1 - load), evaluate=False)


@formula("met_batch", "inoue2019", given=[load_together, batch_together], domain=SPARE_TIME)
def met_batch(rate, base_time, load, batch):
    """Large batches serve more, so a request meets a larger one than the mean: the mean square over the mean.

    A batch is what came while the last was served, or one: the means and mean squares of the two are the same.

    >>> round(met_batch(rate=0.6, base_time=5, added_time=1), 2)
    9.06
    """
    came = rate * base_time
    return (1 + 2 * load * came + came**2 / batch) / (1 - load**2)


@formula("response_time", "inoue2019", "little1961", given=[load_together, batch_together, met_batch])
def response_time_together(rate, base_time, added_time, load, batch, met_batch):
    """Exact for the mean batch, and above the truth for the least that it can be: within some percent of it.

    By Little's law it is the time that all requests of a batch are served, and those that come meanwhile wait, over
    the requests.  With the least batch it is Inoue's bound.

    >>> round(response_time_together(rate=0.6, base_time=5, added_time=1), 2)
    20.78
    """
    return added_time * met_batch * (1 + load / 2) + base_time * (1 + load) + rate * base_time**2 / (2 * batch)
