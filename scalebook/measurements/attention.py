"""Attention kernels as published: TensorRT-LLM's operators, and FlashAttention's figures.

An operator of TensorRT-LLM takes in the projections, turns and stores the keys, and attends.  Three numbers for
each kind were fitted on the H100, and of decoding on half of the B200's rows; every other device is predicted from its
data sheet.
"""

from collections.abc import Mapping

import numpy as np

from scalebook.attention.arithmetic import attention_flops, causal_pairs, full_pairs, pair_width_grouped
from scalebook.attention.kernels import (
    decode_kernel_time,
    least_traffic,
    prefill_kernel_time,
    tiled_pairs,
    unfused_traffic,
)
from scalebook.inference import assumptions
from scalebook.machine.kernels import stream_time
from scalebook.tables import accelerators

from .confrontation import Confrontation, Priced
from .kernels import device_letters, products_seconds
from .rows import SYSTEMS, is_even, number, numbers

__all__ = [
    "BITS", "CONFRONTATIONS", "DECODE", "DECODE_AT_PEAKS", "DECODE_BLACKWELL", "DEVICES", "FLASH_SCORE_FLOPS",
    "NOTHING", "PREFILL", "PREFILL_AT_PEAKS", "SOFTMAX_PASSES", "TILE", "reading", "readings_of",
]  # fmt: skip

_READ = ("launch_time", "bandwidth_efficiency", "item_time")


def reading(kind: str, device: Mapping | None = None) -> dict[str, float]:
    """What serving takes of a device that reads a kind of cache: its row's, and what that lacks as on the H100.

    >>> reading("grouped")
    {'launch_time': 8.4e-06, 'bandwidth_efficiency': 0.72, 'item_time': 1.5e-06}
    """
    own = {} if device is None else device
    cells = assumptions.READ_CELLS[kind].items()
    return {x: own.get(cell, f()) for x, (cell, f) in zip(_READ, cells, strict=True)}


def readings_of(rows, kind: str) -> dict[str, np.ndarray]:
    """The same of the device of each row."""
    found = {row["system"]: reading(kind, device_of(row)) for row in {row["system"]: row for row in rows}.values()}
    return {x: np.array([found[row["system"]][x] for row in rows]) for x in _READ}


# What serving assumes of the operators, by least mean |log(predicted/measured)| on the H100; and on the even rows of
# the B200, where TensorRT-LLM has kernels of its own for decoding (trtllm-gen).  A test tries neighbouring values.
PREFILL = dict(
    launch_time=assumptions.prompt_launch(),
    bandwidth_efficiency=assumptions.prompt_efficiency(),
    score_flops=assumptions.score_arithmetic(),
)
DECODE, DECODE_BLACKWELL = reading("grouped"), reading("grouped", accelerators.b200)
# On Hopper heads that share keys and values of 16 bits take a core so long for one of them and a sequence.
SHARED_ITEM = 4.2e-6
# What each kernel leaves of the softmax, on its own runs forward with heads of 128 and no mask.
FLASH_SCORE_FLOPS = 18.6  # FlashAttention-3
CUDNN_SCORE_FLOPS = 22.4

TILE = assumptions.one_tile()
DEVICES = SYSTEMS | {"A100-SXM4-80GB": "a100", "H100-SXM5-80GB": "h100"}
BITS = {"bfloat16": 16, "fp8": 8}
PEAKS = {"bfloat16": "peak_bf16", "fp8": "peak_fp8"}
# Blackwell Ultra has twice the special function units, which NVIDIA calls twice the attention-layer acceleration.
FAST_EXPONENTIAL = ("b300", "gb300")

NOTHING = 1e-15  # seconds or operations: a formula's letters are more than zero
# What the roofline says of both operators: no launch, all of memory, and of each nothing but products and traffic.
_AT_PEAKS = dict(launch_time=NOTHING, bandwidth_efficiency=1.0)
PREFILL_AT_PEAKS = _AT_PEAKS | dict(score_flops=NOTHING)
DECODE_AT_PEAKS = _AT_PEAKS | dict(item_time=NOTHING)


