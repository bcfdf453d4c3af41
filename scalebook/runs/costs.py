"""The cost of a run: device hours, and from them dollars, electricity and carbon. Relative ranges multiply."""

from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations

from .checkpoints import operating
from .walls import run_flops

_OWN = equations(__name__)  # those of costs.toml

run_costs = Sheet(
    "run_costs", run_flops, _OWN.device_hours_of_arithmetic, _OWN.run_time_of_hours, _OWN.run_cost_of_hours,
    _OWN.device_power_of_system, _OWN.run_energy_of_hours, _OWN.carbon_of_run,
    doc="What the final run of a model costs: hours, days, dollars, electricity and carbon.",
)  # fmt: skip

run_bill = Sheet(
    "run_bill", *operating.formulas.values(), _OWN.device_hours_with_failures, _OWN.run_time_of_hours,
    _OWN.run_cost_of_hours, _OWN.device_power_of_system, _OWN.run_energy_of_hours, _OWN.power_hour_of_device,
    _OWN.device_rate_of_run,
    doc="What it takes to train on all tokens at a step's rate, failures and checkpoints included.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "run_bill", "run_costs"]
