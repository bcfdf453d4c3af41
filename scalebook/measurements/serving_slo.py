"""vLLM on eight H200 by length of prompts: GLM-5, which attends to picked keys, and two other mixtures of experts.

Nothing is fitted.  Users are those who have room, the others wait; rows whose medians describe no user are left out.
"""

import numpy as np

from scalebook.inference import serve
from scalebook.tables import accelerators, models

from .confrontation import Confrontation
from .priced import priced
from .rows import number
from .serving import scaled

__all__ = ["CONFRONTATIONS", "mean_share", "predicted"]

# How the experiment's file names say that devices share a model: "tp8", or "tep8" with experts apart.
RUNS = {
    "zai-org/GLM-5-FP8": ("glm_5", dict(tp=8, ep=1)),
    "MiniMaxAI/MiniMax-M2.5": ("minimax_m2_5", dict(tp=8, ep=8)),
    "Qwen/Qwen3.5-397B-A17B": ("qwen3_5_397b", dict(tp=8, ep=1)),
}
APART = 0.1  # from the mean user's time, by which medians may differ that still describe one


def _asked(row):
    model, layout = RUNS[row["model"]]
    lengths = dict(prompt=number(row, "isl"), output=number(row, "osl"), users=number(row, "concurrency"))
    # Caches have 16 bits unless vLLM is told otherwise, for the keys and latents of these checkpoints too.
    # vLLM's attention to picked keys picks them for short prompts too.
    letters = dict(kv_bits=16, engine="vllm") | (dict(dense_tokens=0) if model == "glm_5" else {})
    letters |= scaled(models[model], "h200", 8, 8)
    return (models[model], accelerators.h200.at("fp8")), layout | lengths | letters


def _room(rows) -> np.ndarray:
    return priced(serve, [_asked(row) for row in rows], "max_users")["max_users"]


def predicted(rows, letter: str) -> np.ndarray:
    """A time of users in seconds, as many at once as have room."""
    asked = [_asked(row) for row in rows]
    users = np.minimum([letters["users"] for _, letters in asked], _room(rows))
    served = [(known, letters | dict(users=n)) for (known, letters), n in zip(asked, users, strict=True)]
    return priced(serve, served, letter)[letter]


def mean_share(row) -> float:
    """The median first token and further tokens, over the time of the mean request by Little's law.

    >>> row = dict(row_id="x", concurrency="4", duration_s="50", num_prompts="40", median_ttft_s="1",
    ...            median_tpot_s="0.03", osl="101")
    >>> mean_share(row)
    0.8
    """
    mean = number(row, "concurrency") * number(row, "duration_s") / number(row, "num_prompts")
    return (number(row, "median_ttft_s") + (number(row, "osl") - 1) * number(row, "median_tpot_s")) / mean


def _left_out(row):
    if row["model"] not in RUNS or row["engine"] != "vLLM" or row["precision"] != "fp8":
        return "of a model whose blocks are not described here, or not of vLLM in FP8"
    if row["model"].startswith("Qwen/"):
        return "of Qwen3.5, whose first token takes four seconds after 1,024 tokens: something besides its steps"
    if abs(mean_share(row) - 1) > APART:
        return "with medians that do not add up to the mean user's time, and so describe no user"
    return ""


def _no_first(row):
    if reason := _left_out(row):
        return reason
    waits = number(row, "concurrency") > _room([row])[0]
    return "of more users than have room: first tokens wait for the answers of others" if waits else ""


CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "h200_slo",
            "h200_slo.csv",
            "Time per output token by length of prompts, with picked keys and with all.",
            lambda rows: predicted(rows, "tpot"),
            "median_tpot_s",
            "s",
            ("inferencex-slo",),
            _left_out,
            lambda row: row["model"].split("/")[1],
        ),
        Confrontation(
            "h200_slo_first",
            "h200_slo.csv",
            "Time to the first token by length of prompts, where all users have room.",
            lambda rows: predicted(rows, "ttft"),
            "median_ttft_s",
            "s",
            ("inferencex-slo",),
            _no_first,
            lambda row: row["model"].split("/")[1],
        ),
    )
}
