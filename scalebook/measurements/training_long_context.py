"""Training on long sequences: NeMo's table of context parallelism, from 4,096 tokens to a million; nothing is fitted.

The table counts all query-key pairs: NeMo's formulas of that time have no factor for a causal mask, and with half of
the pairs its rates would be above what attention kernels reach alone.
"""

import numpy as np

from scalebook.tables import models

from .confrontation import Confrontation, Priced
from .rows import number
from .runs import OVERLAPPED, device, flash_2, step, useful_seconds

__all__ = ["CONFRONTATIONS"]

# Tensor parallelism may reach beyond a node and a stage hold one block: a long batch has few sequences to deal out.
_WAYS = (1, 2, 4, 8, 16, 32)
_NAMES = {"LLAMA2-7B": "llama2_7b", "LLAMA3-8B": "llama3_8b"}


def _known(row):
    gpu = device(row["system"]).at("fp8" if row["precision"] == "FP8" else "bf16")
    letters = OVERLAPPED | dict(seq=number(row, "seq_len"), batch=1)
    if "H100" in row["system"]:  # of March 2024
        letters |= flash_2(letters["seq"])
    return models[_NAMES[row["model"]]], gpu, letters


def _ways(row, tp, pp, cp):
    """Devices that remain are data-parallel: the printed number does not always multiply out."""
    ways = dict(tp=tp, pp=pp, cp=cp, dp=number(row, "n_gpus") / (tp * pp * cp), global_batch=number(row, "gbs"))
    return ways | dict(tp_overlap=1 - 1 / tp, cp_overlap=1 - 1 / cp)


def _rate(run):
    return run.model_flops / (run.step_time * run.devices) / 1e12


def _beside_peaks(runs):
    """Masked pairs are counted, which take no time: rates above the peak are possible."""
    most = [[run.model_flops / (time * run.devices) / 1e12 for time in useful_seconds(run)] for run in runs]
    return Priced([_rate(run) for run in runs], *np.array(most).T)


def _with_context_parallelism(rows):
    found = []
    for row in rows:
        model, gpu, letters = _known(row)
        found.append(step(model, gpu, **letters, **_ways(row, *(number(row, x) for x in ("tp", "pp", "cp")))))
    return _beside_peaks(found)


def _without(rows):
    """The table's best without context parallelism, whose strategy it does not print: our fastest that fits.

    Libraries are left a twentieth of the memory.
    """
    found = []
    for row in rows:
        model, gpu, letters = _known(row)
        runs = [
            step(model, gpu, **letters, **_ways(row, tp, pp, 1), recompute=recompute)
            for tp in _WAYS
            for pp in _WAYS
            for recompute in ("none", "full")
            if number(row, "n_gpus") % (tp * pp) == 0 and number(row, "gbs") % (number(row, "n_gpus") / (tp * pp)) == 0
        ]
        fits = [run for run in runs if run.memory <= 0.95 * gpu.hbm_capacity] or runs
        found.append(max(fits, key=_rate))
    return _beside_peaks(found)


def _left_out(row, column):
    if not row[column]:
        return "without a figure: the table's cell is empty"
    if row["model"] not in _NAMES:
        return "of a model that is not in the table"
    return "" if device(row["system"]) else "on a device that is not in the table"


def _kind(row):
    length = "up to 32,768" if number(row, "seq_len") <= 32768 else "beyond 32,768"
    return f"{device(row['system']).name.split()[1]}, {length} tokens"


_WHAT = "Rate of Llama 2 7B on H100 and of Llama 3 8B on B200, 8-bit products, sequences of 4,096 tokens and more"
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "nemo_long_context",
            "training_long_context.csv",
            f"{_WHAT}, with context parallelism; all query-key pairs are counted.",
            _with_context_parallelism,
            "tflops_gpu_with_cp",
            "TFLOP/s",
            ("nemo-long-sequence",),
            lambda row: _left_out(row, "tflops_gpu_with_cp"),
            _kind,
            optional=("container", "tflops_gpu_best_without_cp"),
        ),
        Confrontation(
            "nemo_long_context_without",
            "training_long_context.csv",
            f"{_WHAT}, without context parallelism; tensor and pipeline parallelism, which the table does not print, "
            "as we find them fastest.",
            _without,
            "tflops_gpu_best_without_cp",
            "TFLOP/s",
            ("nemo-long-sequence",),
            lambda row: _left_out(row, "tflops_gpu_best_without_cp"),
            _kind,
            optional=("container", "tflops_gpu_with_cp", "tp", "pp", "cp"),
        ),
    )
}
