"""Offloading: tensors kept in a second memory tier, and the bandwidth needed to hide their transfers."""

from . import bandwidth, block, tiers
from .bandwidth import *
from .block import *
from .tiers import *

__all__ = [*bandwidth.__all__, *block.__all__, *tiers.__all__]
