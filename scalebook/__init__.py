"""Scaling large language models, derived."""
