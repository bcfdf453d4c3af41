"""Training steps on AMD's Instinct, Intel's Gaudi 2 and Amazon's Trainium, as their makers and others published them.

Nothing is fitted to them.  AMD's cluster validation suite publishes lower bounds that a healthy cluster passes: of
these no error can be told, but a prediction below one would be wrong.
"""

import re

from scalebook.machine.kernels import typical_stream_efficiency
from scalebook.tables import accelerators, models

from .confrontation import Confrontation, Priced
from .rows import number, optional
from .runs import OVERLAPPED, RERUN, device, paced, step, useful_seconds
from .training_sweeps import UNFUSED

__all__ = ["CONFRONTATIONS", "THRESHOLDS"]

_MODELS = {
    "Llama 3.1 8B": "llama3_8b", "Llama 3.1 70B": "llama3_70b", "GPT-2 1.5B": "gpt2_xl", "GPT-2 XL 1.5B": "gpt2_xl",
    "Qwen 2.5 7B": "qwen2_5_7b", "Llama 2 7B": "llama2_7b", "Llama 2 13B": "llama2_13b", "Llama 2 70B": "llama2_70b",
    "llama-3.1-8b": "llama3_8b", "llama-3.3-70b": "llama3_70b", "llama-3.1-405b": "llama3_405b", "3_1_8b": "llama3_8b",
    "3_3_70b": "llama3_70b", "Mixtral 8x22B": "mixtral_8x22b", "Llama 3 8B": "llama3_8b",
}  # fmt: skip
# Of AMD's page the batch of a device is known, not that of a step: so many micro-batches, under which gradients hide.
_MICROBATCHES = 8
# FlashAttention-2 on the MI300X, of the peak in bf16: Azure's figure of the time, without a mask and with heads of 64.
# That it is of both passes follows from its row of plain attention on the A100: the 46 that FlashAttention's authors
# print of both.
_FLASH_2 = dict(attention_efficiency=328.6 / 1307.4, attention_backward=1)


def _tokens(run_of, devices):
    """Tokens a second and device, of as many as a column says: a run may count parts of them."""

    def predicted(rows):
        runs = [run_of(row) for row in rows]
        tokens = [run.global_batch * run.seq / number(row, devices) for run, row in zip(runs, rows, strict=True)]
        return paced(runs, tokens)

    return predicted


# AMD


def _as_tokens(row):
    """Step times and rates of arithmetic as tokens a second and device: six a parameter and all query-key pairs."""
    if not row["seq"] or not row["value"] or row["model"] not in _MODELS:
        return row | {"tokens_s_device": ""}
    value, seq, model = number(row, "value"), number(row, "seq"), models[_MODELS[row["model"]]]
    if row["unit"] in ("s", "ms"):
        seconds = value / (1000 if row["unit"] == "ms" else 1)
        value = number(row, "global_batch") * seq / seconds / optional(row, "n_gpus", 1)
    elif row["unit"].startswith("TFLOP/s"):
        value *= 1e12 / (6 * model.params + 12 * model.layers * model.hidden * seq)
    return row | {"tokens_s_device": str(value)}


def _unfused(gpu):
    """PyTorch without compilation, as in llm_foundry."""
    return dict(stream_efficiency=(gpu.get("stream_efficiency") or typical_stream_efficiency()) / UNFUSED)


def _amd_run(row):
    """Everything is run again where it does not fit otherwise: what was run again no row says."""
    devices, batch = number(row, "n_gpus"), number(row, "micro_batch")
    gpu, model = device(row["device"]), models[_MODELS[row["model"]]]
    gpu = gpu.at("fp8" if row["precision"].startswith("FP8") else "bf16")
    dp = devices / (number(row, "tp") * number(row, "pp") * number(row, "cp"))
    chunks = re.search(r"VPP (\d+)", row["dp_or_fsdp"])
    known = dict(
        **OVERLAPPED,
        **(_unfused(gpu) | _FLASH_2 if row["software"].startswith("2024") else {}),  # PyTorch line by line
        sharding="zero3" if "Yes" in row["dp_or_fsdp"] else "zero1",
        tp=number(row, "tp"), pp=number(row, "pp"), cp=number(row, "cp"), dp=dp,
        ep=optional(row, "ep", 1),
        chunks=float(chunks[1]) if chunks else 1,
        batch=batch,
        global_batch=optional(row, "global_batch", _MICROBATCHES * dp * batch),
        seq=number(row, "seq"),
    )  # fmt: skip
    run = step(model, gpu, **known, recompute="none")
    return run if run.memory <= gpu.hbm_capacity else step(model, gpu, **known, recompute="full")


def _no_amd(row):
    if "untuned" in row["note"]:
        return "of a developer's first runs, untuned"
    if "doubtful" in row["note"]:
        return "that its own source makes doubtful"
    if not row["seq"]:
        return "without the length of its sequences"
    if row["model"] not in _MODELS or not device(row["device"]):
        return "of a model that is not in the table"
    return ""


# Lower bounds


def _cell(row, name):
    found = re.search(rf"\b{name}=(\w+)", row["cell"])
    return found[1] if found else ""


