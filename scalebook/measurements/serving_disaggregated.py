"""Answers written on devices of their own: the step of the workers that decode, by the kernels of the step alone.

Nothing is fitted.  The users of a worker are all users over the workers; prompts are read elsewhere and delay nobody.
"""

import re

import numpy as np

from scalebook.inference import decode_step
from scalebook.tables import engines

from .confrontation import Confrontation, Priced
from .priced import priced
from .rows import number
from .serving import SYSTEMS, devices_along, knowns_of, least_seconds, lengths, model_of
from .serving_scripts import dealt

__all__ = ["CONFRONTATIONS", "step_seconds"]

_DECODING = "decode_{}"
BLOCK = 128  # values that share a scale in 8 bits: experts that are said to be split thinner are dealt out instead


def _asked(row):
    model, device, letters = knowns_of(row, _DECODING)
    letters.pop("exchange", None)  # wide groups send tokens to their experts
    said = lengths(row)
    groups = number(row, "decode_num_workers") * letters["attention_dp"]
    letters["batch"] = max(1.0, number(row, "concurrency") / groups)
    letters |= dealt(letters["attention_dp"], letters["batch"] * letters["attention_dp"])
    letters["context"] = said["prompt"] + said["output"] / 2
    if letters["attention_dp"] == 1:  # small sums by the engines' own kernels, as measured alone
        letters |= dict(sum_latency=0.0, near_latency=0.0, collective_launch=device.sum_launch)
    elif model.get("experts") and model.expert_ffn / letters["etp"] < BLOCK:
        letters |= dict(ep=letters["ep"] * letters["etp"], etp=1.0)
    return (model, device), letters


def step_seconds(rows) -> np.ndarray:
    """Seconds of a step of the workers that decode."""
    return priced(decode_step, [_asked(row) for row in rows], "pass_time")["pass_time"]


def _left_out(row):
    if row["mode"] != "disagg":
        return "of prompts and answers on the same devices"
    if not model_of(row):
        return "of a model whose blocks are not described here"
    if row["system"] not in SYSTEMS or row["backend"] not in engines:
        return "of a system or an engine that the tables lack"
    if not float(row["decode_num_workers"] or 0) or not float(row["concurrency"] or 0):
        return "without a number of workers: columns that hold all devices as one worker"
    if not float(row["silicon_tpot_ms"] or 0):
        return "without a time per token"
    if number(row, "silicon_tpot_ms") / 1e3 < least_seconds(row, _DECODING):
        return "faster than the weights that a token uses can be read: drafted tokens, or other columns than the run's"
    return ""


def _kind(row):
    engine = engines[row["backend"]].name
    return f"{engine}, {re.sub('_sxm', '', row['system'])}" + ", by data" * (
        devices_along(row, "decode_attention_dp_size") > 1
    )


CONFRONTATIONS = {
    "serving_disaggregated": Confrontation(
        "serving_disaggregated",
        "serving.csv",
        "Time per output token where prompts are read on other devices, by the kernels of the step.",
        lambda rows: Priced(1e3 * step_seconds(rows), 1e3 * np.array([least_seconds(row, _DECODING) for row in rows])),
        "silicon_tpot_ms",
        "ms",
        ("inferencex",),
        _left_out,
        _kind,
    )
}
