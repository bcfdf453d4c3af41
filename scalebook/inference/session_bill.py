"""The bill of agents' sessions: the cost of a session, and of tokens that are read, found in a cache, or written."""

from scalebook.language import formula

__all__ = ["found_cost_rented", "read_cost", "session_cost", "session_cost_listed", "written_cost"]


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
    """Cost of a million input tokens that are found: the price of the tiers bought for them; device memory is paid for.

    >>> known = dict(devices=8, tier_cost="1280 $", tier_life=5 * 365 * 86400, turns=33, request_rate=4)
    >>> round(found_cost_rented(known, hit_share=0.96, session_inputs=1_642_179), 5)
    0.00034
    """
    found = request_rate / turns * hit_share * session_inputs
    return devices * tier_cost / tier_life / found * 1_000_000
