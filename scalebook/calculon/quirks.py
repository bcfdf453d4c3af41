"""Quirks: details of Calculon's accounting that we consider wrong.  Each has a name by which it can be left out.

>>> from scalebook.calculon.documents import Choices
>>> [name for name, quirk in QUIRKS.items() if quirk.concerns(Choices(overlap="pipe", replicated=False))]
['pipe_tile', 'dropout_gradient']
"""

from collections.abc import Callable
from typing import NamedTuple

from .documents import Choices

__all__ = ["QUIRKS", "Quirk"]


class Quirk(NamedTuple):
    """A quirk in words, and a function that says whether it affects a set of choices."""

    words: str
    meets: Callable[[Choices], bool]
    trained: bool = True

    def concerns(self, choices: Choices) -> bool:
        return self.meets(choices) and (choices.training or not self.trained)


def _repeats(c: Choices) -> bool:
    return c.recompute != "none" or c.gather_again


QUIRKS = {
    "running_totals": Quirk(
        "for each operation that is run again, FLOPs, bytes and their times of all operations up to it are added; this "
        "reaches the step where gradients are exchanged behind backward passes",
        _repeats,
    ),
    "pipe_tile": Quirk(
        "the tile that 'pipe' overlap sends unhidden counts in the time of the product and once more as exposed",
        lambda c: c.overlap == "pipe",
        trained=False,
    ),
    "again_exposed": Quirk(
        "an overlapped exchange that is repeated counts as exposed what it was forward, though it is repeated beside "
        "the gradient of the weights", lambda c: c.overlap != "none" and _repeats(c),
    ),
    "fused_traffic": Quirk(
        "an activation function fused with the product before it keeps its memory traffic", lambda c: c.fused,
        trained=False
    ),
    "send_latency": Quirk("without a pipeline, the latency of a send is charged", lambda c: not c.piped, trained=False),
    "narrow_gradients": Quirk(
        "gradients are exchanged in the precision of the weights, though they are held in fp32",
        lambda c: c.replicated and c.master,
    ),
    "whole_checkpoint": Quirk(
        "under sequence parallelism the kept input of a block is not split",
        lambda c: c.recompute == "full" and c.split and c.sequence_parallel,
    ),
    "dropped_input": Quirk(
        "the input of queries, keys and values, and of the feed-forward layer where it is gathered again, is kept by "
        "nobody where there is no shard of it", lambda c: c.overlap == "none" and not (c.split and c.sequence_parallel)
        and (c.recompute == "attn_only" or c.gather_again),
    ),
    "dropout_gradient": Quirk("the gradient of a dropout's result takes one byte an element", lambda c: True),
}  # fmt: skip
