"""TensorRT-LLM under maximum load: as many sequences as there is room for, prompts read as answers end.

The benchmark has so many requests of one length, all there from the start, that many engines answer them in one or
two generations, the last of which leaves room empty.
"""

from functools import cache

import numpy as np

from scalebook.tables import accelerators, libraries, models

from .confrontation import Confrontation
from .formats import BITS, is_unpacked, precision_for
from .load import room_for, step_of_load
from .rows import number, optional
from .serving_static import alone, is_fitted_curve

__all__ = ["CONFRONTATIONS", "CURVE", "REACHED", "SEQUENCE_TIME", "rates", "release"]

# Two numbers of TensorRT-LLM, fitted on half of the curves; a test fits them again.  What 0.14 reaches of the rate that
# its kernels alone give: what is missing grows with a step's time, and not with its sequences.
REACHED = 0.8
# What the host adds to a step for each sequence since 1.0, whose runtime is in Python: seconds.
SEQUENCE_TIME = 23e-6
# Sequences of a group at most: the default of engines that are built, and trtllm-bench's own choice since.
MOST = {"0.14": 2048, "1": 4096}
OF_FREE = 0.95  # the part of the memory that weights leave which the benchmark gives to caches
# Its requests, by tokens of prompt and answer, as the page that prints the results says.
REQUESTS = {
    (128, 128): 30000, (128, 2048): 3000, (128, 4096): 1500, (500, 2000): 3000, (1000, 1000): 3000, (1000, 2000): 1500,
    (2048, 128): 3000, (2048, 2048): 1500, (5000, 500): 1500, (20000, 2000): 1000, (1024, 1024): 3000,
    (1024, 8192): 1500, (1024, 32768): 1000, (8192, 1024): 1500, (32768, 1024): 1000,
}  # fmt: skip
MANY = 10**6  # of other lengths: neither the start nor the end counts

DEVICES = {
    "H200-SXM-141GB": "h200", "H100-SXM-80GB": "h100", "B200-180GB": "b200", "GB200-192GB (NVL72)": "gb200",
    "A100-SXM4-80GB": "a100", "L40S": "l40s", "RTX-PRO-6000-SE": "rtx_pro_6000",
}  # fmt: skip
MODELS = {
    "Llama-3-70B": "llama3_70b", "Llama-3.3-70B": "llama3_70b", "Llama-3.1-405B": "llama3_405b",
    "Llama-4-Maverick": "llama4_maverick", "Llama-4-Scout": "llama4_scout", "Qwen3-30B-A3B": "qwen3_30b_a3b",
    "Qwen3-235B-A22B": "qwen3_235b_a22b", "gpt-oss-20b": "gpt_oss_20b", "gpt-oss-120b": "gpt_oss_120b",
    "DeepSeek-R1-0528": "deepseek_v3", "Llama-3.1-8B": "llama3_8b",
}  # fmt: skip


def _bits(model: str, precision: str) -> tuple[float, float]:
    """Of dense weights and of experts, as checkpoints have them."""
    bits = BITS[precision.lower().replace("fp16", "bf16")]
    if model.startswith("gpt-oss"):
        return 16, 4.25
    return (16, bits) if model.startswith("DeepSeek") and bits < 8 else (bits, bits)


def _named(row) -> dict[str, str]:
    return {name: row[name] for name in ("model", "gpu", "pp", "n_gpus", "precision")}


