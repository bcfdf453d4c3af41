"""Tiers of caches and the bill of sessions: when to fetch a cache, how long to keep it, and what tokens cost.

Device memory, host memory, a drive in the node and a pool over the network hold the same cache at different prices.
Fetching costs a link's time, computing it again costs a device's, and a drive's writes cost its wear.
"""

from collections.abc import Mapping

from scalebook.language import Row, Sheet, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.notation import quoted
from scalebook.language.row import Cell, quantity
from scalebook.memory.serving import kv_cache_per_token  # noqa: F401  (given in tiers.toml)
from scalebook.tables import tiers as TABLE

_OWN = equations(__name__)  # those of tiers.toml

keeping = Sheet(
    "keeping", _OWN.break_even_of_prompt, _OWN.fetch_time_of_cache, _OWN.keep_pause_memory,
    doc="A prompt's cache: the bandwidth that makes fetching it faster, and the pause for which memory should keep it.",
)  # fmt: skip


_NEEDED = ("tier_capacity", "tier_bandwidth", "tier_latency", "tier_cost", "tier_life")


def tier_rows(tiers) -> tuple[Row, ...]:
    """Return the rows of tiers that are given by name, as rows or as mappings; those without capacity are left out."""
    if isinstance(tiers, str | Mapping) or not isinstance(tiers, list | tuple):
        raise TypeError(
            f"tiers is a list of names or rows of tables.tiers, such as ['host_memory'], not {quoted(tiers)}"
        )
    found = [_row(x) for x in tiers]
    return tuple(row for row in found if row.tier_capacity)


def _row(tier) -> Row:
    if isinstance(tier, str):
        return TABLE[tier]
    if not isinstance(tier, Mapping):
        raise TypeError(f"a tier is a name or a row of tables.tiers, or letters of one, not {quoted(tier)}")
    own = tier.cells if isinstance(tier, Row) else {n: Cell(quantity(n, x)) for n, x in tier.items()}
    if lacking := [n for n in _NEEDED if n not in own]:
        raise TypeError(f"a tier needs {', '.join(_NEEDED)}, and {lacking[0]} is missing: start from tables.tiers")
    return Row(getattr(tier, "name", "tier"), own)


__all__ = [*formulas_of(__name__), "keeping"]
