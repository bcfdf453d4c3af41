"""Rows of training tables as calls of `training_step`: which device, which model, what the row says of the strategy."""

import re
from functools import cache

import numpy as np

from scalebook.language import Row
from scalebook.language.row import Cell
from scalebook.tables import accelerators
from scalebook.training.step import training_step

from .confrontation import Priced
from .rows import Measurement, number

__all__ = [
    "DEEPSPEED", "LIBRARIES_2021", "MEGATRON_2021", "MEGATRON_2022", "OVERLAPPED", "RERUN", "block_passes", "dense",
    "device", "flash_2", "gpt", "gpt_of", "of_set", "paced", "peaks", "rated", "rerun_flops", "step", "timed", "tuned",
    "useful_seconds",
]  # fmt: skip

# Megatron-LM before FlashAttention and before data-parallel overlap; at first nothing ran beside gradients either.
MEGATRON_2022 = dict(attention="unfused", sharding="replicated")
MEGATRON_2021 = dict(**MEGATRON_2022, tp_beside=0)
# Libraries of 2021 to 2023 on the A100: single products of gemm_eleuther reach 0.9 of what those of 2025 do in gemm, of
# the peak; nothing is fitted to steps.  Clocks that fall within a step are in it.
LIBRARIES_2021 = dict(sustained_rate=0.9)
# The NeMo framework's recipes: tensor- and context-parallel collectives in pieces under the products they belong to, of
# which the first piece alone is waited for; transfers and data-parallel collectives beside arithmetic.
OVERLAPPED = dict(dp_overlap=1, pp_overlap=1)
# JAX's checkpoints, and PyTorch's that are not re-entrant (they stop early), run again what the backward pass reads;
# Megatron's and DeepSpeed's run again all of a block.
RERUN = dict(recompute="full", unread_rerun=0)
# What a block of Megatron-DeepSpeed takes beside our kernels and collectives for each micro-batch, forward, run again
# and backward: fitted on half of BLOOM's rows, the cause not known (scalebook/measurements/README.md).
DEEPSPEED = 18e-3
# FlashAttention-2 on the H100, causal, heads of 128, forward and backward, of the peak, by tokens
# (attention_flash.csv).
_FLASH_2 = {4096: 0.30, 16384: 0.33}

_DEVICES = (
    (r"GB300", "gb300"), (r"GB200", "gb200"), (r"B300", "b300"), (r"B200", "b200"), (r"H200", "h200"), (r"H100",
    "h100"), (r"A100", "a100"), (r"V100", "v100"),
    *((f"MI{x}X", f"mi{x}x") for x in (300, 325, 350, 355)),
)  # fmt: skip


def device(text: str):
    """The accelerator that a text names, None for one that is not in the table."""
    name = next((key for pattern, key in _DEVICES if re.search(pattern, text, re.IGNORECASE)), None)
    return accelerators[name] if name else None


def block_passes(microbatches, pp, layers):
    """How many blocks a device runs one after another, with those that it waits for in a pipeline."""
    return (microbatches + pp - 1) * layers / pp


def flash_2(seq: float) -> dict[str, float]:
    """Letters of attention on the H100 before FlashAttention-3, of July 2024."""
    return dict(
        attention_efficiency=float(np.interp(seq, list(_FLASH_2), list(_FLASH_2.values()))), attention_backward=1.0
    )


@cache
def dense(name: str, norm: str, attention: str, **letters: float) -> Row:
    """A model without experts, of a table's own shape; one row for one shape, so that its sheets are kept."""
    cells = {n: Cell(float(x), name) for n, x in (letters | dict(moe_layers=0, experts=0)).items()}
    return Row(name, cells, {"norm": norm, "attention": attention})


@cache
def gpt(layers: float, hidden: float, heads: float, vocab: float, name: str = "GPT") -> Row:
    """A model of GPT's blocks: as many key-value heads as queries, four times as wide inside, one embedding."""
    own = dict(layers=layers, hidden=hidden, heads=heads, head_dim=hidden / heads, ffn=4 * hidden, vocab=vocab)
    return dense(name, "layernorm", "mha", **own, kv_heads=heads, gating=0, embeddings=1, learned_positions=2048)


def gpt_of(row: Measurement) -> Row:
    """The GPT whose shape stands in a row."""
    return gpt(*(number(row, x) for x in ("layers", "hidden", "heads", "vocab")))


def of_set(*names: str):
    """Why a row is left out of the sets whose names begin so: nothing, or that it is of another."""
    return lambda row: "" if row["set"].startswith(names) else "of another table of the same file"


def rerun_flops(row: Measurement) -> float:
    """FLOPs of a step of a GPT whose blocks are run again (Narayanan et al. 2021, equation 3)."""
    layers, hidden, seq, vocab = (number(row, x) for x in ("layers", "hidden", "seq_len", "vocab"))
    per_layer = 96 * number(row, "gbs") * seq * layers * hidden**2
    return per_layer * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))


def step(*knowns, **letters) -> Row:
    """`training_step`, its missing time said as an error."""
    run = training_step(*knowns, **letters)
    run["step_time"]  # says why it has none
    return run


def useful_seconds(run: Row) -> tuple:
    """Seconds of a step at the peak of all its devices: as MFU counts arithmetic, and without masked pairs.

    The second nothing can beat: half of the pairs are masked.
    """
    rate = run.devices * run.peak_flops
    width = 2 * run.head_dim if "head_dim" in run else run.nope_dim + run.rope_dim + run.v_dim
    masked = 3 * run.layers * run.heads * width * run.seq**2 * run.global_batch
    return run.model_flops / rate, np.maximum(0, run.model_flops - masked) / rate


def timed(runs, times=None) -> Priced:
    """The times of steps, of runs one by one, beside those at the peak."""
    runs = list(runs)
    least = zip(*map(useful_seconds, runs), strict=True)
    return Priced([run.step_time for run in runs] if times is None else times, *least)


def paced(runs, counted, times=None) -> Priced:
    """What is counted of each step (tokens, TFLOP of a device) over its time, of runs one by one, beside the peaks."""
    taken = [run.step_time for run in runs] if times is None else times
    seconds = taken, *zip(*map(useful_seconds, runs), strict=True)
    return Priced(*([n / x for n, x in zip(counted, each, strict=True)] for each in seconds))


def rated(found, peak) -> Priced:
    """Rates or shares that runs reach, beside those of devices at their peak."""
    return Priced(found, peak, peak)


def peaks(rows, column: str = "gpu", precision: str = "bf16") -> list[float]:
    """TFLOP/s of the devices that rows name."""
    return [device(row[column]).at(precision).peak_flops / 1e12 for row in rows]


def tuned(model: Row, gpu: Row, options: list[dict], capacity: float, **letters) -> Row:
    """The fastest of several options that fits, by our own prediction: for what a paper tuned and does not state."""
    runs = []
    for option in options:
        try:
            runs.append(step(model, gpu, **letters, **option))
        except (KeyError, ValueError):
            continue  # not a whole number of micro-batches, or a schedule that does not run them
    fits = [run for run in runs if run.memory <= capacity] or runs
    return min(fits, key=lambda run: run.step_time)
