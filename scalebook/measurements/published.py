"""More tables of products: AITER's, XLA's own, whole layers of EleutherAI's sweep, and their attention."""

import numpy as np

from scalebook.machine.kernels import matrix_product, stream_time, waiting_product
from scalebook.machine.tiles import aligned_share
from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .devices import letters_of
from .kernels import A100_40GB, at_peaks, device_letters, products_seconds, slowed
from .rows import is_even, number, numbers

__all__ = ["CONFRONTATIONS", "XLA_START"]

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
    )
}  # fmt: skip
