"""A strategy's words, and what they make of a block's listing.

>>> from scalebook.block import LLAMA
>>> Strategy(recompute="full").transformed(LLAMA).saved
activation_bits*batch*hidden*seq/(8*cp*tp)
>>> Strategy(recompute="ful")
Traceback (most recent call last):
    ...
ValueError: recompute is 'none', 'selective' or 'full', not 'ful'
"""

from dataclasses import dataclass, fields, replace

from scalebook.block import (
    Block,
    context_exchanged,
    context_parallel,
    expert_parallel,
    expert_tensor_parallel,
    flash,
    full,
    selective,
    sequence_parallel,
    tensor_parallel,
)
from scalebook.language.notation import either, quoted

__all__ = ["CHOICES", "Strategy"]

CHOICES = {  # the usual one first
    "recompute": ("none", "selective", "full"),
    "sequence_parallel": (True, False),
    "attention": ("flash", "unfused"),
    "context_exchange": ("gather", "all_to_all"),
    "sharding": ("zero1", "replicated", "zero2", "zero3", "hybrid"),
    "schedule": ("1f1b", "interleaved", "gpipe", "zb_h1", "zb_h2", "zb_v", "dualpipe"),
    "offload": (False, True),
    "quantized": (False, True),
    "kernels": ("measured", "ideal"),
}


@dataclass(frozen=True)
class Strategy:
    """The choices of a strategy that are words.  Raises ValueError naming the words that would have done."""

    recompute: str = "none"
    sequence_parallel: bool = True
    attention: str = "flash"
    context_exchange: str = "gather"
    sharding: str = "zero1"
    schedule: str = "1f1b"
    offload: bool = False
    quantized: bool = False
    kernels: str = "measured"

    def __post_init__(self):
        for field in fields(self):
            value, allowed = getattr(self, field.name), CHOICES[field.name]
            if not isinstance(value, str | bool) or value not in allowed:
                raise ValueError(f"{field.name} is {either(map(repr, allowed))}, not {quoted(value)}")

    @property
    def of_block(self) -> "Strategy":
        """The same with what says nothing about a block left at the usual: strategies that share it share their blocks."""
        return replace(self, sharding="zero1", schedule="1f1b", offload=False)

    def transformed(self, block: Block) -> Block:
        """The block's listing on one device, in training: as many tokens are attended to as are new."""
        split = context_exchanged if self.context_exchange == "all_to_all" else context_parallel
        steps = [tensor_parallel, *([sequence_parallel] if self.sequence_parallel else []), split]
        if any(op.function == "dispatch" for op in block.ops):
            steps.append(expert_parallel)
            if self.sequence_parallel:  # else all tensor-parallel devices have the same tokens, and share the experts' widths
                steps.append(expert_tensor_parallel)
        if self.attention == "flash":
            steps.append(flash)  # it runs the attention core again by itself
        elif self.recompute == "selective":
            steps.append(selective)
        return block.then(*steps, *([full] if self.recompute == "full" else []))
