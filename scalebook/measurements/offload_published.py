"""Training with a second tier, as DeepSpeed published it: the largest models, how fast, and how much faster.

Shapes and batches are not stated: models are GPT's at a usual width, everything is run again, and the batch is the one
that we find fastest where it fits.
"""

import re

from scalebook.memory import replicated
from scalebook.tables import accelerators, frameworks, links

from .confrontation import Confrontation
from .rows import number
from .runs import gpt, step

__all__ = ["CONFRONTATIONS"]

# On the host gradients lie in 32 bits, since the optimizer runs there; and DeepSpeed's estimator asks for half as much
# again for buffers.  SuperOffload leaves the weights, and a tenth of the optimizer, on the device.
_BITS = dict(weight_bits=16, gradient_bits=32, optimizer_bits=96)
_BUFFERS, _SUPER_SHARE = 1.5, 0.9
_SHAPES = {"13B": (40, 5120, 40), "1T": (128, 25600, 160)}  # GPT-3's 13B, Megatron's trillion
_VOCAB = 51200
_BATCHES = (1, 2, 4, 8, 16, 32)
_SEQUENCES = 64  # of a step on one device; many devices take one micro-batch each
# A GH200 is an H100 with faster memory beside 480 GB of its host's, as its makers say.
_GH200 = dict(hbm_capacity="96 GB", hbm_bandwidth="4 TB/s")
_GH200_HOST = 480e9
_LARGEST, _RATE, _GAIN, _SHARE = "largest model", "rate of a device", "gain over ZeRO-2 Offload", "share of the peak"


def _kind(row):
    """What a row says, "" where it is nothing that is predicted."""
    if "max trainable" in row["model"]:
        return _LARGEST
    if _shape(row) is None:
        return ""
    return next((kind for column, kind in (("tflops_gpu", _RATE), ("speedup", _GAIN), ("mfu_pct", _SHARE))
                 if row[column]), "")  # fmt: skip


def _value(row):
    """With the one figure that a row has, in a column of its own."""
    kind, found = _kind(row), re.search(r"max trainable ([\d.]+)([BT])", row["model"])
    if kind == _LARGEST and found:
        return row | {"value": f"{float(found[1]) * {'B': 1e9, 'T': 1e12}[found[2]]:g}"}
    column = {_RATE: "tflops_gpu", _GAIN: "speedup", _SHARE: "mfu_pct"}.get(kind, "")
    return row | {"value": row[column] if column else ""}


def _shape(row):
    said = re.match(r"[\d.]+[BT]", row["model"])
    return gpt(*_SHAPES[said[0]], _VOCAB) if said and said[0] in _SHAPES else None


def _host(row):
    """Bytes of the second tier."""
    said = re.search(r"([\d.]+) ?TB CPU", row["gpu"])
    return float(said[1]) * 1e12 if said else _GH200_HOST


def _largest(row):
    """Parameters whose state fills the host's memory, as DeepSpeed's own estimator counts it."""
    state = replicated(**_BITS)
    if row["system"].startswith("SuperOffload"):
        state = _SUPER_SHARE * (state - _BITS["weight_bits"])
    return 8 * number(row, "n_gpus") * _host(row) / (state * _BUFFERS)


def _run(row, **letters):
    """The fastest batch that fits, or the least where none does."""
    v100 = accelerators.v100.at("fp16")
    known = dict(recompute="full", attention="unfused", seq=1024, gradient_bits=16, optimizer_offload=1)
    often = {b: _SEQUENCES / b if letters["dp"] == 1 else 1 for b in _BATCHES}
    runs = [
        step(_shape(row), v100, frameworks.plain, **known, **letters, batch=b, microbatches=n) for b, n in often.items()
    ]
    fits = [run for run in runs if run.memory <= v100.hbm_capacity] or runs[:1]
    return max(fits, key=lambda run: run.global_batch / run.step_time)


def _rate(row):
    """TFLOP/s a device, with what is run again: DeepSpeed counts eight operations a parameter and token."""
    devices = number(row, "n_gpus")
    run = _run(row, dp=devices, sharding="zero3", weight_offload=1, dp_overlap=1, scaleout_bandwidth="12.5 GB/s")
    return run.hardware_flops / run.step_time / devices / 1e12


def _gain(row):
    """ZeRO 3 leaves weights on the host, so that larger batches fit than beside them."""
    now, before = _run(row, dp=1, sharding="zero3", weight_offload=1), _run(row, dp=1, sharding="zero2")
    return now.global_batch / now.step_time / (before.global_batch / before.step_time)


def _share(row):
    """A sequence of a million tokens, its heads dealt out to the devices."""
    run = step(
        _shape(row), accelerators.h100.at("bf16"), frameworks.plain, **_GH200, recompute="full", sharding="zero3",
        context_exchange="all_to_all", cp=number(row, "n_gpus"), dp=1, batch=1, microbatches=1, seq=2**20,
        weight_offload=1, activation_offload=1, optimizer_offload=1,
        host_bandwidth=links.nvlink_c2c.link_bandwidth,
    )  # fmt: skip
    return 100 * run.mfu


_PREDICTS = {_LARGEST: _largest, _RATE: _rate, _GAIN: _gain, _SHARE: _share}


def _left_out(row):
    if "ablation" in row["system"]:
        return "of one part of SuperOffload's software (its Adam, casts, speculation, buckets), of which no formula is"
    kind = _kind(row)
    if not kind or not row["value"]:
        return "of a model whose shape is not known, or without a figure"
    if kind in (_RATE, _GAIN) and not row["gpu"].startswith("V100"):
        return "of a rate or a gain on another device than the V100, whose link alone is described here"
    return ""


CONFRONTATIONS = {
    "offload_training_published": Confrontation(
        "offload_training_published",
        "offload_training_published.csv",
        "Training with a second tier in DeepSpeed: the largest model, the rate of a device, the gain of keeping "
        "weights there too, and the share of the peak over a million tokens.",
        lambda rows: [_PREDICTS[_kind(row)](row) for row in rows],
        "value",
        "parameters, TFLOP/s, times or %",
        ("deepspeed-zero3-offload", "deepspeed-superoffload", "deepspeed-memory"),
        _left_out,
        _kind,
        completed=_value,
        alike=_kind,
    )
}
