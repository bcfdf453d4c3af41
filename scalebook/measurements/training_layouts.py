"""Columns of training tables that follow from others by more than a pattern: layouts, releases, rates in one unit."""

import re
from functools import cache

import numpy as np

from scalebook.inference.tail import any_slow
from scalebook.tables import models

from .confrontation import Readings
from .rows import Measurement, number, optional
from .training_memory import nanotron_stages

__all__ = ["as_tokens", "bridge_kind", "in_tokens", "nanotron_readings", "nanotron_stages_of", "own_configuration"]

# Llama, Qwen and GPT-2 by the names that tables of AMD and Intel give them.
_MODELS = {
    "Llama 3.1 8B": "llama3_8b", "Llama 3.1 70B": "llama3_70b", "GPT-2 1.5B": "gpt2_xl", "GPT-2 XL 1.5B": "gpt2_xl",
    "Qwen 2.5 7B": "qwen2_5_7b", "Llama 2 7B": "llama2_7b", "Llama 2 13B": "llama2_13b", "Llama 2 70B": "llama2_70b",
    "Mixtral 8x22B": "mixtral_8x22b", "Llama 3 8B": "llama3_8b",
}  # fmt: skip
# Recipes with chunks ran exchanges of one micro-batch beside the arithmetic of another until these releases.
_IN_TURNS_UNTIL = {("DGX-H100", "Qwen3"): (26, 2), ("DGX-B300", "Qwen3"): (26, 2, 1), ("DGX-B200", "DeepS"): (99,)}


def own_configuration(row: Measurement) -> Measurement:
    """The layout and precision of the one configuration that bears the name of the row's machine, if several fit.

    Its own name says them, as in config_XE9680x8H200-SXM-141GB_1x8x2xtp1pp1cp2.sh.
    """
    name = re.sub(r"^\d+x", "", row["system"])  # without the count of machines
    own = [x for x in row["config_matched"].split(";") if name in x]
    said = re.search(r"xtp(\d+)pp(\d+)cp(\d+)", own[0]) if len(own) == 1 else None
    if row["precision"].startswith(("nvfp4", "fp8")) or not said:
        return {}
    found = dict(zip(("tp", "pp", "cp"), said.groups(), strict=True))
    return found | {"precision": "nvfp4 (its own)" if "fp4" in own[0] else "fp8 (its own)"}


@cache
def _stages(*shape: int) -> tuple[str, str]:
    stages = nanotron_stages(*shape)
    return str(max(x[0] for x in stages)), str(stages[-1][0])


def nanotron_stages_of(row: Measurement) -> Measurement:
    """Blocks of the fullest and of the last stage, as nanotron deals them out."""
    try:
        shape = (int(number(row, x)) for x in ("layers", "hidden", "ffn", "vocab", "pp"))
        most, last = _stages(*shape)
    except ValueError:
        return {}
    return {"stage_blocks": most, "last_blocks": last}


def nanotron_readings(stanza, rows: list[Measurement]) -> Readings:
    """Either mode of each run, with even nodes or with a slow one: rows do not say whether a node was slow."""
    runs = [stanza.call(row).runs[0] for row in rows]
    even = np.array([x.step_time - x.stall_exposed for x in runs])
    stalled = np.array([x.stall_time * x.received_tensors * (x.microbatches + x.pp - 1) for x in runs])
    chance = np.array([any_slow(slow_share=x.slow_share, ways=x.devices / x.scaleup_size) for x in runs])
    chance = np.where([x.tp > x.stall_ways for x in runs], 1.0, chance)
    return Readings(np.array([even, even + stalled]), np.array([1 - chance, chance]))


def bridge_kind(row: Measurement) -> Measurement:
    """Which release and recipe a row of Megatron Bridge is of, and whether something was calibrated on its kind.

    Recipes since June 2026 for 8- and 4-bit mixtures of experts on GB200 and GB300 fuse experts and launch a step as
    one graph; of Kimi K2 those with micro-batches of one sequence.
    """
    release = tuple(map(int, re.findall(r"\d+", row["container"])))[:3]
    has_experts = bool(re.search("DeepSeek|Kimi|Qwen3|GPT OSS", row["model"]))
    many = {x: _first(row, x) > 1 for x in ("vp", "pp", "mbs")}
    is_new = release[:2] >= (26, 6) and not ("Kimi" in row["model"] and many["mbs"])
    fused = is_new and "DGX-GB" in row["system"] and row["precision"] in ("MXFP8", "NVFP4")
    until = _IN_TURNS_UNTIL.get((row["system"], row["model"][:5]), ())
    in_turns = has_experts and many["vp"] and many["pp"] and release <= until
    is_launched = has_experts and "DGX-GB" not in row["system"]
    is_dense = row["system"] in ("DGX-H100", "DGX-GB300") and not has_experts
    fitted = is_launched or is_dense or ("GPT OSS" in row["model"] and fused and "GB300" in row["system"])
    blocks = 61 + ("w/o" not in row["model"]) if "DeepSeekV3" in row["model"] else _blocks(row["model"])
    unequal = bool(blocks) and -(-blocks // _first(row, "pp")) % _first(row, "vp") != 0
    said = {"fused": fused, "in_turns": in_turns, "fitted": fitted, "unequal": unequal}
    return {n: "yes" if x else "no" for n, x in said.items()}


def _first(row: Measurement, column: str) -> float:
    found = re.match(r"\d+", row[column])
    return float(found[0]) if found else 1.0


_BLOCKS = {
    "405B": 126, "LLAMA3.70B|LLAMA3_70B|LLAMA2-70B": 80, "LLAMA3.8B|LLAMA3_8B|LLAMA2-7B": 32, "LLAMA2-13B": 40,
    "Kimi_K2": 61, "Qwen3_30B": 48, "Qwen3_235B": 94, "GPT OSS 120B": 36,
}  # fmt: skip


def _blocks(model: str) -> int:
    return next((n for pattern, n in _BLOCKS.items() if re.search(pattern, model)), 0)


def as_tokens(row: Measurement) -> Measurement:
    """Step times and rates of arithmetic as tokens a second and device: six FLOPs a parameter and all pairs."""
    known = {"known_model": "yes" if row["model"] in _MODELS else "no", "tokens_s_device": ""}
    if not row["seq"] or not row["value"] or row["model"] not in _MODELS:
        return known
    value, seq, model = number(row, "value"), number(row, "seq"), models[_MODELS[row["model"]]]
    if row["unit"] in ("s", "ms"):
        seconds = value / (1000 if row["unit"] == "ms" else 1)
        value = number(row, "global_batch") * seq / seconds / optional(row, "n_gpus", 1)
    elif row["unit"].startswith("TFLOP/s"):
        value *= 1e12 / (6 * model.params + 12 * model.layers * model.hidden * seq)
    return known | {"tokens_s_device": str(value)}


def in_tokens(row: Measurement) -> Measurement:
    """Rates of all devices, in tokens or sequences, as tokens a second and device."""
    value = number(row, "value") * (number(row, "seq") if row["unit"].startswith("seq/s") else 1)
    known = "yes" if row["model"] in _MODELS else "no"
    return {"tokens_s_device": str(value / number(row, "n_devices")), "known_model": known}
