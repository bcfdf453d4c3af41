"""Decoding as published: one sequence on graphics cards, and batches on eight MI300X.

The floor is what the formulas say with nothing calibrated: every byte read once, at the bandwidth
of the data sheet.  No measurement may be faster.  What is measured is slower for two reasons, and each has one number:
memory gives less than its peak, which is the hardware's matter and taken as one efficiency, and each block costs a
delay of its own, which is the engine's matter.  Memory of data centres gives more than the cores of llama.cpp's kernels
ask for: a core has only so many loads under way, and takes in so many bytes a clock.  Devices that take turns hand over
what they have, and what one that captures no graph starts kernel by kernel costs more.
"""

import re
from typing import NamedTuple

import numpy as np

from scalebook.inference.tokens import decode_rate, decode_traffic, ridge_batch, token_time_overhead
from scalebook.machine.roofline import memory_time
from scalebook.tables import accelerators, models

from .confrontation import Confrontation, Priced
from .rows import is_half, number

__all__ = [
    "BANDWIDTH_EFFICIENCY", "BLOCK_OVERHEAD", "CONFRONTATIONS", "METAL_OVERHEAD", "TURN_TIME", "VLLM_MI300X_OVERHEAD",
    "VLLM_MI300X_SUM",
]  # fmt: skip

# Fitted by least squares of predicted/measured time - 1; a test fits them again.  The overheads are in seconds.
BANDWIDTH_EFFICIENCY = 0.908  # standard error 0.027
BLOCK_OVERHEAD = {
    "llama.cpp 2023": 75e-6, "llama.cpp 2024": 90e-6, "llama.cpp 2025": 37.6e-6, "ExLlamaV2": 48.2e-6,
    "MLC LLM": 31.6e-6,
}  # standard errors 5e-6 to 12e-6  # fmt: skip
# What one device takes to hand over to the next where they take turns, each with layers of its own.
TURN_TIME = 157e-6
# What a block costs llama.cpp on Apple's devices, whatever the year, on the half of them that `_is_half` says.
METAL_OVERHEAD = 119e-6
VLLM_MI300X_OVERHEAD = 83e-6
# What each byte takes of what eight MI300X sum in a step, in seconds: all sequences' activations, twice in a block.
VLLM_MI300X_SUM = 4.2e-11
# Where memory is faster than cores ask for it: bytes a clock of a core, fitted on the single A100s that run llama.cpp,
# whose kernels it is a matter of.
CORE_BYTES = 7.01
# What a block loses where devices share its matrices, fitted on the A10Gs: their messages cross the host.
SHARING_OVERHEAD = {"llama.cpp 2023": 872e-6, "MLC LLM": 116e-6, "vLLM": 525e-6}

# Cores times clock, in Hz: the vector peak over two operations of each lane of a core.
CORE_CLOCKS = {
    "A100": accelerators.a100.peak_vector / (2 * 64), "H100 PCIe": accelerators.h100_pcie.peak_vector / (2 * 128),
    "H100": accelerators.h100.peak_vector / (2 * 128),
}  # fmt: skip

MODELS = {
    "LLaMA-3 8B": "llama3_8b", "LLaMA-3 70B": "llama3_70b", "Llama2-7B": "llama2_7b", "Llama-2-7B": "llama2_7b",
    "Llama2-13B": "llama2_13b", "Llama2-70B": "llama2_70b", "Llama-7B": "llama1_7b", "Llama-13B": "llama1_13b",
    "Llama-33B": "llama1_33b", "Llama-3.1-70B FP8-KV": "llama3_70b", "Llama-3.1-405B FP8-KV": "llama3_405b",
}  # fmt: skip


class Engine(NamedTuple):
    """How a row's engine runs: `context` is the mean of the run, in tokens.

    Several devices take turns, each with layers of its own, or read at once, each with a part of every matrix
    (llama.cpp did so until January 2024, pull request 4766).
    """

    family: str
    context: float
    at_once: bool = False


ENGINES = {
    "llama.cpp (May 2024)": Engine("llama.cpp 2024", 512),  # the column of 1,024 tokens after none
    "llama.cpp llama-bench": Engine("llama.cpp 2025", 64),  # 128 tokens after none
    "llama cpp": Engine("llama.cpp 2023", 72, at_once=True),  # 128 tokens after a prompt of 8
    "MLC LLM": Engine("MLC LLM", 136, at_once=True),  # 256 tokens after a prompt of 8
    "Exllama V2": Engine("ExLlamaV2", 136),
    "exllamav2": Engine("ExLlamaV2", 136),  # not stated; taken as in the line above
    "exllama": Engine("ExLlama", 136),
    "vLLM": Engine("vLLM", 136, at_once=True),
}

