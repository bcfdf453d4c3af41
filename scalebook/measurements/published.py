"""More tables of kernels and links, tests of what stands in the table of accelerators; a start and a share are fitted.

Products of AITER and of XLA's own table; Azure's benchmarks of its machines; links of the MI300X; Google's
microbenchmarks of Ironwood; whole layers of EleutherAI's sweep, and their attention; single bandwidths from many
places.
"""

import re

import numpy as np

from scalebook.machine.collective_rates import bus_bandwidth_reduce
from scalebook.machine.collectives import KINDS
from scalebook.machine.kernels import matrix_product, stream_time, typical_stream_efficiency, waiting_product
from scalebook.machine.tiles import aligned_share
from scalebook.tables import accelerators, links
from scalebook.training.totals import link_of_host

from .collectives import BENCHMARK_LAUNCH
from .confrontation import Confrontation, Priced
from .devices import alone, best_stream, letters_of
from .kernels import A100_40GB, at_peaks, device_letters, products_seconds, slowed
from .rows import is_even, number, numbers

__all__ = ["CONFRONTATIONS", "XLA_START"]

# What products of 16,384 and more in every size reach of the peak on the v7, the only TPU of which they are published
# (ironwood.csv); matrix units that the compiler feeds are of one kind, and what is typical of GPUs (0.6) is not theirs.
MATRIX_UNITS = 0.83


# Seconds that a product of XLA's table takes more than one among many: each is started alone, and waited for.  Fitted
# on the even rows; a test fits it again.
XLA_START = 3.5e-6

# AITER, hipBLASLt and XLA

_AITER = {
    "bf16": ("bf16", 16), "bf16_r": ("bf16", 16), "fp8 (128x128 block scale)": ("fp8", 8), "f8_r": ("fp8", 8),
    "fp8 (per-token/channel scale)": ("fp8", 8), "mxfp4 (per-1x32 block scale)": ("fp4", 4.25),
}  # fmt: skip
_XLA = {
    "bf16xbf16->bf16": ("bf16", 16),
    "e4m3fnxe4m3fn->bf16": ("fp8", 8),
    "f8e4m3fnxf8e4m3fn->bf16": ("fp8", 8),
    "f32xf32->f32": ("tf32", 32),
}


def _products(rows, devices, bits, sizes, sheet=matrix_product):
    """Microseconds."""
    bits = np.array(bits)
    return Priced(*(1e6 * x for x in (products_seconds(devices, *sizes, bits, bits, sheet=sheet),
                                      *at_peaks(devices, *sizes, bits, bits))))  # fmt: skip


def _aiter(rows):
    known = [_AITER[row["precision"]] for row in rows]
    devices = [letters_of(row, name, "128x128" in row["precision"]) for row, (name, _) in zip(rows, known, strict=True)]
    return _products(rows, devices, [bits for _, bits in known], numbers(rows, "m", "n", "k", "batch"), waiting_product)


def _no_aiter(row):
    return (
        "" if row["precision"] in _AITER else "of integers or 32 bits, whose products no cell of these devices prices"
    )


def _aiter_group(row):
    size = "1,024 and more in each size" if all(number(row, x) >= 1024 for x in "mnk") else "a size below 1,024"
    return f"{row['device'].upper()}, {_AITER[row['precision']][0]}, {size}"


def _xla(rows):
    known = [_XLA[row["dtype"]] for row in rows]
    alone = {"kernel_launch": accelerators.b200.kernel_launch + XLA_START}
    devices = [device_letters("b200", name) | alone for name, _ in known]
    return _products(rows, devices, [bits for _, bits in known], numbers(rows, "m", "n", "k", "b"))


def _xla_group(row):
    flops = 2 * np.prod([number(row, x) for x in "bmnk"])
    return f"{_XLA[row['dtype']][0]}, {'10 GFLOP and more' if flops >= 1e10 else 'less than 10 GFLOP'}"


# Drives and the memory of hosts

# A drive's rates, reading and writing, as its maker states them for the CM6 (heise-kioxia); drives of PCIe Gen4 are all
# taken for it, since nobody says which they are.
_DRIVE = {"read": links.nvme_pcie4.link_achieved, "write": 4.2e9}
_LPDDR5X_480 = 512e9  # one Grace with modules of 480 GB, as all of GB200 (links.toml, lpddr5x_grace)


