"""Evidence for the planner's page: prediction errors by family of measurements, and public measured runs."""

import json
import math
import re
from functools import cache
from importlib.resources import files

from scalebook.book.measured.serving import run_of

from scalebook.measurements import confront, find
from scalebook.tables import accelerators

__all__ = ["NOT_MODELLED", "measured", "trained", "trust"]

# Sets of training steps whose rows say model, devices and precision, and whose prediction takes little time.
_TRAINING = ("mlperf_training", "llama3", "torchtitan", "megascale", "megatron_bridge", "mlperf_training_51")
_FAMILIES = {
    "train": ("step time", "memory"),
    "serve": ("decoding", "first token"),
    "rl": ("updates of reinforcement learning",),
}
NOT_MODELLED = {
    "train": "stragglers, the file system, evaluation, work space of libraries",
    "serve": "prefix caches, uneven lengths and experts, a network shared with others, restarts",
    "rl": "reading prompts, tools that take time, discarded answers, lengths that change, drafts, failures",
}


def trust() -> dict:
    """Return each measurement family's number of sets and rows, median error, and share of rows inside the interval."""
    record = json.loads((files("scalebook.measurements") / "record.json").read_text("utf-8"))
    known = {x["name"]: x for x in record["families"]}
    names = ("sets", "rows", "median", "covered")
    said = {job: [[x, *(known[x][n] for n in names)] for x in families] for job, families in _FAMILIES.items()}
    return dict(said, without=NOT_MODELLED)


def trained() -> list:
    """Return published training steps: model, device, number of devices, precision, and error of the predicted time.

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
    """Return the key of the accelerator that a text names, or ""."""
    words = re.findall(r"[a-z]+\d+\w*", text.lower())
    return next((x for x in accelerators if x in words or x.removesuffix("_sxm") in words), "")


# A time of a run is the nearest power of these, since it is drawn and not told; first tokens have two digits in print.
STEPS = dict(first=1.08, each=1.04)
_MIDDLE = 26
_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@cache
def measured() -> dict:
    """Return public serving runs by setting, in columns: model, device, engine, precision, devices, prompt and output.

    `users`, `first` (TTFT) and `each` (TPOT) hold a text per setting. Times in ms are powers of the number in `steps`.

    >>> found = measured()
    >>> found["model"][0], found["users"].split()[0][:11], found["each"].split()[0][:9]
    ('deepseek_v3', '4,4,4,8,8,8', '56:aaefaa')
    """
    found: dict[tuple, list] = {}
    for row in find("serving_ttft").kept():
        run = run_of(row)
        said = run.model, run.device, row["backend"], row["precision"] or "bf16", int(run.devices)
        times = float(row["silicon_ttft_ms"]), float(row["silicon_tpot_ms"])
        found.setdefault((*said, round(run.prompt), round(run.output)), []).append((int(run.users), *times))
    names = ("model", "device", "engine", "precision", "devices", "prompt", "output")
    columns = {x: [said[i] for said in sorted(found)] for i, x in enumerate(names)}
    runs = [sorted(found[said]) for said in sorted(found)]
    columns["users"] = " ".join(",".join(f"{x[0]}" for x in own) for own in runs)
    for i, (name, step) in enumerate(STEPS.items(), 1):
        columns[name] = " ".join(_changes([round(math.log(x[i]) / math.log(step)) for x in own]) for own in runs)
    return columns | dict(steps=STEPS)


def _changes(numbers: list[int]) -> str:
    """Return whole numbers as text: each is a sign for its difference from the last, or itself and ":" if it is far.

    >>> _changes([61, 62, 60, 200])
    '61:bY200:'
    """
    signs = []
    for last, x in zip([None, *numbers], numbers, strict=False):
        place = -1 if last is None else x - last + _MIDDLE
        signs.append(_SIGNS[place] if 0 <= place < len(_SIGNS) else f"{x}:")
    return "".join(signs)
