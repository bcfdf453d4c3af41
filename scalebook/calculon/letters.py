"""Quantities that only Calculon's account of a step needs, entered into the notation from `letters.toml`."""

from scalebook.language.notation import letters_of

__all__ = ["KINDS", "PASSES"]

PASSES = ("forward", "again", "input", "weight", "update")  # over a block
KINDS = ("base", "edge")  # of blocks: inside a chunk, and at its end

letters_of(__package__)
