"""Experts with few tokens: the number of visited experts, their devices, and the load of the fullest device.

Routing is assumed to be uniform and tokens independent; `visited_by_shares` takes any popularity of experts.
"""

from collections.abc import Iterable

import numpy as np

from scalebook.language import formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.row import one_number

_OWN = equations(__name__)  # those of experts.toml
VISITED = (_OWN.layer_tokens, _OWN.experts_touched, _OWN.local_experts, _OWN.assigned_tokens, _OWN.expert_rows)


def visited_by_shares(shares: Iterable[float], tokens: float) -> float:
    """Return the expected number of experts visited, given the share of tokens that picks each; shares sum to top_k.

    >>> round(visited_by_shares([8 / 256] * 256, tokens=64), 2)
    222.44
    """
    try:
        shares = np.array([one_number("routed_share", x) for x in shares])
    except (TypeError, ValueError):
        shares = np.array(None, float)
    tokens = one_number("layer_tokens", tokens)
    if shares.ndim != 1 or not len(shares) or not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError("shares are those of the tokens that pick each expert, between 0 and 1")
    return float(np.sum(1 - (1 - shares) ** tokens))


@formula("visited_devices", "deepseek2024-v3 §2.1.2", "shazeer2017 §2.1")
def nodes_touched(experts, top_k, ep, scaleup_size):
    """Expected number of scale-up domains to which a token is sent, for kernels that send once per domain.

    Pass this formula to a step to use it: `prefill_step(model, device, nodes_touched, ...)`.

    >>> round(nodes_touched(experts=256, top_k=8, ep=32, scaleup_size=8), 2)
    3.61
    """
    return _OWN.devices_touched.of(experts=experts, top_k=top_k, ep=ep / scaleup_size)


__all__ = [*formulas_of(__name__), "visited_by_shares"]
