"""Disaggregated serving: one pool of devices reads prompts and sends their caches to another, which writes answers."""

from scalebook.inference.assumptions import tpot_alone
from scalebook.inference.queues import TARGET_ABOVE_BASE, end_to_end, token_time_linear
from scalebook.language import Sheet, formula, formulas_of
from scalebook.memory.serving import kv_cache_per_token

# Two pools


@formula("batch", "zhong2024", domain=TARGET_ABOVE_BASE)
def batch_under_target(tpot_target, base_time, added_time):
    """Sequences that fit in a decode step within the target for `tpot` if no prompt delays it.

    >>> batch_under_target(tpot_target="20 ms", base_time="10 ms", added_time="50 us")
    200.0
    """
    return (tpot_target - base_time) / added_time


@formula("prefill_devices", "zhong2024")
def prefill_devices(rate, prompt_time, load):
    """Devices of the prefill pool if each reads one prompt after another and is busy for a share `load` of the time.

    >>> prefill_devices(rate=100, prompt_time="30 ms", load=0.8)
    3.75
    """
    return rate * prompt_time / load


@formula("decode_devices", "zhong2024", "little1961")
def decode_devices(rate, output, token_time, batch):
    """Devices of the decode pool: the answers in progress, by Little's law, over the batch of a device.

    >>> decode_devices(rate=100, output=200, token_time="20 ms", batch=200)
    2.0
    """
    return rate * output * token_time / batch


@formula("pool_ratio", "zhong2024")
def pool_ratio(prompt_time, batch, output, token_time):
    """Prefill devices for each decode device if both pools are busy all the time.

    >>> pool_ratio(prompt_time="30 ms", batch=200, output=200, token_time="20 ms")
    1.5
    """
    return prompt_time * batch / (output * token_time)


@formula("capacity", "zhong2024", domain=TARGET_ABOVE_BASE)
def capacity_disaggregated(base_time, added_time, prompt_time, output, tpot_target):
    """Requests per second and device, counting both pools, if every answer is written within the target.

    >>> capacity_disaggregated(base_time=0.01, added_time=5e-5, prompt_time=0.03, output=200, tpot_target=0.02)
    20.0
    """
    decoding = output * added_time / (1 - base_time / tpot_target)
    return 1 / (prompt_time + decoding)


@formula("disaggregation_gain", "zhong2024", domain=TARGET_ABOVE_BASE)
def disaggregation_gain(base_time, added_time, prompt_time, output, tpot_target):
    """Ratio of request rates that meet a `tpot` target: two pools over one pool with as many devices.

    Both pools are assumed to be as fast as the single one. Rounding to whole devices and sending caches are left out.

    >>> server = dict(base_time="10 ms", added_time="50 us", output=200, prompt_time="30 ms")
    >>> disaggregation_gain(server, tpot_target="20 ms"), round(disaggregation_gain(server, tpot_target="100 ms"), 2)
    (1.6, 1.08)
    """
    writing = output * added_time
    return (writing + prompt_time) / (writing + prompt_time * (1 - base_time / tpot_target))


@formula("disaggregation_bound", "zhong2024", domain=TARGET_ABOVE_BASE)
def disaggregation_bound(base_time, tpot_target):
    """Upper bound of the gain from disaggregation, reached if the work were prompts alone.

    >>> disaggregation_bound(base_time="10 ms", tpot_target="20 ms")
    2.0
    """
    return 1 / (1 - base_time / tpot_target)


# Handing the caches over


@formula("prompt_rate", "patel2023")
def prompt_rate_of_one(prompt, prompt_time):
    """Prompt tokens per second of a device that reads one prompt after another.

    >>> round(prompt_rate_of_one(prompt=1000, prompt_time="30 ms"))
    33333
    """
    return prompt / prompt_time


@formula("cache_rate", "patel2023", given=[kv_cache_per_token, prompt_rate_of_one])
def cache_rate(prompt_rate, kv_cache_per_token):
    """Bytes of cache per second that a prefill device produces, and that its link must carry.

    >>> cache_rate(kv_cache_per_token=70_272, prompt_rate=7839) / 1e9  # of 50 GB/s
    0.550862208
    """
    return prompt_rate * kv_cache_per_token


def _carries(prompt, kv_cache_per_token, link_bandwidth, prompt_time):
    return prompt * kv_cache_per_token <= link_bandwidth * prompt_time


