"""Drawings of the book's chapters: a function each, which returns a scene that a notebook shows.

`mechanisms` holds those of several chapters, which stand here too; the other modules are each for a few chapters.
"""

from . import mechanisms
from .mechanisms import *

__all__ = mechanisms.__all__
