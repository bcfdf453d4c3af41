"""Offloading: tensors kept in a second memory tier, and the bandwidth needed to hide their transfers."""

from scalebook.language import exports

from .bandwidth import *
from .block import *
from .tiers import *

__all__ = exports(__name__)
