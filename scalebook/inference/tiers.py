"""Tiers of caches and the bill of sessions: when to fetch a cache, how long to keep it, and what tokens cost.

Device memory, host memory, a drive in the node and a pool over the network hold the same cache at different prices.
Fetching costs a link's time, computing it again costs a device's, and a drive's writes cost its wear.
"""

from collections.abc import Mapping

from scalebook.language import Row, Sheet, formula, formulas_of
from scalebook.language.notation import quoted
from scalebook.language.row import Cell, quantity
from scalebook.memory.serving import kv_cache_per_token
from scalebook.tables import tiers as TABLE

# Fetch, or compute again


@formula("break_even_bandwidth", "qin2025 eq. 2")
def break_even_of_prompt(prompt, token_cache, prompt_time):
    """Least bandwidth per device that makes fetching a prompt's cache faster than computing it again.

    >>> break_even_of_prompt(prompt=8192, token_cache="20 kB", prompt_time="0.25 s") / 1e9
    0.65536
    """
    return prompt * token_cache / prompt_time


@formula("break_even_bandwidth", "qin2025 eq. 2", given=[kv_cache_per_token])
def break_even_roofline(
    kv_cache_per_token, devices, peak_flops, flops_efficiency, active_params, layers, heads, head_dim, prompt
):
    """Least total bandwidth of all devices that makes fetching a cache faster than recomputing it at the roofline.

    >>> known = dict(kv_cache_per_token=327_680, active_params=70.6e9, layers=80, heads=64, head_dim=128, prompt=8192)
    >>> round(break_even_roofline(known, devices=8, peak_flops="312 TFLOP/s", flops_efficiency=1) / 1e9, 1)
    5.4
    """
    rate = devices * peak_flops * flops_efficiency
    return kv_cache_per_token * rate / (2 * active_params + 2 * layers * heads * head_dim * prompt)


@formula("break_even_bandwidth", "qin2025 eq. 2")
def break_even_of_lost(token_cache, turns, appended, output, lost_time, found_time):
    """Least bandwidth per device that makes fetching a later turn's cache faster than reading its tokens again.

    >>> lost = dict(turns=33, appended=1891, output=351, lost_time="1.9 s", found_time="0.1 s")
    >>> round(break_even_of_lost(lost, token_cache=20_480) / 1e9, 2)
    0.42
    """
    return token_cache * turns * (appended + output) / 2 / (lost_time - found_time)


@formula("fetch_time", "qin2025")
def fetch_time_of_cache(prompt, token_cache, tier_bandwidth, tier_latency):
    """Time to fetch the cache of a prompt from a tier, each device its own part.

    >>> round(fetch_time_of_cache(prompt=46_000, token_cache=20_480, tier_bandwidth="55 GB/s", tier_latency=0), 4)
    0.0171
    """
    return tier_latency + prompt * token_cache / tier_bandwidth


# How long to keep


@formula("keep_pause", "gray1987", given=[break_even_of_prompt])
def keep_pause_memory(cache_room, break_even_bandwidth):
    """Pause beyond which a cache should leave device memory, if it is computed again: the price of the device cancels.

    Holding a byte takes a share of the device's memory; computing it again takes a share of the device's time.

    >>> keep_pause_memory(cache_room="116 GB", break_even_bandwidth="0.4 GB/s")
    290.0
    """
    return cache_room / break_even_bandwidth


@formula("keep_pause", "gray1987")
def keep_pause_fetched(cache_room, tier_bandwidth):
    """Pause beyond which a cache should leave device memory, if it is fetched back while the device waits.

    >>> round(keep_pause_fetched(cache_room="116 GB", tier_bandwidth="55 GB/s"), 2)
    2.11
    """
    return cache_room / tier_bandwidth


