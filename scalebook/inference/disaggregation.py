"""Disaggregated serving: one pool of devices reads prompts and sends their caches to another, which writes answers."""

from scalebook.inference.assumptions import tpot_alone
from scalebook.inference.queues import end_to_end, token_time_linear
from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations
from scalebook.memory.serving import kv_cache_per_token

_OWN = equations(__name__)  # those of disaggregation.toml

disaggregating = Sheet(
    "disaggregating", _OWN.batch_under_target, token_time_linear, tpot_alone, _OWN.prefill_devices,
    _OWN.decode_devices, _OWN.pool_ratio, _OWN.capacity_disaggregated, _OWN.disaggregation_gain,
    _OWN.disaggregation_bound, kv_cache_per_token, _OWN.prompt_rate_of_one, _OWN.cache_rate, _OWN.handover_whole,
    _OWN.queue_time_pool, _OWN.ttft_handed_over, end_to_end,
    doc="Disaggregated serving: sizes of the prefill and decode pools, what they gain and what they send.",
)  # fmt: skip

two_pools = Sheet(
    "two_pools", kv_cache_per_token, _OWN.queue_time_pool, _OWN.handover_whole, _OWN.ttft_apart, tpot_alone, end_to_end,
    _OWN.devices_apart, _OWN.million_cost_apart,
    doc="What users of two pools get, from the time of a prompt in the prefill pool and of a step in the decode pool.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "disaggregating", "two_pools"]
