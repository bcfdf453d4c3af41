"""Random expert loads as the benchmark of `moe_uneven` draws them: columns of its rows.

Only the distribution of the loads is published, and the script that assigns them to experts, which changed between
releases of TensorRT-LLM. So we draw our own loads with the script of the time, which needs Python.
"""

from functools import cache

import numpy as np

from .rows import Measurement, number

__all__ = ["drawn_loads", "uneven_loads"]

# Measured with TensorRT-LLM 1.0 and the script of that release; the others with 1.3 and the later script.
OLD_SCRIPT = ("a100_sxm",)


def _raised(counts, most, left):
    """Raise counts by `left` in all along the last axis, one at a time: always the smallest that has room, the first of
    equals.

    >>> _raised(np.array([0, 4, 1]), np.array([9, 9, 2]), np.array(4)).tolist()
    [3, 4, 2]
    """
    low, high = counts.min(-1), most.max(-1)
    while (low < high).any():
        level = (low + high + 1) // 2
        fits = (np.clip(level[..., None], counts, most) - counts).sum(-1) <= left
        low, high = np.where(fits, level, low), np.where(fits, high, level - 1)
    raised = np.clip(low[..., None], counts, most)
    able = (raised == low[..., None]) & (raised < most)
    return raised + (able & (able.cumsum(-1) <= (left - (raised - counts).sum(-1))[..., None]))


def _level(loads, left, tokens):
    """Correct rounding over the devices in turn: add to the emptiest expert with room, or take from the fullest."""
    way = np.where(left < 0, -1, 1)[:, None, None]
    counts, most = way * loads, np.where(way < 0, 0, tokens + 0 * loads)
    room = (most - counts).sum(-1)
    return way * _raised(counts, most, _raised(0 * room, room, np.abs(left)))


def _steepen(loads, left, tokens):
    """Correct rounding by adding to the fullest experts with room, or by taking from the emptiest."""
    for one, more in zip(loads.reshape(len(loads), -1), left, strict=True):
        while more:
            able = np.flatnonzero(one < tokens if more > 0 else one > 0)
            order = able[np.argsort(-one[able], kind="stable")]
            picked = order[:more] if more > 0 else order[more:]
            one[picked] += np.sign(more)
            more -= np.sign(more) * len(picked)
    return loads


@cache
def uneven_loads(experts, top_k, tokens, ways, exponent, deal=_level, draws=32):
    """Return the tokens of each expert on the fullest device, one row per draw of loads from a power law.

    Loads are drawn with density x^-exponent, scaled, rounded, and limited to all tokens for one expert, as in
    AIConfigurator's benchmark (power_law_logits_v3). The script assigns the tokens lost to rounding to the devices in
    turn, and there to the emptiest expert. An earlier script assigned them to the fullest experts, so that a few tokens
    met in a few experts of one device.

    >>> loads = uneven_loads(experts=128, top_k=8, tokens=16384, ways=16, exponent=1.2)
    >>> loads.shape, float(round(loads.sum(axis=1).mean() / (16384 * 8 / 16), 1))
    ((32, 8), 2.9)
    """
    low, high = (1, 0.8 * tokens) if tokens * top_k > experts else (0.01, 2)
    chance, power = np.random.default_rng(0).random((draws, int(experts))), 1 - exponent
    drawn = ((high**power - low**power) * chance + low**power) ** (1 / power)
    loads = np.round(np.minimum(drawn / drawn.sum(axis=1, keepdims=True) * tokens * top_k, tokens)).astype(int)
    left = int(tokens * top_k) - loads.sum(axis=1)
    loads = deal(loads.reshape(draws, int(ways), -1), left, int(tokens))
    return loads[np.arange(draws), loads.sum(axis=2).argmax(axis=1)]


def drawn_loads(row: Measurement) -> dict[str, str]:
    """Return averages over the draws of a row: tokens of the fullest device, its active experts, and their blocks of
    rows.
    """
    if not row["distribution"].startswith("power_law_"):
        return {}
    tokens, top_k, experts, ep = (number(row, x) for x in ("num_tokens", "topk", "num_experts", "moe_ep_size"))
    deal = _steepen if row["system"] in OLD_SCRIPT else _level
    loads = uneven_loads(experts, top_k, tokens, ep, float(row["distribution"].removeprefix("power_law_")), deal)
    height = 128 if row["moe_dtype"] == "fp8_block" and tokens * top_k / experts > 64 else 64
    found = loads.sum(axis=1), (loads > 0).sum(axis=1), np.ceil(loads / height).sum(axis=1)
    names = ("fullest_tokens", "fullest_experts", "fullest_blocks")
    return {name: repr(float(x.mean())) for name, x in zip(names, found, strict=True)}
