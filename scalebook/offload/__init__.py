"""Offloading: tensors that lie in a second tier, and the bandwidth that hides their way."""

from . import bandwidth, block, tiers
from .bandwidth import *
from .block import *
from .tiers import *

__all__ = [*bandwidth.__all__, *block.__all__, *tiers.__all__]