def _drives(count, way):
    """GB/s of so many drives at once, and of their lanes."""
    return count * _DRIVE[way] / 1e9, count * links.nvme_pcie4.link_bandwidth / 1e9


# Azure

# Drives of a machine, as its maker says; of the A100's it says the size of one volume alone.
_AZURE_DRIVES = {"MI300X": 8, "H100": 8, "H200": 8}
_GRACES = 2  # of a machine with four GPUs of GB200, as its maker says


def _azure_size(row):
    found = re.search(r"=([\d.]+)([KMG]?)$", row["parameters"])
    return float(found[1]) * 1024 ** " KMG".index(found[2] or " ")


def _azure_row(row):
    """What is predicted, in the row's unit, and the peak."""
    device, test = accelerators[row["device"].lower()], row["test"]
    if test.startswith("GEMM"):
        m, n, k = (float(x) for x in re.findall(r"=(\d+)", row["parameters"]))
        precision, bits = ("fp16", 16) if row["device"] == "A100" else ("fp8", 8)
        name, sizes = row["device"].lower(), (m, n, k, 1, bits, bits)
        known = [device_letters(name, precision) | alone(name, precision)]
        times = products_seconds(known, *sizes, sheet=waiting_product), *at_peaks(known, *sizes)
        return [2 * m * n * k / x[0] / 1e12 for x in times][::2]
    if test == "HBM Bandwidth":
        return [best_stream(device) * device.hbm_bandwidth / 1e12, device.hbm_bandwidth / 1e12]
    if "CL Bandwidth" in test:
        ways, size = 4 if row["device"] == "GB200" else 8, _azure_size(row)
        known = dict(collective_bytes=size, ways=ways)
        time = KINDS["all_reduce"](device, known, near_ways=ways, scaleout_bandwidth=1) + BENCHMARK_LAUNCH
        return [bus_bandwidth_reduce(known, collective_time=time) / 1e9, 2 * device.scaleup_bandwidth / 1e9]
    if test.startswith("FIO"):
        return _drives(_AZURE_DRIVES[row["device"]], _azure_way(row))
    if test.startswith("CPU"):
        peak = _GRACES * _LPDDR5X_480 / 1e9
        return [typical_stream_efficiency() * peak, peak]
    if "Device to Device" in row["parameters"]:  # both ways at once, as the guide's NVBandwidth.py asks
        return [x / 1e9 for x in _achieved(row["device"].lower(), 2)]
    return [link_of_host(device) / 1e9, np.inf]


def _azure_way(row):
    return "write" if "write" in row["parameters"] else "read"


def _azure(rows):
    found, peak = np.array([_azure_row(row) for row in rows]).T
    return Priced(found, np.where(np.isfinite(peak), peak, found), peak)


def _no_azure(row):
    if row["test"].startswith("FIO"):
        if row["device"] not in _AZURE_DRIVES:
            return "of drives of which nobody says how many they are"
        small = "of pieces of 1 KiB, for which operations a second count, of which no table speaks"
        return small if row["parameters"].endswith("=1k") else ""
    if row["test"].startswith("LLAMA"):
        return "of engines, which azure_engines holds"
    if row["test"].startswith("Flash"):
        return "of attention with heads of 64 or 128: the rows do not say, and the guide's scripts changed"
    return ""


def _azure_group(row):
    if "CL Bandwidth" in row["test"]:
        return "all-reduce, 1 MiB or more" if _azure_size(row) >= 2**20 else "all-reduce, less than 1 MiB"
    kinds = {"GEMM": f"products, {row['device']}", "HBM": "streams", "CPU": "streams in the host's memory"}
    if "Device to Device" in row["parameters"]:
        return "copies between devices"
    kinds |= {"FIO": f"drives, {'writing' if _azure_way(row) == 'write' else 'reading'}"}
    return next((said for name, said in kinds.items() if row["test"].startswith(name)), "copies from and to the host")


# The MI300X's links, all at once


def _fabric(rows):
    """GB/s of one of seven links, or of all of a device, of which collectives reach the same share."""
    device = accelerators.mi300x
    links = np.array([1 if row["dst_gpu"] == "all" else 1 / 7 for row in rows]) * device.scaleup_bandwidth / 1e9
    return Priced(device.near_efficiency * links, links, links)


# Ironwood