def _asked(model: str, gpu: str, pp: str, n_gpus: str, precision: str):
    """Rows and letters of a group: of a mixture of experts, which are dealt out, each device attends for its own.

    The benchmark's options say so; the page calls it TP in 1.0 and DEP since.
    """
    shape, device = models[MODELS[model]], accelerators[DEVICES[gpu]]
    dense, expert = _bits(model, precision)
    ways = float(n_gpus) / float(pp)
    by_expert = ways > 1 and bool(shape.get("experts"))
    letters = dict(weight_bits=dense, kv_bits=16 if precision == "FP16" else 8, pp=float(pp))
    letters |= dict(tp=1, attention_dp=ways) if by_expert else dict(tp=ways, attention_dp=1)
    letters |= dict(activation_bits=8 if dense <= 8 else 16, **alone(device))
    if by_expert:
        letters["exchange"] = "gather"
    if shape.get("experts"):
        there = device.at("bf16" if is_unpacked(device, expert) else precision_for(device, expert))
        letters |= dict(ep=ways, etp=1, expert_bits=expert, expert_peak=there.peak_flops)
        reached = libraries.trtllm_unpacked_experts.matmul_efficiency if is_unpacked(device, expert) else there.get("matmul_efficiency", 0.6)
        letters["expert_efficiency"] = reached
    return (shape, device.at(precision_for(device, dense))), letters


def _cached(model, tokens: float) -> float:
    """Tokens that a block keeps in the mean: some keep no more than their window."""
    share = model.window_layers / model.layers
    return tokens - share * max(0, tokens - model.window)


def release(row) -> str:
    """Which of the runtimes a row is of.

    >>> release({"trtllm_version": "0.14.0"}), release({"trtllm_version": "1.1+"})
    ('0.14', '1')
    """
    return "0.14" if row["trtllm_version"].startswith("0.") else "1"


def rates(rows, reached: float, sequence_time: float) -> np.ndarray:
    """Output tokens a second of one device; room is kept for whole answers.

    All requests begin together and are of one length, so generations follow each other, and the last one has the
    sequences that are left.
    """
    asked = [_asked(**_named(row)) for row in rows]
    prompt, output, devices = (np.array([number(row, n) for row in rows]) for n in ("isl", "osl", "n_gpus"))
    ways = np.array([letters["attention_dp"] for _, letters in asked])
    known = [REQUESTS.get((p, o), MANY) for p, o in zip(prompt, output, strict=True)]
    requests = [optional(row, "requests", n) for row, n in zip(rows, known, strict=True)] / ways
    most = [min(MOST[release(row)], np.floor(_room(row))) for row in rows]
    batch = np.minimum(most, requests)
    whole, left = np.divmod(requests, batch)
    batches = np.stack([batch, np.maximum(1, left)], axis=1)
    step, read = step_of_load(asked, batches, prompt, output)
    old = np.array([release(row) == "0.14" for row in rows])
    host = batches * np.where(old, 0, sequence_time)[:, None]
    written = output * (np.stack([whole, left > 0], axis=1) * (step + host)).sum(axis=1)
    return np.where(old, reached, 1) * ways * requests * output / (requests * read[:, 0] + written) / devices


@cache
def _tokens(**named: str) -> float:
    """Tokens of a group's sequences for which there is room."""
    return room_for([_asked(**named)], 1, 1, OF_FREE)[0]


def _room(row) -> float:
    """Sequences for whose whole answers there is room."""
    named = _named(row)
    return _tokens(**named) / _cached(models[MODELS[row["model"]]], number(row, "isl") + number(row, "osl"))


def _left_out(row):
    if row["model"] not in MODELS or row["gpu"] not in DEVICES:
        return "of a model or a device that the tables lack"
    return "of weights and one sequence that do not fit" if _room(row) < 1 else ""


def _release(row):
    return f"{row['trtllm_version']}, {row['gpu'].partition('-')[0].partition(' ')[0]}"


CURVE = ("model", "gpu", "parallel")


CONFRONTATIONS = {
    "trtllm_max_load": Confrontation(
        "trtllm_max_load",
        "trtllm_max_load.csv",
        "Output tokens a second and device of TensorRT-LLM 0.14 to 1.1 with as many sequences as there is room for.",
        lambda rows: rates(rows, REACHED, SEQUENCE_TIME),
        "out_tok_s_gpu",
        "token/s",
        ("trtllm-perf-overview",),
        _left_out,
        _release,
        "what 0.14 reaches of its kernels' rate, and what the host adds to a step for each sequence since 1.0, "
        "on half of the curves",
        lambda row: is_fitted_curve(row, CURVE),
    )
}
