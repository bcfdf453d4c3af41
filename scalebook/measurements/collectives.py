"""Collectives as measured: NCCL in one scale-up domain and across nodes, Vidur's profiles,
and serving's own kernels.
"""

import re

import numpy as np

from scalebook.machine.collective_rates import bus_bandwidth, bus_bandwidth_reduce, issued_by_host, shared_ports
from scalebook.machine.collective_schedules import one_shot_all_reduce, two_shot_all_reduce
from scalebook.machine.collectives import KINDS, all_reduce_ring
from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .rows import SYSTEMS, number

__all__ = ["BENCHMARK_LAUNCH", "CONFRONTATIONS", "FABRIC_LATENCY", "KERNEL_LAUNCH", "NODE_PORT"]

DEVICES = {
    **SYSTEMS, "a100_dgx": "a100", "h100_dgx": "h100",
    "a100_pairwise_nvlink": "a100", "h100_pairwise_nvlink": "h100_nvl",  # a bridge has the links of an A100 too
}  # fmt: skip
NAMES = {x.replace("all_to_all", "alltoall"): x for x in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")}

# Fitted; a test fits them again.
BENCHMARK_LAUNCH = 17e-6  # what starting from PyTorch adds, on the all-reduces of less than 1 MiB on one node of H200
FABRIC_LATENCY = 84e-6  # a hop of AWS's EFA, on the all-reduces of 256 KiB to 2 MiB of four nodes
# What the rings of an all-reduce carry between two nodes, over what a send does, by the devices of a node that take
# part: they sum on the way, and leave a node by the ports of its switches.  On half of the rows of 4 MB and more.
NODE_RINGS = {1: 0.8, 2: 0.83, 4: 2.66, 8: 2.05}
NODE_PORT = {"a100_dgx": 7.8e9, "h100_dgx": 35.3e9}  # bytes a second, on the sends of 30 MB and more between two nodes
# What PyTorch's host takes to issue an all-reduce and a send, on half of the rows of less than 1 MiB within a node:
# the median of a host's, which differ.
ISSUE = {
    "a100_dgx": dict(all_reduce=40e-6, send_recv=17e-6), "h100_dgx": dict(all_reduce=35e-6, send_recv=9e-6),
    "a100_pairwise_nvlink": dict(all_reduce=59e-6, send_recv=10e-6),
    "h100_pairwise_nvlink": dict(all_reduce=21e-6, send_recv=10e-6),
}  # fmt: skip
# Serving's own all-reduces from a recorded graph, on two devices, 16 KiB or less, in seconds: the median of engines,
# and what that of an engine is of it.  TensorRT-LLM's kernels wait for the data themselves, the others' for flags.
KERNEL_LAUNCH = {
    "a100_sxm": 5.1e-6, "h100_sxm": 3.3e-6, "h200_sxm": 3.4e-6, "b200_sxm": 6.6e-6, "b300_sxm": 6.6e-6,
    "gb200": 4.6e-6, "gb300": 5.3e-6,
}  # fmt: skip


ENGINE_LAUNCH = {"TRTLLM": 0.83, "vLLM": 1.06, "SGLang": 1.06}
PEER_LAUNCH = 0.08e-6  # what each further device adds, on 8 of the H100
# Bytes a second: 36 blocks of 512 threads have 16 bytes each on their way, whatever the link would carry; of
# TensorRT-LLM a share of the link.  On two devices of the H100.
IN_FLIGHT, PUSHED = 265e9, 0.68
# From how many bytes on the sums are exchanged in two shots, and from how many on NCCL is asked, by number of devices.
TWO_SHOT = {"TRTLLM": {4: 1e6, 8: 5e5}, "vLLM": {4: 2**19, 8: 2**18}, "SGLang": {4: 2**19, 8: 2**18}}
ASK_NCCL = {"TRTLLM": {2: 16e6, 4: 8e6, 8: 8e6}, "vLLM": dict.fromkeys((2, 4, 8), 2**23),
            "SGLang": dict.fromkeys((2, 4, 8), 2**23 + 1)}  # fmt: skip


def _device(row):
    """The rows of a device, with nothing to say on the far side where all are near."""
    return accelerators[DEVICES[row["system"] if "system" in row else row["node"]]]


def _at_peak(rows, ways, size):
    """Seconds in which what a device does not have comes in at the whole rate of its links, once."""
    return np.array([(1 - 1 / number(row, ways)) * number(row, size) / _device(row).scaleup_bandwidth for row in rows])


# NCCL in one domain


def _nccl_seconds(row):
    """Integers are summed along rings: the switch sums floating-point numbers only."""
    kind = NAMES[row["op_name"]]
    f = all_reduce_ring if kind == "all_reduce" and row["nccl_dtype"] == "int8" else KINDS[kind]
    ways = number(row, "num_gpus")
    return f(_device(row), collective_bytes=number(row, "size_bytes"), ways=ways, near_ways=ways)


def _nccl(rows):
    peak = _at_peak(rows, "num_gpus", "size_bytes")
    return Priced(np.array([_nccl_seconds(row) * 1e6 for row in rows]), 1e6 * peak, 1e6 * peak)


def _no_nccl(row):
    if row["system"] not in DEVICES:
        return "of a device without a scale-up network: its messages cross the host"
    return "" if row["op_name"] in NAMES else f"of {row['op_name']}, which is not described here"


def _sums_in_switch(row):
    asked = row["op_name"] == "all_reduce" and row["nccl_dtype"] == "half" and number(row, "num_gpus") == 8
    return asked and accelerators[DEVICES[row["system"]]].switch_efficiency > 0


def _nccl_fitted(row):
    return row["op_name"] in ("all_gather", "reduce_scatter") or _sums_in_switch(row)


def _nccl_group(row):
    size = number(row, "size_bytes")
    large = "1 MiB or more" if size >= 2**20 else "less than 1 MiB"
    return f"{NAMES[row['op_name']].replace('_', '-')}, {large}"


# Published tables


def _published(rows):
    found, peaks = [], []
    for row in rows:
        ways, nodes, size = (number(row, x) for x in ("n_gpus", "nodes", "size_bytes"))
        device = accelerators[_named(row)]
        f = all_reduce_ring if row["op"] == "all_reduce" and "Ring" in row["note"] else KINDS[row["op"]]
        known = dict(collective_bytes=size, ways=ways)
        fabric = {"far_latency": FABRIC_LATENCY} if nodes > 1 else {}
        time = f(device, known, near_ways=ways / nodes, **fabric) + BENCHMARK_LAUNCH
        bus = bus_bandwidth_reduce if row["op"] == "all_reduce" else bus_bandwidth
        found.append(bus(known, collective_time=time) / 1e9)
        # Each device takes in what it lacks at least once; an all-reduce counts it twice.  Between nodes through ports.
        least = device.scaleup_bandwidth if nodes == 1 else ways / (nodes - 1) * device.scaleout_bandwidth
        peaks.append((2 if row["op"] == "all_reduce" else 1) * min(device.scaleup_bandwidth, least) / 1e9)
    return Priced(np.array(found), np.array(peaks), np.array(peaks))


def _named(row):
    match = re.search(r"8x(A100|H200|B200)", row["system"])
    return match[1].lower() if match else ""


def _not_published(row):
    if row["op"].startswith("moe"):
        return "of experts' all-to-all, whose tokens go to some nodes only"
    if row["system"].startswith("HF"):
        return "whose bandwidth and size are not defined in their source"
    if not _named(row):
        return "of devices that are not named, or of one size only"
    return "" if row["size_bytes"] else "without a size"


def _published_group(row):
    nodes, small = number(row, "nodes"), number(row, "size_bytes") < 2**24
    where = f"{nodes:.0f} nodes" if nodes > 1 else "one node"
    return f"{_named(row).upper()}, {where}, {'less than 16 MiB' if small else '16 MiB or more'}"


def _small_between_nodes(row):
    return number(row, "nodes") == 4 and "B200" in row["system"] and 2**18 <= number(row, "size_bytes") <= 2**21


def _small_on_h200(row):
    return "H200" in row["system"] and number(row, "size_bytes") < 2**20


def _published_fitted(row):
    largest = "B200" in row["system"] and number(row, "size_bytes") > 1.6e10
    return largest or _small_between_nodes(row) or _small_on_h200(row)


# Vidur's profiles


def _vidur(rows):
    found = []
    for row in rows:
        ways, near, size = (number(row, x) for x in ("num_gpus", "devices_per_node", "size_raw"))
        device, known = _device(row), dict(collective_bytes=size, ways=ways, near_ways=near)
        known["scaleout_bandwidth"] = 1  # not used within a node, and not known of every device
        if near < ways:
            ports = 1 if row["op"] == "send_recv" else NODE_RINGS[near]
            known["scaleout_bandwidth"] = shared_ports(
                ports=ports, link_bandwidth=NODE_PORT[row["node"]], crossing=near
            )
            known["far_efficiency"] = 1
        is_send = row["op"] == "send_recv"
        f = KINDS["send" if is_send else "all_reduce"]
        if "pairwise" in row["node"]:  # over a bridge: no switch, and nothing to pass on, for which chunks are
            known |= {"near_efficiency": 1} if is_send else {"chunk_time": 0}
        time = f(device, **known)
        if near == ways:
            time = issued_by_host(collective_time=time, issue_time=ISSUE[row["node"]][row["op"]])
        found.append(time * 1e3)
    peak = 1e3 * _at_peak(rows, "num_gpus", "size_raw")
    return Priced(np.array(found), peak, peak)


def _not_vidur(row):
    if row["node"] not in DEVICES:
        return "of a node that is not described here"
    if "pairwise" in row["node"] and (row["num_gpus"], row["devices_per_node"]) != ("2", "2"):
        return "between pairs of devices, over a host that is not described"
    if row["devices_per_node"] != row["num_gpus"] and number(row, "devices_per_node") not in NODE_RINGS:
        return "of a number of devices in a node of which nothing was measured"
    is_send = row["op"] == "send_recv" and row["devices_per_node"] == row["num_gpus"]
    if is_send and number(row, "time_ms_median") < number(row, "size_raw") / _device(row).scaleup_bandwidth * 1e3:
        return "of sends that are over before the link could have carried them"
    return ""


def _vidur_group(row):
    kind = "send" if row["op"] == "send_recv" else "all-reduce"
    nodes = number(row, "num_gpus") / number(row, "devices_per_node")
    where = f"between {nodes:.0f} nodes" if nodes > 1 else "in a pair" if "pairwise" in row["node"] else "in a node"
    return f"{row['node'].partition('_')[0].upper()}, {kind} {where}"


def _vidur_fitted(row):
    between, size = row["devices_per_node"] != row["num_gpus"], number(row, "size_raw")
    if between and row["op"] == "send_recv":
        return size > 3e7
    return _is_first(row) and (size >= 4e6 if between else _is_issued(row))


def _is_issued(row):
    """Small and within a node."""
    return row["devices_per_node"] == row["num_gpus"] and number(row, "size_raw") < 2**20


def _is_first(row):
    """Of four rows in order the first two: rows of one host mostly have numbers of one parity."""
    return int(row["row_id"].rpartition("-")[2]) // 2 % 2 == 0


# Serving's own kernels


def _custom_seconds(row):
    ways, size, engine, device = number(row, "num_gpus"), number(row, "size_bytes"), row["framework"], _device(row)
    if size >= ASK_NCCL[engine][ways]:
        return KINDS["all_reduce"](device, collective_bytes=size, ways=ways, near_ways=ways)
    f = one_shot_all_reduce if size < TWO_SHOT[engine].get(ways, np.inf) else two_shot_all_reduce
    own = PUSHED if engine == "TRTLLM" else min(device.near_efficiency, IN_FLIGHT / device.scaleup_bandwidth)
    wait = ENGINE_LAUNCH[engine] * KERNEL_LAUNCH[row["system"]] + (ways - 2) * PEER_LAUNCH
    rate = own * device.scaleup_bandwidth
    return f(collective_bytes=size, ways=ways, link_bandwidth=rate, link_latency=wait)


def _custom(rows):
    """Every device reads the others' parts, in one shot or two; of large messages engines leave it to NCCL."""
    found = 1e6 * np.array([_custom_seconds(row) for row in rows])
    peak = 1e6 * _at_peak(rows, "num_gpus", "size_bytes")
    return Priced(found, peak, peak)


def _no_custom(row):
    if row["system"] not in DEVICES:
        return "of a device without a scale-up network: its messages cross the host"
    if row["framework"] not in ENGINE_LAUNCH or number(row, "num_gpus") not in (2, 4, 8):
        return "of an engine, or of a number of devices, whose choice of kernels is not described here"
    return "launched one by one, which times the host" if "eager" in row["kernel_source"] else ""


def _custom_fitted(row):
    ways, small, on_h100 = number(row, "num_gpus"), number(row, "size_bytes") <= 2**14, row["system"] == "h100_sxm"
    waits = small and (ways == 2 or (on_h100 and ways == 8))
    return waits or (on_h100 and ways == 2 and number(row, "size_bytes") < 2**23)


def _custom_group(row):
    return f"{row['framework']}, {'1 MiB or more' if number(row, 'size_bytes') >= 2**20 else 'less than 1 MiB'}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "collectives",
            "collectives_nccl.csv",
            "Time of NCCL's collectives in one scale-up domain, on 2 to 8 devices.",
            _nccl,
            "latency_us",
            "us",
            ("aiconfigurator-nccl",),
            _no_nccl,
            _nccl_group,
            "of each device a launch, a hop and a share of the bandwidth, for all devices the time of a chunk, on the "
            "all-gathers and reduce-scatters; the share of sums in the switch, "
            "on the all-reduces of 8 in half precision",
            _nccl_fitted,
            ("dir_version",),
        ),
        Confrontation(
            "collectives_published",
            "collectives_published.csv",
            "Bus bandwidth of collectives on one node and on four.",
            _published,
            "busbw_gbs",
            "GB/s",
            ("bekman-network",),
            _not_published,
            _published_group,
            "what starting from PyTorch adds, on the all-reduces of less than 1 MiB on one node of H200; the hop "
            "between nodes, on those of 256 KiB to 2 MiB of four nodes; the shares that the B200's switch and network "
            "reach, on those of 16 GiB; the rest is that of `collectives`",
            _published_fitted,
        ),
        Confrontation(
            "network_vidur",
            "network_vidur.csv",
            "Time of sends and all-reduces in PyTorch, within and between nodes.",
            _vidur,
            "time_ms_median",
            "ms",
            ("vidur",),
            _not_vidur,
            _vidur_group,
            "the rate between two nodes, on the sends of 30 MB and more, and what rings carry of it, on half of the "
            "all-reduces of 4 MB and more; within a node the time that the host takes to "
            "issue one, on half of the rows of less than 1 MiB; that a send and a pair of H100 pay nothing for chunks "
            "was seen here",
            _vidur_fitted,
        ),
        Confrontation(
            "custom_allreduce",
            "custom_allreduce.csv",
            "Time of the all-reduces that serving frameworks bring along.",
            _custom,
            "latency_us",
            "us",
            ("aiconfigurator-nccl", "vllm-custom-all-reduce", "trtllm-all-reduce"),
            _no_custom,
            _custom_group,
            "a launch for each device and its share for each engine, on two devices and 16 KiB or less; what each "
            "further device adds and the rates, on 8 and on 2 of the H100",
            _custom_fitted,
        ),
    )
}
