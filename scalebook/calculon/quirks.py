"""Quirks: details of Calculon's model that we consider wrong. Each has a name, so that a call can leave it out."""

from collections.abc import Callable
from typing import NamedTuple

from .documents import Choices

__all__ = ["QUIRKS", "Quirk"]


class Quirk(NamedTuple):
    """A detail of Calculon's model that we consider wrong: a sentence, and a test of the options that it affects."""

    words: str
    meets: Callable[[Choices], bool]
    trained: bool = True

    def concerns(self, choices: Choices) -> bool:
        return self.meets(choices) and (choices.training or not self.trained)


def _repeats(c: Choices) -> bool:
    return c.recompute != "none" or c.gather_again


QUIRKS = {
    "running_totals": Quirk(
        "for each recomputed operation, the FLOPs, bytes and times of all operations up to it are added; this changes "
        "the step time if gradients are exchanged behind backward passes",
        _repeats,
    ),
    "pipe_tile": Quirk(
        "the one tile that 'pipe' overlap cannot hide is counted twice: in the time of the product and as exposed",
        lambda c: c.overlap == "pipe",
        trained=False,
    ),
    "again_exposed": Quirk(
        "a repeated overlapped exchange is charged its exposed time of the forward pass, although it overlaps with the "
        "gradient of the weights", lambda c: c.overlap != "none" and _repeats(c),
    ),
    "fused_traffic": Quirk(
        "an activation function fused with the product before it is still charged its memory traffic",
        lambda c: c.fused,
        trained=False,
    ),
    "send_latency": Quirk(
        "the latency of a send is charged even without a pipeline", lambda c: not c.piped, trained=False
    ),
    "narrow_gradients": Quirk(
        "gradients are exchanged in the precision of the weights, although they are held in fp32",
        lambda c: c.replicated and c.master,
    ),
    "whole_checkpoint": Quirk(
        "with sequence parallelism, the checkpoint (input) of a block is not split",
        lambda c: c.recompute == "full" and c.split and c.sequence_parallel,
    ),
    "dropped_input": Quirk(
        "if there is no shard of it, the input of queries, keys and values (and of the feed-forward layer, if it is "
        "gathered again) is stored by no device",
        lambda c: c.overlap == "none" and not (c.split and c.sequence_parallel)
        and (c.recompute == "attn_only" or c.gather_again),
    ),
    "dropout_gradient": Quirk("the gradient of a dropout's result takes one byte per element", lambda c: True),
}  # fmt: skip
