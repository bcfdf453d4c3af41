"""The cost of a run: device hours, and from them dollars, electricity and carbon. Relative ranges multiply."""

from scalebook.language import Sheet, formula, formulas_of

from .checkpoints import operating
from .walls import run_flops

# Hours


@formula("device_hours", "narayanan2021 §5.1", given=[run_flops])
def device_hours_of_arithmetic(run_flops, mfu, peak_flops):
    """Device hours for a run's FLOPs at an MFU over all paid hours. Stops, restarts and repeated work lower the MFU.

    >>> round(device_hours_of_arithmetic(run_flops="3.8e25 FLOP", mfu=0.35, peak_flops="989.4 TFLOP/s") / 1e6, 1)
    30.5
    """
    return run_flops / (mfu * peak_flops) / 3600


@formula("device_hours", "narayanan2021 §5.1", "daly2006 §3")
def device_hours_with_failures(devices, train_tokens, train_rate, goodput):
    """Device hours for all tokens at a step's rate, with the time that failures and checkpoints take.

    >>> at = dict(devices=1024, train_tokens="15e12 token", train_rate="1.5e6 token/s")
    >>> device_hours_with_failures(at, goodput=0.9).__round__(), device_hours_with_failures(at, goodput=1).__round__()
    (3160494, 2844444)
    """
    return devices * train_tokens / train_rate / goodput / 3600


@formula("mfu", "chowdhery2022 appendix B", given=[run_flops])
def mfu_of_hours(run_flops, device_hours, peak_flops):
    """MFU of a published run over all its hours, whatever they were spent on.

    >>> round(mfu_of_hours(run_flops="3.14e23 FLOP", device_hours="3.552e6 h", peak_flops="125 TFLOP/s"), 3)
    0.196
    """
    return run_flops / (device_hours * 3600 * peak_flops)


@formula("run_time", "narayanan2021 §5.1", given=[device_hours_of_arithmetic])
def run_time_of_hours(device_hours, devices):
    """Time of a run on this many devices. It ignores that more devices lower the MFU.

    >>> round(run_time_of_hours(device_hours="30.84e6 h", devices=16384) / 86400, 1)
    78.4
    """
    return device_hours * 3600 / devices


# Dollars


@formula("run_cost", "cottier2024", given=[device_hours_of_arithmetic])
def run_cost_of_hours(device_hours, price_hour):
    """Rent of the final run. Earlier experiments, staff and data come on top.

    >>> run_cost_of_hours(device_hours="2.788e6 h", price_hour="2 $/h")  # as DeepSeek counts DeepSeek-V3
    5576000.0
    """
    return device_hours * price_hour


@formula("device_power", "patterson2021 §2.1")
def device_power_of_system(tdp, system_factor):
    """Power per device: its design power times a factor for host, switches and fans.

    >>> device_power_of_system(tdp="700 W", system_factor=10.2 / 5.6)  # a DGX H100 at its most, an eighth of it
    1275.0
    """
    return tdp * system_factor


@formula("power_hour", "patterson2021 §2.1", given=[device_power_of_system])
def power_hour_of_device(device_power, pue, power_price):
    """Price of a device hour's electricity, including cooling and power conversion.

    >>> round(power_hour_of_device(device_power="1275 W", pue=1.2, power_price="80.6 $/MWh"), 3)
    0.123
    """
    return device_power / 10**6 * pue * power_price


@formula("price_hour", "cottier2024", given=[power_hour_of_device])
def price_hour_owned(device_price, service_life, utilization, power_hour):
    """Price per hour of an owned device: purchase over the hours used, plus electricity. Interest and staff are extra.

    >>> price_hour_owned(device_price="35064 $", service_life=4 * 8766, utilization=0.8, power_hour="0.12 $/h")
    1.37
    """
    return device_price / (service_life * utilization) + power_hour


# Electricity and carbon


@formula("run_energy", "patterson2021 §2.1", given=[device_hours_of_arithmetic, device_power_of_system])
def run_energy_of_hours(device_hours, device_power, pue):
    """Energy of a run: device hours times power, times the data centre's overhead.

    >>> round(run_energy_of_hours(device_hours="3.552e6 h", device_power="330 W", pue=1.1))  # GPT-3
    1289
    """
    return device_hours * device_power * pue / 10**6


@formula("run_carbon", "patterson2021 §2.1", given=[run_energy_of_hours])
def carbon_of_run(run_energy, carbon_intensity):
    """Carbon of a run's electricity, which depends on the grid. Making devices and buildings is left out.

    >>> round(carbon_of_run(run_energy="1287 MWh", carbon_intensity="0.429 t/MWh"))  # GPT-3
    552
    """
    return run_energy * carbon_intensity


run_costs = Sheet(
    "run_costs", run_flops, device_hours_of_arithmetic, run_time_of_hours, run_cost_of_hours,
    device_power_of_system, run_energy_of_hours, carbon_of_run,
    doc="What the final run of a model costs: hours, days, dollars, electricity and carbon.",
)  # fmt: skip

run_bill = Sheet(
    "run_bill", *operating.formulas.values(), device_hours_with_failures, run_time_of_hours, run_cost_of_hours,
    device_power_of_system, run_energy_of_hours, power_hour_of_device,
    doc="What it takes to train on all tokens at a step's rate, failures and checkpoints included.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "run_bill", "run_costs"]
