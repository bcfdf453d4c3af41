"""Speculative decoding: a step checks several drafted tokens at once.

The step gives the drafts before the first wrong one, and one more token. With a small batch a step is bound by memory,
so checking costs little; from `speculation_batch` on drafts do not pay.
"""

from scalebook.inference.queues import token_time_linear
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of speculation.toml


@formula("speculation_gain", "leviathan2022 §3.3", given=[_OWN.step_tokens])
def speculation_gain_free(step_tokens, drafted, draft_cost):
    """Speed-up if checking drafts costs no time: few sequences, and a step bound by reading weights.

    >>> round(speculation_gain_free(acceptance=0.8, drafted=5, draft_cost=0.05), 2)
    2.95
    """
    return step_tokens / (1 + drafted * draft_cost)


@formula("speculation_gain", "leviathan2022 §3.3", given=[_OWN.step_tokens])
def speculation_gain_linear(step_tokens, drafted, draft_cost, base_time, added_time, batch):
    """Speed-up if each draft adds as much to a step as a sequence does.

    If a sequence adds mostly cache reads, which drafts share, the speed-up is higher.

    >>> known = dict(acceptance=0.8, drafted=5, draft_cost=0.05, base_time="10 ms", added_time="50 us")
    >>> [round(speculation_gain_linear(known, batch=x), 2) for x in (1, 16, 128, 1024)]
    [2.88, 2.15, 1.0, 0.57]
    """
    slower = (base_time + batch * (drafted + 1) * added_time) / (base_time + batch * added_time)
    return step_tokens / (1 + drafted * draft_cost) / slower


_PAYS = {
    "drafts that pay for a single sequence": (
        lambda step_tokens, drafted, draft_cost: step_tokens > 1 + drafted * draft_cost
    )
}


@formula("speculation_batch", "leviathan2022 §3.3", given=[_OWN.step_tokens], domain=_PAYS)
def speculation_batch(step_tokens, drafted, draft_cost, base_time, added_time):
    """Batch that makes the speed-up 1: a share of the half-speed batch, whatever the model.

    >>> known = dict(acceptance=0.8, drafted=5, draft_cost=0.05, base_time="10 ms", added_time="50 us")
    >>> round(speculation_batch(known), 1)
    127.9
    """
    gain = step_tokens / (1 + drafted * draft_cost)
    return base_time / added_time * (gain - 1) / (drafted + 1 - gain)


DRAFTS = (_OWN.step_tokens, _OWN.draft_cost_block, _OWN.token_time_drafted)

speculating = Sheet(
    "speculating", _OWN.step_tokens, token_time_linear, speculation_gain_linear, speculation_batch,
    _OWN.tpot_speculative,
    doc="Speculative decoding: tokens per step, the speed-up, and the batches for which it pays.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "speculating"]