def _is_compiled(row):
    """Whether XLA quantizes for products in 8 bits: within the kernels before them, so that products are as fast as
    alone.  What they reach in training is calibrated on steps through TransformerEngine.
    """
    return row["framework"] == "jaxmaxtext" and _cell(row, "PRECISION") == "FP8"


def _bound_run(row):
    gpu = device(f"{row['device'].removesuffix('X')}X")
    titan = row["framework"] == "torchtitan"
    tp = float(re.search(r"tensor_parallel_degree=(\d+)", row["config"])[1]) if titan else 1
    devices = 8 * number(row, "nodes")
    whole = "ici_fsdp_parallelism=-1" in row["config"] or number(row, "nodes") == 1
    gpu = gpu.at(_cell(row, "PRECISION").lower())
    return step(
        models[_MODELS[row["model"]]],
        gpu,
        **OVERLAPPED,
        **(dict(training_efficiency=gpu.matmul_efficiency) if _is_compiled(row) else {}),
        **(dict(sharding="zero3") if whole else dict(sharding="hybrid", shard_group=8)),
        **(_unfused(gpu) if titan else {}),
        **(RERUN if titan or "remat_policy=full" in row["config"] else {}),
        tp=tp,
        dp=devices / tp,
        batch=float(_cell(row, "MBS" if titan else "BATCH")),
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
        most.append(counted / run.devices / useful_seconds(run)[0])
    return Priced(found, most, most)


def _no_bound(row):
    if row["model"] not in _MODELS:
        return "of a model that is not in the table"
    if row["lower_bound"] in ("754", "754.0"):
        return "that repeats the figure of another cell, and holds its place"
    return ""


# Gaudi and Trainium


def _in_tokens(row):
    value = number(row, "value") * (number(row, "seq") if row["unit"].startswith("seq/s") else 1)
    return row | {"tokens_s_device": str(value / number(row, "n_devices"))}


# What Intel's recipes for SynapseAI 1.18 say of each model, on as many devices (Llama 2 70B on half of them); sequence
# parallelism is their default, and nothing that overlaps gradients or transfers is switched on.
_GAUDI = {
    "Llama 3.1 8B": dict(tp=4, recompute="selective"),
    "Llama 3.1 70B": dict(tp=8, recompute="selective"),
    "Llama 2 7B": dict(tp=1, recompute="selective", gradient_bits=16),
    "Llama 2 13B": dict(tp=2, pp=2, batch=2, recompute="selective", gradient_bits=16),
    "Llama 2 70B": dict(tp=8, pp=4, sharding="replicated"),
}


def _trainium_core(chip, cores):
    """One of a chip's cores.  A ring of all cores of a node passes every link between chips once, as one of chips;
    beyond the node a chip's cores share its port.
    """
    each = ("peak_flops", "hbm_bandwidth", "hbm_capacity", "scaleout_bandwidth")
    return {x: chip[x] / cores for x in each} | dict(scaleup_size=cores * chip.scaleup_size)


def _other_run(row):
    """Of Gaudi's runs the layout is that of Intel's recipe; Trainium's is in its row, counted in cores."""
    devices = number(row, "n_devices")
    if row["device"].startswith("Gaudi"):
        chip, ways = accelerators.gaudi2.at("fp8"), dict(sharding="zero1") | _GAUDI[row["model"]]
    else:  # eight key-value heads lie on 32 cores four times, and attention is run again, as in its recipe
        chip = accelerators.trainium1.at("bf16")
        ways = _trainium_core(chip, chip.cores) | dict(tp=32, sharding="zero1", recompute="selective")
        devices *= chip.cores
    known = dict(dp=devices / (ways["tp"] * ways.get("pp", 1)), global_batch=number(row, "global_batch"))
    known |= dict(seq=number(row, "seq"), collective_cores=0)  # both have engines of their own for collectives
    return step(models[_MODELS[row["model"]]], chip, **ways, **known)


def _model_and(what):
    return lambda row: f"{what(row)}, {row['model']}"


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
    _model_and(lambda row: row["device"]),
    optional=("calculation", "image"),
)

CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "amd_training",
            "training_amd.csv",
            "Tokens a second and device on MI300X and MI325X, of AMD's page and of issues of its libraries.",
            _tokens(_amd_run, "n_gpus"),
            "tokens_s_device",
            "token/s",
            ("primus-projection", "rocm-te-issues"),
            _no_amd,
            _model_and(lambda row: row["device"].removeprefix("AMD Instinct ")),
            completed=_as_tokens,
        ),
        Confrontation(
            "gaudi_trainium",
            "training_gaudi_trainium.csv",
            "Tokens a second and device on Gaudi 2 in 8 bits and Trainium 1; of Gaudi's runs the layout is that of "
            "Intel's recipes.",
            _tokens(_other_run, "n_devices"),
            "tokens_s_device",
            "token/s",
            ("intel-gaudi2-training", "intel-gaudi2-recipes", "neuron-benchmarks", "neuron-recipes"),
            lambda row: "" if row["model"] in _MODELS else "of a model that is not in the table",
            _model_and(lambda row: row["device"].partition(" (")[0]),
            completed=_in_tokens,
        ),
    )
}