# Bits per weight, scales included.
WEIGHT_BITS = {
    "F16": 16,
    "FP16": 16,
    "Q4_0": 4.54,  # the file of Llama 2 7B takes 3.56 GiB (llamacpp-bench)
    "Q4_K_M LLaMA-3 8B": 4.89,  # llamacpp-quantize
    "Q4_K_M LLaMA-3 70B": 4.82,  # its file takes 39.59 GiB (dai2024)
    "Q4_K_M Llama2-7B": 4.84,  # this and the next two: llamacpp-quantize at b8c1476
    "Q4_K_M Llama2-13B": 4.83,
    "Q4_K_M Llama2-70B": 4.80,
    "q4f16_1": 4.5,  # MLC's 4 bits, with an fp16 scale for every 32 weights
    "4-bit": 4,  # groups not stated: the least it can be
}


def _weight_bits(row):
    quant, engine, model = row["quant"], row["engine"], row["model"]
    if match := re.fullmatch(r"EXL2 ([\d.]+)bpw", quant):
        return float(match[1])
    if match := re.fullmatch(r"GPTQ g(\d+)( act)?", quant):  # 4 bits, with an fp16 scale and a 4-bit zero for a group
        return 4 + 20 / float(match[1])
    if quant == "4-bit":  # llm-perf-bench names the format of two of its engines
        quant = {"llama cpp": "Q4_K_M", "MLC LLM": "q4f16_1"}.get(engine, quant)
    return WEIGHT_BITS.get(quant, WEIGHT_BITS.get(f"{quant} {model}"))


CLASSES = {
    r"(RTX )?[345]0[5-9]0\b.*": "GeForce",
    r"RTX (A\d|\d000 Ada|PRO).*": "RTX workstation",
    r"(A10G|A40|L40S)\b.*": "data centre, GDDR6",
    r"(A100|H100)\b.*": "data centre, HBM",
    r"M\d.*": "Apple",
}


def _class(row):
    return next((name for pattern, name in CLASSES.items() if re.fullmatch(pattern, row["gpu"])), "other")


def _alone(row):
    """The class of a run on one device; runs on several are apart, since what they send is not in the floor."""
    if number(row, "n_gpus") == 1:
        return _class(row)
    return "several, sharing matrices" if ENGINES[row["engine"]].at_once else "several, taking turns"


def _no_floor(row):
    if not row["phase"].startswith("decode"):
        return "of prefill, not decoding"
    if row["phase"] == "decode_ms_per_token":
        return "of a 13B model that is described by three numbers only"
    if number(row, "batch") != 1:
        return "with more than one sequence"
    if not row["spec_bw_gbs"]:
        return "without a bandwidth in the file"
    if row["model"] not in MODELS:
        return "of a model that the table of models lacks"
    if row["engine"] not in ENGINES:
        return "of an engine whose way of running is not described here"
    return "" if _weight_bits(row) else "in a format whose bits per weight are not known here"


def _no_rate(row):
    if reason := _no_floor(row):
        return reason
    family = ENGINES[row["engine"]].family
    is_known = family in (SHARING_OVERHEAD if _is_shared(row) else BLOCK_OVERHEAD)
    return "" if is_known else f"of {family}, which has too few runs on GeForce cards to calibrate on"


def _is_shared(row) -> bool:
    """Whether several devices read at once, each a part of every matrix."""
    return ENGINES[row["engine"]].at_once and number(row, "n_gpus") > 1


def reached(row) -> float:
    """The share of the bandwidth: what memory gives, or what cores that wait for their loads ask for."""
    if not ENGINES[row["engine"]].family.startswith("llama.cpp"):
        return BANDWIDTH_EFFICIENCY
    clocks = next((x for name, x in CORE_CLOCKS.items() if row["gpu"].startswith(name)), np.inf)
    return min(BANDWIDTH_EFFICIENCY, CORE_BYTES * clocks / (number(row, "spec_bw_gbs") * 1e9))


def overhead(row) -> float:
    """What a block costs besides its traffic, in seconds."""
    family = ENGINES[row["engine"]].family
    if _class(row) == "Apple":
        return METAL_OVERHEAD
    return BLOCK_OVERHEAD.get(family, 0) + (SHARING_OVERHEAD[family] if _is_shared(row) else 0)


def turns(row) -> float:
    """How often a token passes from one device to the next."""
    return 0 if ENGINES[row["engine"]].at_once else number(row, "n_gpus") - 1


def token_seconds(row, efficiency: float = 1, overhead: float = 0) -> float:
    """Seconds per token for a row of batch1_decode.csv; with the defaults, the floor.

    The contexts of `ENGINES` matter little: twice as long, they lower no rate by more than 3 %.
    """
    context = ENGINES[row["engine"]].context
    model, bits = models[MODELS[row["model"]]], _weight_bits(row)
    traffic = decode_traffic(model, batch=1, context=context, weight_bits=bits, kv_bits=16)
    readers = number(row, "n_gpus") if _is_shared(row) else 1
    time = memory_time(traffic=traffic, hbm_bandwidth=readers * number(row, "spec_bw_gbs") * 1e9)
    return token_time_overhead(model, memory_time=time, bandwidth_efficiency=efficiency, block_overhead=overhead)


def _floor(rows):
    return np.array([decode_rate(batch=1, token_time=token_seconds(row)) for row in rows])


