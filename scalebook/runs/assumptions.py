"""Default values of training runs, from `assumptions.toml`. Each can be given instead."""

from scalebook.language.defaults import stated

_DEFAULTS = stated(__name__)
globals().update(_DEFAULTS)
__all__ = [*_DEFAULTS]
