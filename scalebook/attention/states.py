"""Kernels with a state (Gated DeltaNet, Kimi's delta attention, Mamba-2): their work, traffic and time.

A prompt is read in chunks, which cores share but which wait for one another within a sequence. Each new token of a
decoding sequence reads and writes the whole state. A short convolution comes first. `states.toml` states all of it.
"""

from scalebook.language.defaults import stated

_OWN = stated(__name__)
globals().update(_OWN)
__all__ = [*_OWN]
