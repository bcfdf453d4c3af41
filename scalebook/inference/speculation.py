"""Speculative decoding: a step checks several drafted tokens at once.

The step gives the drafts before the first wrong one, and one more token. With a small batch a step is bound by memory,
so checking costs little; from `speculation_batch` on drafts do not pay.
"""

from scalebook.inference.queues import token_time_linear
from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of speculation.toml


DRAFTS = (_OWN.step_tokens, _OWN.draft_cost_block, _OWN.token_time_drafted)

speculating = Sheet(
    "speculating", _OWN.step_tokens, token_time_linear, _OWN.speculation_gain_linear, _OWN.speculation_batch,
    _OWN.tpot_speculative,
    doc="Speculative decoding: tokens per step, the speed-up, and the batches for which it pays.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "speculating"]
