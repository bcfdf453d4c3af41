"""Cost of output tokens in money and energy, and the price of speed: a faster token needs a smaller batch."""

from scalebook.inference.queues import half_speed_batch, user_rate
from scalebook.language import Sheet, formula, formulas_of

_ABOVE_BASE = {"a time per token above that of a step without sequences": lambda tpot, base_time: tpot > base_time}


# From a device's output tokens per second


@formula("million_cost", "erdil2025")
def million_cost(price_hour, device_rate):
    """Cost of a million output tokens: a device's full price per hour over the tokens that it writes in an hour.

    >>> round(million_cost(price_hour="2 $/h", device_rate=1850), 2)
    0.3
    """
    return price_hour / 3600 / device_rate * 1_000_000


@formula("token_energy", "patterson2021")
def token_energy(tdp, device_rate):
    """Energy per output token if every device draws its thermal design power; host, network and cooling are left out.

    >>> token_energy(tdp="700 W", device_rate=2000)
    0.35
    """
    return tdp / device_rate


# From the time per token, with the batch eliminated


@formula("device_rate", "kleinrock1975", "erdil2025", domain=_ABOVE_BASE)
def device_rate_served_at(base_time, added_time, prompt_time, output, tpot, devices):
    """Output tokens per second and device at a given time per output token, for devices that also read the prompts.

    >>> device_rate_served_at(base_time=0.01, added_time=5e-5, prompt_time=0.03, output=200, tpot=0.02, devices=8)
    312.5
    """
    return (1 - base_time / tpot) / ((added_time + prompt_time / output) * devices)


@formula("million_cost", "kleinrock1975", "erdil2025", domain=_ABOVE_BASE)
def million_cost_served(price_hour, devices, base_time, added_time, prompt_time, output, tpot):
    """Cost of a million tokens at a given time per output token, for devices that also read the prompts.

    The faster a token, the dearer: one that takes twice `base_time` costs twice `least_million_cost`.

    >>> known = dict(devices=8, base_time="10 ms", added_time="50 us", prompt_time="30 ms", output=200)
    >>> round(million_cost_served(known, price_hour="2 $/h", tpot="20 ms"), 3)
    1.778
    """
    added = added_time + prompt_time / output
    return price_hour / 3600 * devices * added * tpot / (tpot - base_time) * 1_000_000


@formula("least_million_cost", "kleinrock1975", "erdil2025")
def least_million_cost_served(price_hour, devices, added_time, prompt_time, output):
    """Lowest cost of a million output tokens if devices also read prompts: only the time that a request adds is paid.

    >>> round(least_million_cost_served(price_hour=2, devices=8, added_time=5e-5, prompt_time=0.03, output=200), 3)
    0.889
    """
    return price_hour / 3600 * devices * (added_time + prompt_time / output) * 1_000_000


speed_cost = Sheet(
    "speed_cost", device_rate_served_at, million_cost_served, least_million_cost_served, user_rate, token_energy,
    half_speed_batch,
    doc="What a faster token costs, on devices that read prompts and decode with the largest batch the speed allows.",
)  # fmt: skip


# A fleet


@formula("fleet_cost", "deepseek2025-inference")
def fleet_cost(devices, price_hour, run_time):
    """Cost of renting a fleet for `run_time`, from the average number of devices and the price per hour.

    >>> fleet_cost(devices=226.75 * 8, price_hour="2 $/h", run_time=24 * 3600)  # DeepSeek's, a day of February 2025
    87072.0
    """
    return devices * price_hour / 3600 * run_time


@formula("million_cost", "deepseek2025-inference", given=[fleet_cost])
def million_cost_of_fleet(fleet_cost, fleet_tokens):
    """Cost of a million output tokens of a fleet, including devices that read prompts or wait.

    >>> day = dict(devices=226.75 * 8, price_hour="2 $/h", run_time=24 * 3600)
    >>> round(million_cost_of_fleet(day, fleet_tokens=168e9), 2)
    0.52
    """
    return fleet_cost / fleet_tokens * 1_000_000


__all__ = [*formulas_of(__name__), "speed_cost"]
