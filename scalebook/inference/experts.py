"""Experts with few tokens: the number of visited experts, their devices, and the load of the fullest device.

Routing is assumed to be uniform and tokens independent; `visited_by_shares` takes any popularity of experts.
"""

from collections.abc import Iterable

import numpy as np
from sympy import Max, Min, log, sqrt

from scalebook.language import formula, formulas_of
from scalebook.language.row import one_number

_ROUTED = "shazeer2017 §2.1"


@formula("layer_tokens", "deepseek2024-v3 §3.4")
def layer_tokens(pass_tokens, attention_dp):
    """Tokens that reach a layer of experts, summed over all groups with attention data parallelism.

    >>> layer_tokens(pass_tokens=16, attention_dp=8)
    128.0
    """
    return pass_tokens * attention_dp


@formula("visited_experts", _ROUTED, given=[layer_tokens])
def experts_touched(experts, top_k, layer_tokens):
    """Expected number of experts visited by a batch of independent tokens, each with different, uniform experts.

    >>> round(experts_touched(experts=256, top_k=8, layer_tokens=32), 1)
    163.3
    """
    return experts * (1 - (1 - top_k / experts) ** layer_tokens)


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


@formula("local_experts", _ROUTED, given=[experts_touched])
def local_experts(visited_experts, ep, layer_tokens, top_k):
    """Visited experts of a device: an even part, but at least one if the device has work at all.

    >>> local_experts(visited_experts=163.3, ep=8, layer_tokens=32, top_k=8)
    20.4125
    """
    return Max(visited_experts / ep, Min(1, layer_tokens * top_k / ep, evaluate=False), evaluate=False)


@formula("assigned_tokens", _ROUTED, given=[layer_tokens])
def assigned_tokens(layer_tokens, top_k, ep):
    """Token copies of a device: every token goes to `top_k` experts, spread evenly over devices.

    >>> assigned_tokens(layer_tokens=32, top_k=8, ep=8)
    32.0
    """
    return layer_tokens * top_k / ep


@formula("expert_rows", _ROUTED, given=[assigned_tokens, local_experts])
def expert_rows(assigned_tokens, local_experts):
    """Rows of an expert's products: the token copies of a device over its visited experts.

    >>> expert_rows(assigned_tokens=32, local_experts=20)
    1.6
    """
    return Max(1, assigned_tokens / local_experts, evaluate=False)


VISITED = (layer_tokens, experts_touched, local_experts, assigned_tokens, expert_rows)


@formula("visited_devices", "deepseek2024-v3 §2.1.2", _ROUTED)
def devices_touched(experts, top_k, ep):
    """Expected number of devices that a token is sent to because they hold one of its experts; right to 0.2 %.

    >>> round(devices_touched(experts=256, top_k=8, ep=8), 2), devices_touched(experts=6, top_k=6, ep=2)
    (5.29, 2.0)
    """
    own = experts / ep
    return ep * (1 - Max(0, 1 - top_k / (experts - (own - 1) / 2), evaluate=False) ** own)


@formula("visited_devices", "deepseek2024-v3 §2.1.2", _ROUTED)
def nodes_touched(experts, top_k, ep, scaleup_size):
    """Expected number of scale-up domains to which a token is sent, for kernels that send once per domain.

    Pass this formula to a step to use it: `prefill_step(model, device, nodes_touched, ...)`.

    >>> round(nodes_touched(experts=256, top_k=8, ep=32, scaleup_size=8), 2)
    3.61
    """
    return devices_touched.of(experts=experts, top_k=top_k, ep=ep / scaleup_size)


@formula("fullest_group", "raab1998 theorem 1")
def fullest_group(attention_dp, batch):
    """Sequences of the fullest attention group over the mean, if requests go to groups at random.

    An upper estimate: 1.51 for 8 groups with 16 sequences each, where simulation finds 1.37.

    >>> round(fullest_group(attention_dp=8, batch=16), 2)
    1.51
    """
    return 1 + sqrt(2 * log(attention_dp) / batch)


@formula("fullest_share", "raab1998 theorem 1", given=[assigned_tokens])
def fullest_share(ep, assigned_tokens):
    """Token copies of the fullest device over the mean, with uniform routing.

    An upper estimate: 1.26 for 8 devices with 64 token copies each, where simulation finds 1.19.

    >>> round(fullest_share(ep=144, assigned_tokens=88 * 8), 2)
    1.12
    """
    return 1 + sqrt(2 * log(ep) / assigned_tokens)


__all__ = [*formulas_of(__name__), "visited_by_shares"]
