"""The cost of a run: device hours, and from them dollars, electricity and carbon. Relative ranges multiply."""

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

from .checkpoints import operating
from .walls import run_flops

_OWN = equations(__name__)  # those of costs.toml


@formula("device_hours", "narayanan2021 §5.1", "daly2006 §3")
def device_hours_with_failures(devices, train_tokens, train_rate, goodput):
    """Device hours for all tokens at a step's rate, with the time that failures and checkpoints take.

    >>> at = dict(devices=1024, train_tokens="15e12 token", train_rate="1.5e6 token/s")
    >>> device_hours_with_failures(at, goodput=0.9).__round__(), device_hours_with_failures(at, goodput=1).__round__()
    (3160494, 2844444)
    """
    return devices * train_tokens / train_rate / goodput / 3600


run_costs = Sheet(
    "run_costs", run_flops, _OWN.device_hours_of_arithmetic, _OWN.run_time_of_hours, _OWN.run_cost_of_hours,
    _OWN.device_power_of_system, _OWN.run_energy_of_hours, _OWN.carbon_of_run,
    doc="What the final run of a model costs: hours, days, dollars, electricity and carbon.",
)  # fmt: skip

run_bill = Sheet(
    "run_bill", *operating.formulas.values(), device_hours_with_failures, _OWN.run_time_of_hours,
    _OWN.run_cost_of_hours, _OWN.device_power_of_system, _OWN.run_energy_of_hours, _OWN.power_hour_of_device,
    doc="What it takes to train on all tokens at a step's rate, failures and checkpoints included.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "run_bill", "run_costs"]
