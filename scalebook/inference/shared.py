"""Memory-bound decoding on tensor-parallel devices, each with a part of every matrix and of the caches.

Communication between devices is left out, so times are lower bounds.
"""

from scalebook.attention.assumptions import linear_bits_wide
from scalebook.inference.tokens import CHANGES, decode_flops, decode_rate, read_params
from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations
from scalebook.memory import serving as held
from scalebook.tables.shapes import used_params

_OWN = equations(__name__)  # those of shared.toml

# Formulas that replace these for models whose blocks keep a state.
for _usual, _state in (
    (_OWN.max_batch_shared, _OWN.max_batch_states_shared), (_OWN.device_memory, _OWN.device_memory_states),
    (_OWN.memory_time_shared, _OWN.memory_time_states),
):  # fmt: skip
    _usual.instead = ((lambda known: "linear_state" in known, (_state, held.linear_memory, linear_bits_wide)),)

sharing = Sheet(
    "sharing", held.weight_memory, held.kv_cache_per_token, held.sliding_window, held.kv_cache, _OWN.cache_ways,
    _OWN.device_memory, _OWN.max_batch_shared, used_params, read_params, decode_flops, _OWN.compute_time_shared,
    _OWN.memory_time_shared, _OWN.token_time_shared, decode_rate, _OWN.cache_batch, _OWN.full_read_time,
    _OWN.latency_floor_shared,
    doc="A decode step on tensor-parallel devices: what each holds and reads, and a lower bound of its time.",
    changes={"tp": [2**x for x in range(11)], **CHANGES},
)  # fmt: skip

__all__ = [*formulas_of(__name__), "sharing"]
