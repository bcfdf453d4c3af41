"""Scaling large language models, derived."""

__version__ = "0.1.0"  # the only place; pyproject.toml and a test of CITATION.cff read it