@formula("keep_pause", "gray1987", given=[break_even_of_prompt])
def keep_pause_bought(price_hour, break_even_bandwidth, tier_cost, tier_capacity, tier_life):
    """Pause beyond which a cache should leave a tier that was bought for it, if a device computes it again.

    >>> memory = dict(tier_cost="1280 $", tier_capacity="256 GB", tier_life=5 * 365 * 86400)
    >>> round(keep_pause_bought(memory, price_hour="8 $/h", break_even_bandwidth="0.4 GB/s") / 86400, 1)  # days
    2.0
    """
    return price_hour / 3600 / break_even_bandwidth * tier_capacity * tier_life / tier_cost


@formula("keep_pause", "gray1987")
def keep_pause_drive(drive_cost, tier_wear, tier_cost, tier_capacity, tier_life):
    """Pause beyond which a cache should move from memory to a drive: a five-minute rule with wear in place of accesses.

    Memory costs rent per byte and second; a drive loses a part of its life with each byte written.

    >>> memory = dict(tier_cost="1280 $", tier_capacity="256 GB", tier_life=5 * 365 * 86400)
    >>> round(keep_pause_drive(memory, drive_cost="768 $", tier_wear="14 PB") / 60)  # minutes
    29
    """
    return drive_cost / tier_wear * tier_capacity * tier_life / tier_cost


@formula("wear_time", "gray1987")
def wear_time(tier_wear, turn_rate, appended, output, token_cache):
    """Time in which new tokens wear out a drive, if each is written once.

    >>> turns = dict(turn_rate=4, appended=1891, output=351)
    >>> round(wear_time(turns, tier_wear="14 PB", token_cache=20_480) / 86400 / 365, 1)  # years
    2.4
    """
    return tier_wear / (turn_rate * (appended + output) * token_cache)


# The bill of sessions: a session, and tokens that are read, found in a cache, or written


@formula("session_cost", "erdil2025")
def session_cost(devices, price_hour, turns, request_rate):
    """Cost of a session: the price of the devices over the sessions that they finish.

    >>> round(session_cost(devices=8, price_hour="8 $/h", turns=33, request_rate=3.7), 3)
    0.159
    """
    return devices * price_hour / 3600 * turns / request_rate


@formula("session_cost", "tracelab")
def session_cost_listed(session_inputs, hit_share, turns, output, read_cost, found_cost, written_cost):
    """Cost of a session at a provider's list prices for a million tokens that are read, found and written.

    >>> listed = dict(read_cost="5 $", found_cost="0.5 $", written_cost="25 $")
    >>> round(session_cost_listed(listed, session_inputs=1_642_179, hit_share=0.96, turns=33, output=351), 3)
    1.406
    """
    inputs = session_inputs * ((1 - hit_share) * read_cost + hit_share * found_cost)
    return (inputs + turns * output * written_cost) / 1_000_000


@formula("read_cost", "erdil2025")
def read_cost(session_cost, prompt_load, turns, read_tokens):
    """Cost of a million input tokens that are read: the share of time spent on them, over their number.

    >>> round(read_cost(session_cost="0.16 $", prompt_load=0.4, turns=33, read_tokens=2000), 2)
    0.97
    """
    return session_cost * prompt_load / (turns * read_tokens) * 1_000_000


@formula("written_cost", "erdil2025")
def written_cost(session_cost, prompt_load, turns, output):
    """Cost of a million written tokens: the share of time in which nothing is read, over their number.

    >>> round(written_cost(session_cost="0.16 $", prompt_load=0.4, turns=33, output=351), 2)
    8.29
    """
    return session_cost * (1 - prompt_load) / (turns * output) * 1_000_000


@formula("found_cost", "erdil2025")
def found_cost_rented(devices, tier_cost, tier_life, turns, request_rate, hit_share, session_inputs):
    """Cost of a million input tokens that are found: the price of the tiers bought for them; device memory adds none.

    >>> known = dict(devices=8, tier_cost="1280 $", tier_life=5 * 365 * 86400, turns=33, request_rate=4)
    >>> round(found_cost_rented(known, hit_share=0.96, session_inputs=1_642_179), 5)
    0.00034
    """
    found = request_rate / turns * hit_share * session_inputs
    return devices * tier_cost / tier_life / found * 1_000_000


keeping = Sheet(
    "keeping", break_even_of_prompt, fetch_time_of_cache, keep_pause_memory,
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
