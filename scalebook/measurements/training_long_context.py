"""Training on long sequences: NeMo's table of context parallelism, from 4,096 tokens to a million; nothing is fitted.

The table counts all query-key pairs: NeMo's formulas of that time have no factor for a causal mask, and with half of
the pairs its rates would be above what attention kernels reach alone.
"""

from scalebook.tables import models

from .confrontation import Confrontation, number
from .runs import OVERLAPPED, device, flash_2, step

__all__ = ["CONFRONTATIONS"]

_NAMES = {"LLAMA2-7B": "llama2_7b", "LLAMA3-8B": "llama3_8b"}


def _known(row):
    gpu = device(row["system"]).at("fp8" if row["precision"] == "FP8" else "bf16")
    letters = OVERLAPPED | dict(seq=number(row, "seq_len"), batch=1)
    if "H100" in row["system"]:  # of March 2024
        letters |= flash_2(letters["seq"])
    return models[_NAMES[row["model"]]], gpu, letters


def _ways(row, tp, pp, cp):
    """Devices that remain are data-parallel: the printed number does not always multiply out.

    Where they outnumber the sequences of the batch, each gets one.
    """
    dp = number(row, "n_gpus") / (tp * pp * cp)
    ways = dict(tp=tp, pp=pp, cp=cp, dp=dp, global_batch=max(number(row, "gbs"), dp))
    return ways | dict(tp_overlap=1 - 1 / tp, cp_overlap=1 - 1 / cp)


def _rate(run):
    return run.model_flops / (run.step_time * run.devices) / 1e12


def _with_context_parallelism(rows):
    found = []
    for row in rows:
        model, gpu, letters = _known(row)
        found.append(_rate(step(model, gpu, **letters, **_ways(row, *(number(row, x) for x in ("tp", "pp", "cp"))))))
    return found


def _without(rows):
    """The table's best without context parallelism, whose strategy it does not print: our fastest that fits.

    Libraries are left a twentieth of the memory.
    """
    found = []
    for row in rows:
        model, gpu, letters = _known(row)
        runs = [
            step(model, gpu, **letters, **_ways(row, tp, pp, 1), recompute=recompute)
            for tp in (1, 2, 4, 8)
            for pp in (1, 2, 4, 8)
            for recompute in ("none", "full")
            if number(row, "n_gpus") % (tp * pp) == 0
        ]
        fits = [run for run in runs if run.memory <= 0.95 * gpu.hbm_capacity] or runs
        found.append(max(map(_rate, fits)))
    return found


def _left_out(row):
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
            _left_out,
            _kind,
            optional=("container", "tflops_gpu_best_without_cp"),
        ),
        Confrontation(
            "nemo_long_context_without",
            "training_long_context.csv",
            f"{_WHAT}, without context parallelism; tensor and pipeline parallelism, which the table does not print, "
            "as we find "
            "them fastest.",
            _without,
            "tflops_gpu_best_without_cp",
            "TFLOP/s",
            ("nemo-long-sequence",),
            _left_out,
            _kind,
            optional=("container", "tflops_gpu_with_cp", "tp", "pp", "cp"),
        ),
    )
}