_CARRIES = {"a link that carries caches as fast as prompts are read": _carries}


@formula("handover_time", "patel2023", given=[kv_cache_per_token], domain=_CARRIES)
def handover_whole(prompt, kv_cache_per_token, link_bandwidth):
    """Time to send a prompt's whole cache after the prompt has been read, over a link as fast as the reading.

    >>> handover_whole(prompt=1000, kv_cache_per_token=327_680, link_bandwidth="50 GB/s", prompt_time="30 ms")
    0.0065536
    """
    return prompt * kv_cache_per_token / link_bandwidth


@formula("handover_time", "patel2023", given=[kv_cache_per_token], domain=_CARRIES)
def handover_by_layers(prompt, kv_cache_per_token, link_bandwidth, layers):
    """Time left to send after a prompt has been read, if only the last layer's cache is not sent during the reading.

    >>> send = dict(prompt=1000, kv_cache_per_token=327_680, layers=80, prompt_time="30 ms")
    >>> round(handover_by_layers(send, link_bandwidth="50 GB/s") * 1e3, 3)
    0.082
    """
    return prompt * kv_cache_per_token / (link_bandwidth * layers)


@formula("queue_time", "kleinrock1975", domain={"a load below 1": lambda load: load < 1})
def queue_time_pool(prompt_time, load):
    """Waiting time of a prompt in the prefill pool (M/D/1), whose devices read for a share `load` of the time.

    >>> round(queue_time_pool(prompt_time="30 ms", load=0.8) * 1e3, 1)
    60.0
    """
    return load * prompt_time / (2 * (1 - load))


@formula("ttft", "patel2023")
def ttft_handed_over(queue_time, prompt_time, handover_time):
    """Time to first token with disaggregation, including the cache's transfer, after which the second token can follow.

    >>> round(ttft_handed_over(queue_time="60 ms", prompt_time="30 ms", handover_time="1.4 ms"), 4)
    0.0914
    """
    return queue_time + prompt_time + handover_time


@formula("devices", "zhong2024")
def devices_apart(prefill_devices, decode_devices):
    """Devices of both pools together.

    >>> devices_apart(prefill_devices=16, decode_devices=24)
    40.0
    """
    return prefill_devices + decode_devices


@formula("million_cost", "zhong2024", "erdil2025")
def million_cost_apart(prefill_devices, prefill_price, decode_devices, decode_price, rate, output):
    """Cost of a million output tokens of two pools, whose devices may be of different kinds and prices.

    >>> pools = dict(prefill_devices=16, prefill_price="2 $/h", decode_devices=24, decode_price="4 $/h")
    >>> round(million_cost_apart(pools, rate=100, output=300), 3)
    1.185
    """
    hour = prefill_devices * prefill_price + decode_devices * decode_price
    return hour / 3600 / (rate * output) * 1_000_000


@formula("ttft", "patel2023", "zhong2024")
def ttft_apart(first_overhead, queue_time, prompt_time, handover_time, first_tokens, token_time):
    """Time to first token that a user of two pools sees; an engine may gather `first_tokens` before it sends any.

    >>> parts = dict(queue_time="60 ms", prompt_time="30 ms", handover_time="10 ms", token_time="20 ms")
    >>> ttft_apart(parts, first_overhead=0, first_tokens=1)
    0.1
    """
    return first_overhead + queue_time + prompt_time + handover_time + (first_tokens - 1) * token_time


disaggregating = Sheet(
    "disaggregating", batch_under_target, token_time_linear, tpot_alone, prefill_devices, decode_devices, pool_ratio,
    capacity_disaggregated, disaggregation_gain, disaggregation_bound, kv_cache_per_token, prompt_rate_of_one,
    cache_rate, handover_whole, queue_time_pool, ttft_handed_over, end_to_end,
    doc="Disaggregated serving: sizes of the prefill and decode pools, what they gain and what they send.",
)  # fmt: skip

two_pools = Sheet(
    "two_pools", kv_cache_per_token, queue_time_pool, handover_whole, ttft_apart, tpot_alone, end_to_end,
    devices_apart, million_cost_apart,
    doc="What users of two pools get, from the time of a prompt in the prefill pool and of a step in the decode pool.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "disaggregating", "two_pools"]
