"""Drawings of the book's chapters. Each function returns a `Scene`, which a notebook shows as SVG.

Functions of `mechanisms` serve several chapters and can be imported from here. Other modules serve a few chapters each.
"""

from . import mechanisms
from .mechanisms import *

__all__ = mechanisms.__all__
