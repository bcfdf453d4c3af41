"""Memory of a model that is served: its weights, and the cache of every sequence."""

from scalebook.attention.assumptions import linear_bits_wide
from scalebook.language import formulas_of
from scalebook.language.defaults import equations
from scalebook.tables import shapes  # noqa: F401  (its formulas are given in serving.toml)

_OWN = equations(__name__)  # those of serving.toml

# Formulas that replace these for models whose blocks keep a state, and for models without windows.
_STATES = _OWN.linear_memory, linear_bits_wide
_OWN.kv_cache.instead = ((lambda known: "linear_state" in known, (_OWN.kv_cache_states, *_STATES)),)
_OWN.max_batch.instead = ((lambda known: "linear_state" in known, (_OWN.max_batch_states, *_STATES)),)
_OWN.sliding_window.instead = ((lambda known: "layers" in known and "window" not in known, (_OWN.full_attention,)),)

__all__ = [*formulas_of(__name__)]
