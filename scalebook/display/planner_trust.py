"""How far a plan is to be trusted: errors of rows like it, and the public measured services that stand beside it."""

import csv
import json
import re
from importlib.resources import files

from scalebook.measurements import confront
from scalebook.measurements.serving import DRAFTED, SYSTEMS, _model, devices_of, least_seconds, lengths, users_of
from scalebook.tables import accelerators, engines

__all__ = ["NOT_MODELLED", "measured", "trained", "trust"]

# Sets of training steps whose rows say model, devices and precision, and whose prediction takes little time.
_TRAINING = ("mlperf_training", "llama3", "torchtitan", "megascale", "megatron_bridge", "mlperf_training_51")
_FAMILIES = {"train": ("step time", "memory"), "serve": ("decoding", "first token")}
NOT_MODELLED = {
    "train": "stragglers, failures and restarts, the file system, evaluation, work space of libraries",
    "serve": "prefix caches, drafted tokens, uneven lengths and experts, a network shared with others, restarts",
}


def trust() -> dict:
    """Of each family of measurements: sets, rows, the median error, and the share that lies in its interval."""
    record = json.loads((files("scalebook.measurements") / "record.json").read_text("utf-8"))
    known = {x["name"]: x for x in record["families"]}
    names = ("sets", "rows", "median", "covered")
    said = {job: [[x, *(known[x][n] for n in names)] for x in families] for job, families in _FAMILIES.items()}
    return dict(said, without=NOT_MODELLED)


def trained() -> list:
    """Published training steps: model, device, number of devices, precision, and the error of the step's time.

    >>> trained()[0][:4]
    ['Llama-3.1-405B', 'gb200', 1024, 'fp8']
    """
    found = []
    for name in _TRAINING:
        result = confront(name)
        is_time = "time" in result.confrontation.what.lower().split()
        for row, error in zip(result.rows, result.errors, strict=True):
            device = _device(" ".join(row.get(x) or "" for x in ("gpu", "accelerator", "device", "system")))
            model, many = row.get("model") or row.get("benchmark"), row.get("n_gpus") or row.get("n_accel")
            if not device or not model or not many:
                continue
            precision = row.get("precision") or ("fp8" if row.get("fp8") == "True" else "bf16")
            off = error if is_time else 1 / (1 + error) - 1  # of a rate it is turned over
            found.append([model, device, int(float(many)), precision.lower()[:8], round(float(off), 3)])
    return found


def _device(text: str) -> str:
    """The accelerator that a row's words name."""
    words = re.findall(r"[a-z]+\d+\w*", text.lower())
    return next((x for x in accelerators if x in words or x.removesuffix("_sxm") in words), "")


def measured() -> list:
    """Public runs of services: model, device, engine, precision, devices and lengths, then for each run its users and
    its times in ms, as a text.

    >>> measured()[0][:4]
    ['minimax_m2_5', 'b300', 'vllm', 'fp8']
    """
    with (files("scalebook.measurements") / "serving.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: dict[tuple, list] = {}
    for row in rows:
        if row["mode"] != "agg" or not _model(row) or row["system"] not in SYSTEMS or row["backend"] not in engines:
            continue
        first, each = float(row["silicon_ttft_ms"] or 0), float(row["silicon_tpot_ms"] or 0)
        if not first or devices_of(row) > 8 or each / 1e3 < least_seconds(row):
            continue  # drafted tokens, or columns that say otherwise
        if "DeepSeek" in row["model_path"] and row["backend_version"] == DRAFTED:
            continue
        said = [_model(row), SYSTEMS[row["system"]], row["backend"], row["precision"] or "bf16", int(devices_of(row))]
        said += [round(x) for x in lengths(row).values()]
        run = [int(users_of(row)), float(f"{first:.2g}"), float(f"{each:.3g}")]
        found.setdefault(tuple(said), []).append(run)
    return [[*said, ";".join(" ".join(f"{x:g}" for x in run) for run in runs)] for said, runs in found.items()]
