"""Calculon's name for each of its outputs, by our name of the quantity."""

import tomllib
from importlib.resources import files

__all__ = ["OUTPUTS"]

OUTPUTS: dict[str, dict[str, str]] = tomllib.loads((files(__package__) / "outputs.toml").read_text("utf-8"))
