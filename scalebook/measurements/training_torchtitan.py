"""Llama 3.1 in torchtitan: FSDP, tensor parallelism with and without overlap, context parallelism, pipelines.

Nothing is fitted to it.  PyTorch's products and kernels are those that training_sweeps.py found on other rows;
`torch.compile` fuses element-wise steps.  A pipeline takes as many micro-batches as it has stages.  Where the power of
a device is limited its clock falls, with the cube root of the power, as voltage falls with it.
"""

import re

from scalebook.tables import models

from .confrontation import Confrontation
from .rows import number, optional
from .runs import device, flash_2, paced, step
from .training_sweeps import PYTORCH, unfused

__all__ = ["CONFRONTATIONS"]

_MODELS = {"Llama-3.1-8B": "llama3_8b", "Llama-3.1-70B": "llama3_70b", "Llama-3.1-405B": "llama3_405b"}


def _is_8_bits(row):
    return "float8" in row["precision"]


def _run(row, recompute):
    gpu = device(row["gpu"]).at("fp8" if _is_8_bits(row) else "bf16")
    tp, pp, cp, batch = (optional(row, x, 1) for x in ("tp", "pp", "cp", "mbs"))
    is_interleaved = "interleaved" in (row["schedule"] + row["technique"]).lower()
    software = PYTORCH["h100"] | flash_2(number(row, "seq_len"))
    if "HBM2e" in row["gpu"]:
        software |= dict(hbm_bandwidth="2.4 TB/s")
    if limit := re.search(r"(\d+)W", row["gpu"]):
        software |= dict(sustained_rate=software["sustained_rate"] * (float(limit[1]) / gpu.tdp) ** (1 / 3))
    if "compile" not in row["technique"]:
        software |= unfused(gpu)
    is_async = "async" in row["technique"].lower()
    return step(
        models[_MODELS[row["model"]]],
        gpu,
        **software,
        recompute=recompute,
        sharding="zero3",
        dp_overlap=1,
        tp_beside=0,
        tp_overlap=1 - 1 / tp if is_async else 0,
        tp=tp,
        pp=pp,
        cp=cp,
        dp=number(row, "fsdp"),
        batch=batch / pp,
        microbatches=pp,
        chunks=2 if is_interleaved else 1,
        seq=number(row, "seq_len"),
    )


def _rates(rows):
    """Tokens a second and device.

    "Selective" runs every second product again: the mean of all and nothing run again.
    """
    words = [("full",) if row["recompute"].startswith("full") else ("none", "full") for row in rows]
    found = [[_run(row, word) for word in some] for row, some in zip(rows, words, strict=True)]
    times = [sum(run.step_time for run in runs) / len(runs) for runs in found]
    first = [runs[0] for runs in found]
    return paced(first, [run.global_batch * run.seq / run.devices for run in first], times)


def _left_out(row):
    if not row["set"].startswith("torchtitan"):
        return "of another table of the same file"
    if row["model"] not in _MODELS:
        return "of a model that is not in the table"
    ways = number(row, "fsdp") * optional(row, "tp", 1) * optional(row, "pp", 1) * optional(row, "cp", 1)
    return "" if ways == number(row, "n_gpus") else "whose dimensions do not multiply to its devices"


def _kind(row):
    return f"{row['model'].removeprefix('Llama-3.1-')}, {'8' if _is_8_bits(row) else '16'} bits"


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "torchtitan",
            "training_torchtitan.csv",
            "Tokens a second and device of Llama 3.1 8B to 405B in torchtitan on 8 to 512 H100 and H200.",
            _rates,
            "tok_s_gpu",
            "token/s",
            ("torchtitan", "mudge2001"),
            _left_out,
            _kind,
        ),
    )
}
