"""What products of AMD's devices reach, and the best products that anyone found.

The best are more than what products of a model reach.
"""

import numpy as np

from scalebook.machine.datasheet import best_found
from scalebook.machine.kernels import exposed_write, waiting_product
from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .kernels import NO_SPLIT, at_peaks, device_letters, products_seconds
from .rows import is_even, number, numbers

__all__ = [
    "AITER", "AITER_BLOCKS", "AITER_BLOCKS_FASTER", "AITER_ROWS", "CONFRONTATIONS", "START", "WAITS",
    "alone", "letters_of",
]  # fmt: skip

# Fitted; a test fits them again.
# What products reach of the peak of fp8 when each block of 128 elements has a scale of its own, on even rows of AITER.
AITER_BLOCKS = {"mi300x": 0.34, "mi355x": 0.33}
# By kernels in assembly and of CK Tile, which only the MI355X has, on the three of these rows.
AITER_BLOCKS_FASTER = 0.40
# Kernels of AMD's devices wait for their loads: so many seconds for an element of the inner size, 1 ns a byte where
# nothing is scaled.  One that is timed alone needs some microseconds to start, whichever library it is of.
WAITS = {"bf16": 2.0e-9, "fp8": 0.95e-9, "fp8_block": 1.8e-9, "fp4": 1.25e-9}
START = 3.1e-6
# AITER's split the inner size for less than others.  All on its even rows of the MI355X; in a captured graph kernels
# start faster.
AITER = {"tile_columns": 64, "split_time": 0.27e-6, "split_step": 0.27e-6}
# On the MI355X less of the writing of results is hidden than elsewhere, where it is half.
AITER_EXPOSED = {"mi355x": 0.85}
# It has kernels with tiles of 16 to 256 rows (a8w8_bpreshuffle_128x16x32x512 is the first): of those up to 128 it takes
# the smallest that gives no core a second tile.
AITER_ROWS = (16, 32, 64, 128)
# Which kernels share the inner size, as its tables say in a column of their own: in 16 bits all but Triton's, with
# scaled blocks those in assembly, and most of Composable Kernel's for few rows in these tables.
SPLITS = {
    ("mi300x", "a8w8_blockscale_ds_v3"), ("mi300x", "a8w8_blockscale_glm5_1"),
    ("mi355x", "a8w8_blockscale"), ("mi355x", "a8w8_blockscale_qwen3_next_80b_a3b"),
}  # fmt: skip
# Precision, and bits of an activation and of a weight with their scales; results have 16 bits.
_FORMATS = {
    "bf16": ("bf16", 16),
    "fp16": ("fp16", 16),
    "fp8": ("fp8", 8),
    "fp8_block": ("fp8", 8),
    "mxfp4": ("fp4", 4.25),
}


def _is_large(row):
    return all(number(row, x) >= 1024 for x in "mnk")


def _splits(row, precision):
    """Whether AITER's kernel of a row shares its inner size."""
    if row["library"] == "ck":
        table = row["source"].removeprefix("aiter ").replace("_tuned_gemm", "")
        return (row["device"], table) in SPLITS
    return row["library"] == "asm" or (precision == "bf16" and row["library"] != "triton")


def _tuned(row, precision):
    """What AITER's kernels have of their own."""
    m, n, copies = number(row, "m"), number(row, "n"), float(row.get("batch") or 1)
    cores, last = accelerators[row["device"]].cores, AITER_ROWS[-1]
    one_wave = (x for x in AITER_ROWS if copies * np.ceil(m / x) * np.ceil(n / AITER["tile_columns"]) <= cores)
    rows = min(next(one_wave, last), next((x for x in AITER_ROWS if x >= m), last))
    exposed = AITER_EXPOSED.get(row["device"], exposed_write())
    return AITER | {"tile_rows": rows, "exposed_write": exposed} | ({} if _splits(row, precision) else NO_SPLIT)


def _trains(row):
    """Products of the MI355X by its library, of which cells of training are; those of AITER serve."""
    return row["device"] == "mi355x" and not row["source"].startswith("aiter")


