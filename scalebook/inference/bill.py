"""Cost of output tokens in money and energy, and the price of speed: a faster token needs a smaller batch."""

from scalebook.inference.queues import half_speed_batch, user_rate
from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of bill.toml

speed_cost = Sheet(
    "speed_cost", _OWN.device_rate_served_at, _OWN.million_cost_served, _OWN.least_million_cost_served, user_rate,
    _OWN.token_energy, half_speed_batch,
    doc="What a faster token costs, on devices that read prompts and decode with the largest batch the speed allows.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "speed_cost"]
