"""The roofline: arithmetic and memory traffic overlap, and the slower of the two sets the time."""

from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of roofline.toml

roofline = Sheet(
    "roofline", _OWN.ridge_intensity, _OWN.intensity, _OWN.attainable_flops, _OWN.compute_time, _OWN.memory_time,
    _OWN.roofline_time, _OWN.idle_fraction,
    doc="A kernel with given operations and bytes on a device.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "roofline"]
