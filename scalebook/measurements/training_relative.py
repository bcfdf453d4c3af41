"""Training tables that no single call answers: rates over those of one device, and lower bounds of a cluster."""

import re

import numpy as np

from scalebook.tables import accelerators, frameworks, models
from scalebook.training.totals import useful_times

from .confrontation import Confrontation, Priced
from .rows import number, optional
from .runs import device, gpt_of, of_set, step

__all__ = ["CONFRONTATIONS", "THRESHOLDS"]

# Columns that only other tables of the file use.
_OTHERS = ("tflops_gpu", "mfu_pct", "step_time_s", "scaling_eff_pct", "speedup_vs_1", "recompute", "precision")


def _v100(row):
    """Megatron-LM of 2019 on V100 of a DGX-2; gradients are kept and summed in 16 bits."""
    ways = {x: optional(row, x, 1) for x in ("tp", "pp", "dp")}
    known = dict(batch=number(row, "mbs"), global_batch=number(row, "gbs"), seq=number(row, "seq_len"))
    gpu = accelerators.v100_dgx2.at("fp16")
    return step(gpt_of(row), gpu, frameworks.megatron_2021, recompute="full", gradient_bits=16, **ways, **known)


def _rate(row):
    run = _v100(row)
    return run.hardware_flops / (run.step_time * number(row, "n_gpus"))


def _alone(row):
    """The model of 1.2 billion parameters on one device, which the others are held against."""
    return row | dict(layers="40", hidden="1536", heads="16", n_gpus="1", tp="1", dp="1", gbs=row["mbs"])


# Lower bounds that AMD's validation suite accepts

_MODELS = {
    "llama-3.1-8b": "llama3_8b", "llama-3.3-70b": "llama3_70b", "llama-3.1-405b": "llama3_405b", "3_1_8b": "llama3_8b",
    "3_3_70b": "llama3_70b",
}  # fmt: skip


def _cell(row, name):
    found = re.search(rf"\b{name}=(\w+)", row["cell"])
    return found[1] if found else ""


def _bound_run(row):
    """MaxText and torchtitan; XLA quantizes within the kernels before products, so 8-bit ones are as fast as alone."""
    gpu, is_titan = device(f"{row['device'].removesuffix('X')}X"), row["framework"] == "torchtitan"
    tp = float(re.search(r"tensor_parallel_degree=(\d+)", row["config"])[1]) if is_titan else 1
    devices = 8 * number(row, "nodes")
    whole = "ici_fsdp_parallelism=-1" in row["config"] or number(row, "nodes") == 1
    gpu = gpu.at(_cell(row, "PRECISION").lower())
    is_compiled = row["framework"] == "jaxmaxtext" and _cell(row, "PRECISION") == "FP8"
    return step(
        models[_MODELS[row["model"]]],
        gpu,
        frameworks.torchtitan if is_titan else frameworks.maxtext_gpu,
        **(dict(training_efficiency=gpu.matmul_efficiency) if is_compiled else {}),
        **(dict(sharding="zero3") if whole else dict(sharding="hybrid", shard_group=8)),
        **(dict(recompute="full", unread_rerun=0) if is_titan or "remat_policy=full" in row["config"] else {}),
        tp=tp,
        dp=devices / tp,
        batch=float(_cell(row, "MBS" if is_titan else "BATCH")),
        microbatches=1,
        seq=8192,
        scaleout_bandwidth="50 GB/s",
    )


def _bounds(rows):
    """Tokens or TFLOP a second and device, as the row has them; MaxText counts half of the query-key pairs."""
    found, most = [], []
    for row in rows:
        run = _bound_run(row)
        pairs = 6 * run.layers * run.heads * run.head_dim * run.seq**2 * run.global_batch
        counted = (run.model_flops - pairs) / 1e12 if "tflops" in row["metric"] else run.global_batch * run.seq
        found.append(counted / run.devices / run.step_time)
        most.append(counted / run.devices / useful_times(run)[0])
    return Priced(np.array(found), np.array(most), np.array(most))


def _no_bound(row):
    if row["model"] not in _MODELS:
        return "of a model that is not in the table"
    return "that repeats the figure of another cell, and holds its place" if row["lower_bound"][:3] == "754" else ""


# Held apart from the confrontations, since what is above a bound is no error.
THRESHOLDS = Confrontation(
    "amd_thresholds",
    "training_amd_thresholds.csv",
    "Lower bounds that AMD's validation suite accepts of a cluster, in tokens or TFLOP a second and device: no "
    "errors, but a prediction below one is wrong.",
    _bounds,
    "lower_bound",
    "token/s or TFLOP/s",
    ("rocm-cvs",),
    _no_bound,
    lambda row: f"{row['device']}, {row['model']}",
    optional=("calculation", "image"),
)

CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "shoeybi_weak",
            "training_megatron.csv",
            "Weak scaling of tensor and data parallelism on V100: the rate of a device over that of one alone.",
            lambda rows: [100 * _rate(row) / _rate(_alone(row)) for row in rows],
            "scaling_eff_pct",
            "%",
            ("shoeybi2019",),
            of_set("shoeybi2019_fig5"),
            lambda row: f"tp {row['tp']}",
            optional=_OTHERS,
        ),
        Confrontation(
            "shoeybi_strong",
            "training_megatron.csv",
            "Strong scaling of tensor parallelism on V100: one model of 1.2B on one device to eight.",
            lambda rows: [_v100(_alone(row)).step_time / _v100(row).step_time for row in rows],
            "speedup_vs_1",
            "times",
            ("shoeybi2019",),
            of_set("shoeybi2019_table8"),
            lambda row: f"tp {row['tp']}",
            optional=_OTHERS,
        ),
    )
}
