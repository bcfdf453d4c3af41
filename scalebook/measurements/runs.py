"""Rows of training tables as calls of `training_step`, for the sets that need Python."""

from scalebook.language import Row
from scalebook.tables import models
from scalebook.training.step import training_step

__all__ = ["gpt", "step"]


def gpt(layers: float, hidden: float, heads: float, vocab: float, name: str = "GPT") -> Row:
    """Return a GPT model's row: multi-head attention, a feed-forward layer four times as wide, one embedding."""
    own = dict(layers=layers, hidden=hidden, heads=heads, vocab=vocab)
    return models.shaped(name, "layernorm", "mha", **own, gating=0, embeddings=1, learned_positions=2048)


def step(*knowns, **letters) -> Row:
    """Return the result of `training_step`. Raises its own error if the step has no time."""
    run = training_step(*knowns, **letters)
    run["step_time"]  # raises an error that says why there is no time
    return run