_SIZE, _RATE = "matrix_size_(m_n_k)", "throughput_(_tflop/s/device_)"
_BYTES, _STREAM = "matrix_size_(bytes)", "bandwidth_(gb/s/chip)"


# Seconds until a copy starts that a program on the device starts, not a host: on the smallest.
XLA_COPY_START = 0.84e-6


def _half_ironwood():
    return device_letters("tpu_v7", "bf16", 0.5) | dict(matmul_efficiency=MATRIX_UNITS)


def _ironwood(rows):
    """TFLOP/s of half a chip, or GB/s of a whole one that reads and writes as much."""
    found = []
    for row in rows:
        if row[_RATE]:
            size, known = number(row, _SIZE), [_half_ironwood()]
            times = products_seconds(known, size, size, size)[0], at_peaks(known, size, size, size)[1][0]
            found.append([2 * size**3 / x / 1e12 for x in times])
        else:
            known, size = device_letters("tpu_v7", "bf16"), 2 * number(row, _BYTES)
            alone = dict(stream_efficiency=best_stream(accelerators.tpu_v7), kernel_launch=XLA_COPY_START)
            found.append([size / stream_time(known | alone, traffic=size) / 1e9, known["hbm_bandwidth"] / 1e9])
    found, peak = np.array(found).T
    return Priced(found, peak, peak)


def _of_ironwood(row):
    return row | {"rate": row[_RATE] or row[_STREAM]}


# Layers


def _layer(rows, is_whole=True):
    """A whole layer forward: its products, each timed by itself, and the GELU between two of them; or its attention.

    Attention and feed-forward layer add up to the layer in every row, and fall with ways that nobody communicates over:
    it is the benchmark's estimate from single products.  Norms and residual sums are not in it, and no softmax, since
    scores are not even read and written as often as one must.
    """
    hidden, heads, tp, batch, seq = numbers(rows, "hidden", "heads", "tp", "mbs", "seq_len")
    known = device_letters("a100", "fp16") | A100_40GB
    devices, tokens, each = [known for _ in rows], batch * seq, heads / tp
    wide, found = hidden / heads, np.zeros((3, len(rows)))
    attention = [
        (tokens, 3 * hidden / tp, hidden), (tokens, hidden, hidden / tp),
        (seq, seq, wide, batch * each), (seq, wide, seq, batch * each),
    ]  # fmt: skip
    forward = [(tokens, 4 * hidden / tp, hidden), (tokens, hidden, 4 * hidden / tp)]
    for sizes in attention + forward * is_whole:
        own = slowed(known, aligned_share(columns=sizes[1], inner=sizes[2]))
        found += products_seconds(own, *sizes), *at_peaks(devices, *sizes)
    moved = 2 * tokens * 8 * hidden / tp * is_whole
    found[0] += stream_time(known, traffic=moved) if is_whole else 0
    found[1] += moved / known["hbm_bandwidth"]
    return Priced(*found)


def _no_layer(column):
    def left_out(row):
        if row["sweep"].startswith("flash"):
            return "of FlashAttention's sweep, whose version is not stated"
        return "" if row[column] and number(row, column) >= 5e-3 else "below 5 ms, which are published in tenths"

    return left_out


def _layer_group(row):
    """Its heads by what their width leaves of the bytes that are loaded at a time."""
    wide = number(row, "hidden") / number(row, "heads")
    heads = "a multiple of 8" if wide % 8 == 0 else "another even width" if wide % 2 == 0 else "an odd width"
    return f"heads of {heads}, tensor-parallel {number(row, 'tp'):.0f}"


# Single bandwidths


def _pcie4():
    """A link of the same kind as PCIe Gen5's, at the share of its rate that copies reach there."""
    share = links.pcie5.link_achieved / links.pcie5.link_bandwidth
    return share * links.pcie4.link_bandwidth, links.pcie4.link_bandwidth


_BANDWIDTHS = {
    ("H100 HGX", "PCIe D2H (SM kernel)"): lambda: (link_of_host(accelerators.h100), accelerators.h100.host_bandwidth),
    ("H100 HGX", "NVLink4 P2P unidirectional"): lambda: _achieved("h100"),
    ("H100 HGX", "NVLink4 P2P bidirectional"): lambda: _achieved("h100", 2),
    ("H800", "NVLink unidirectional achievable"): lambda: _achieved("h800"),
    ("H20", "DeepEP intranode NVLink"): lambda: _achieved("h20"),
    ("GH200 96GB", "C2C H2D (CE)"): lambda: (links.nvlink_c2c.link_achieved, links.nvlink_c2c.link_bandwidth),
    ("RTX A6000 x6 (PCIe4)", "P2P read CE"): lambda: _pcie4(),
}  # fmt: skip


