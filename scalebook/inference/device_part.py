"""A device's part of a block in a serving step, and costs of the block's listing for the tokens of the step.

>>> from scalebook.block import LLAMA
>>> cost_for(tokens_of("decoded"), on_device(LLAMA)["up"].flops)
2*device_batch*ffn*hidden/tp
"""

from collections.abc import Mapping
from functools import cache

from sympy import Expr, Max, S

from scalebook.block import Block, shard
from scalebook.block.sharding import WIDTHS
from scalebook.language import symbol
from scalebook.language.notation import replaced

__all__ = ["HELD_HEADS", "cost_for", "on_device", "tokens_of", "whole_heads"]

x = symbol
HELD_HEADS = Max(1, x("kv_heads") / x("tp"), evaluate=False)  # key-value heads: a device holds at least one


@cache  # SymPy's first sum loads its tensors, which no import needs
def tokens_of(which: str) -> Mapping[Expr, Expr]:
    """Return what replaces sequences and lengths: tokens "of a step", "of prompts", or those "decoded"."""
    if which == "of prompts":
        return {x("batch"): x("prompts"), x("seq"): x("read_chunk"), x("context"): x("past") + x("read_chunk")}
    return {x("batch"): x("pass_tokens" if which == "of a step" else "device_batch"), x("seq"): S.One}


def on_device(block: Block) -> Block:
    """Return a device's part of a block: `tp` splits heads and widths, `etp` the widths of experts."""
    widths = [n for n in WIDTHS if n in block.indices]
    split = shard(block, "tp", *widths)
    return shard(split, "etp", "expert_ffn") if "expert_ffn" in block.indices else split


def whole_heads(cost: Expr) -> Expr:
    """Return a cost corrected for devices that outnumber key-value heads: each holds at least one whole head."""
    return replaced(cost, {x("kv_heads"): Max(x("kv_heads"), x("tp"), evaluate=False)})


def cost_for(tokens: Mapping, cost: Expr) -> Expr:
    """Return a cost for some of the step's tokens (see `tokens_of`), with whole key-value heads."""
    return whole_heads(replaced(cost, tokens))
