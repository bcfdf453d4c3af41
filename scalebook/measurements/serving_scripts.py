"""What the scripts of InferenceX tell engines, and rows of serving.csv do not say.

They are in `benchmarks` of its repository, one for each engine, model and device.

>>> row = dict(backend="sglang", backend_version="0.5.9", system="b200_sxm", precision="fp8", concurrency="16")
>>> row["origin"] = "InferenceX/run"
>>> wait_steps(row, "deepseek_v3"), wait_steps(row | {"concurrency": "8"}, "deepseek_v3")
(15.0, 5.0)
"""

import re

from scalebook.inference import fullest_group
from scalebook.tables import engines

from .rows import number

__all__ = [
    "COMPILED",
    "deals_experts_out",
    "dealt",
    "generations",
    "has_wide_caches",
    "is_of_inferencex",
    "latest_first_token",
    "wait_steps",
]

# Rows of these files are copies of InferenceX's, rounded: 78 of 79 stand beside their originals.
_COPIES = r"source_file=(qwen3\.5-397b|kimi-k2\.5)-gap-analysis\.csv"
# Steps after which SGLang looks for requests (`scheduler_recv_interval`) on Blackwell: up to 15 users, and from 16 on.
POLLED = {"deepseek_v3": (10, 30), "qwen3_5_397b": (10, 30)}
POLLED_ALIKE = ("qwen3_5_397b", "fp8", "0.5.10.post1")  # after 10, however many users there are
# Steps for which TensorRT-LLM waits for more prompts (`batch_wait_timeout_iters`): of Llama 3.1 70B, prompts and
# answers of 1,024 tokens, on fewer than eight devices.
GATHERED = 20
# Whose caches the scripts leave as wide as the checkpoint has them: 16 bits of these, which are not NVIDIA's.
_AS_TRAINED = (
    ("trtllm", "gpt_oss_120b", "h[12]00_sxm", ""),
    ("sglang", "deepseek_v3", "h200_sxm", ""),
    ("sglang", "glm_5", "h200_sxm", ""),
    ("vllm", "minimax_m2_5", ".*", r"0\.1[678]\..*"),
)

# Benchmarks were not warmed up before January 2026 (InferenceX, pull request 480), nor quite since (issue 2819): first
# tokens so many times as late as prompts explain are of kernels that were compiled meanwhile.
COMPILED = 2


def is_of_inferencex(row) -> bool:
    """Whether a row is of its public runs, or a copy of one."""
    return row["origin"].startswith("InferenceX") or bool(re.match(_COPIES, row["origin"]))


def generations(row) -> int:
    """Requests of each user: ten, but of GLM-5 on H200.

    >>> generations({"backend_version": "0.5.9"}), generations({"backend_version": "glm5-hopper"})
    (10, 5)
    """
    return 5 if row["backend_version"] == "glm5-hopper" else 10


def wait_steps(row, model: str) -> float | None:
    """Steps that a request waits for in the mean, where the script says more than half of one."""
    if not is_of_inferencex(row):
        return None
    if row["backend"] == "sglang" and row["system"].startswith(("b200", "b300")) and model in POLLED:
        is_alike = (model, row["precision"], row["backend_version"]) == POLLED_ALIKE
        return POLLED[model][number(row, "concurrency") >= 16 and not is_alike] / 2
    short = row["backend"] == "trtllm" and model == "llama3_70b" and row["isl"] == row["osl"] == "1024"
    return GATHERED + 0.5 if short and float(row["tp_size"] or 1) < 8 else None


def has_wide_caches(row, model: str) -> bool:
    """Whether the script leaves caches in the 16 bits of the checkpoint, though weights have fewer.

    >>> row = dict(backend="vllm", backend_version="0.18.0", system="h100_sxm", origin="InferenceX/run")
    >>> has_wide_caches(row, "minimax_m2_5"), has_wide_caches(row | {"backend_version": "0.19.0"}, "minimax_m2_5")
    (True, False)
    """
    run = row["backend"], model, row["system"], row["backend_version"]
    return is_of_inferencex(row) and any(
        run[:2] == said[:2] and re.fullmatch(said[2], run[2]) and re.fullmatch(said[3] or ".*", run[3])
        for said in _AS_TRAINED
    )


def deals_experts_out(row, model: str) -> bool:
    """Whether experts are dealt out over the devices, though the row says that each is split.

    The first scripts of MiniMax-M2.5 in 8 bits asked whether `EP_SIZE` is one or more, and it always is.

    >>> row = dict(backend="vllm", backend_version="0.16.0", system="h200_sxm", precision="fp8")
    >>> row["origin"] = "InferenceX/run"
    >>> deals_experts_out(row, "minimax_m2_5"), deals_experts_out(row | {"system": "h100_sxm"}, "minimax_m2_5")
    (True, False)
    """
    run = row["backend"], model, row["precision"], row["system"], row["backend_version"]
    first = run[3:] in {("h200_sxm", "0.16.0"), ("h200_sxm", "0.18.0"), ("b200_sxm", "0.17.0")}
    return is_of_inferencex(row) and run[:3] == ("vllm", "minimax_m2_5", "fp8") and first


def latest_first_token(row, users: float, output: float, waited: float) -> float:
    """Milliseconds: the latest mean first token of a group's users that the run's own time per token leaves room for.

    While an answer is written, each other user begins one request at most, so a prompt takes no longer than the time
    of a request over the other users.  It waits for half of theirs in the first of the generations, in the later ones
    for hardly any, and is read; the engine waits for its own steps.

    >>> row = dict(backend="sglang", backend_version="", silicon_ttft_ms="8621", silicon_tpot_ms="18.5")
    >>> round(latest_first_token(row, users=32, output=922, waited=15))
    2548
    """
    engine = engines[row["backend"]]
    first, each = number(row, "silicon_ttft_ms"), number(row, "silicon_tpot_ms")
    whole = first + (output - 1) * each
    reads = whole * (1 / (users - 1) + 1 / (2 * generations(row))) if users > 1 else whole
    return 1e3 * engine.first_overhead + reads + (engine.first_tokens - 1 + waited) * each


def dealt(groups: float, users: float) -> dict[str, float]:
    """What the fullest of several groups has where users come to any of them: engines of benchmarks deal by turns.

    >>> dealt(1, 64), round(dealt(8, 128)["fullest_group"], 2)
    ({}, 1.51)
    """
    return {"fullest_group": fullest_group(attention_dp=groups, batch=max(1, users / groups))} if groups > 1 else {}