def _of_blocks(row):
    """What products with a scale for each block have of their own."""
    reached = AITER_BLOCKS_FASTER if row["library"] in ("asm", "cktile") else AITER_BLOCKS[row["device"]]
    return {"matmul_efficiency": reached, "inner_wait": WAITS["fp8_block"]}


def alone(device: str, precision: str) -> dict:
    """How long a product that is timed alone waits on this device."""
    is_amd = accelerators[device].vendor == "AMD"
    return {"inner_wait": WAITS[precision], "kernel_launch": START} if is_amd else {"inner_wait": 0.0}


def letters_of(row, precision: str, scaled: bool) -> dict:
    """What a row's device and the kernels that its library chose have, with a scale for each block or without."""
    device, is_aiter = accelerators[row["device"]], row["source"].startswith("aiter")
    return (
        device_letters(row["device"], precision)
        | {"exposed_write": exposed_write()}
        | (alone(row["device"], precision) if is_aiter or row["source"] == "Azure" else {"inner_wait": 0.0})
        | (_of_blocks(row) if scaled else {})
        | ({"matmul_efficiency": device.at(precision).training_efficiency} if _trains(row) else {})
        | (_tuned(row, precision) if is_aiter else {})
    )


def _rates(rows):
    """TFLOP/s."""
    m, n, k = numbers(rows, *"mnk")
    copies = np.array([float(row.get("batch", 1)) for row in rows])
    formats = [_FORMATS[row["precision"]] for row in rows]
    devices = [
        letters_of(row, precision, row["precision"] == "fp8_block")
        for row, (precision, _) in zip(rows, formats, strict=True)
    ]
    bits = np.array([bits for _, bits in formats])
    sizes = m, n, k, copies, bits, bits
    times = products_seconds(devices, *sizes, sheet=waiting_product), *at_peaks(devices, *sizes)
    return Priced(*(2 * copies * m * n * k / time / 1e12 for time in times))


def _best_rates(rows):
    """TFLOP/s of the best product that a search finds."""
    rates, *peaks = _rates(rows)
    return Priced(rates / best_found(), *peaks)


# AMD's devices


def _amd_group(row):
    if not _is_large(row):
        return f"a size below 1,024, {row['precision']}"
    return f"{accelerators[row['device']].name.split()[-1]}, {row['precision']}, {row['source'].split()[0]}"


def _amd_fitted(row):
    """Of the MI300X in 16 bits there are too few rows to leave half of them out."""
    if row["device"] == "mi355x" and row["source"].startswith("aiter"):
        return is_even(row)
    is_own = row["source"].split()[0] in ("Azure", "Primus") or row["precision"] == "fp8_block"
    return _is_large(row) and ((row["device"], row["precision"]) == ("mi300x", "bf16") or (is_own and is_even(row)))


# The best products


def _best_group(row):
    return f"{row['device']}, {row['precision']}"


def _best_fitted(row):
    return row["device"] in ("mi300x", "mi325x", "gaudi2", "gaudi3")


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "gemm_amd",
            "gemm_amd.csv",
            "Rate of matrix products on AMD's devices: hipBLASLt, and AITER's choice of kernels for serving.",
            _rates,
            "tflops",
            "TFLOP/s",
            ("rocm-aiter", "primus", "azure-ai-benchmarking"),
            lambda row: "",
            _amd_group,
            "what products of the MI355X reach, how they start, wait, split, write on AITER's even rows; of others the "
            "matmul efficiencies on rows of 1,024 and more in every size: "
            "of the MI300X in bf16 all, in fp8 Azure's even ones, with scaled blocks AITER's, of training Primus's",
            _amd_fitted,
        ),
        Confrontation(
            "gemm_best",
            "gemm_best.csv",
            "Rate of the best product that a search found on a device: that of a model's, over nine tenths.",
            _best_rates,
            "tflops",
            "TFLOP/s",
            ("rocm-maf", "bekman-accelerators"),
            lambda row: "",
            _best_group,
            "the matmul efficiencies of Gaudi 2 and 3, and that of the MI325X from that of the MI300X; the nine tenths "
            "on streams",
            _best_fitted,
        ),
    )
}
