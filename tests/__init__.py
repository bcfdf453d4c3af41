"""The tests, and the repository they are in."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
