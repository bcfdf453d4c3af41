"""Calculon's name for each of its outputs, by our name of the quantity."""

from scalebook.language.stanzas import tables_of

__all__ = ["OUTPUTS"]

OUTPUTS: dict[str, dict[str, str]] = tables_of(__package__, "outputs.toml")