def cores_of(device) -> int:
    """GB200, B300 and GB300 do not publish theirs: taken as those of the B200."""
    return device.get("cores") or accelerators.b200.cores


def device_of(row):
    """The device of a row, whose system is one of these names or that of a device in the table."""
    return accelerators[DEVICES.get(row["system"], row["system"])]


def _knowns(rows):
    """What the formulas need to know of the rows of an operator, letter by letter."""
    devices = [device_of(row) for row in rows]
    names = ("batch_size", "num_heads", "head_dim", "num_key_value_heads", "isl")
    batch, heads, head_dim, kv_heads, prompt = numbers(rows, *names)
    return dict(
        batch=batch,
        heads=heads,
        head_dim=head_dim,
        kv_heads=kv_heads,
        context=prompt + np.array([float(row["step"]) for row in rows]),
        kv_bits=np.array([BITS[row["kv_cache_dtype"]] for row in rows]),
        hbm_bandwidth=np.array([d.hbm_bandwidth for d in devices]),
        cores=np.array([cores_of(d) for d in devices]),
    )


def _peaks(rows):
    return np.array([device_of(row)[PEAKS[row["attn_dtype"]]] for row in rows])


def prefill_seconds(rows, launch_time, bandwidth_efficiency, score_flops) -> np.ndarray:
    """Seconds of the operator for rows of attention_prefill.csv."""
    devices = [accelerators[DEVICES[row["system"]]] for row in rows]
    fast = np.array([DEVICES[row["system"]] in FAST_EXPONENTIAL for row in rows])
    return prefill_kernel_time(
        _knowns(rows),
        seq=numbers(rows, "isl")[0],
        query_tile=TILE,
        launch_time=launch_time,
        query_bits=np.array([BITS[row["attn_dtype"]] for row in rows]),
        activation_bits=16,
        peak_flops=_peaks(rows),
        peak_vector=np.array([d.peak_vector for d in devices]),
        bandwidth_efficiency=bandwidth_efficiency,
        score_flops=np.where(fast, score_flops / 2, score_flops),
    )


def decode_seconds(rows, launch_time, bandwidth_efficiency, item_time) -> np.ndarray:
    """Seconds of the operator for rows of attention_decode.csv, one new token a sequence."""
    knowns = _knowns(rows) | dict(seq=1, query_bits=16, activation_bits=16, launch_time=launch_time)
    knowns |= dict(bandwidth_efficiency=bandwidth_efficiency, item_time=item_time, peak_flops=_peaks(rows))
    shape = {x: knowns[x] for x in ("batch", "heads", "head_dim", "seq", "context")}
    knowns["flops"] = attention_flops(full_pairs, pair_width_grouped, shape)
    return decode_kernel_time({x: knowns[x] for x in decode_kernel_time.compose(least_traffic).inputs})


def _shares_on_hopper(row) -> bool:
    old = "item_time_grouped" not in device_of(row) and row["kv_cache_dtype"] == "bfloat16"
    return old and number(row, "num_heads") > number(row, "num_key_value_heads")


def calibrates_decode(row) -> bool:
    return row["system"] == "h100_sxm" or (row["system"] == "b200_sxm" and is_even(row))


def _prefill(rows):
    """The arithmetic at its peak alone bounds the time: the cache may be written behind the kernel."""
    prompt, least = numbers(rows, "isl")[0], _knowns(rows)
    shape = {x: least[x] for x in ("batch", "heads", "head_dim", "context")} | {"seq": prompt}
    attended = attention_flops(causal_pairs, pair_width_grouped, shape) / _peaks(rows)
    return Priced(*(1e3 * prefill_seconds(rows, **x) for x in (PREFILL, PREFILL_AT_PEAKS)), 1e3 * attended)


