"""Experts when few tokens come: which are visited, on which devices, and how full the fullest is.

Routing is taken to be uniform and tokens independent of each other; `visited_by_shares` takes any popularity.

>>> round(experts_touched(experts=256, top_k=8, layer_tokens=64), 2)
222.44
"""

from collections.abc import Iterable

import numpy as np
from sympy import Max, Min, log, sqrt

from scalebook.language import formula
from scalebook.language.row import quantity

__all__ = [
    "assigned_tokens", "devices_touched", "expert_rows", "experts_touched", "fullest_group", "fullest_share",
    "layer_tokens", "local_experts", "nodes_touched", "visited_by_shares",
]  # fmt: skip

_ROUTED = "shazeer2017 §2.1"


@formula("layer_tokens", "deepseek2024-v3 §3.4")
def layer_tokens(pass_tokens, attention_dp):
    """Groups that attend for sequences of their own send their tokens to the same experts.

    >>> layer_tokens(pass_tokens=16, attention_dp=8)
    128.0
    """
    return pass_tokens * attention_dp


@formula("visited_experts", _ROUTED, given=[layer_tokens])
def experts_touched(experts, top_k, layer_tokens):
    """An expert stays idle where no token picks it, each with the chance 1 - top_k/experts.

    Exact for uniform routing: a token's own experts differ, and tokens choose by themselves.

    >>> round(experts_touched(experts=256, top_k=8, layer_tokens=32), 1)
    163.3
    """
    return experts * (1 - (1 - top_k / experts) ** layer_tokens)


def visited_by_shares(shares: Iterable[float], tokens: float) -> float:
    """Experts that tokens visit where an expert is picked by this share of the tokens: `shares` add up to top_k.

    Raises ValueError for what is no share.

    >>> round(visited_by_shares([8 / 256] * 256, tokens=64), 2)
    222.44
    """
    try:
        shares = np.array(list(shares), float)
    except (TypeError, ValueError):
        shares = np.array(None, float)
    tokens = quantity("layer_tokens", tokens)
    if shares.ndim != 1 or not len(shares) or not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError("shares are those of the tokens that pick each expert, between 0 and 1")
    return float(np.sum(1 - (1 - shares) ** tokens))


@formula("local_experts", _ROUTED, given=[experts_touched])
def local_experts(visited_experts, ep, layer_tokens, top_k):
    """An even part of the experts that are visited; one at least where a device has work at all.

    >>> local_experts(visited_experts=163.3, ep=8, layer_tokens=32, top_k=8)
    20.4125
    """
    return Max(visited_experts / ep, Min(1, layer_tokens * top_k / ep, evaluate=False), evaluate=False)


@formula("assigned_tokens", _ROUTED, given=[layer_tokens])
def assigned_tokens(layer_tokens, top_k, ep):
    """Every token goes to `top_k` experts, dealt over the devices that have them.

    >>> assigned_tokens(layer_tokens=32, top_k=8, ep=8)
    32.0
    """
    return layer_tokens * top_k / ep


@formula("expert_rows", _ROUTED, given=[assigned_tokens, local_experts])
def expert_rows(assigned_tokens, local_experts):
    """Of the experts that are visited each has so many tokens: the rows of its products.

    >>> expert_rows(assigned_tokens=32, local_experts=20)
    1.6
    """
    return Max(1, assigned_tokens / local_experts, evaluate=False)


@formula("visited_devices", "deepseek2024-v3 §2.1.2", _ROUTED)
def devices_touched(experts, top_k, ep):
    """A device is left out where none of a token's different experts is its own.

    Of the product of its experts' chances, one after another, each is taken at the middle one's: right to 0.2 %.  None
    is left out where a token visits nearly all experts.

    >>> round(devices_touched(experts=256, top_k=8, ep=8), 2), devices_touched(experts=6, top_k=6, ep=2)
    (5.29, 2.0)
    """
    own = experts / ep
    return ep * (1 - Max(0, 1 - top_k / (experts - (own - 1) / 2), evaluate=False) ** own)


@formula("visited_devices", "deepseek2024-v3 §2.1.2", _ROUTED)
def nodes_touched(experts, top_k, ep, scaleup_size):
    """Kernels for prompts send a token once to each scale-up domain that has one of its experts.

    Hand this formula to a step to price it so: `prefill_step(model, device, nodes_touched, ...)`.

    >>> round(nodes_touched(experts=256, top_k=8, ep=32, scaleup_size=8), 2)
    3.61
    """
    return devices_touched.of(experts=experts, top_k=top_k, ep=ep / scaleup_size)


@formula("fullest_group", "raab1998 theorem 1")
def fullest_group(attention_dp, batch):
    """Groups that attend apart wait for the one with most sequences, where a request goes to any of them at random.

    An upper estimate: 1.51 for 8 groups with 16 sequences each, of which simulation finds 1.37.  An engine that looks
    at what the groups hold comes near 1.

    >>> round(fullest_group(attention_dp=8, batch=16), 2)
    1.51
    """
    return 1 + sqrt(2 * log(attention_dp) / batch)


@formula("fullest_share", "raab1998 theorem 1", given=[assigned_tokens])
def fullest_share(ep, assigned_tokens):
    """Loads of uniform routing vary like square roots: the largest of so many, where each has many tokens.

    An upper estimate: 1.26 for 8 devices with 64 copies of tokens each, of which simulation finds 1.19.

    >>> round(fullest_share(ep=144, assigned_tokens=88 * 8), 2)
    1.12
    """
    return 1 + sqrt(2 * log(ep) / assigned_tokens)
