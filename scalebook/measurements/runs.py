"""Rows of training tables as calls of `training_step`, for the sets that need Python."""

from scalebook.language import Row
from scalebook.tables import models
from scalebook.training.step import training_step

__all__ = ["gpt", "step"]


def gpt(layers: float, hidden: float, heads: float, vocab: float, name: str = "GPT") -> Row:
    """A model of GPT's blocks: as many key-value heads as queries, four times as wide inside, one embedding."""
    own = dict(layers=layers, hidden=hidden, heads=heads, vocab=vocab)
    return models.shaped(name, "layernorm", "mha", **own, gating=0, embeddings=1, learned_positions=2048)


def step(*knowns, **letters) -> Row:
    """`training_step`, its missing time said as an error."""
    run = training_step(*knowns, **letters)
    run["step_time"]  # says why it has none
    return run