def _decode(rows):
    found = readings_of(rows, "grouped")
    found["item_time"] = np.where([_shares_on_hopper(row) for row in rows], SHARED_ITEM, found["item_time"])
    return Priced(*(1e3 * decode_seconds(rows, **x) for x in (found, DECODE_AT_PEAKS)))


def flash_rate(row, score_flops) -> float:
    """TFLOP/s of fused attention: as in prefill without a cache, with launch and bandwidth as found in decoding.

    The backward pass is taken to need 2.5 times of everything, so it leaves the rate as it is.
    """
    device, shape = accelerators[DEVICES[row["gpu"]]], _shape(row)
    causal = row["causal"] == "True"
    pairs = (tiled_pairs if causal else full_pairs)(shape, **(dict(query_tile=TILE) if causal else {}))
    time = DECODE["launch_time"] + max(
        shape["batch"]
        * shape["heads"]
        * pairs
        * (4 * shape["head_dim"] / device.peak_fp16 + score_flops / device.peak_vector),
        least_traffic(shape, query_bits=16, activation_bits=16, kv_bits=16)
        / device.hbm_bandwidth
        / DECODE["bandwidth_efficiency"],
    )
    return _counted(row) / time / 1e12


def _shape(row):
    seq, width = number(row, "seq_len"), number(row, "head_dim")
    heads = number(row, "hidden_nheads_x_hd") / width
    return dict(
        batch=number(row, "batch_x_seq") / seq, seq=seq, context=seq, heads=heads, kv_heads=heads, head_dim=width
    )


def _counted(row):
    """The operations the authors count: half of all when causal."""
    return attention_flops(full_pairs, _shape(row)) / (2 if row["causal"] == "True" else 1)


def _flash(rows):
    peak = np.array([accelerators[DEVICES[row["gpu"]]].peak_fp16 / 1e12 for row in rows])
    left = {"cuDNN": CUDNN_SCORE_FLOPS}
    found = [flash_rate(row, left.get(row["impl"], FLASH_SCORE_FLOPS)) for row in rows]
    return Priced(np.array(found), peak, peak)


def unfused_bound(row) -> float:
    """TFLOP/s of unfused attention if its traffic were all it waits for; the backward pass moves at least 2.5 times."""
    traffic = unfused_traffic(_shape(row), activation_bits=16)
    return _counted(row) / (traffic / accelerators[DEVICES[row["gpu"]]].hbm_bandwidth) / 1e12


# The steps between the products of unfused attention in PyTorch, as the benchmark's own code and PyTorch's kernels
# have them: how often each score crosses the memory bus, forward and backward.  A softmax reads its row three times,
# once out of a cache; backward a product of gradient and weights is written first.  A mask is a tensor that is added.
SOFTMAX_PASSES, MASK_PASSES, SOFTMAX_BACKWARD_PASSES = 3, 3, 7
# The same of queries, keys, values and results, and of their gradients, which are turned and put together.
TURNED, TURNED_BACKWARD = 6, 8


def unfused_rate(row) -> float:
    """TFLOP/s of unfused attention as PyTorch runs it: two products forward, four backward, and what lies between."""
    shape, known = _shape(row), device_letters(DEVICES[row["gpu"]], "fp16")
    copies, seq, width = shape["batch"] * shape["heads"], shape["seq"], shape["head_dim"]
    wide, narrow = (products_seconds([known], seq, *x, copies)[0] for x in ((seq, width), (width, seq)))
    passes, turned, time = SOFTMAX_PASSES + MASK_PASSES * (row["causal"] == "True"), TURNED, wide + narrow
    flops = _counted(row)
    if row["passes"] == "fwd+bwd":
        passes, turned = passes + SOFTMAX_BACKWARD_PASSES, turned + TURNED_BACKWARD
        time, flops = 2 * time + 2 * narrow, 3.5 * flops
    time += stream_time(known, traffic=2 * copies * seq * (passes * seq + turned * width))
    return flops / time / 1e12


