"""Two half batches in turn: while one computes, the messages of the other travel.

>>> both = dict(computing_time="10 ms", messages_time="4 ms", hidings=240)
>>> round(exposed_messages(both) * 1e6, 1)  # of 4 ms the last stretch only
16.7
"""

from sympy import Integer, Max, Min

from scalebook.language import formula

__all__ = [
    "HALVES", "computing_time", "device_batch_half", "exposed_messages", "hidings", "mixed_tokens_half",
    "read_tokens_half",
]  # fmt: skip

_HERE = "deepseek2025-inference"


@formula("device_batch", _HERE)
def device_batch_half(batch, pp):
    """Half of the sequences pass at once.

    >>> device_batch_half(batch=64, pp=1)
    32.0
    """
    return batch / (2 * pp)


@formula("pass_tokens", _HERE)
def read_tokens_half(prompts, read_chunk):
    """Half of the prompts' tokens; a single prompt is cut in two.

    >>> read_tokens_half(prompts=2, read_chunk=4096)
    4096.0
    """
    return prompts * read_chunk / 2


@formula("pass_tokens", _HERE, given=[device_batch_half])
def mixed_tokens_half(device_batch, prompts, read_chunk):
    """Half of the sequences, and half of the tokens of the prompts beside them.

    >>> mixed_tokens_half(device_batch=32, prompts=1, read_chunk=512)
    288.0
    """
    return device_batch + prompts * read_chunk / 2


@formula("computing_time", _HERE)
def computing_time(
    weights_time,
    products_time,
    cache_time,
    reading_time,
    experts_time,
    routing_time,
    streams_time,
    launches_time,
):
    """Everything but messages, of both halves: weights are read for each.

    >>> computing_time(weights_time="2 ms", products_time="1 ms", cache_time="3 ms", reading_time=0,
    ...                experts_time="4 ms", routing_time="1 ms", streams_time="0.5 ms", launches_time="0.5 ms")
    0.012
    """
    read = weights_time + products_time + cache_time + reading_time
    return read + experts_time + routing_time + streams_time + launches_time


@formula("hidings", _HERE)
def hidings(layers):
    """A block computes twice between messages, its attention and its experts, and each half does so.

    >>> hidings(layers=61)
    244.0
    """
    return Integer(4) * layers


@formula("exchange_time", _HERE, "johnson1954")
def exposed_messages(computing_time, messages_time, hidings):
    """Two halves alternate on two machines, the device and its links, and each takes turns with the other.

    With equal stretches the longer of the two is busy without a break but for one stretch of the shorter: the last
    message of the second half, or the first computing of the first.  What is exposed is that, and by how much the
    messages outlast the computing.  Messages are taken to need no core.

    >>> exposed_messages(computing_time="10 ms", messages_time="12 ms", hidings=100)
    0.0021
    """
    longer = Max(0, messages_time - computing_time, evaluate=False)
    return longer + Min(computing_time, messages_time, evaluate=False) / hidings


HALVES = (computing_time, hidings, exposed_messages)
