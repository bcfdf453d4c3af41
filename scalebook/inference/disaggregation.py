"""Disaggregated serving: one pool of devices reads prompts and sends their caches to another, which writes answers."""

from scalebook.inference.assumptions import tpot_alone
from scalebook.inference.queues import TARGET_ABOVE_BASE, end_to_end, token_time_linear
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.memory.serving import kv_cache_per_token

_OWN = equations(__name__)  # those of disaggregation.toml

# Two pools


@formula("batch", "zhong2024", domain=TARGET_ABOVE_BASE)
def batch_under_target(tpot_target, base_time, added_time):
    """Sequences that fit in a decode step within the target for `tpot` if no prompt delays it.

    >>> batch_under_target(tpot_target="20 ms", base_time="10 ms", added_time="50 us")
    200.0
    """
    return (tpot_target - base_time) / added_time


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
    """Upper bound of the gain from disaggregation, reached if reading prompts were all the work.

    >>> disaggregation_bound(base_time="10 ms", tpot_target="20 ms")
    2.0
    """
    return 1 / (1 - base_time / tpot_target)


# Handing the caches over


@formula("cache_rate", "patel2023", given=[kv_cache_per_token, _OWN.prompt_rate_of_one])
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
    """Time to send what is left after a prompt has been read: the last layer's cache. Other layers were sent meanwhile.

    >>> send = dict(prompt=1000, kv_cache_per_token=327_680, layers=80, prompt_time="30 ms")
    >>> round(handover_by_layers(send, link_bandwidth="50 GB/s") * 1e3, 3)
    0.082
    """
    return prompt * kv_cache_per_token / (link_bandwidth * layers)


disaggregating = Sheet(
    "disaggregating", batch_under_target, token_time_linear, tpot_alone, _OWN.prefill_devices, _OWN.decode_devices,
    pool_ratio, capacity_disaggregated, disaggregation_gain, disaggregation_bound, kv_cache_per_token,
    _OWN.prompt_rate_of_one, cache_rate, handover_whole, _OWN.queue_time_pool, _OWN.ttft_handed_over, end_to_end,
    doc="Disaggregated serving: sizes of the prefill and decode pools, what they gain and what they send.",
)  # fmt: skip

two_pools = Sheet(
    "two_pools", kv_cache_per_token, _OWN.queue_time_pool, handover_whole, _OWN.ttft_apart, tpot_alone, end_to_end,
    _OWN.devices_apart, _OWN.million_cost_apart,
    doc="What users of two pools get, from the time of a prompt in the prefill pool and of a step in the decode pool.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "disaggregating", "two_pools"]