def _achieved(name, ways=1):
    """A device's links at the share that collectives reach, and at their peak."""
    device = accelerators[name]
    peak = ways * device.scaleup_bandwidth
    return (device.get("near_efficiency") or accelerators.h100.near_efficiency) * peak, peak


def _bandwidths(rows):
    found, peak = np.array([_BANDWIDTHS[row["device"], row["path"]]() for row in rows]).T / 1e9
    return Priced(found, peak=peak)


def _no_bandwidth(row):
    if (row["device"], row["path"]) in _BANDWIDTHS:
        return ""
    if "NVMe" in row["path"]:
        return "of drives that the tables lack"
    if "bridge" in row["device"]:
        return "of a card and a bridge that the tables lack"
    return "of a whole cluster, whose network or storage is not described"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "gemm_aiter", "gemm_aiter.csv.gz",
            "Time of AMD's products that gemm_amd leaves out: AITER's choice of kernels, and hipBLASLt's shapes of "
            "training.",
            _aiter, "time_us", "us", ("rocm-aiter", "primus"), _no_aiter, _aiter_group,
        ),
        Confrontation(
            "gemm_xla", "gemm_xla.csv.gz", "Time of products of up to 4,096 in each size on B200, of XLA's table.",
            _xla, "time_us_derived", "us", ("xla-matmul-table",),
            lambda row: "" if row["dtype"] in _XLA else "of two kinds of 8 bits at once", _xla_group,
            "how much longer than among others a product takes that is started alone, on the even rows", is_even,
        ),
        Confrontation(
            "azure", "azure.csv",
            "Products, streams, copies, drives and all-reduces on Azure's machines, each in its own unit.",
            _azure, "value", "TFLOP/s, TB/s or GB/s", ("azure-ai-benchmarking", "azure-nd-sizes", "heise-kioxia"),
            _no_azure, _azure_group,
            optional=("instance",), alike=lambda row: _azure_group(row).split(",")[0],
        ),
        Confrontation(
            "fabric_mi300x", "fabric_mi300x.csv", "Rate of one link between MI300X while all of a node's are in use.",
            _fabric, "value", "GB/s", ("rocm-rccl",), lambda row: "",
            lambda row: "all links of a device" if row["dst_gpu"] == "all" else "one link",
        ),
        Confrontation(
            "ironwood", "ironwood.csv", "Rate of products on half a TPU7x, and of copies in its memory.",
            _ironwood, "rate", "TFLOP/s or GB/s", ("tpu-recipes",),
            lambda row: "" if row["rate"] else "of gathers, which collectives_fabric holds",
            lambda row: "products" if row[_RATE] else "copies",
            "what products reach of the peak, on those of 16,384 and more; how long a copy takes to start, on the "
            "smallest",
            lambda row: float(row[_SIZE] or 0) >= 16384 if row[_RATE] else 0 < float(row[_BYTES] or 0) <= 2**21,
            completed=_of_ironwood,
            alike=lambda row: "products" if row[_RATE] else "copies",
        ),
        Confrontation(
            "eleuther_layers", "layer_eleuther.csv",
            "Time of a layer's products forward on the A100 of 40 GB, each timed by itself, its attention unfused.",
            _layer, "layer_s", "s", ("anthony2024", "eleuther-cookbook"), _no_layer("layer_s"),
            _layer_group,
            optional=("attn_s", "mlp_s"),
        ),
        Confrontation(
            "eleuther_attention", "layer_eleuther.csv",
            "Time of the products of attention in the same layers: queries, keys and values, scores, results, output.",
            lambda rows: _layer(rows, is_whole=False), "attn_s", "s", ("anthony2024", "eleuther-cookbook"),
            _no_layer("attn_s"), _layer_group,
            optional=("layer_s", "mlp_s"),
        ),
        Confrontation(
            "bandwidths", "bandwidths.csv", "Single bandwidths of links, from benchmarks that issues and notes quote.",
            _bandwidths, "value", "GB/s", ("nvbandwidth-quoted",), _no_bandwidth,
            lambda row: row["device"],
        ),
    )
}  # fmt: skip
