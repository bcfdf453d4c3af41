"""Calculon's name for each of its outputs, by our letter.

>>> OUTPUTS["times of a step"]["bubble_time"]
'bubble_time'
"""

import tomllib
from importlib.resources import files

__all__ = ["OUTPUTS"]

OUTPUTS: dict[str, dict[str, str]] = tomllib.loads((files(__package__) / "outputs.toml").read_text("utf-8"))
