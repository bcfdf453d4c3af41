"""Models and systems that come with Calculon or its reference runs, and Calculon's example execution.

Source: Calculon (https://github.com/calculon-ai/calculon) at caa4b11, Apache License 2.0. 13 models and 3 systems are
unchanged. The others are variants of them: the twelve shapes of its poster, and machines with another second tier.
"""

import json
from importlib.resources import files

from .documents import execution
from .systems import System, system

__all__ = ["example", "models", "sample", "systems"]


def _load(name):
    return json.loads((files(__package__) / name).read_text("utf-8"))


models: dict[str, dict] = _load("models.json")
systems: dict[str, System] = {name: system(document, name) for name, document in _load("systems.json").items()}
example: dict = _load("example.json")
sample = execution(example, "Calculon's example")
