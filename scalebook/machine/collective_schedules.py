"""Collective algorithms on equal links: rings, trees, halving and doubling, in-switch reduction, all-to-all.

Every device has one port that sends and receives at `link_bandwidth` at the same time, and a hop costs `link_latency`.
`scalebook.machine.collectives` maps such collectives onto two tiers of network with measured rates.
"""

from scalebook.language import formulas_of
from scalebook.language.defaults import equations

equations(__name__)  # those of collective_schedules.toml
__all__ = [*formulas_of(__name__)]
