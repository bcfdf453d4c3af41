"""Attention kernels of other kinds: latent attention in TensorRT-LLM, and what InferSim measured on H20 and H800.

The numbers fitted for grouped heads (attention.py) are used unchanged for latents; that is the test.  Besides,
three numbers of their own were fitted for decoding with latents, on the H100, and on half of the B200.
"""

import numpy as np

from scalebook.attention.arithmetic import (
    attention_flops,
    full_pairs,
    pair_width_absorbed,
    pair_width_grouped,
    pair_width_latent,
)
from scalebook.attention.kernels import (
    absorbed_traffic,
    decode_kernel_time,
    latent_append_traffic,
    least_traffic,
    prefill_kernel_time,
    tiled_pairs,
)
from scalebook.machine.kernels import typical_matmul_efficiency
from scalebook.tables import accelerators

from .attention import (
    BITS,
    DECODE,
    DECODE_AT_PEAKS,
    DEVICES,
    FLASH_SCORE_FLOPS,
    PREFILL,
    PREFILL_AT_PEAKS,
    TILE,
    calibrates_decode,
    cores_of,
    reading,
    readings_of,
    short_name,
)
from .confrontation import Confrontation, Priced
from .rows import is_even, number, numbers

__all__ = ["CONFRONTATIONS", "LATENT_DECODE", "LATENT_DECODE_BLACKWELL", "READ_SHARES", "STARTED"]

# As DECODE: on the H100's decoding, and on the B200's even rows.
LATENT_DECODE, LATENT_DECODE_BLACKWELL = reading("latent"), reading("latent", accelerators.b200)

# InferSim times kernels that PyTorch starts one by one; the share of the bandwidth belongs to kernel and device.  Both
# were fitted on the even rows of decoding.
STARTED = 22e-6
READ_SHARES = {"H20": 0.77, "H800": 0.94}

CACHED = dict(kv_rank=512, rope_dim=64)  # DeepSeek-V2 and its successors
EXPANDED = dict(nope_dim=128, rope_dim=64, v_dim=128)
GPUS = {"H20": "h20", "H800": "h800"}
DTYPES = {"bf16": 16, "fp8": 8}


# TensorRT-LLM


def _device_letters(rows):
    """The device's letters, with the peak for matrix products in the precision of the cache.

    With an 8-bit cache queries, keys and values are quantized before attention (TensorRT-LLM, mlaKernels.cu).
    """
    devices = [accelerators[DEVICES[row["system"]]] for row in rows]
    bits = np.array([BITS[row["kv_cache_dtype"]] for row in rows])
    peaks = [d.peak_fp8 if b == 8 else d.peak_bf16 for d, b in zip(devices, bits, strict=True)]
    device = dict(
        hbm_bandwidth=[d.hbm_bandwidth for d in devices], cores=[cores_of(d) for d in devices], peak_flops=peaks
    )
    return bits, {x: np.array(y) for x, y in device.items()}, np.array([d.peak_vector for d in devices])


def latent_prefill_seconds(rows, launch_time, bandwidth_efficiency, score_flops) -> np.ndarray:
    """Seconds of the operator for a prompt: latents stored, parts turned, then attention with the latents expanded."""
    bits, device, peak_vector = _device_letters(rows)
    shape = dict(zip(("batch", "heads", "seq"), numbers(rows, "batch_size", "num_heads", "isl"), strict=True))
    heads = shape["batch"] * shape["seq"] * shape["heads"]
    keys, values = EXPANDED["nope_dim"] + EXPANDED["rope_dim"], EXPANDED["v_dim"]
    append = latent_append_traffic(shape, CACHED, kv_bits=bits, activation_bits=16)
    quantized = np.where(bits == 8, heads * (2 * keys + values) * (2 + 1), 0)
    return prefill_kernel_time(
        shape,
        device,
        context=shape["seq"],
        query_tile=TILE,
        launch_time=launch_time,
        peak_vector=peak_vector,
        bandwidth_efficiency=bandwidth_efficiency,
        score_flops=score_flops,
        append_traffic=append + quantized,
        traffic=heads * ((2 * keys + values) * bits / 8 + values * 2),
        head_dim=pair_width_latent(EXPANDED, heads=1) / 2,
    )


def latent_decode_seconds(rows, launch_time, bandwidth_efficiency, item_time) -> np.ndarray:
    """Seconds of the operator for one new token a sequence: all heads read the same latents."""
    bits, device, _ = _device_letters(rows)
    batch, heads, prompt = numbers(rows, "batch_size", "num_heads", "isl")
    shape = dict(batch=batch, heads=heads, seq=1, context=prompt + np.array([float(row["step"]) for row in rows]))
    return decode_kernel_time(
        device,
        batch=shape["batch"],
        kv_heads=1,
        launch_time=launch_time,
        item_time=item_time,
        bandwidth_efficiency=bandwidth_efficiency,
        traffic=absorbed_traffic(shape, CACHED, kv_bits=bits, query_bits=16, activation_bits=16),
        flops=attention_flops(full_pairs, pair_width_absorbed, shape, CACHED),
    )


def _prompt(row):
    return row["phase"] == "context"