def _rate(rows):
    times = [token_seconds(row, reached(row), overhead(row)) + TURN_TIME * turns(row) for row in rows]
    floor = _floor(rows)
    return Priced(np.array([decode_rate(batch=1, token_time=time) for time in times]), floor, floor)


def _is_half(row) -> bool:
    """Whether a device is of the half of its class that a number is fitted on."""
    return is_half(row["gpu"])


def _is_fitted(row) -> bool:
    """Cards that one of the numbers was fitted on."""
    if _is_shared(row):
        return row["gpu"].startswith("A10G")
    a100 = row["engine"].startswith("llama.cpp") and row["gpu"].startswith("A100") and number(row, "n_gpus") == 1
    return a100 or _class(row) == "GeForce" or (_class(row) == "Apple" and _is_half(row))


def batch_seconds(row, efficiency: float = 1, overhead: float = 0, sum_time: float = 0) -> float:
    """Seconds for a batch, for a row of mi300x_vllm.csv; with the defaults, the floor.

    Weights and cache take 8 bits; the published command leaves the cache's open, and with 16 the
    time grows by 9 % at most.  Every iteration has the same prompts, which are in the cache after the first.
    """
    model, device, tp = models[MODELS[row["model"]]], accelerators.mi300x.at("fp8"), number(row, "tp")
    batch, prompt, new = (number(row, x) for x in ("batch", "isl", "osl"))
    traffic = decode_traffic(model, batch=batch, context=prompt + new / 2, weight_bits=8, kv_bits=8)
    time = memory_time(traffic=traffic, hbm_bandwidth=tp * device.hbm_bandwidth)
    step = token_time_overhead(model, memory_time=time, bandwidth_efficiency=efficiency, block_overhead=overhead)
    summed = 2 * model.layers * batch * model.hidden * 16 / 8
    return new * (step + sum_time * summed)


def _batch_floor(rows):
    return np.array([batch_seconds(row) for row in rows])


def _batch_time(rows):
    each = BANDWIDTH_EFFICIENCY, VLLM_MI300X_OVERHEAD, VLLM_MI300X_SUM
    predicted = np.array([batch_seconds(row, *each) for row in rows])
    floor = _batch_floor(rows)
    return Priced(predicted, floor, floor)


def _no_latency(row):
    if row["metric"] != "total latency":
        return "of throughput at an unstated batch"
    if row["model"] not in MODELS or row["precision"] != "FP8" or not row["gpu"].startswith("MI300X"):
        return "not of Llama 3.1 in FP8 on the MI300X"
    if number(row, "batch") > ridge_batch(accelerators.mi300x.at("fp8"), weight_bits=8):
        return "of a batch whose arithmetic may take longer than its traffic"
    return ""


def _is_fitted_batch(row) -> bool:
    return "70B" in row["model"] and (number(row, "batch") == 1 or row["isl"] == "128")


def _batch(row):
    size = int(row["model"].split("-")[2].split("B")[0])
    low, high = next((a, b) for a, b in ((1, 4), (8, 32), (64, 10**6)) if float(row["batch"]) <= b)
    return f"{size}B, batch {low} to {high}" if high < 10**6 else f"{size}B, batch {low} or more"


_SOURCES = ("dai2024", "llm-perf-bench", "exllamav2-readme", "llamacpp-bench", "llamacpp-quantize")
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "batch1_floor",
            "batch1_decode.csv",
            "Tokens a second of one sequence against what the floor under the time allows: no run is faster.",
            lambda rows: Priced(*(_floor(rows),) * 3),
            "tok_s",
            "token/s",
            _SOURCES,
            _no_floor,
            _alone,
        ),
        Confrontation(
            "batch1_decode",
            "batch1_decode.csv",
            "Tokens a second of one sequence against the traffic at one efficiency plus a delay per block.",
            _rate,
            "tok_s",
            "token/s",
            _SOURCES,
            _no_rate,
            _alone,
            "one bandwidth efficiency for all, one block overhead per engine and the time of a turn on the runs on "
            "GeForce cards, a block overhead on half of Apple's devices, bytes a clock of a core on the runs on one "
            "A100, and one overhead of sharing per engine on those on A10Gs",
            _is_fitted,
        ),
        Confrontation(
            "batch_floor_mi300x",
            "mi300x_vllm.csv",
            "Time of a batch on eight MI300X against the floor: no run is faster.",
            lambda rows: Priced(*(_batch_floor(rows),) * 3),
            "value",
            "s",
            ("rocm-vllm",),
            _no_latency,
            _batch,
        ),
        Confrontation(
            "batch_decode_mi300x",
            "mi300x_vllm.csv",
            "Time of a batch on eight MI300X against the efficiency of the GeForce cards, a delay per block and sums.",
            _batch_time,
            "value",
            "s",
            ("rocm-vllm",),
            _no_latency,
            _batch,
            "the block overhead and the time of a byte that devices sum, on the 70B model at batch 1 and on its curve "
            "of short prompts; the bandwidth efficiency is that of batch1_decode",
            _is_fitted_batch,
        ),
    )
}
