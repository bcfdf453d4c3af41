"""Rows of training tables as calls of `training_step`, for the sets that need Python."""

import re

from scalebook.language import Row
from scalebook.tables import accelerators, models
from scalebook.training.step import training_step
from scalebook.training.totals import useful_times

from .confrontation import Priced
from .rows import Measurement, number

__all__ = ["device", "gpt", "gpt_of", "of_set", "paced", "step", "timed"]

_DEVICES = ("GB300", "GB200", "B300", "B200", "H200", "H100", "A100", "V100", "MI300X", "MI325X", "MI350X", "MI355X")


def device(text: str):
    """The accelerator that a text names, None for one that is not in the table."""
    name = next((x for x in _DEVICES if re.search(x, text, re.IGNORECASE)), None)
    return accelerators[name.lower()] if name else None


def gpt(layers: float, hidden: float, heads: float, vocab: float, name: str = "GPT") -> Row:
    """A model of GPT's blocks: as many key-value heads as queries, four times as wide inside, one embedding."""
    own = dict(layers=layers, hidden=hidden, heads=heads, vocab=vocab)
    return models.shaped(name, "layernorm", "mha", **own, gating=0, embeddings=1, learned_positions=2048)


def gpt_of(row: Measurement) -> Row:
    """The GPT whose shape stands in a row."""
    return gpt(*(number(row, x) for x in ("layers", "hidden", "heads", "vocab")))


def of_set(*names: str):
    """Why a row is left out of the sets whose names begin so: nothing, or that it is of another."""
    return lambda row: "" if row["set"].startswith(names) else "of another table of the same file"


def step(*knowns, **letters) -> Row:
    """`training_step`, its missing time said as an error."""
    run = training_step(*knowns, **letters)
    run["step_time"]  # says why it has none
    return run


def timed(runs, times=None) -> Priced:
    """The times of steps, of runs one by one, beside those at the peak."""
    runs = list(runs)
    least = zip(*map(useful_times, runs), strict=True)
    return Priced([run.step_time for run in runs] if times is None else times, *least)


def paced(runs, counted) -> Priced:
    """What is counted of each step (tokens, TFLOP of a device) over its time, of runs one by one, beside the peaks."""
    seconds = [run.step_time for run in runs], *zip(*map(useful_times, runs), strict=True)
    return Priced(*([n / x for n, x in zip(counted, each, strict=True)] for each in seconds))