def _latent(rows):
    found, prompts = np.empty(len(rows)), np.array([_prompt(row) for row in rows])
    ideal = np.empty(len(rows))
    for picked, seconds, fitted, at_peaks in [
        (prompts, latent_prefill_seconds, PREFILL, PREFILL_AT_PEAKS),
        (~prompts, latent_decode_seconds, DECODE, DECODE_AT_PEAKS),
    ]:
        if picked.any():
            some = [row for row, here in zip(rows, picked, strict=True) if here]
            found[picked], ideal[picked] = seconds(some, **fitted), seconds(some, **at_peaks)
    return Priced(1e3 * found, 1e3 * ideal)


def _latent_decode(rows):
    found = readings_of(rows, "latent")
    return Priced(*(1e3 * latent_decode_seconds(rows, **x) for x in (found, DECODE_AT_PEAKS)))


def _no_latent(row):
    if row["system"] not in DEVICES:
        return "of a device that the table of accelerators lacks"
    if row["kv_cache_dtype"] not in BITS or row["mla_dtype"] not in BITS:
        return "in a precision not described here"
    if row["phase"] not in ("context", "generation"):
        return "of a phase not described here"
    if _prompt(row):
        return "" if row["step"] in ("0", "0.0") else "of a prompt with tokens in the cache"
    return "" if row["isl"] in ("1", "1.0") else "with more than one new token"


def _no_latent_decode(row):
    return "of a prompt" if _prompt(row) else _no_latent(row)


def _latent_kind(row):
    return f"{'prompts' if _prompt(row) else 'decoding'}, {short_name(DEVICES[row['system']])}, {row['kv_cache_dtype']}"


# InferSim


def _infersim_seconds(row, fitted=None, score_flops=FLASH_SCORE_FLOPS):
    fitted = fitted or DECODE | dict(launch_time=STARTED, bandwidth_efficiency=READ_SHARES[row["gpu"]])
    device = accelerators[GPUS[row["gpu"]]]
    heads, second, third = map(int, row["head_config"].split("-"))
    latent = row["kind"] == "mla"
    if row["phase"] == "prefill":
        seq = number(row, "seq_len")
        width = pair_width_latent(heads=1, nope_dim=second, rope_dim=third, v_dim=second) if latent else 2 * third
        pairs = heads * tiled_pairs(seq=seq, context=seq, query_tile=TILE)
        score = 2 * width / device.peak_bf16 + score_flops / device.peak_vector
        return fitted["launch_time"] + pairs * score
    shape = dict(batch=number(row, "batch_size"), heads=heads, seq=1, context=number(row, "kv_len"))
    bits = dict(kv_bits=DTYPES[row["kv_dtype"]], query_bits=16, activation_bits=16)
    if latent:
        own = dict(kv_rank=second, rope_dim=third)
        traffic = absorbed_traffic(shape, own, bits)
        flops = attention_flops(full_pairs, pair_width_absorbed, shape, own)
    else:
        own = dict(head_dim=third)
        traffic = least_traffic(shape, own, bits, kv_heads=second)
        flops = attention_flops(full_pairs, pair_width_grouped, shape, own)
    reached = device.get("matmul_bf16") or typical_matmul_efficiency()  # groups of 64 heads and more are arithmetic
    return decode_kernel_time(
        fitted,
        batch=shape["batch"],
        kv_heads=1 if latent else second,
        cores=device.cores,
        traffic=traffic,
        flops=flops,
        hbm_bandwidth=device.hbm_bandwidth,
        peak_flops=reached * device.peak_bf16,
    )


def _infersim(rows):
    said = np.array([1e6 * _infersim_seconds(row) for row in rows])
    return Priced(said, np.array([1e6 * _infersim_seconds(row, DECODE_AT_PEAKS, score_flops=0) for row in rows]))


def _no_infersim(row):
    if row["gpu"] not in GPUS:
        return "of a device not described here"
    if row["kind"] not in ("mha", "mla") or row["phase"] not in ("prefill", "decode") or row["dtype"] != "bf16":
        return "of a kind not described here"
    return "" if row["phase"] == "prefill" or row["kv_dtype"] in DTYPES else "in a precision not described here"


def _infersim_kind(row):
    phase = "prompts" if row["phase"] == "prefill" else "decoding"
    return f"{phase}, {row['gpu']}, {'latent' if row['kind'] == 'mla' else 'grouped'}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "attention_mla",
            "attention_mla.csv",
            "Time of latent attention, with the numbers fitted for other heads on the H100, unchanged.",
            _latent,
            "latency_ms",
            "ms",
            ("aiconfigurator",),
            _no_latent,
            _latent_kind,
        ),
        Confrontation(
            "attention_mla_decode",
            "attention_mla.csv",
            "Time of latent attention for one new token a sequence, with three numbers of its own.",
            _latent_decode,
            "latency_ms",
            "ms",
            ("aiconfigurator", "trtllm-dispatch"),
            _no_latent_decode,
            _latent_kind,
            "the launch, one bandwidth efficiency and the least time per sequence, on the H100, and for Blackwell on "
            "the even rows of the B200",
            lambda row: calibrates_decode(row) and not _prompt(row),
        ),
        Confrontation(
            "attention_infersim",
            "attention_infersim.csv",
            "Time of FlashInfer's, FlashAttention-3's and FlashMLA's kernels, each started by itself.",
            _infersim,
            "latency_us",
            "us",
            ("infersim",),
            _no_infersim,
            _infersim_kind,
            "the start of a kernel and the share of the bandwidth on each device, on the even rows of decoding",
            lambda row: not _no_infersim(row) and row["phase"] == "decode" and is_even(row),
        ),
    )
}