def _unfused(rows):
    peak = np.array([accelerators[DEVICES[row["gpu"]]].peak_fp16 / 1e12 for row in rows])
    return Priced(*(np.array([f(row) for row in rows]) for f in (unfused_rate, unfused_bound)), peak)


def _no_operator(row):
    if row["system"] not in DEVICES:
        return "of a device that the table of accelerators lacks"
    if row["window_size"] not in ("0", "0.0"):
        return "with a sliding window"
    return "" if row["kv_cache_dtype"] in BITS and row["attn_dtype"] in BITS else "in a precision not described here"


def _no_decode(row):
    if reason := _no_operator(row):
        return reason
    if DEVICES[row["system"]] == "a100":
        return "on an A100, where many runs are faster than the whole cache can be read: it was not read whole"
    return "" if row["isl"] in ("1", "1.0") else "with more than one new token"


def _no_flash(row):
    native = {"H100-SXM5-80GB": ("FlashAttention-3", "cuDNN"), "A100-SXM4-80GB": ("FlashAttention-2",)}
    if row["gpu"] not in native:
        return "of a device not described here"
    if row["impl"] in ("Standard", "PyTorch"):
        return "of unfused attention"
    return (
        "" if row["impl"] in native[row["gpu"]] else "of a kernel not written for the matrix instructions of its device"
    )


def _no_unfused(row):
    if row["impl"] not in ("Standard", "PyTorch"):
        return "of fused attention"
    return "" if row["gpu"] in DEVICES else "of a device not described here"


def short_name(key) -> str:
    """A device's name without vendor and variant."""
    return accelerators[key].name.split(" (")[0].removeprefix("NVIDIA ")


def _device_and(dtype):
    return lambda row: f"{short_name(DEVICES[row['system']])}, {row[dtype]}"


def _kernel(row):
    return f"{row['impl']} on {row['gpu'].split('-')[0]}"


def _calibrates_flash(row):
    kind = row["passes"], row["causal"], row["head_dim"]
    return row["impl"] in ("FlashAttention-3", "cuDNN") and kind == ("fwd", "False", "128")


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "attention_prefill",
            "attention_prefill.csv",
            "Time of causal attention over a prompt against writing the cache, "
            "matrix products at peak and the softmax.",
            _prefill,
            "latency_ms",
            "ms",
            ("aiconfigurator",),
            _no_operator,
            _device_and("attn_dtype"),
            "the launch, one bandwidth efficiency and the vector arithmetic per score (half of it on Blackwell Ultra), "
            "on the H100",
            lambda row: row["system"] == "h100_sxm",
        ),
        Confrontation(
            "attention_decode",
            "attention_decode.csv",
            "Time of attention for one new token a sequence against reading the cache, or starting on its pieces.",
            _decode,
            "latency_ms",
            "ms",
            ("aiconfigurator", "trtllm-dispatch"),
            _no_decode,
            _device_and("kv_cache_dtype"),
            "the launch, one bandwidth efficiency and the least time per sequence and key-value head, on the H100, and "
            "for Blackwell on the even rows of the B200",
            calibrates_decode,
        ),
        Confrontation(
            "attention_flash",
            "attention_flash.csv",
            "Rate of fused attention against matrix products at peak and the softmax on the vector units.",
            _flash,
            "tflops",
            "TFLOP/s",
            ("flash-attention-figures",),
            _no_flash,
            _kernel,
            "the vector arithmetic per score of FlashAttention-3 and of cuDNN, forward with heads of 128 and no mask",
            _calibrates_flash,
        ),
        Confrontation(
            "attention_unfused",
            "attention_flash.csv",
            "Rate of unfused attention in PyTorch: its products, and what scores cross the memory bus between them.",
            _unfused,
            "tflops",
            "TFLOP/s",
            ("flash-attention-figures", "flash-attention-benchmark", "pytorch-softmax"),
            _no_unfused,
            _kernel,
            "that one of a softmax's three reads comes out of a cache, on the runs forward without a mask",
            lambda row: row["impl"] == "Standard" and row["causal"] == "False",
        ),
    )
}
