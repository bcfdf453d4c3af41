"""Speculative decoding: a step checks several drafted tokens at once.

The step gives the drafts before the first wrong one, and one more token. With a small batch a step is bound by memory,
so checking costs little; from `speculation_batch` on drafts do not pay.
"""

from scalebook.inference.queues import token_time_linear
from scalebook.language import Sheet, formula

__all__ = [
    "draft_cost_block", "drafts_pay_context", "speculating", "speculation_batch", "speculation_gain_free",
    "speculation_gain_linear", "step_tokens", "token_time_drafted", "tpot_speculative",
]  # fmt: skip


@formula("step_tokens", "leviathan2022 §3.1", domain={"an acceptance below 1": lambda acceptance: acceptance < 1})
def step_tokens(acceptance, drafted):
    """Expected tokens of a step that checks `drafted` tokens, each right with probability `acceptance`, and adds one.

    >>> round(step_tokens(acceptance=0.8, drafted=5), 2)
    3.69
    """
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


@formula("speculation_gain", "leviathan2022 §3.3", given=[step_tokens])
def speculation_gain_free(step_tokens, drafted, draft_cost):
    """Speed-up if checking drafts costs no time: few sequences, and a step bound by reading weights.

    >>> round(speculation_gain_free(acceptance=0.8, drafted=5, draft_cost=0.05), 2)
    2.95
    """
    return step_tokens / (1 + drafted * draft_cost)


@formula("speculation_gain", "leviathan2022 §3.3", given=[step_tokens])
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


@formula("speculation_batch", "leviathan2022 §3.3", given=[step_tokens], domain=_PAYS)
def speculation_batch(step_tokens, drafted, draft_cost, base_time, added_time):
    """Batch that makes the speed-up 1: a share of the half-speed batch, whatever the model.

    >>> known = dict(acceptance=0.8, drafted=5, draft_cost=0.05, base_time="10 ms", added_time="50 us")
    >>> round(speculation_batch(known), 1)
    127.9
    """
    gain = step_tokens / (1 + drafted * draft_cost)
    return base_time / added_time * (gain - 1) / (drafted + 1 - gain)


@formula("tpot", "leviathan2022 §3.3")
def tpot_speculative(token_time, speculation_gain):
    """Time per output token with speculation: the step without drafts over the speed-up.

    >>> tpot_speculative(token_time="12 ms", speculation_gain=2)
    0.006
    """
    return token_time / speculation_gain


# Inside a step of a service


@formula("draft_cost", "deepseek2024-v3 §2.2")
def draft_cost_block(layers):
    """Time to draft a token, divided by a step's time: one block of all, as in multi-token prediction.

    >>> round(draft_cost_block(layers=61), 4)
    0.0164
    """
    return 1 / layers


@formula(
    "token_time", "leviathan2022 §3.3", domain={"users who have room": lambda users, max_users: users <= max_users}
)
def token_time_drafted(pass_time, step_tokens, drafted, draft_cost):
    """Time per token of a sequence: a step that checks drafts, and drafting them, over the tokens that it gives.

    >>> token_time_drafted(pass_time="20 ms", step_tokens=2.5, drafted=3, draft_cost=0.05, users=1, max_users=2)
    0.0092
    """
    return pass_time * (1 + drafted * draft_cost) / step_tokens


@formula("context", "leviathan2022 §3.3", given=[step_tokens], domain=_PAYS)
def drafts_pay_context(step_tokens, drafted, draft_cost, active_params, kv_cache_per_token, ridge_intensity):
    """Least context at which drafts pay at every batch, by a roofline in which attention reads caches.

    Drafts add arithmetic, and arithmetic bounds the other products. A step reads a cache once for all its drafts.

    >>> llama = dict(active_params=70.6e9, kv_cache_per_token=163_840, ridge_intensity=400, drafted=3, draft_cost=0.05)
    >>> round(drafts_pay_context(llama, acceptance=0.8))
    1970
    """
    gain = step_tokens / (1 + drafted * draft_cost)
    return 2 * active_params / ridge_intensity * (drafted + 1 - gain) / (kv_cache_per_token * (gain - 1))


DRAFTS = (step_tokens, draft_cost_block, token_time_drafted)

speculating = Sheet(
    "speculating", step_tokens, token_time_linear, speculation_gain_linear, speculation_batch, tpot_speculative,
    doc="Speculative decoding: tokens per step, the speed-up, and the batches for which it pays.",
)  # fmt: skip
