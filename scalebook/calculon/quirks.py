"""Quirks: details of Calculon's model that we consider wrong. Each has a name, so that a call can leave it out."""

from collections.abc import Callable
from typing import NamedTuple

from scalebook.language.rules import condition
from scalebook.search.space import called_with

from .documents import STATED, Choices

__all__ = ["QUIRKS", "Quirk"]


class Quirk(NamedTuple):
    """A detail of Calculon's model that we consider wrong: a sentence, and a test of the options that it affects."""

    words: str
    meets: Callable
    trained: bool = True

    def concerns(self, choices: Choices) -> bool:
        return called_with(self.meets, vars(choices)) and (choices.training or not self.trained)


QUIRKS = {
    name: Quirk(" ".join(x["words"].split()), condition(x["meets"]), x.get("trained", True))
    for name, x in STATED["quirks"].items()
}
