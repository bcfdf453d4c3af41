"""Batches that are read together and written together, as published: nobody comes or goes before all are complete.

A batch takes one step that reads its prompts, and one for each further token of its answers.
"""

import numpy as np

from scalebook.inference import decode_step, prefill_step
from scalebook.tables import accelerators, models

from .confrontation import Confrontation
from .priced import priced
from .rows import is_half, number, numbers

__all__ = ["CONFRONTATIONS", "PROMPT_OVERHEAD", "VECTOR_SHARE", "alone", "is_fitted_curve", "parts_of_batch"]

# Two numbers of TensorRT-LLM from 0.5 to 0.9, fitted on half of the curves; a test fits them again.
# Attention to the cache ran without matrix units, each query head reading keys and values by itself, but in groups of
# eight heads since 0.8: the share of the vector units' peak that it reached.
VECTOR_SHARE = 0.11
# What the host adds to each block while a prompt is read, its kernels being launched one by one: seconds.
PROMPT_OVERHEAD = 79e-6
_PIECES = 4  # an answer is priced at the middle of each quarter

MODELS = {
    "GPT-J 6B": "gptj_6b", "LLaMA 7B": "llama1_7b", "LLaMA 70B": "llama2_70b", "Falcon 180B": "falcon_180b",
    "Mistral 7B": "mistral_7b", "Mixtral 8x7B": "mixtral_8x7b",
}  # fmt: skip


def alone(device):
    """What a group within one node leaves unused, where the device's row does not have it.

    >>> alone(accelerators.l40s), alone(accelerators.h100)
    ({'scaleout_bandwidth': 32000000000.0}, {})
    """
    return {} if "scaleout_bandwidth" in device else {"scaleout_bandwidth": device.scaleup_bandwidth}


def _contexts(prompt, output) -> np.ndarray:
    """What a new token attends to at the middle of each piece of an answer, a line for each row."""
    middles = (np.arange(_PIECES) + 0.5) / _PIECES
    return np.asarray(prompt)[:, None] + middles * np.asarray(output)[:, None]


def parts_of_batch(asked, batches, prompts, outputs, *wanted: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Seconds in which the prompts are read, and `wanted` letters of the steps, a line of pieces for each row."""
    shapes = list(zip(asked, batches, prompts, _contexts(prompts, outputs), strict=True))
    reads = [(rows, x | dict(prompts=b, read_chunk=prompt)) for (rows, x), b, prompt, _ in shapes]
    writes = [(rows, x | dict(batch=b, context=contexts)) for (rows, x), b, _, contexts in shapes]
    read = priced(prefill_step, reads, "pass_time")["pass_time"]
    return read, priced(decode_step, writes, *wanted) if wanted else {}


# TensorRT-LLM


def _asked(row):
    device = accelerators[row["gpu"].lower()].at(row["precision"].lower())
    return (models[MODELS[row["model"]]], device), dict(tp=number(row, "tp"), **alone(device))


def _shares_reads(row) -> bool:
    """Whether heads that share a key read it once: groups of eight, on matrix units since 0.8."""
    model = models[MODELS[row["model"]]]
    return model.heads == 8 * model.kv_heads and row["trtllm_version"] >= "0.8"


def _by_heads(rows) -> np.ndarray:
    """Seconds of vector arithmetic that attention to the cache takes at the peak, each query head by itself."""
    ways, batch, prompt, output = numbers(rows, "tp", "batch_size", "isl", "osl")
    of = [models[MODELS[row["model"]]] for row in rows]
    alone_reads = np.array([not _shares_reads(row) for row in rows])
    width = np.array([m.layers * m.heads * m.head_dim for m in of]) * alone_reads
    peak = np.array([accelerators[row["gpu"].lower()].peak_vector for row in rows])
    return (4 * batch * width / ways / peak)[:, None] * _contexts(prompt, output)


def step_seconds(rows, share: float = VECTOR_SHARE):
    """Seconds of reading the prompts, and of one step of writing in the mean over an answer."""
    batch, prompt, output = numbers(rows, "batch_size", "isl", "osl")
    read, parts = parts_of_batch([_asked(row) for row in rows], batch, prompt, output, "pass_time", "cache_time")
    longer = np.maximum(0, _by_heads(rows) / share - parts["cache_time"])
    return read, (parts["pass_time"] + longer).mean(axis=1)


def _layers(rows):
    return np.array([models[MODELS[row["model"]]].layers for row in rows])


def _throughput(rows):
    batch, output, tp = numbers(rows, "batch_size", "osl", "tp")
    read, each = step_seconds(rows)
    rate = batch * output / (read + PROMPT_OVERHEAD * _layers(rows) + (output - 1) * each)
    return rate / np.where(["/GPU" in row["unit"] for row in rows], tp, 1)


def _first(rows):
    batch, prompt, output = numbers(rows, "batch_size", "isl", "osl")
    read, _ = parts_of_batch([_asked(row) for row in rows], batch, prompt, output)
    return 1e3 * (read + PROMPT_OVERHEAD * _layers(rows))


def _unknown(row):
    if row["model"] not in MODELS or row["gpu"].lower() not in accelerators:
        return "of a model or a device that the tables lack"
    return ""


def _no_throughput(row):
    if row["metric"] != "throughput":
        return "of the first token, not of a batch"
    if row["trtllm_version"] == "0.6.1" and "/GPU" not in row["unit"] and number(row, "tp") > 1:
        return "of a version that prints both, without saying whether one device or all are counted"
    return _unknown(row)


def _no_first(row):
    return "of a batch, not of the first token" if row["metric"] != "first_token" else _unknown(row)


CURVE = ("model", "gpu", "precision", "tp")


def is_fitted_curve(row, columns=CURVE) -> bool:
    """Whether a row is of the half of the curves that constants are fitted on.

    >>> is_fitted_curve(dict.fromkeys(CURVE, "2"))
    True
    """
    return is_half(*(row[x] for x in columns))


def _device(row):
    return f"{row['gpu']}, {row['precision']}"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "trtllm_static",
            "trtllm_static.csv",
            "Output tokens a second of TensorRT-LLM 0.5 to 0.9 with a fixed batch, prompts read first.",
            _throughput,
            "value",
            "token/s",
            ("trtllm-performance",),
            _no_throughput,
            _device,
            "the share of vector arithmetic that attention by single heads reached, on half of the curves",
            is_fitted_curve,
        ),
        Confrontation(
            "trtllm_first_token",
            "trtllm_static.csv",
            "Time to the first token of TensorRT-LLM 0.5 to 0.9, one prompt alone.",
            _first,
            "value",
            "ms",
            ("trtllm-performance",),
            _no_first,
            _device,
            "the time that the host adds to each block of a prompt, on half of the curves",
            is_fitted_curve,
        ),
    )
}
