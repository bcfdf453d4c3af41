"""All-to-all of tokens and experts by kernels that occupy cores, such as DeepEP within a node.

A token is sent once to each device that holds one of its experts. The cores' times per token and copy stand in rows of
the table of libraries.
"""

from sympy import Max

from scalebook.language import Sheet, formula

from .experts import devices_touched

__all__ = ["exchange_by_cores", "token_exchange"]


@formula("exchange_time", "deepep", given=[devices_touched])
def exchange_by_cores(
    pass_tokens, hidden, visited_devices, ep, exchange_cores, exchange_launch, copy_value_time, token_value_time,
    copy_time, activation_bits, near_efficiency, scaleup_bandwidth,
):  # fmt: skip
    """Time of a dispatch or a combine: launch, plus the work of the cores or the transfer over links if longer.

    >>> known = dict(pass_tokens=4096, hidden=7168, visited_devices=5.29, ep=8, activation_bits=8, near_efficiency=0.8)
    >>> known |= dict(exchange_launch="27 us", copy_value_time="30 ps", token_value_time="74 ps", copy_time="111 ns")
    >>> 1e6 * exchange_by_cores(known, exchange_cores=24, scaleup_bandwidth="450 GB/s").__round__(6)
    412.0
    """
    copies = pass_tokens * visited_devices
    worked = hidden * (copy_value_time * copies + token_value_time * pass_tokens) + copy_time * copies
    leaving = copies * (ep - 1) / ep * hidden * activation_bits / 8
    sent = leaving / (near_efficiency * scaleup_bandwidth)
    return exchange_launch + Max(worked / exchange_cores, sent, evaluate=False)


token_exchange = Sheet(
    "token_exchange", devices_touched, exchange_by_cores,
    doc="Tokens of a device sent to their experts, or their results back, by kernels that occupy cores.",
)  # fmt: skip
