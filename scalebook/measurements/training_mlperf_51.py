"""Training steps of MLPerf training 5.1: Llama 3.1 8B and 405B, and adapters for Llama 2 70B, on five makers' devices.

Nothing is fitted to them.  The layout of a row is that of the submitter's configuration with its devices and batch.
"""

import re

from scalebook.tables import models

from .confrontation import Confrontation
from .rows import number, optional
from .runs import OVERLAPPED, device, step, timed

__all__ = ["CONFRONTATIONS"]

_MODELS = {"llama31_8b": "llama3_8b", "llama31_405b": "llama3_405b", "llama2_70b_lora": "llama2_70b"}


def _own_configuration(row):
    """Of several configurations that fit, the one that bears the name of the row's machine: it says how many ways and
    which precision in its own name, as in config_XE9680x8H200-SXM-141GB_1x8x2xtp1pp1cp2.sh.
    """
    name = re.sub(r"^\d+x", "", row["system"])  # without the count of machines
    own = [x for x in row["config_matched"].split(";") if name in x]
    said = re.search(r"xtp(\d+)pp(\d+)cp(\d+)", own[0]) if len(own) == 1 else None
    if _precision(row) or not said:
        return row
    found = dict(zip(("tp", "pp", "cp"), said.groups(), strict=True))
    return row | found | {"precision": "nvfp4 (its own)" if "fp4" in own[0] else "fp8 (its own)"}


def _precision(row):
    """As the configuration says, "" where several fit that differ."""
    said = row["precision"]
    if said.startswith(("nvfp4", "fp8")):
        return "fp4" if said.startswith("nvfp4") else "fp8"
    return ""


def _count(row, column):
    """A whole number that a configuration may leave at one."""
    return optional(row | {column: "" if row[column] == "null" else row[column]}, column, 1)


def _run(row, recompute):
    tp, pp, cp = (_count(row, x) for x in ("tp", "pp", "cp"))
    return step(
        models[_MODELS[row["benchmark"]]],
        device(row["device"]).at(_precision(row)),
        **OVERLAPPED,
        trained="lora" if row["benchmark"].endswith("lora") else "all",
        recompute=recompute,
        tp=tp,
        pp=pp,
        cp=cp,
        dp=number(row, "n_gpus") / (tp * pp * cp),
        batch=_count(row, "micro_batch_config"),
        chunks=_count(row, "virtual_pp"),
        global_batch=number(row, "global_batch"),
        seq=number(row, "seq"),
        tp_overlap=1 - 1 / tp,
        cp_overlap=1 - 1 / cp,
    )


def _share_again(row):
    """The share of the blocks that are run again: so many are named, or none."""
    named = re.search(r"ACL=(\d+)", row["recompute_config"])
    return float(named[1]) / models[_MODELS[row["benchmark"]]].layers if named else 0


def _predicted(rows):
    runs = [_run(row, "none") for row in rows]
    shares = [_share_again(row) for row in rows]
    more = [share and share * (_run(row, "full").step_time - run.step_time)
            for share, row, run in zip(shares, rows, runs, strict=True)]  # fmt: skip
    return timed(runs, [run.step_time + x for run, x in zip(runs, more, strict=True)])


def _left_out(row):
    if row["benchmark"] not in _MODELS:
        return "of another benchmark"
    if not device(row["device"]):
        return "on a device that is not in the table"
    if not all(row[x] for x in ("tp", "pp", "cp", "step_time_s_derived")):
        if row["config_matched"]:
            return "that several configurations fit, of different layouts, none of which bears its machine's name"
        return "of which no configuration with its devices and batch was published"
    return "" if _precision(row) else "for which configurations in 8 and in 4 bits fit alike, none under its own name"


def _kind(row):
    what = {"llama31_8b": "8B", "llama31_405b": "405B", "llama2_70b_lora": "adapters for 70B"}[row["benchmark"]]
    bits = 4 if _precision(row) == "fp4" else 8
    return f"{what}, {device(row['device']).name.removeprefix('NVIDIA ').removeprefix('AMD Instinct ')}, {bits} bits"


CONFRONTATIONS = {
    "mlperf_training_51": Confrontation(
        "mlperf_training_51",
        "training_mlperf_51.csv",
        "Time of a step in MLPerf training 5.1: Llama 3.1 8B and 405B, and adapters for Llama 2 70B whose own weights "
        "are frozen.",
        _predicted,
        "step_time_s_derived",
        "s",
        ("mlperf-training-v51",),
        _left_out,
        _kind,
        completed=_own_configuration,
        optional=("train_step_time_s_logged_median", "samples_per_s_logged_median", "run_time_s_median_derived",
                  "tokens_per_s_per_gpu_derived", "framework", "grad_accum_logged", "n_runs"),
    )
}  # fmt: skip
