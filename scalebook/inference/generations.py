"""Speed-up of a step on a new generation of devices, by Amdahl's law: launches and latencies stay as they are."""

from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of generations.toml

next_generation = Sheet(
    "a step on a new generation", *vars(_OWN).values(),
    doc="Speed-up of a step from a new device's bandwidth and FLOP/s.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "next_generation"]
